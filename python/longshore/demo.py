"""`python -m longshore.demo`: the main job on a real array, an elevation model that matplotlib ships as sample data.

The array is the Jacksboro fault in Tennessee, from the United States Geological Survey, in the public domain.
"""

from __future__ import annotations

import importlib.util
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

_SAMPLE = Path("mpl-data", "sample_data", "jacksboro_fault_dem.npz")
_PLACE = Path("build", "demo")
_PROBE = "from mpi4py import MPI; import sys; sys.exit(0 if MPI.COMM_WORLD.Get_size() == 4 else 1)"


def main() -> int:
    """Explains, moves there and back, compares. Returns the exit code."""
    import numpy as np

    sample = find_sample()
    if sample is None:
        print("the demo needs matplotlib's sample data: install matplotlib beside longshore", file=sys.stderr)
        return 2
    _PLACE.mkdir(parents=True, exist_ok=True)
    with np.load(sample) as archive:
        elevation = archive["elevation"]
    np.save(_PLACE / "elevation.npy", elevation)
    rows, columns = elevation.shape
    print(
        f"elevation.npy: {rows} x {columns} {elevation.dtype}, the Jacksboro fault (USGS, public domain), "
        f"from matplotlib;\nheights {elevation.min()} to {elevation.max()} m. Everything below happens in {_PLACE}."
    )

    blocks, cyclic = "(BLOCK, *) on 4", "(CYCLIC(64), CYCLIC(64)) on 2x2"
    steps = [
        ["explain", "--shape", f"{rows}x{columns}", "--dtype", str(elevation.dtype), "--from", blocks, "--to", cyclic],
        ["move", "elevation.npy", "shards/", "--to", blocks],
        ["move", "shards/", "other/", "--to", cyclic, "--max-mem", "16MiB", "--verify"],
    ]
    for step in steps:
        if step[0] == "move" and (_PLACE / step[2]).exists():
            step.append("--force")
        if code := _run(step):
            return code
    launcher = find_mpiexec()
    if launcher is None:
        print("\nNo mpiexec with a matching mpi4py here, so the way back goes by threads.")
    back_again = ["move", "other/", "back.npy", *(["--force"] if (_PLACE / "back.npy").exists() else [])]
    if code := _run(back_again, launcher):
        return code

    back = np.load(_PLACE / "back.npy")
    same = back.dtype == elevation.dtype and np.array_equal(back, elevation)
    print(f"\nback.npy {'equals' if same else 'DIFFERS FROM'} elevation.npy, by numpy.array_equal.")
    return 0 if same else 1


def find_sample() -> Path | None:
    """The file in the installed matplotlib, without importing it."""
    spec = importlib.util.find_spec("matplotlib")
    for folder in (spec.submodule_search_locations or []) if spec else []:
        if (path := Path(folder) / _SAMPLE).is_file():
            return path
    return None


def find_mpiexec() -> str | None:
    """A launcher whose processes this Python's mpi4py sees as one job of 4, or None."""
    if importlib.util.find_spec("mpi4py") is None:
        return None
    for path in (os.path.join(os.path.dirname(sys.executable), "mpiexec"), shutil.which("mpiexec")):
        if not path or not os.path.exists(path):
            continue
        try:
            probe = subprocess.run(
                [path, "-n", "4", sys.executable, "-c", _PROBE],
                env=_environment(),
                timeout=60,
                stdin=subprocess.DEVNULL,
                capture_output=True,
            )
        except (OSError, subprocess.TimeoutExpired):
            continue
        if probe.returncode == 0:
            return path
    return None


def _run(words: list[str], launcher: str | None = None) -> int:
    script = os.path.join(os.path.dirname(sys.executable), "longshore")
    command = [script] if os.path.exists(script) else [sys.executable, "-m", "longshore.cli"]
    before = [launcher, "-n", "4"] if launcher else []
    print(f"\n$ {'mpiexec -n 4 ' if launcher else ''}{shlex.join(['longshore', *words])}", flush=True)
    return subprocess.run(before + command + words, cwd=_PLACE, env=_environment()).returncode


def _environment() -> dict[str, str]:
    # Open MPI refuses to run as root, and more processes than cores, unless told that it is meant.
    return {
        "OMPI_ALLOW_RUN_AS_ROOT": "1",
        "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
        "OMPI_MCA_rmaps_base_oversubscribe": "1",
        "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
        **os.environ,
    }


if __name__ == "__main__":
    sys.exit(main())
