"""``synth families``, ``synth solvers``, ``synth instances``."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, get_args

import typer

from synth.cli import complete
from synth.cli.output import console, table
from synth.family import Kind

if TYPE_CHECKING:
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
    from synth.family import family_names, get_family

    if name is None:
        shipped = _shipped()
        rows = [_family_row(get_family(one), shipped[one]) for one in family_names()]
        console.print(table(*FAMILY_COLUMNS, rows=rows, right=FAMILY_COLUMNS[2:]))
        console.print("a family's methods and their parameters: synth families FAMILY", markup=False)
        return
    family = get_family(name)
    methods = [
        (
            method.name,
            method.kind,
            "yes" if method.name in family.default_methods else "",
            ", ".join(method.solvers),
            method.summary,
        )
        for method in family.methods.values()
    ]
    out = table("method", "kind", "default", "solvers", "what it does", rows=methods)
    out.title = f"{name}: {family.title}"
    out.caption = f"minimises {family.objective.name}; {family.citation}"
    console.print(out)
    console.print(table("-O", "takes", "default", "meaning", "methods", rows=_parameters(family)))


def _family_row(family: Family, shipped: int) -> tuple[str, ...]:
    """The family as :data:`FAMILY_COLUMNS`."""
    kinds = Counter(method.kind for method in family.methods.values())
    return family.name, family.title, *(str(kinds[kind]) for kind in get_args(Kind)), str(shipped)


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
    """List the solvers, which are installed, and how to get the others."""
    from synth.solvers.catalogue import SOLVERS

    rows = []
    for info in SOLVERS.values():
        there, missing = (info.version or "yes", "") if info.installed else ("no", info.install)
        rows.append((info.name, info.title, there, info.licence, missing))
    console.print(table("solver", "", "installed", "licence", "to install", rows=rows))


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
