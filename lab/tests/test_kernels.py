"""The programs of apps/kernels under mpiexec: each compares its result with a serial one, and says where it differs."""

import importlib.util
from pathlib import Path

import pytest
from launch import families, launch

KERNELS = Path(__file__).parents[2] / "apps" / "kernels"
SIZES = {"fft2d": ("--size", 60), "sor": ("--size", 33, "--sweeps", 40), "fem": ("--vertices", 300)}
# Without a transform, without any communication, or with ghosts in another order.
BROKEN = {
    "fft2d": "module.Transform.__call__ = lambda self: None",
    "sor": "module.ls.BlockPlan.halo = lambda blocks, *a, **k: module.ls.BlockPlan(blocks, blocks)",
    "fem": "gather = module.ls.Directory.gather_points\n"
    "module.ls.Directory.gather_points = lambda self, needed: gather(self, needed[::-1])",
}

pytestmark = pytest.mark.skipif(not families(), reason="no MPI in this environment")


def needs(name):
    if name == "fem":
        for module in ("scipy", "pymetis"):
            pytest.importorskip(module)


@pytest.mark.parametrize("ranks", (1, 2, 3, 4))
@pytest.mark.parametrize("name", SIZES)
def test_the_result_is_the_serial_one(name, ranks):
    needs(name)
    done = launch(families()[0], ranks, KERNELS / f"{name}.py", *SIZES[name], timeout=120)
    assert done.returncode == 0 and done.stdout.endswith("right\n"), done.stdout + done.stderr
    assert f"on {ranks} ranks" in done.stdout and "WRONG" not in done.stdout


@pytest.mark.parametrize("family", families()[1:])
@pytest.mark.parametrize("name", SIZES)
def test_with_another_mpi(name, family):
    done = launch(family, 2, KERNELS / f"{name}.py", *SIZES[name], timeout=120)
    if name == "fem" and "No module named" in done.stderr:
        pytest.skip("SciPy or METIS is not in that environment")
    assert done.returncode == 0 and done.stdout.endswith("right\n"), done.stdout + done.stderr


@pytest.mark.parametrize("name", SIZES)
def test_another_result_is_told(name, tmp_path):
    needs(name)
    program = tmp_path / "broken.py"
    program.write_text(
        f"import sys\nimport longshore_lab.kernels.{name} as module\n{BROKEN[name]}\nsys.exit(module.main())"
    )
    done = launch(families()[0], 2, program, *SIZES[name], timeout=120)
    assert done.returncode != 0 and done.stdout.endswith("WRONG\n"), done.stdout + done.stderr


def test_the_laboratory_has_the_same_programs():
    for name in SIZES:
        installed = importlib.util.find_spec("longshore_lab").submodule_search_locations[0]
        assert (Path(installed) / "kernels" / f"{name}.py").read_text() == (KERNELS / f"{name}.py").read_text()


def test_a_mesh_is_one():
    needs("fem")
    np = pytest.importorskip("numpy")
    from longshore_lab.kernels import fem

    places, tetrahedra = fem.valley(2000)
    assert 1000 < len(places) < 4000 and (np.unique(tetrahedra) == np.arange(len(places))).all()
    edges = places[tetrahedra[:, 1:]] - places[tetrahedra[:, :1]]
    volumes = abs(np.linalg.det(edges)) / 6
    assert volumes.min() > 0 and np.isclose(volumes.sum(), np.prod(fem.SIZE), rtol=1e-3)
    soil = fem.in_soil(places[tetrahedra].mean(axis=1))
    assert volumes[soil].mean() < volumes[~soil].mean() / 3  # closer to each other in the soil
    owner = fem.owners(tetrahedra, 4)
    assert np.bincount(owner).min() > 0.9 * len(places) / 4
    assert (owner[tetrahedra] != owner[tetrahedra[:, :1]]).any(axis=1).mean() < 0.4
    matrix, load = fem.equations(places, tetrahedra)
    assert abs(matrix - matrix.T).max() < 1e-9 and np.isclose(load.sum(), volumes[soil].sum())
    assert np.isclose((matrix @ np.ones(len(places))).sum(), volumes.sum())  # u = 1 has no slope
