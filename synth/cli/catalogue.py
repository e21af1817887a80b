"""``synth families``, ``synth solvers``, ``synth instances``."""

from __future__ import annotations

from pathlib import Path

import typer

from synth.cli.output import console, table


def families() -> None:
    """List the installed families and their methods."""
    from synth.family import family_names, get_family

    for name in family_names():
        family = get_family(name)
        rows = []
        for method in family.methods.values():
            default = "yes" if method.name in family.default_methods else ""
            parameters = ", ".join(f"{p.name}={_shown(p.default)}" for p in method.parameters)
            rows.append((method.name, method.kind, default, ", ".join(method.solvers), method.summary, parameters))
        out = table("method", "kind", "default", "solvers", "what it does", "own parameters (-O)", rows=rows)
        out.title = f"{name}: {family.title}"
        out.caption = f"minimises {family.objective.name}; {family.citation}"
        console.print(out)


def _shown(default: object) -> str:
    if isinstance(default, bool):
        return "on" if default else "off"
    return "" if default is None else str(default)


def solvers() -> None:
    """List the solvers, which are installed, and how to get the others."""
    from synth.solvers.catalogue import SOLVERS

    rows = [
        (info.name, info.title, (info.version or "yes") if info.installed else "no", info.licence,
         "" if info.installed else info.install)
        for info in SOLVERS.values()
    ]  # fmt: skip
    console.print(table("solver", "", "installed", "licence", "to install", rows=rows))


def instances(
    family: str = typer.Argument(None, help="Only this family's."),
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
