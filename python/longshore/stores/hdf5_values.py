"""What HDF5 has and NumPy or JSON have not quite: element types, texts with a way of being stored, attributes.

Types are those of NumPy wherever a file's bytes are what NumPy's elements are; a type that NumPy has nothing for is
taken as bytes of its size, with its name beside it, so that it can be moved all the same.
"""

from __future__ import annotations

import ctypes
import functools
import math
import os
import re
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import numpy as np

from ..errors import LongshoreError, NotInstalledError, StoreError
from .array import ArrayFacts, GroupFacts

_MAX_ATTRIBUTE_BYTES = 64 << 20
_MAX_TEXTS = 1 << 16
_METADATA_BYTES = 4 << 20
_BFLOAT16 = ((15, 7, 8, 0, 7), 127)
"""Its places of sign, exponent and mantissa, and the bias of its exponent, as HDF5 has them."""


def h5py_module() -> Any:
    """h5py; NotInstalledError with the line that installs it."""
    try:
        import h5py
    except ImportError as error:
        raise NotInstalledError(f"HDF5 files need h5py ({error}); pip install 'longshore[hdf5]'") from None
    return h5py


def library_lock() -> Any:
    """The lock under which h5py calls the HDF5 library, which is not made for several threads. Not all of h5py's
    functions for single chunks take it themselves."""
    from h5py._objects import phil

    return phil


@contextmanager
def told(what: str) -> Iterator[None]:
    """h5py has many kinds of errors, of many lines: each becomes a StoreError of one."""
    try:
        yield
    except (LongshoreError, MemoryError):
        raise
    except Exception as error:
        reason = str(error.args[0] if isinstance(error, KeyError) and error.args else error)
        first = (reason.splitlines() or [type(error).__name__])[0]
        number = error.errno if isinstance(error, OSError) else None
        said = f"{what}: {_of_system(number, first) if number else first[:200]}"
        raise (StoreError(number, said) if number else StoreError(said)) from None


def _of_system(number: int, reason: str) -> str:
    """What the system said, and in brackets what the library was at: its own text has that at its end, behind names of
    files and addresses."""
    system = os.strerror(number)
    doing = re.split("[:,]", reason.removeprefix(f"[Errno {number}] "), maxsplit=1)[0].replace(" (", ", ")[:200]
    return system if doing.startswith(system) else f"{system} ({doing})"


def bound_metadata(file_id: Any) -> None:
    """Gives the library a fixed cache for metadata, which for indices of chunks takes some seven times the memory that
    it is said to have. A file that is written changes on the disk when it is flushed and hardly otherwise as long as
    this has room for what has changed, so that after a kill it is as it was at the last flush."""
    config = file_id.get_mdc_config()
    config.set_initial_size = True
    config.initial_size = config.min_size = config.max_size = _METADATA_BYTES
    file_id.set_mdc_config(config)


# -- element types --------------------------------------------------------------------------------------------------


def type_of(type_id: Any) -> tuple[np.dtype | None, str]:
    """The dtype of a file's elements, byte for byte, and the format's own name where NumPy has none; no dtype where
    elements are of variable length or refer to others."""
    from h5py import h5t

    try:
        dtype = type_id.dtype
    except (TypeError, ValueError, NotImplementedError):
        dtype = None
    if type_id.detect_class(h5t.VLEN) or type_id.detect_class(h5t.REFERENCE) or _is_variable_text(type_id):
        return None, _name_of(type_id)
    if dtype is not None and dtype.hasobject:
        return None, _name_of(type_id)
    if dtype is not None and dtype.subdtype is None and dtype.itemsize and _same_bytes(type_id, dtype):
        return dtype, ""
    return np.dtype(f"V{type_id.get_size()}"), _name_of(type_id)


def _is_variable_text(type_id: Any) -> bool:
    from h5py import h5t

    kind = type_id.get_class()
    if kind == h5t.STRING:
        return bool(type_id.is_variable_str())
    if kind == h5t.COMPOUND:
        return any(_is_variable_text(type_id.get_member_type(i)) for i in range(type_id.get_nmembers()))
    return kind == h5t.ARRAY and _is_variable_text(type_id.get_super())


