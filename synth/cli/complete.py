"""What a shell completes: families, methods, solvers and instance files. Other files it knows itself."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from glob import escape, glob
from pathlib import Path

from typer import Context

MOST_READ = 50  # files of a folder
MOST_BYTES = 1 << 20  # of a file


def _starting(words: Iterable[str], incomplete: str) -> list[str]:
    return [word for word in dict.fromkeys(words) if word.startswith(incomplete)]


def instances(incomplete: str) -> list[str]:
    """The ``*.json`` files of the folder typed so far, and all below ``instances``, as they are named from here."""
    here = glob(os.path.join(escape(os.path.dirname(incomplete)), "*.json"))
    return _starting(sorted(here) + sorted(glob("instances/**/*.json", recursive=True)), incomplete)


def families(incomplete: str) -> list[str]:
    """The installed families."""
    from synth.family import family_names

    return _starting(family_names(), incomplete)


def solvers(incomplete: str) -> list[str]:
    """The solvers, installed or not."""
    from synth.solvers.catalogue import known_solvers

    return _starting(known_solvers(), incomplete)


def methods(ctx: Context, incomplete: str) -> list[str]:
    """The methods of the families of the instances, folders or families typed before; without any, of all."""
    from synth.family import families

    arguments = [
        ctx.params.get(given.name or "") for given in ctx.command.params if given.param_type_name == "argument"
    ]
    typed = [word for value in arguments for word in (value if isinstance(value, list | tuple) else [value])]
    typed += ctx.args  # what stands before an option is not parsed yet
    named = {family for word in typed if isinstance(word, str | Path) for family in _families_of(str(word))}
    known = list(families())
    chosen = [family for family in known if family.name in named] or known
    return _starting((method for family in chosen for method in family.methods), incomplete)


def _families_of(word: str) -> Iterator[str]:
    """The families that a typed word names: by itself, as an instance file, or as a folder of them (some of it)."""
    path = Path(word)
    try:
        files = sorted(path.rglob("*.json"))[:MOST_READ] if path.is_dir() else [path] if path.is_file() else []
        for file in files:
            with file.open("rb") as stream:
                found = re.search(rb'"family"\s*:\s*"([A-Za-z0-9_]+)"', stream.read(MOST_BYTES))
            if found:
                yield found[1].decode()
    except OSError:
        return
    yield word


def collectives(incomplete: str) -> list[str]:
    """The collectives."""
    from synth.schedule.collective import NAMES

    return _starting(NAMES, incomplete)


def backends(incomplete: str) -> list[str]:
    """What runs a schedule's ranks."""
    from synth.ranks.report import BACKENDS

    return _starting(BACKENDS, incomplete)
