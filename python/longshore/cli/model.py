"""`longshore model`: how fast a way of moving data is, by the copy-transfer model."""

from __future__ import annotations

from pathlib import Path

import click

from .answers import write_json


@click.command(short_help="Estimate how fast a way of moving data is. Needs no data.")
@click.argument("expression")
@click.option(
    "--machine",
    required=True,
    metavar="NAME|FILE",
    help="cray-t3d, intel-paragon, or a file of ThroughputTable.to_json().",
)
@click.option("--json", "as_json", is_flag=True, help="Write JSON for programs.")
def model(expression: str, machine: str, as_json: bool) -> None:
    """Estimate how fast a way of moving data is, from a machine's measured copies and transfers, by the copy-transfer
    model: o is one after the other, || at the same time.

    \b
    longshore model "64C1 o (1S0 || Nd || 0D1) o 1C64" --machine cray-t3d
    longshore model "64S0 || Nadp || 0D64" --machine cray-t3d
    """
    from .. import model as room
    from ..stores.team import launched_rank

    shipped = {"cray-t3d": room.cray_t3d, "intel-paragon": room.intel_paragon}
    if machine not in shipped and not Path(machine).is_file():
        raise click.UsageError(f"{machine!r} is none of {', '.join(shipped)}, and no file")
    table = shipped.get(machine) or room.ThroughputTable.from_json(Path(machine).read_text("utf-8", errors="replace"))
    parsed = room.TransferExpression(expression)
    estimate = room.evaluate(parsed, table)
    if launched_rank() != 0:
        return  # under mpiexec one process is enough
    if as_json:
        parts = [
            {
                "name": part.name,
                "megabytes_per_second": part.megabytes_per_second,
                "share_of_time": part.share_of_time,
                "measured": part.measured,
            }
            for part in estimate.parts
        ]
        told = {
            "expression": str(parsed),
            "machine": table.machine,
            "megabytes_per_second": estimate.megabytes_per_second,
            "bottleneck": estimate.bottleneck.name,
            "parts": parts,
        }
        write_json(told)
        return
    click.echo(f"{parsed} on {table.machine}: {estimate.megabytes_per_second:.1f} MB/s\n")
    rows = [("", "MB/s", "of the time", "measured")] + [
        (part.name, f"{part.megabytes_per_second:.1f}", f"{part.share_of_time:.0%}", ", ".join(part.measured))
        for part in estimate.parts
    ]
    width = max(len(row[0]) for row in rows)
    for name, rate, share, measured in rows:
        click.echo(f"  {name:<{width}}  {rate:>8}  {share:>11}  {measured}")
    click.echo(f"\nbottleneck: {estimate.bottleneck.name}")
