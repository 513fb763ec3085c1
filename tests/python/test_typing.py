"""What `mypy --strict` makes of programs that use Longshore."""

import subprocess
import sys

import pytest

ANSWERS = """
from typing import Any

import numpy as np
import numpy.typing as npt
import longshore as ls

column = ls.RankMap(range(5, 1024, 64), 1024)
one: int = column.world_rank(0)
scalar: int = column.world_rank(np.int64(3))
some: npt.NDArray[Any] = column.world_rank([0, 1])
many: npt.NDArray[Any] = column.world_rank(np.arange(3))
each: int = column[3]
places: npt.NDArray[Any] = column.rank([5, 69])
told: list[dict[str, object]] = ls.explain_ranks([1, 2], 4).rows

rows, columns = ls.Layout("(BLOCK, *) on 4", (8, 4)), ls.Layout("(*, BLOCK) on 4", (8, 4))
plan = ls.plan(rows, columns, "float64")
parts = ls.scatter(np.zeros((8, 4)), rows)
mover = plan.bind(parts, ls.redistribute(parts, rows, columns))
mover.start()
ranks: list[int] = [arrival.rank for arrival in mover.arrivals()]
for arrival in mover.arrivals():
    parts[arrival.destination_rank][arrival.index] += 1
    whole: bool = arrival.index is None or arrival.global_index == np.s_[:, :]
mover.wait()

blocks = ls.FloorPlan.balanced(ls.regions.split_to_size(ls.Region.of_shape((16, 16)), 8), ranks=2)
u = ls.XArray(blocks, "float64", ghost=1)
fill = ls.BlockPlan.halo(blocks, 1).bind(u)
fill.start()
for arrival in fill.arrivals():
    block: int = arrival.block
    some = u[arrival.block].on(arrival.region)
    points: int = arrival.region.size

with ls.open("a.npy") as stored:
    values: npt.NDArray[Any] = stored.read()
    row: npt.NDArray[Any] = stored[3]
with ls.open("run.zarr") as group:
    for name in group:
        print(name, group[name].shape, group["a/b"].read())
report = ls.move("a.npy", "shards", "(BLOCK, *) on 2")
print(report.seconds, report.windows)
told_of_chunks = ls.move("a.npy", "a.zarr", chunks="8x8", dry_run=True)
print(told_of_chunks.predicted["bytes_read"], ls.plan_move((8, 8), "f4", (1, 8), (8, 1)).way)
local = ls.load("a.npy", rows)
ls.save(parts, rows, "b")
"""


def test_answers_have_the_types_that_arguments_decide(tmp_path):
    pytest.importorskip("mypy")
    (tmp_path / "program.py").write_text(ANSWERS)
    checked = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--cache-dir", tmp_path / "cache", "program.py"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert checked.returncode == 0, checked.stdout + checked.stderr