def _same_bytes(type_id: Any, dtype: np.dtype) -> bool:
    """Whether the bytes of a file's element are those of an element of the dtype that h5py has for it, which may be one
    that it would convert to."""
    from h5py import h5t

    if type_id.get_size() != dtype.itemsize:
        return False
    kind = type_id.get_class()
    if kind in (h5t.INTEGER, h5t.BITFIELD):
        return type_id.get_precision() == 8 * dtype.itemsize
    if kind == h5t.FLOAT:
        return bool(type_id.equal(h5t.py_create(dtype)))
    if kind == h5t.ENUM:
        return _same_bytes(type_id.get_super(), np.dtype("i1") if dtype.kind == "b" else dtype)
    if kind == h5t.ARRAY:
        return dtype.subdtype is not None and _same_bytes(type_id.get_super(), dtype.subdtype[0])
    if kind == h5t.COMPOUND and dtype.names is not None:
        return all(
            type_id.get_member_offset(i) == dtype.fields[name][1]  # type: ignore[index]
            and _same_bytes(type_id.get_member_type(i), dtype.fields[name][0])  # type: ignore[index]
            for i, name in enumerate(dtype.names)
        )
    if kind == h5t.COMPOUND:  # complex numbers, as h5py has them
        part = np.dtype(f"{dtype.byteorder}f{dtype.itemsize // 2}") if dtype.itemsize <= 16 else np.dtype(np.longdouble)
        members = [type_id.get_member_type(i) for i in range(type_id.get_nmembers())]
        offsets = [type_id.get_member_offset(i) for i in range(type_id.get_nmembers())]
        return offsets == [0, part.itemsize] and all(_same_bytes(member, part) for member in members)
    if kind == getattr(h5t, "COMPLEX", -1):
        return bool(type_id.equal(h5t.py_create(dtype))) or dtype.kind == "c"
    return kind in (h5t.STRING, h5t.OPAQUE)


def _name_of(type_id: Any) -> str:
    """For people."""
    from h5py import h5t

    kind, size = type_id.get_class(), type_id.get_size()
    if kind == h5t.STRING:
        return "variable-length string" if type_id.is_variable_str() else f"string of {size} bytes"
    if kind == h5t.VLEN:
        return f"variable-length list of {_name_of(type_id.get_super())}"
    if kind == h5t.REFERENCE:
        return "object reference" if type_id.equal(h5t.STD_REF_OBJ) else "region reference"
    if kind == h5t.ARRAY:
        return f"{type_id.get_array_dims()} of {_name_of(type_id.get_super())}"
    if kind == h5t.COMPOUND:
        return f"compound of {', '.join(_name_of(type_id.get_member_type(i)) for i in range(type_id.get_nmembers()))}"
    if kind == h5t.FLOAT:
        if not _is_bfloat16(type_id):
            return f"float of {size} bytes"
        return "big-endian bfloat16" if type_id.get_order() == h5t.ORDER_BE else "bfloat16"
    if kind == h5t.INTEGER:
        return f"integer of {type_id.get_precision()} bits in {size} bytes"
    return f"HDF5 type of class {kind} and {size} bytes"


def _is_bfloat16(type_id: Any) -> bool:
    return type_id.get_size() == 2 and (type_id.get_fields(), type_id.get_ebias()) == _BFLOAT16


def type_for(facts: ArrayFacts) -> Any:
    """The HDF5 type that an array's elements are stored as: that of the source, if this was an HDF5 file. Raises
    TypeError where HDF5 has none."""
    from h5py import h5t, opaque_dtype

    dtype = facts.dtype
    if dtype is None:
        raise TypeError("elements of variable length")
    source = facts.own.get("hdf5.type")
    if isinstance(source, bytes):
        type_id = h5t.decode(source)
        if type_of(type_id)[0] == dtype:
            return type_id
    if facts.type_name.lower() in ("bfloat16", "bf16") and dtype.itemsize == 2:
        type_id = h5t.IEEE_F16LE.copy()
        type_id.set_fields(*_BFLOAT16[0])
        type_id.set_ebias(_BFLOAT16[1])
        return type_id
    if facts.type_name:
        raise TypeError(f"elements of type {facts.type_name}")
    if dtype.subdtype is not None:
        raise TypeError("elements that are arrays")
    return h5t.py_create(opaque_dtype(dtype) if dtype.kind in "mM" else dtype, logical=True)


# -- fill values ------------------------------------------------------------------------------------------------------


def fill_of(plist: Any, type_id: Any) -> bytes:
    """The bytes of the fill value of a dataset of that type, as the library has them for an element."""
    room = ctypes.create_string_buffer(type_id.get_size())
    with library_lock():
        _fill_function("H5Pget_fill_value")(plist.id, type_id.id, ctypes.addressof(room))
    return room.raw


def set_fill(plist: Any, type_id: Any, fill: bytes) -> None:
    """Has a dataset of that type made with a fill value of these bytes."""
    if len(fill) != type_id.get_size():
        raise ValueError(f"the fill value has {len(fill)} bytes, and an element {type_id.get_size()}")
    value = ctypes.create_string_buffer(fill, len(fill))
    with library_lock():
        _fill_function("H5Pset_fill_value")(plist.id, type_id.id, ctypes.addressof(value))


