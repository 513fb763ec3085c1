"""`longshore bench` on the command line, with the laboratory installed."""

import pytest
from longshore.cli import run
from longshore_lab import BENCHES


@pytest.fixture
def call(capfd, monkeypatch, tmp_path):
    """Runs the command in an empty folder: (exit code, stdout, stderr)."""
    monkeypatch.chdir(tmp_path)

    def call(*words):
        code = run([str(word) for word in words])
        out, err = capfd.readouterr()
        assert "Traceback" not in out + err
        return code, out, err

    return call


def test_bench_lists(call):
    code, out, _ = call("bench")
    assert code == 0 and "redistribute" in out
    code, _, err = call("bench", "nothing")
    assert code == 2 and "redistribute" in err
    for words, said in (
        (["--case", "sideways"], "sideways"),
        (["--size", "0"], "0"),
        (["--mpiexec", "no-such"], "no-such"),
        (["--plot", "a.pdf"], "a.pdf"),
        (["--contender", "nobody"], "nobody"),
    ):
        code, _, err = call("bench", "redistribute", *words)
        assert code == 2 and said in err, err


def test_every_bench_has_its_help(call):
    for name, bench in BENCHES.items():
        code, out, _ = call("bench", name, "--help")
        assert code == 0 and "--quick" in out and "--json" in out and "--plot" in out
        assert ("--mpiexec" in out) == bench.mpi and "--repeats" in out
