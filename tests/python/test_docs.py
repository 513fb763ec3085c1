"""The documentation's examples are true."""

import doctest
import inspect
import re
from pathlib import Path

import longshore
import longshore._api
import longshore._cache
import pytest
from longshore import _strips, _virtual_comm

ROOT = Path(__file__).resolve().parents[2]


def run_doctests(tests):
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
    for test in tests:
        runner.run(test)
    result = runner.summarize(verbose=False)
    assert result.attempted > 0
    assert result.failed == 0


def test_tutorial():
    text = (ROOT / "docs" / "tutorial.md").read_text().replace("```python", "").replace("```", "")
    run_doctests([doctest.DocTestParser().get_doctest(text, {}, "tutorial.md", "docs/tutorial.md", 0)])


PLACES = {
    "functions": longshore._api,
    "cache": longshore._cache,
    "Layout": longshore.Layout,
    "Region": longshore.Region,
    "FloorPlan": longshore.FloorPlan,
    "BlockPlan": longshore.BlockPlan,
    "RankMap": longshore.RankMap,
    "ranks": longshore.ranks,
}
if longshore.finegrain.available():
    PLACES["finegrain"] = longshore.finegrain


@pytest.mark.parametrize("place", PLACES.values(), ids=PLACES)
def test_docstrings(place):
    finder = doctest.DocTestFinder(exclude_empty=True)
    import numpy as np

    found = [
        test
        for test in finder.find(place, globs={**vars(longshore), **vars(longshore.ranks), "np": np})
        if test.examples
    ]
    run_doctests(found)


@pytest.mark.parametrize("place", [_strips.Strip, _virtual_comm.VirtualComm], ids=lambda place: place.__name__)
def test_every_member_has_words(place):
    for name, member in vars(place).items():
        assert name.startswith("_") or inspect.getdoc(member), name


def readme_examples():
    return re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.S)


def test_readme_example():
    namespace: dict = {}
    for example in readme_examples():
        if "mpi4py" not in example:
            exec(compile(example, "README.md", "exec"), namespace)
