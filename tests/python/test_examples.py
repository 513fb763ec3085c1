"""The Python examples run and say that all is well."""

import os
import struct
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def run(script, *arguments, cwd):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    return subprocess.run(
        [sys.executable, EXAMPLES / script, *arguments],
        cwd=cwd,
        env=environment,
        capture_output=True,
        text=True,
        timeout=200,
    )


PICTURES = {
    "original", "turned-by-90", "turned-by-180", "turned-by-270", "mirrored", "upside-down", "window", "tiled-3-x-2",
    "copied-and-clipped", "rippled",
}  # fmt: skip


def test_bitblit(tmp_path):
    said = run("bitblit.py", "--size", "161x97", "--rounds", "1", "--out", "pictures", cwd=tmp_path)
    assert said.returncode == 0, said.stdout + said.stderr
    assert "All as NumPy has it." in said.stdout and "NOT" not in said.stdout
    written = {path.name for path in (tmp_path / "pictures").iterdir()}
    assert written == {f"{name}.png" for name in PICTURES}
    sizes = {
        name: struct.unpack(">II", (tmp_path / "pictures" / f"{name}.png").read_bytes()[16:24]) for name in PICTURES
    }
    assert sizes["original"] == sizes["mirrored"] == (161, 97) and sizes["turned-by-90"] == (97, 161)


def test_bitblit_reads_a_picture(tmp_path):
    pytest.importorskip("PIL")
    assert run("bitblit.py", "--size", "60x40", "--rounds", "1", "--out", "first", cwd=tmp_path).returncode == 0
    said = run("bitblit.py", "first/turned-by-90.png", "--rounds", "1", "--out", "second", cwd=tmp_path)
    assert said.returncode == 0, said.stdout + said.stderr
    from PIL import Image

    with (
        Image.open(tmp_path / "first" / "original.png") as original,
        Image.open(tmp_path / "second" / "turned-by-270.png") as back,
    ):
        assert original.tobytes() == back.tobytes()


@pytest.mark.parametrize("blocks", [1, 4, 7])
def test_redblack3d(tmp_path, blocks):
    said = run("redblack3d.py", "--size", "13", "--iterations", "3", "--blocks", str(blocks), cwd=tmp_path)
    assert said.returncode == 0 and "bit by bit" in said.stdout, said.stdout + said.stderr


@pytest.mark.parametrize("blocks", [1, 6])
def test_summa(tmp_path, blocks):
    said = run("summa.py", "--size", "50", "--panel", "16", "--blocks", str(blocks), cwd=tmp_path)
    assert said.returncode == 0 and "As NumPy has it." in said.stdout, said.stdout + said.stderr
