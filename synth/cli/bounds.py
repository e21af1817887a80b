"""``synth bounds``: what no schedule of a machine can beat, for every collective and size."""

from __future__ import annotations

import csv
import sys
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer
from typer import Option

from synth.cli.common import EXIT_NO_SOLUTION, checked
from synth.cli.machine_import import MachineFile
from synth.cli.options import grouped
from synth.cli.output import console, errors, table
from synth.cli.tune import EVERY, maker

if TYPE_CHECKING:
    from collections.abc import Iterator

    from synth.instance import Instance

HEAD = ("collective", "size", "bound", "algbw", "busbw", "proof")
COLUMNS = ("collective", "bytes", "bound_s", "algbw_bytes_per_s", "busbw_bytes_per_s", "proof")


@grouped
def bounds(
    machine: str = typer.Argument(
        ..., help="A machine by name, a machine file, or a file that `synth import` reads (topo.txt); or key=value."
    ),
    parameters: list[str] = typer.Argument(None, metavar="key=value…", help="As `synth make` takes them: boxes=2."),
    collective: Annotated[list[str] | None, Option(help=f"Repeatable: {EVERY}. Default: all.")] = None,
    sizes: Annotated[str, Option(help="1KiB..4GiB (times 4), 1KiB..4GiB*2, or 64KiB,1MiB.")] = "1KiB..4GiB",
    time_limit: Annotated[str, Option(help="Of it all: 90, 5m, 2h or none.")] = "2m",
    as_csv: Annotated[bool, Option("--csv", help="Exact numbers, on standard output.")] = False,
    file: MachineFile = MachineFile(),
) -> None:
    """Print what no schedule can beat: the least time of every collective and size, and the most bandwidth as
    nccl-tests count it. Every bound is certified; --csv has each proof in full."""
    from synth.options import read_limit
    from synth.text.quantities import shown
    from synth.tuning.sizes import read_sizes

    seconds = checked("--time-limit", read_limit, time_limit)
    make, listed = maker("synth bounds", machine, parameters or [], file), read_sizes(sizes)
    instances = [
        make(name, size) for name in dict.fromkeys(collective or EVERY.split(", ")) for size in listed
    ]  # what cannot be asked is said before anything runs
    lines = csv.writer(sys.stdout, lineterminator="\n") if as_csv else None
    if lines is not None:
        lines.writerow(COLUMNS)
    cells, missing = list[list[str]](), False
    for row in _rows(instances, seconds):
        missing = missing or row.bound is None
        if lines is not None:
            lines.writerow(row)
        rates = shown(row.algbw, "bytes/s"), shown(row.busbw, "bytes/s")
        proof = row.proof.partition(":")[0]
        cells.append([row.collective, shown(row.bytes, "bytes"), shown(row.bound, "s"), *rates, proof])
    if lines is None:
        console.print(table(*HEAD, rows=cells, right=HEAD[1:5]))
    if missing:
        errors.print("some bounds were not found in the time: --time-limit gives more")
        raise typer.Exit(EXIT_NO_SOLUTION)


class _Bound(NamedTuple):
    """A row: the bound in seconds and as bandwidths in bytes/s, None where it was not found in time."""

    collective: str
    bytes: int
    bound: float | None
    algbw: float | None
    busbw: float | None
    proof: str


def _rows(instances: list[Instance], seconds: float | None) -> Iterator[_Bound]:
    """A row an instance."""
    from synth import api
    from synth.clock.start_up_costs import counted_now
    from synth.family import defaults_for, get_family
    from synth.schedule.collective import bus_factor

    until = None if seconds is None else counted_now() + seconds
    for done, instance in enumerate(instances):
        family, asked = get_family(instance.family), vars(instance)
        name = next(one for one in defaults_for(family, instance) if family.methods[one].kind == "bound")
        share = None if until is None else max(0.1, (until - counted_now()) / (len(instances) - done))
        record = api.solve(instance, name, time_limit=share)
        rate = asked["bytes"] / record.bound if record.bound else None
        factor = float(bus_factor(asked["collective"], len(asked["members"])))
        proof = record["bound_proof"] or record["message"] or record["termination"]
        yield _Bound(asked["collective"], asked["bytes"], record.bound, rate, rate and rate * factor, proof)
