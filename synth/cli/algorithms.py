"""``synth import`` of an algorithm: what an executor runs, as a schedule for a machine, with its time and its gap."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import typer

from synth.cli.common import EXIT_NO_SOLUTION, demand_folder
from synth.cli.output import command, console
from synth.text.quantities import percent, shown

BOUND_S = 60.0


def import_algorithm(
    file: Path, machine: str | None, given: Mapping[str, str], output: Path | None, results: Path | None
) -> None:
    """Say what the algorithm is, and with a machine how long it takes there, beside its lower bound."""
    from synth.exchange.file_check import check_file

    found = check_file(file)
    console.print(f"{file}: {found.summary}")
    if found.faults:
        from synth.errors import InputError

        raise InputError(found.faults, str(file))
    if machine is None:
        console.print(
            f"its time: {command('import', file)} --machine INSTANCE, or --machine dgx1 bytes=1GiB",
        )
        return
    _run(file, machine, given, output, results)


def _run(file: Path, machine: str, given: Mapping[str, str], output: Path | None, results: Path | None) -> None:
    from synth.exchange import imported_algorithm
    from synth.instance import read as read_instance
    from synth.records import record as records
    from synth.records.optimality import gap
    from synth.text.files import write_atomically

    if results is not None:
        demand_folder("--results", results)
    instance = imported_algorithm.instance_for(file, machine, given)
    if instance.file is None and (output is not None or results is not None):  # so that the record can be checked again
        output = output or Path(f"{instance.name}.json")
        write_atomically(output, instance.to_json().encode())
        console.print(f"{output}: the instance; ours: {command('solve', output)}")
        instance = read_instance(output)
    record = imported_algorithm.run(file, instance)
    if record.value is None:
        console.print(f"no schedule here: {record['message']}")
        raise typer.Exit(EXIT_NO_SOLUTION)
    bound = imported_algorithm.bound_of(instance, BOUND_S)
    least = None if bound is None else bound.bound
    unit = record["objective"]["unit"]
    console.print(
        f"on {instance.name}: {shown(record.value, unit)}, proven bound {shown(least, unit)}, gap "
        f"{percent(gap(record.value, least))}",
    )  # fmt: skip
    if results is None:
        return
    for one in (record, bound):
        if one is not None:
            path = records.record_path(results, instance.family, instance.name, one["method"], None, one.question)
            records.write(one, path)
            console.print(f"{path} written")
