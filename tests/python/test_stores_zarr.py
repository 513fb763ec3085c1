"""Zarr stores, both formats: what zarr-python and tensorstore make is read, and what is written they read."""

from __future__ import annotations

import json
import warnings
from dataclasses import replace

import numpy as np
import pytest
from longshore.errors import ArgumentError, StoreError
from longshore.stores.array import ArrayFacts, GroupFacts, LinkFacts
from longshore.stores.zarr_build import suitable_chunk
from longshore.stores.zarr_fill import fill_bytes, fill_json
from longshore.stores.zarr_meta import dtype_text
from longshore.stores.zarr_reader import ZarrReader
from longshore.stores.zarr_types import Element, element_v2, element_v3, type_v2, type_v3
from longshore.stores.zarr_writer import ZarrWriter
from zarr_stores import (
    FORMATS,
    ZARR_3,
    make,
    needs_zarr_3,
    opened,
    read,
    same,
    sample,
    values,
    whole,
    write,
    write_chunk,
    zarr,
)

numcodecs = pytest.importorskip("numcodecs")
DTYPES = (
    "?",
    "i1",
    "<u2",
    ">i4",
    "u8",
    "<f2",
    ">f4",
    "f8",
    "c8",
    "c16",
    "S5",
    "<U3",
    ">U3",
    "V3",
    "M8[ns]",
    "m8[10us]",
)
STRUCT = np.dtype([("a", "<i4"), ("b", "<f8"), ("c", [("d", "u1"), ("e", "<i2")])])
WORDS = (
    (),
    ("zstd:3",),
    ("shuffle", "zstd:3:checksum"),
    ("blosc:lz4:5:shuffle",),
    ("blosc:zstd:1:bitshuffle",),
    ("gzip:6",),
    ("zlib:4",),
    ("lz4",),
    ("shuffle", "lz4"),
    ("bz2:9",),
    ("lzma",),
    ("fletcher32",),
    ("adler32",),
    ("crc32",),
    ("jenkins_lookup3",),
    *((("shuffle", "lz4", "crc32c"), ("crc32c",)) if ZARR_3 else ()),
)
SUMMED = {"float8_e4m3fn": 0.5, "bfloat16": 1.5}


# -- what others make -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [*DTYPES, STRUCT], ids=str)
@pytest.mark.parametrize("zarr_format", FORMATS)
def test_zarr_python_makes_any_type(tmp_path, dtype, zarr_format):
    array = sample(dtype)
    for order in "CF":
        more = {"order": order} if zarr_format == 2 else {}
        if dtype == "V3" and not ZARR_3:
            more["fill_value"] = None  # zarr 2 makes none of 0, which it takes otherwise
        made = make(tmp_path / order, array, (4, 3), zarr_format, **more)
        facts, elements = read(tmp_path / order)
        assert same(elements, array) and facts.shape == (10, 7) and facts.chunks == (4, 3)
        assert facts.order == (order if zarr_format == 2 else "C")
        files = [
            p
            for p in (tmp_path / order).rglob("*")
            if p.is_file() and p.name not in ("zarr.json", ".zarray", ".zattrs")
        ]
        assert facts.stored_bytes == sum(p.stat().st_size for p in files)
        if zarr_format == 2:
            assert facts.dtype == made.dtype


