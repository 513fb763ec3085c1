"""`longshore bench`: the benches of the laboratory, a distribution of its own (longshore-lab)."""

from __future__ import annotations

import click

from ..errors import NotInstalledError


class LabMissingError(NotInstalledError):
    """The laboratory is not installed."""

    def __init__(self) -> None:
        super().__init__(
            "the benches are a distribution of their own, which is not installed here: pip install longshore-lab "
            "(in a checkout: make lab)"
        )


def _lab() -> dict[str, click.Command] | None:
    try:
        from longshore_lab.cli import COMMANDS
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] != "longshore_lab":
            raise
        return None
    return COMMANDS


class _Benches(click.Group):
    def list_commands(self, context: click.Context) -> list[str]:
        return list(_lab() or ())

    def get_command(self, context: click.Context, name: str) -> click.Command | None:
        return (_lab() or {}).get(name)

    def resolve_command(
        self, context: click.Context, words: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        there = _lab()
        if there is None:
            raise LabMissingError
        if words[0] not in there:
            context.fail(f"there is no bench {words[0]!r}; there are: {', '.join(there)}")
        return super().resolve_command(context, words)


@click.group(cls=_Benches, short_help="Run a benchmark; without a name, list them.", invoke_without_command=True)
@click.pass_context
def bench(context: click.Context) -> None:
    """Run a benchmark and print its table. Without a name, list the benchmarks.

    The benchmarks are a distribution of their own: pip install longshore-lab.
    """
    if context.invoked_subcommand is None:
        there = _lab()
        if there is None:
            raise LabMissingError
        for name, command in there.items():
            click.echo(f"{name}  {command.short_help}")
