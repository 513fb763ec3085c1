"""What `mypy --strict` makes of programs that use Longshore."""

import subprocess
import sys

import pytest

ANSWERS = """
import numpy as np
import longshore as ls

column = ls.RankMap(range(5, 1024, 64), 1024)
one: int = column.world_rank(0)
scalar: int = column.world_rank(np.int64(3))
some: np.ndarray = column.world_rank([0, 1])
many: np.ndarray = column.world_rank(np.arange(3))
each: int = column[3]
places: np.ndarray = column.rank([5, 69])
told: list[dict[str, object]] = ls.explain_ranks([1, 2], 4).rows

rows, columns = ls.Layout("(BLOCK, *) on 4", (8, 4)), ls.Layout("(*, BLOCK) on 4", (8, 4))
plan = ls.plan(rows, columns, "float64")
parts = ls.scatter(np.zeros((8, 4)), rows)
mover = plan.bind(parts, ls.redistribute(parts, rows, columns))
mover.start()
ranks: list[int] = [arrival.rank for arrival in mover.arrivals()]
mover.wait()
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