def filters_v2():
    codecs = numcodecs
    return {
        "delta": (np.arange(70, dtype="<i4").reshape(10, 7), [codecs.Delta("<i4", "<i2")], None),
        "fixedscaleoffset": (
            sample("<f8"),
            [codecs.FixedScaleOffset(offset=1, scale=7, dtype="<f8", astype="u2")],
            None,
        ),
        "quantize": (sample("<f8"), [codecs.Quantize(3, "<f8", "<f4")], codecs.Zstd(1)),
        "bitround": (sample("<f4"), [codecs.bitround.BitRound(8)], codecs.BZ2(1)),
        "astype": (sample("<i2"), [codecs.AsType("<i4", "<i2")], codecs.LZMA()),
        "packbits": (sample("<i2") % 2 == 0, [codecs.PackBits()], None),
        "categorize": (
            sample("<i4").astype("<U3"),
            [codecs.Categorize([str(n) for n in range(60)], "<U3", "u1")],
            None,
        ),
        "shuffle": (sample("<f8"), [codecs.Shuffle(8)], codecs.LZ4()),
        "base64": (sample("<f8"), [codecs.Base64()], None),
        "crc32": (sample("<f8"), [codecs.CRC32()], codecs.Zlib(4)),
        "adler32": (sample("<f8"), [], codecs.Adler32()),
        "fletcher32": (sample("<f8"), [codecs.fletcher32.Fletcher32()], codecs.GZip(2)),
        "jenkins_lookup3": (sample("<f8"), [codecs.checksum32.JenkinsLookup3()], None),
        "blosc": (sample("<f8"), [], codecs.Blosc("zlib", 3, codecs.Blosc.AUTOSHUFFLE, 64)),
        "xz raw": (sample("<f8"), [], codecs.LZMA(format=3, filters=[{"id": 3, "dist": 8}, {"id": 33, "preset": 1}])),
        "two": (sample("<f8"), [codecs.Zlib(1)], codecs.Blosc("lz4")),
    }


@pytest.mark.parametrize("name", filters_v2())
@pytest.mark.filterwarnings("ignore")
def test_codecs_of_numcodecs_in_format_2(tmp_path, name):
    array, filters, compressor = filters_v2()[name]
    made = make(tmp_path / "a", array, (4, 3), filters=filters or None, compressor=compressor)
    facts, elements = read(tmp_path / "a")
    assert same(elements, values(made))
    assert facts.codecs, "people are told of codecs"
    # The same pipeline is written back.
    write(tmp_path / "b", replace(facts, chunks=(5, 2)), {"": elements}, 2)
    assert same(values(opened(tmp_path / "b")), elements)
    old, new = (json.loads((tmp_path / n / ".zarray").read_bytes()) for n in "ab")
    assert [old["filters"], old["compressor"]] == [new["filters"], new["compressor"]]
    if ZARR_3 and name not in ("xz raw", "two", "categorize", "packbits", "base64", "quantize"):
        write(tmp_path / "c", facts, {"": elements}, 3)  # translated
        assert same(values(opened(tmp_path / "c")), elements)


def codecs_v3():
    if not ZARR_3:
        return {}
    from zarr import codecs
    from zarr.codecs import numcodecs as n

    return {
        "plain": (sample("<f4"), {"compressors": None}),
        "big": (sample("<f4"), {"compressors": None, "serializer": codecs.BytesCodec(endian="big")}),
        "gzip": (sample("<f4"), {"compressors": codecs.GzipCodec(level=4)}),
        "zstd": (sample("<f4"), {"compressors": codecs.ZstdCodec(level=4, checksum=True)}),
        "blosc": (sample("<f4"), {"compressors": codecs.BloscCodec(cname="zstd", shuffle="bitshuffle")}),
        "crc": (sample("<f4"), {"compressors": [codecs.GzipCodec(), codecs.Crc32cCodec()]}),
        "transpose": (sample("<f4", (10, 7, 4)), {"filters": codecs.TransposeCodec(order=(2, 0, 1))}),
        "fortran": (sample("<f4"), {"filters": codecs.TransposeCodec(order=(1, 0))}),
        "shards": (sample("<f4"), {"shards": (8, 6)}),
        "shards big": (sample("<f4"), {"shards": (4, 9), "serializer": codecs.BytesCodec(endian="big")}),
        "shards at start": (
            sample("<f4"),
            {"shards": {"shape": (8, 6), "index_location": "start"}, "compressors": codecs.GzipCodec()},
        ),
        "v2 keys": (sample("<f4"), {"chunk_key_encoding": {"name": "v2", "separator": "/"}}),
        "dots": (sample("<f4"), {"chunk_key_encoding": {"name": "default", "separator": "."}}),
        "delta": (np.arange(70).reshape(10, 7), {"filters": n.Delta(dtype="<i8", astype="<i4")}),
        "scale": (sample("<f8"), {"filters": n.FixedScaleOffset(offset=1, scale=7, dtype="<f8", astype="<u2")}),
        "quantize": (sample("<f8"), {"filters": n.Quantize(digits=3, dtype="<f8")}),
        "bitround": (sample("<f4"), {"filters": n.BitRound(keepbits=8)}),
        "astype": (sample("<i2"), {"filters": n.AsType(encode_dtype="<i4", decode_dtype="<i2")}),
        "shuffle": (sample("<f8"), {"compressors": [n.Shuffle(), n.LZ4()]}),
        "zlib": (sample("<f8"), {"compressors": [n.Zlib(level=3), n.CRC32()]}),
        "bz2": (sample("<f8"), {"compressors": [n.BZ2(level=3), n.Adler32()]}),
        "lzma": (sample("<f8"), {"compressors": [n.LZMA(), n.CRC32C()]}),
        "fletcher32": (sample("<f8"), {"compressors": [n.Fletcher32()], "shards": (8, 3)}),
        "jenkins": (sample("<f8"), {"compressors": [n.JenkinsLookup3()]}),
        "numcodecs.zstd": (sample("<f8"), {"compressors": [n.Zstd(level=3), n.GZip(level=1), n.Blosc(cname="lz4")]}),
    }


