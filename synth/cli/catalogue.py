"""``synth families``, ``synth solvers``, ``synth instances``."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, get_args

import typer

from synth.cli import complete
from synth.cli.output import console, table
from synth.errors import one_of
from synth.method import SUBMITTED, Kind, Need

if TYPE_CHECKING:
    from rich.table import Table

    from synth.family import Family

FAMILY_COLUMNS = ("family", "problem", "programs", "references", "bounds", "instances")


def families(
    name: str = typer.Argument(
        None,
        metavar="FAMILY",
        help="Only this one: its methods and their own parameters.",
        autocompletion=complete.families,
    ),
) -> None:
    """List the installed families; of one its methods and what they take (`solve -O key=value`)."""
    from synth.family import families as installed
    from synth.family import get_family
    from synth.plugins import entry_points
    from synth.solvers.catalogue import solvers_for

    if name is None:
        shipped = _shipped()
        others = {
            one: e for one, e in entry_points.entries(entry_points.FAMILIES).items() if not entry_points.is_ours(e)
        }
        origins = {one: entry_points.origin(entry) for one, entry in others.items()}
        rows = [(_family_row(family, shipped[family.name]), origins.get(family.name)) for family in installed()]
        console.print(_with_origins(FAMILY_COLUMNS, rows, right=FAMILY_COLUMNS[2:]))
        _speak_of_strangers()
        console.print("a family's methods and their parameters: synth families FAMILY")
        return
    family = get_family(name)
    methods = [
        (
            (
                method.name,
                method.kind,
                "yes" if method.name in family.default_methods else "",
                ", ".join(solvers_for(method.needs)),
                method.summary,
            ),
            method.origin,
        )
        for method in family.methods.values()
    ]
    out = _with_origins(("method", "kind", "default", "solvers", "what it does"), methods)
    out.title = f"{name}: {family.title}"
    out.caption = f"minimises {family.objective.name}; {family.citation}"
    console.print(out)
    console.print(table("-O", "takes", "default", "meaning", "methods", rows=_parameters(family)))


def _with_origins(
    columns: Sequence[str], rows: Sequence[tuple[tuple[str, ...], str | None]], right: Sequence[str] = ()
) -> Table:
    """A table of rows beside which stands the distribution that they come from, None for this one: a column of it where
    one comes from another."""
    if any(origin for _, origin in rows):
        return table(*columns, "from", rows=[(*row, origin or "synth") for row, origin in rows], right=right)
    return table(*columns, rows=[row for row, _ in rows], right=right)


def _speak_of_strangers() -> None:
    """A complaint for each method of a family that is not installed."""
    from synth.plugins import entry_points

    families = entry_points.entries(entry_points.FAMILIES)
    for name, entry in entry_points.entries(entry_points.METHODS).items():
        if name.partition(".")[0] not in families:
            words = f"of {entry_points.origin(entry)} adds to a family that is not installed; {one_of(name, families)}"
            entry_points.complain(entry_points.METHODS, name, words)


def _family_row(family: Family, shipped: int) -> tuple[str, ...]:
    """The family as :data:`FAMILY_COLUMNS`."""
    kinds = Counter(method.kind for method in family.methods.values())
    return family.name, family.title, *(str(kinds[kind]) for kind in get_args(Kind) if kind != SUBMITTED), str(shipped)


def _shipped() -> Counter[str]:
    """How many instance files came with this copy of synth, by family: the checkout's, or the installed tour's."""
    from synth.cli.tour import folder

    place = folder()
    files = (place.parent if place.parent.name == "instances" else place).rglob("*.json")
    return Counter(json.loads(file.read_text())["family"] for file in files)


def _parameters(family: Family) -> list[tuple[str, str, str, str, str]]:
    """A row a parameter that some methods take."""
    users = defaultdict(list)
    for method in family.methods.values():
        for parameter in method.parameters:
            users[parameter].append(method.name)
    return [(p.name, p.takes, _shown(p.default), p.help, ", ".join(methods)) for p, methods in users.items()]


def _shown(default: object) -> str:
    if isinstance(default, bool):
        return "on" if default else "off"
    return "" if default is None else str(default)


def solvers() -> None:
    """List the solvers: which are installed, what they can, and how to get the others."""
    from synth.solvers.catalogue import known_solvers
    from synth.solvers.solver import WORDS

    rows = []
    for solver in known_solvers().values():
        there, missing = (solver.version or "yes", "") if solver.installed else ("no", solver.install)
        abilities = {"warm start": solver.warm_start, "bound": solver.bound, "seed": solver.seed}
        able = ", ".join(word for word, is_able in abilities.items() if is_able)
        takes = ", ".join(need for need in get_args(Need) if need in solver.takes)
        rows.append(((solver.name, solver.title, there, takes, able, solver.licence, missing), solver.origin))
    columns = ("solver", "", "installed", "takes", "with", "licence", "to install")
    console.print(_with_origins(columns, rows))
    for need, words in WORDS.items():
        console.print(f"{need}: {words}")


def instances(
    family: str = typer.Argument(None, help="Only this family's.", autocompletion=complete.families),
    folder: Path = typer.Option(Path("instances"), "--folder", help="Where the instance files are."),
) -> None:
    """List the instance files below a folder."""
    from synth.errors import InputError
    from synth.execution.runs import expand_paths
    from synth.family import get_family
    from synth.instance import read

    if family is not None:
        get_family(family)
    if not folder.is_dir():
        raise InputError("no such folder; name one with --folder", str(folder))
    rows = []
    for path in expand_paths([folder]):
        instance = read(path)
        if family in (None, instance.family):
            rows.append((str(path), instance.family, instance.name, instance.source))
    console.print(table("file", "family", "name", "source", rows=rows))


def schema(
    what: str = typer.Argument(..., metavar="record|FAMILY", help="Records, or the instances of a family."),
) -> None:
    """Print the JSON schema of records, or of a family's instance files."""
    import json

    from synth.records.schema import schema as made

    typer.echo(json.dumps(made(what), indent=1))
