"""What a shell completes: families, methods and solvers. Files it knows itself."""

from __future__ import annotations

from collections.abc import Iterable


def _starting(words: Iterable[str], incomplete: str) -> list[str]:
    return [word for word in dict.fromkeys(words) if word.startswith(incomplete)]


def families(incomplete: str) -> list[str]:
    """The installed families."""
    from synth.family import family_names

    return _starting(family_names(), incomplete)


def solvers(incomplete: str) -> list[str]:
    """The solvers, installed or not."""
    from synth.solvers.catalogue import SOLVERS

    return _starting(SOLVERS, incomplete)


def methods(incomplete: str) -> list[str]:
    """The methods of all families."""
    from synth.family import family_names, get_family

    return _starting((method for name in family_names() for method in get_family(name).methods), incomplete)