@needs_zarr_3
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", codecs_v3())
def test_codecs_of_format_3(tmp_path, name):
    array, more = codecs_v3()[name]
    make(tmp_path / "a", array, (4, 3, 2)[: array.ndim], 3, **more)
    facts, elements = read(tmp_path / "a")
    assert same(elements, array if name not in ("scale", "quantize", "bitround") else values(opened(tmp_path / "a")))
    assert facts.order == ("F" if name == "fortran" else "C")
    assert (facts.shards is not None) == ("shards" in more)
    write(tmp_path / "b", facts, {"": elements}, 3)
    old, new = (json.loads((tmp_path / n / "zarr.json").read_bytes()) for n in "ab")
    assert old["codecs"] == new["codecs"] and old["chunk_key_encoding"] == new["chunk_key_encoding"]
    assert same(values(opened(tmp_path / "b")), elements)


@needs_zarr_3
def test_a_shard_in_a_shard(tmp_path):
    make(tmp_path / "a", sample("<f4", (16, 12)), (8, 6), 3, compressors=None)
    document = json.loads((tmp_path / "a/zarr.json").read_bytes())
    index = [{"name": "bytes", "configuration": {"endian": "little"}}, {"name": "crc32c"}]
    codecs = [{"name": "bytes", "configuration": {"endian": "big"}}, {"name": "gzip", "configuration": {"level": 1}}]
    for extents in ((2, 3), (4, 6)):
        given = {"chunk_shape": extents, "codecs": codecs, "index_codecs": index, "index_location": "start"}
        codecs = [{"name": "sharding_indexed", "configuration": given}]
    document["codecs"] = codecs
    (tmp_path / "b").mkdir()
    (tmp_path / "b/zarr.json").write_text(json.dumps(document))
    array = sample("<f4", (16, 12))
    opened_to_write = zarr.open_array(str(tmp_path / "b"), mode="r+")
    opened_to_write[:, :9] = array[:, :9]
    facts, elements = read(tmp_path / "b")
    array[:, 9:] = 0
    assert facts.chunks == (4, 6) and facts.shards == (8, 6) and same(elements, array)
    write(tmp_path / "c", facts, {"": elements}, 3)
    assert same(values(opened(tmp_path / "c")), array)


