"""Small stores of elements as they are, for tests that open them."""

import json

import longshore as ls
import numpy as np
from longshore.stores.layout_json import encode_layout_json


def touch(path, content=b""):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


def tensors_file(path, **tensors):
    header, data = {}, b""
    for name, array in tensors.items():
        header[name] = {
            "dtype": "F4",
            "shape": list(array.shape),
            "data_offsets": [len(data), len(data) + array.nbytes],
        }
        header[name]["dtype"] = {"f": "F32", "i": "I64"}[array.dtype.kind]
        data += array.tobytes()
    raw = json.dumps(header).encode()
    return touch(path, len(raw).to_bytes(8, "little") + raw + data)


def dense_stores(folder):
    """A `.npy` file, a folder of shards and a file of two tensors."""
    np.save(folder / "a.npy", np.arange(12.0).reshape(3, 4))
    (folder / "shards").mkdir()
    layout = ls.Layout("(BLOCK) on 2", (5,))
    (folder / "shards" / "layout.json").write_bytes(
        encode_layout_json(layout, (5,), np.dtype("i4"), "C", ["0.npy", "1.npy"])
    )
    for k, part in enumerate((np.arange(3, dtype="i4"), np.arange(3, 5, dtype="i4"))):
        np.save(folder / "shards" / f"{k}.npy", part)
    x, y = np.arange(6, dtype="f4").reshape(2, 3), np.arange(4, dtype="i8")
    tensors_file(folder / "x.safetensors", **{"layer.0.weight": x, "a/b": y})
