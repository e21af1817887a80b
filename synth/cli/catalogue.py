"""``synth families``, ``synth solvers``, ``synth instances``."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from synth.cli import complete
from synth.cli.output import console, table

if TYPE_CHECKING:
    from synth.family import Family


def families(
    name: str = typer.Argument(
        None,
        metavar="FAMILY",
        help="Only this one, with its methods' own parameters.",
        autocompletion=complete.families,
    ),
) -> None:
    """List the installed families and their methods; of one also what its methods take (`solve -O key=value`)."""
    from synth.family import family_names, get_family

    for one in family_names() if name is None else [name]:
        family = get_family(one)
        rows = [
            (
                method.name,
                method.kind,
                "yes" if method.name in family.default_methods else "",
                ", ".join(method.solvers),
                method.summary,
                ", ".join(f"{p.name}={_shown(p.default)}" for p in method.parameters),
            )
            for method in family.methods.values()
        ]
        out = table("method", "kind", "default", "solvers", "what it does", "own parameters (-O)", rows=rows)
        out.title = f"{one}: {family.title}"
        out.caption = f"minimises {family.objective.name}; {family.citation}"
        console.print(out)
        if name is not None:
            console.print(table("-O", "takes", "default", "meaning", "methods", rows=_parameters(family)))


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