@pytest.mark.parametrize("driver", ["zarr", "zarr3"])
def test_tensorstore_there_and_back(tmp_path, driver):
    tensorstore = pytest.importorskip("tensorstore")

    def open_there(path, **more):
        spec = {"driver": driver, "kvstore": {"driver": "file", "path": str(path)}, **more}
        return tensorstore.open(spec).result()

    array = sample("<f4")
    if driver == "zarr":
        metadata = {"shape": [10, 7], "chunks": [4, 3], "dtype": "<f4", "order": "F", "fill_value": "NaN"}
        metadata["compressor"] = {"id": "zstd", "level": 2}
    else:
        inner = [{"name": "transpose", "configuration": {"order": [1, 0]}}, {"name": "blosc"}, {"name": "crc32c"}]
        inner.insert(1, {"name": "bytes", "configuration": {"endian": "big"}})
        given = {"chunk_shape": [4, 3], "codecs": inner, "index_location": "start"}
        metadata = {
            "shape": [10, 7],
            "data_type": "float32",
            "codecs": [{"name": "sharding_indexed", "configuration": given}],
        }
        metadata["chunk_grid"] = {"name": "regular", "configuration": {"chunk_shape": [8, 6]}}
    made = open_there(tmp_path / "a", metadata=metadata, create=True)
    made[:6].write(array[:6]).result()
    facts, elements = read(tmp_path / "a")
    assert facts.order == "F" and same(elements[:6], array[:6])
    assert np.isnan(elements[8:]).all() if driver == "zarr" else not elements[8:].any()
    for words in (("zstd:3",), ("gzip:3",), ("blosc:lz4:5:shuffle",), *((("crc32c",),) if driver == "zarr3" else ())):
        wanted = replace(facts, codecs=words)
        write(tmp_path / words[0], wanted, {"": array}, 2 if driver == "zarr" else 3)
        assert same(open_there(tmp_path / words[0]).read().result(), array)


@pytest.mark.parametrize("name", SUMMED)
def test_types_that_numpy_does_not_have(tmp_path, name):
    tensorstore = pytest.importorskip("tensorstore")
    types = pytest.importorskip("ml_dtypes")
    dtype = np.dtype(getattr(types, name))
    spec = {"driver": "zarr3", "kvstore": {"driver": "file", "path": str(tmp_path / "a")}}
    metadata = {"shape": [5], "data_type": name, "fill_value": SUMMED[name]}
    made = tensorstore.open({**spec, "metadata": metadata, "create": True}).result()
    array = np.arange(5).astype(dtype)
    made[:] = array
    facts, elements = read(tmp_path / "a")
    assert facts.type_name == name and facts.dtype == np.dtype(f"V{dtype.itemsize}")
    assert elements.tobytes() == array.tobytes() and facts.fill == np.array(SUMMED[name], dtype).tobytes()
    write(tmp_path / "b", replace(facts, codecs=("zstd:1",)), {"": elements})
    again = tensorstore.open({**spec, "kvstore": {"driver": "file", "path": str(tmp_path / "b")}}).result()
    assert (again.read().result() == array).all() and again.fill_value == dtype.type(SUMMED[name])


def test_variable_length_is_told_and_copied_as_it_is(tmp_path):
    group = zarr.open_group(str(tmp_path / "a"), mode="w", **({"zarr_format": 3} if ZARR_3 else {}))
    text = np.array(["a", "bcd", "", "xyz" * 40], dtype=object)
    if ZARR_3:
        group.create_array("t", shape=(4,), chunks=(3,), dtype=str)[...] = text
    else:
        group.create_dataset("t", shape=(4,), chunks=(3,), dtype=object, object_codec=numcodecs.VLenUTF8())[...] = text
    reader = ZarrReader(str(tmp_path / "a"))
    facts = reader.tree.children["t"]
    assert facts.dtype is None and facts.type_name in ("string", "object")
    assert ZarrWriter.losses(reader.tree) == [f"the array t, whose elements are of the type {facts.type_name}"]
    source = reader.array("t")
    with pytest.raises(StoreError, match="t has elements of the type"):
        source.decode((0,), source.read((0,)))
    (tmp_path / "b").mkdir()
    writer = ZarrWriter(str(tmp_path / "b"), zarr_format=3 if ZARR_3 else 2)
    writer.create(reader.tree)
    for index in source.grid.indices():
        writer.array("t").write(index, source.read(index))
    writer.finish()
    assert list(values(opened(tmp_path / "b", "t"))) == list(text)