@functools.cache
def _fill_function(name: str) -> Any:
    """A function of the library, as h5py has it for modules in C. What it has for Python takes a dtype instead of the
    type, so that texts are padded otherwise, types that NumPy has not are refused, and of a text of fixed length it
    sets not the characters but their address."""
    from h5py import defs

    capsule = defs.__pyx_capi__[name]
    get_name, get_pointer = ctypes.pythonapi.PyCapsule_GetName, ctypes.pythonapi.PyCapsule_GetPointer
    get_name.restype, get_name.argtypes = ctypes.c_char_p, [ctypes.py_object]
    get_pointer.restype, get_pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    address = get_pointer(capsule, get_name(capsule))
    return ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p)(address)


# -- attributes -------------------------------------------------------------------------------------------------------


class Text(str):
    """A text of an attribute, which knows how HDF5 held it, so that it is written as it was."""

    held: str = "variable"
    """ "variable": of variable length; "fixed": of a fixed length; "null": without any element, as NetCDF has the empty
    text."""

    @classmethod
    def of(cls, text: str, held: str) -> Text:
        made = cls(text)
        made.held = held
        return made


class OddError(Exception):
    """An attribute whose value neither NumPy nor JSON has anything for."""


OF_SCALES = frozenset({"DIMENSION_LIST", "REFERENCE_LIST", "DIMENSION_LABELS"})
"""Attributes that are not the user's but the format's: the library takes them for what it writes itself."""
_OF_A_SCALE = "DIMENSION_SCALE"


def reserved(facts: ArrayFacts | GroupFacts) -> set[str]:
    """The names of those attributes that a file cannot have for the user: the format's own, and what would make an
    array the scale of a dimension. Nor can one be without a name."""
    found = {name for name in facts.attributes if name in OF_SCALES or not name or "\0" in str(name)}
    if isinstance(facts, ArrayFacts) and _OF_A_SCALE in str(facts.attributes.get("CLASS")):
        found |= facts.attributes.keys() & {"CLASS", "NAME"}
    return found


def is_vlen_text(owner: Any, name: str, shape: tuple[int, ...]) -> bool:
    """Whether an attribute is there, and has texts of variable length in this shape."""
    from h5py import h5t

    attribute = _opened_attribute(owner, name)
    if attribute is None or attribute.shape != shape:
        return False
    type_id = attribute.get_type()
    return bool(type_id.get_class() == h5t.STRING and type_id.is_variable_str())


def references_of(owner: Any, name: str, count: int) -> list[list[Any]]:
    """The objects that an attribute refers to, which has a list of references for each of `count` places; empty lists
    where it is not there or anything else. What refers to nothing is left out."""
    from h5py import h5r, h5t

    attribute = _opened_attribute(owner, name)
    places: list[list[Any]] = [[] for _ in range(count)]
    if attribute is None or attribute.shape != (count,):
        return places
    type_id = attribute.get_type()
    if type_id.get_class() != h5t.VLEN or not type_id.get_super().equal(h5t.STD_REF_OBJ):
        return places
    for found, references in zip(places, owner.attrs[name]):
        for reference in filter(None, references):
            with suppress(ValueError, RuntimeError, OSError, KeyError):  # of a reference to what is not there
                found.append(h5r.dereference(reference, owner.id))
    return places


def scale_name(scale: Any) -> str:
    """The name of a dimension scale; "" where it has none that is one text. The library would read any other beyond its
    end."""
    from h5py import h5t

    attribute = _opened_attribute(scale, "NAME")
    is_text = attribute is not None and attribute.get_type().get_class() == h5t.STRING
    if not is_text or attribute.shape != () or attribute.get_type().get_size() > _MAX_TEXTS:
        return ""
    name = scale.attrs["NAME"]
    return name.decode("utf-8", "replace") if isinstance(name, bytes) else str(name)


def _opened_attribute(owner: Any, name: str) -> Any:
    """None where it is not there, or has not even a shape."""
    from h5py import h5a, h5s

    if not h5a.exists(owner.id, name.encode()):
        return None
    attribute = h5a.open(owner.id, name.encode())
    return None if attribute.get_space().get_simple_extent_type() == h5s.NULL else attribute


