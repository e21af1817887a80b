"""What a shell completes: families, methods, solvers and instance files. Other files it knows itself."""

from __future__ import annotations

import os
from collections.abc import Iterable
from glob import escape, glob


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


def methods(incomplete: str) -> list[str]:
    """The methods of all families."""
    from synth.family import families

    return _starting((method for family in families() for method in family.methods), incomplete)


def collectives(incomplete: str) -> list[str]:
    """The collectives."""
    from synth.schedule.collective import NAMES

    return _starting(NAMES, incomplete)


def backends(incomplete: str) -> list[str]:
    """What runs a schedule's ranks."""
    from synth.ranks.report import BACKENDS

    return _starting(BACKENDS, incomplete)