# -- what is made for others ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("words", WORDS, ids=",".join)
@pytest.mark.parametrize("zarr_format", FORMATS)
def test_words_of_codecs(tmp_path, words, zarr_format):
    for number, (dtype, order) in enumerate((("<f4", "C"), (">i2", "F"), ("<U3", "C"))):
        array = sample(dtype)
        shards = (8, 9) if zarr_format == 3 and number else None
        facts = ArrayFacts((10, 7), array.dtype, chunks=(4, 3), shards=shards, codecs=words, order=order)
        write(tmp_path / str(number), facts, {"": array}, zarr_format)
        again, elements = read(tmp_path / str(number))
        assert again.codecs == words and again.order == order and again.shards == shards
        assert again.dtype == array.dtype and same(elements, array)
        assert same(values(opened(tmp_path / str(number))), array)


@pytest.mark.parametrize("dtype", [*DTYPES, STRUCT], ids=str)
@pytest.mark.parametrize("zarr_format", FORMATS)
def test_types_are_written(tmp_path, dtype, zarr_format):
    array = sample(dtype)
    write(tmp_path / "a", ArrayFacts((10, 7), array.dtype, chunks=(4, 3), codecs=("zstd:1",)), {"": array}, zarr_format)
    facts, elements = read(tmp_path / "a")
    assert same(elements, array) and facts.dtype == array.dtype
    if not (dtype == STRUCT and zarr_format == 2 and ZARR_3):  # which zarr-python 3.1 does not know
        assert same(values(opened(tmp_path / "a")), array)


def test_the_text_of_a_type_says_nothing_of_its_metadata():
    """As h5py has them for enums and texts; NumPy warns of those that a text leaves out."""
    named = np.dtype("i1", metadata={"enum": {"a": 0}})
    inner = np.dtype({"names": ["x"], "formats": [named], "offsets": [3], "itemsize": 8}, metadata={"m": 1})
    plain = np.dtype({"names": ["x"], "formats": ["i1"], "offsets": [3], "itemsize": 8})
    for dtype, without in [
        (named, np.dtype("i1")),
        (np.dtype([("a", named), ("b", inner, (2,))]), np.dtype([("a", "i1"), ("b", plain, (2,))])),
        (np.dtype([(("title", "a"), named)]), np.dtype([(("title", "a"), "i1")])),
    ]:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert dtype_text(dtype) == dtype_text(without)


@pytest.mark.parametrize("zarr_format", FORMATS)
def test_fields_with_holes_and_in_big_endian_order(tmp_path, zarr_format):
    dtype = np.dtype({"names": ["a", "b"], "formats": [">i4", "<f8"], "offsets": [4, 16], "itemsize": 32})
    array = np.zeros((5,), dtype)
    array["a"], array["b"] = np.arange(5), np.arange(5) / 3
    fill = np.array((7, 0.5), dtype).tobytes()
    path = tmp_path / "a"
    path.mkdir()
    writer = ZarrWriter(str(path), zarr_format=zarr_format)
    writer.create(ArrayFacts((5,), dtype, chunks=(2,), fill=fill))
    made = writer.array()
    assert made.facts.dtype == dtype
    for index in ((0,), (1,)):
        chunk = np.ascontiguousarray(array[index[0] * 2 : index[0] * 2 + 2])
        made.write(index, made.encode(index, chunk))
        assert (made.read(index) == chunk).all() and made.read(index).dtype == dtype
    writer.finish()
    found = values(opened(path))
    assert (found["a"] == [0, 1, 2, 3, 7]).all() and (found["b"] == [0, 1 / 3, 2 / 3, 1, 0.5]).all()