def read_attribute(owner: Any, name: str, where: str, file_bytes: int) -> Any:
    """The value of an attribute: Text, lists of Text, NumPy's arrays and scalars. Raises OddError, and StoreError where
    it has more bytes than its file."""
    from h5py import check_string_dtype, h5a, h5s

    attribute = h5a.open(owner.id, name.encode("utf-8", "surrogateescape"))
    type_id, space = attribute.get_type(), attribute.get_space()
    if space.get_simple_extent_type() == h5s.NULL:
        dtype = type_of(type_id)[0]
        is_text = _is_variable_text(type_id) or (dtype is not None and dtype.kind == "S")
        return Text.of("", "null") if is_text else np.empty(0, dtype if dtype is not None else "f8")
    shape = attribute.shape
    nbytes = math.prod(shape) * type_id.get_size()
    if nbytes > min(file_bytes, _MAX_ATTRIBUTE_BYTES):
        raise StoreError(f"attribute {name!r} of {where} claims {nbytes} bytes; the file has {file_bytes}")
    try:
        dtype = attribute.dtype
    except (TypeError, ValueError, NotImplementedError):
        raise OddError(_name_of(type_id)) from None
    text = check_string_dtype(dtype)
    if text is not None:
        if text.length is None and math.prod(shape) > _MAX_TEXTS:
            raise StoreError(
                f"attribute {name!r} of {where} has {math.prod(shape)} texts; at most {_MAX_TEXTS} are read"
            )
        return _texts(owner.attrs[name], shape, "variable" if text.length is None else "fixed")
    if dtype.hasobject or dtype.subdtype is not None:
        raise OddError(_name_of(type_id))
    value = np.empty(shape, dtype)
    attribute.read(value)
    # The names of an enum's values are in the dtype, which a scalar does not keep.
    return value if shape or dtype.metadata else value[()]


def _texts(value: Any, shape: tuple[int, ...], held: str) -> Any:
    """One text, or lists of them; bytes that are no UTF-8 stay as they are."""
    if shape and not math.prod(shape):
        return np.empty(shape, "S1")

    def text(item: Any) -> Any:
        if isinstance(item, list):
            return [text(part) for part in item]
        return Text.of(item if isinstance(item, str) else bytes(item).decode("utf-8"), held)

    try:
        return text(value.tolist() if shape else value)
    except UnicodeDecodeError:
        return value


def attribute_form(value: Any) -> tuple[Any, np.dtype | None]:
    """What h5py's `attrs.create` takes for a value: data, and the dtype where the data do not say it. Raises TypeError
    and ValueError where HDF5 has nothing for it."""
    import h5py

    if isinstance(value, str):
        return _text_form(value, value.held if isinstance(value, Text) else "variable")
    if isinstance(value, (list, tuple)):
        parts = list(_leaves(value))
        if parts and all(isinstance(part, str) for part in parts):
            fixed = all(isinstance(part, Text) and part.held == "fixed" for part in parts)
            if fixed:
                array = np.array(_encoded(value))
                return array, h5py.string_dtype("utf-8", max(1, array.dtype.itemsize))
            for part in parts:
                _text_form(part, "variable")
            # Filled one by one, for NumPy would make an array of texts of fixed length of it.
            objects = np.empty(np.shape(value), object)
            objects.reshape(-1)[:] = parts
            return objects, h5py.string_dtype()
        if not all(isinstance(part, (bool, int, float, np.generic)) for part in parts):
            raise TypeError("a list of more than numbers and texts")
    if isinstance(value, h5py.Empty):
        return value, None
    if value is None or isinstance(value, dict):
        raise TypeError("null" if value is None else "a mapping")
    array = np.asarray(value)
    if array.dtype.kind == "U":
        return attribute_form(array.tolist())
    if array.dtype.kind in "OmM" or array.dtype.hasobject:
        raise TypeError(f"values of dtype {array.dtype}")
    h5py.h5t.py_create(array.dtype, logical=True)
    return array, None


def _text_form(value: str, held: str) -> tuple[Any, np.dtype | None]:
    import h5py

    encoded = value.encode("utf-8")
    if held == "null":
        return h5py.Empty("S1"), None
    if held == "fixed":
        return np.bytes_(encoded), h5py.string_dtype("ascii" if value.isascii() else "utf-8", max(1, len(encoded)))
    if "\0" in value:
        raise ValueError("a text with a zero byte")
    return str(value), h5py.string_dtype()


def _leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, (list, tuple)):
        for part in value:
            yield from _leaves(part)
    else:
        yield value


def _encoded(value: Any) -> Any:
    return [_encoded(part) for part in value] if isinstance(value, (list, tuple)) else value.encode("utf-8")


def write_attribute(owner: Any, name: str, value: Any) -> None:
    """Writes an attribute that `attribute_form` has a form for."""
    data, dtype = attribute_form(value)
    owner.attrs.create(name, data, dtype=dtype)


def unheld(attributes: Any, where: str, kept: Collection[str]) -> list[str]:
    """The attributes that HDF5 cannot hold, a phrase each. `kept`: the names that are the format's own."""
    phrases = []
    for name, value in attributes.items():
        try:
            if name in kept:
                raise ValueError("a name that the format keeps for itself or cannot have")
            attribute_form(value)
        except (TypeError, ValueError) as error:
            phrases.append(f"the attribute {name!r} of {where} ({(str(error).splitlines() or ['odd'])[0][:80]})")
    return phrases


def labelled(names: Sequence[str | None] | None) -> bool:
    """Whether any dimension has a name."""
    return names is not None and any(name for name in names)