@pytest.mark.parametrize("zarr_format", FORMATS)
def test_a_group_of_ten_arrays(tmp_path, zarr_format):
    names = [f"v{n}" for n in range(10)]
    arrays = {f"deep/er/{name}" if n % 3 == 0 else name: sample("<f4") + n for n, name in enumerate(names)}
    children = {"deep": {"er": {}}}
    for path, array in arrays.items():
        facts = ArrayFacts(
            (10, 7),
            array.dtype,
            chunks=(4, 3),
            codecs=("zstd:1",),
            fill=np.float32(-1).tobytes(),
            names=("t", "x"),
            attributes={"units": "K", "range": np.array([1.5, np.nan]), "n": np.int16(3), "flag": np.True_, "t": "µ"},
        )
        (children["deep"]["er"] if "/" in path else children)[path.rpartition("/")[2]] = facts
    er = GroupFacts(children["deep"]["er"], {"level": 2})
    tree = GroupFacts({**children, "deep": GroupFacts({"er": er})}, {"title": "ten"})
    assert ZarrWriter.losses(tree) == []
    write(tmp_path / "g", tree, arrays, zarr_format)
    group = opened(tmp_path / "g")
    assert dict(group.attrs) == {"title": "ten"} and dict(group["deep/er"].attrs) == {"level": 2}
    consolidated = zarr.open_consolidated(str(tmp_path / "g"), mode="r")
    reader = ZarrReader(str(tmp_path / "g"))
    assert {path for path, _ in reader.tree.arrays()} == set(arrays)
    for path, array in arrays.items():
        assert same(values(group[path]), array) and same(values(consolidated[path]), array)
        assert group[path].fill_value == -1
        attributes = dict(group[path].attrs)
        if zarr_format == 2:
            assert attributes.pop("_ARRAY_DIMENSIONS") == ["t", "x"]
        else:
            assert group[path].metadata.dimension_names == ("t", "x")
        assert str(attributes) == str({"units": "K", "range": [1.5, float("nan")], "n": 3, "flag": True, "t": "µ"})
        facts = dict(reader.tree.arrays())[path]
        read_back = dict(facts.attributes)
        if zarr_format == 2:
            assert read_back.pop("_FillValue") == -1  # which is what xarray takes a fill value of format 2 for
        assert facts.names == ("t", "x") and str(read_back) == str(attributes)
        assert same(whole(reader, path), array)
    assert reader.format == f"Zarr {zarr_format}"
    # Without consolidated metadata the same is found.
    if zarr_format == 2:
        (tmp_path / "g/.zmetadata").unlink()
    else:
        document = json.loads((tmp_path / "g/zarr.json").read_bytes())
        assert document.pop("consolidated_metadata")["kind"] == "inline"
        (tmp_path / "g/zarr.json").write_text(json.dumps(document))
    assert str(ZarrReader(str(tmp_path / "g")).tree.children["v1"]) == str(reader.tree.children["v1"])
    inner = ZarrReader(str(tmp_path / "g"), "deep/er")
    assert list(inner.tree.children) == ["v0", "v3", "v6", "v9"] and same(whole(inner, "v3"), arrays["deep/er/v3"])
    assert same(read(tmp_path / "g", "v1")[1], arrays["v1"])


@pytest.mark.parametrize("zarr_format", FORMATS)
def test_metadata_of_fifty_arrays_are_small(tmp_path, zarr_format):
    attributes = {"units": "m s**-1", "long_name": "10 metre U wind component"}
    facts = ArrayFacts(
        (8760, 181, 360), np.dtype("f4"), chunks=(8760, 8, 8), codecs=("zstd:3",), fill=np.float32(np.nan).tobytes()
    )
    facts = replace(facts, names=("time", "lat", "lon"), attributes=attributes)
    write(tmp_path / "g", GroupFacts({f"v{n:02}": facts for n in range(50)}), {}, zarr_format)
    assert sum(p.stat().st_size for p in (tmp_path / "g").rglob("*") if p.is_file()) <= 50_000


FILLS = {
    "<f4": [np.nan, np.inf, -np.inf, -0.0, 1.5],
    ">f8": [np.nan, -np.inf, -0.0, 1e300],
    "<f2": [np.nan, 0.1],
    "<c8": [complex(np.nan, -0.0), complex(np.inf, 2)],
    "<i8": [-(2**63), 2**63 - 1],
    "<u8": [2**64 - 1],
    "?": [True],
    "M8[s]": [np.datetime64("NaT"), np.datetime64("2026-11-23")],
    ">m8[ns]": [np.timedelta64(-5, "ns")],
    "S4": [b"ab\xff", b""],
    "<U3": ["aµ", ""],
}


@pytest.mark.parametrize("dtype", FILLS)
@pytest.mark.parametrize("zarr_format", FORMATS)
def test_fill_values(tmp_path, dtype, zarr_format):
    for number, value in enumerate(FILLS[dtype]):
        fill = np.array(value, dtype)
        path = tmp_path / str(number)
        write(path, ArrayFacts((3,), fill.dtype, chunks=(2,), fill=fill.tobytes()), {}, zarr_format)
        facts, elements = read(path)
        assert facts.fill == fill.tobytes() == elements[2:].tobytes()
        elements = values(opened(path)).astype(dtype)
        if ZARR_3 or dtype != "<c8":
            assert elements.tobytes() == fill.tobytes() * 3
        else:  # zarr 2 makes 0 of an imaginary part that is -0.0
            assert np.array_equal(elements, np.full(3, fill), equal_nan=True)
        made = make(tmp_path / f"z{number}", fill.reshape(1), (1,), zarr_format, fill_value=fill[()])
        if not ZARR_3 and not fill[()]:
            fill = np.array(made.fill_value, dtype)  # zarr 2 makes 0 of -0.0
        facts = read(tmp_path / f"z{number}")[0]
        assert np.frombuffer(facts.fill, facts.dtype).astype(dtype).tobytes() == fill.tobytes()


def test_other_fill_values():
    struct = Element(STRUCT)
    for zarr_format in (2, 3):
        fill = sample(STRUCT, (1,)).tobytes()
        assert fill_bytes(fill_json(fill, struct, zarr_format), struct) == fill
    assert fill_bytes({"a": 3, "c": {"e": -1}}, struct)[:4] == b"\3\0\0\0"
    assert fill_bytes([1, 2, 255], Element(np.dtype("V3"))) == b"\1\2\xff"
    assert fill_bytes(0, Element(np.dtype("S3"))) == b"\0\0\0"
    assert fill_bytes("0x7fc00001", Element(np.dtype("<f4"))) == b"\1\0\xc0\x7f"
    assert fill_json(b"\1\0\xc0\x7f", Element(np.dtype("<f4")), 3) == "0x7fc00001"
    assert fill_bytes(None, Element(np.dtype("<f4"))) is None
    assert fill_bytes("NaT", Element(np.dtype("<M8[s]"))) == b"\0" * 7 + b"\x80"


@pytest.mark.parametrize("zarr_format", FORMATS)
def test_missing_chunks_stay_missing(tmp_path, zarr_format):
    shards = (4,) if zarr_format == 3 else None
    array = np.arange(12, dtype="i4")
    make(tmp_path / "a", array[:0].reshape(0), (2,), zarr_format)
    made = make(tmp_path / "b", array, (2,), zarr_format, fill_value=0, **({"shards": shards} if shards else {}))
    made[4:8] = 0
    if zarr_format == 2:
        (tmp_path / "b/2").unlink(missing_ok=True)
    facts, elements = read(tmp_path / "b")
    found = ZarrReader(str(tmp_path / "b")).array()
    assert found.sparse and found.read((2,)) is None and same(elements, values(made))
    (tmp_path / "c").mkdir()
    writer = ZarrWriter(str(tmp_path / "c"), zarr_format=zarr_format)
    writer.create(replace(facts, codecs=()))
    for index in ((0,), (5,)):
        write_chunk(writer.array(), array, index)
    assert writer.array().read((1,)) is None and writer.array().read((3,)) is None
    writer.finish()
    files = {p.name for p in (tmp_path / "c").rglob("*") if p.is_file()} - {"zarr.json", ".zarray", ".zattrs"}
    assert files == ({"0", "2"} if shards else {"0", "5"})
    assert list(values(opened(tmp_path / "c"))) == [0, 1, *[0] * 8, 10, 11]
    again = ZarrReader(str(tmp_path / "c")).array()
    assert [again.read((n,)) is None for n in range(6)] == [False, True, True, True, True, False]


def test_what_cannot_be_held_is_told(tmp_path):
    plain = ArrayFacts((2,), np.dtype("f4"))
    tree = GroupFacts(
        {
            "a": replace(plain, attributes={"z": 1j, "raw": np.zeros(2, STRUCT), "ok": b"text", "bad": b"\xff"}),
            "b": ArrayFacts((2,), np.dtype("f16")),
            "c": ArrayFacts((2,), None, type_name="vlen"),
            "d": LinkFacts("soft", "/a"),
            "e": GroupFacts({"zarr.json": plain}, {"when": np.datetime64("2026-01-01")}),
            "f": replace(plain, type_name="enum of colours", names=("t",)),
            "g": ArrayFacts((2,), np.dtype([("x", "<f4", (3,))])),
        },
        dimensions={"t": (2, True), "z": (7, False)},
    )
    assert ZarrWriter.losses(tree) == [
        "the attribute 'z' of a",
        "the attribute 'raw' of a",
        "the attribute 'bad' of a",
        "the array b, for Zarr 3 has no type float128",
        "the array c, whose elements are of the type vlen",
        "the soft link d to /a",
        "the attribute 'when' of e",
        "the array e/zarr.json, whose name cannot be a key",
        "the type enum of colours of f",
        "the array g, for the field 'x' is an array",
        "the dimension 'z' of the root, which no array has",
    ]
    nan = np.frombuffer(b"\1\0\xc0\x7f", "<f4")
    in_two = GroupFacts({"a": replace(plain, fill=nan.tobytes(), names=(None,)), "b": replace(plain, names=("x",))})
    assert ZarrWriter.losses(in_two, zarr_format=2) == ["the fill value of a"]
    write(tmp_path / "a", tree, {"a": np.zeros(2, "f4")})
    reader = ZarrReader(str(tmp_path / "a"))
    assert sorted(reader.tree.children) == ["a", "e", "f"]
    assert reader.tree.children["a"].attributes == {"ok": "text"}


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        ({"codecs": ("szip",)}, "the codec 'szip' is unknown to Zarr; known are: zstd:LEVEL"),
        ({"codecs": ("zstd:99",)}, "'zstd:99' is unknown"),
        ({"codecs": ("blosc:lz5",)}, "'blosc:lz5' is unknown"),
        ({"chunks": (4,)}, "the chunks 4 do not fit an array of 2 dimensions"),
        ({"chunks": (0, 3)}, "the chunks 0x3 do not fit"),
        ({"shards": (6, 6)}, "no whole number of chunks"),
        ({"order": "K"}, "the order 'K'"),
        ({"chunks": (1 << 20, 1 << 9), "codecs": ("blosc",)}, "take at most 2147483631"),
    ],
)
def test_what_cannot_be_made(tmp_path, wanted, message):
    facts = replace(ArrayFacts((10, 7), np.dtype("f8"), chunks=(4, 3)), **wanted)
    with pytest.raises(ArgumentError, match="a/x cannot be made.*" + message.replace("(", r"\(")):
        write(tmp_path / "a", GroupFacts({"x": facts}), {})
    with pytest.raises(ArgumentError, match="shards need Zarr 3"):
        write(tmp_path / "b", replace(facts, chunks=(4, 3), shards=(8, 6), codecs=()), {}, 2)


def test_suitable_chunks():
    for shape, itemsize in (((8760, 181, 360), 4), ((10**9,), 8), ((3, 0, 5), 4), ((1 << 40, 3), 1), ((5, 5), 1 << 23)):
        chunk = suitable_chunk(shape, itemsize)
        assert len(chunk) == len(shape) and all(1 <= part <= max(1, extent) for part, extent in zip(chunk, shape))
        assert np.prod(chunk) * itemsize <= max(4 << 20, itemsize)
        assert np.prod(chunk) * itemsize >= min(1 << 20, np.prod([max(1, n) for n in shape], dtype=float) * itemsize)
    assert suitable_chunk((8760, 181, 360), 4) == (16, 181, 360)
    assert suitable_chunk((), 4) == ()


@pytest.mark.parametrize("dtype", [*DTYPES, STRUCT], ids=str)
def test_names_of_types_come_back(dtype):
    dtype = np.dtype(dtype)
    assert element_v2(json.loads(json.dumps(type_v2(dtype)))).dtype == dtype
    little = dtype if dtype.names else dtype.newbyteorder("<")
    assert element_v3(json.loads(json.dumps(type_v3(dtype)))).dtype == little
