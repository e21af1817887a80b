"""Families of other distributions written when each capability was a field of its own, under the name it had then."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar, get_args

T = TypeVar("T")
RENAMED = {"transfers": "export", "breakable": "failures", "planner": "planning"}  # former field: capability


def takes_former_fields(names: Any) -> Callable[[type[T]], type[T]]:
    """Have a class with a field ``capabilities`` also take each capability as a keyword, by its name in ``names`` (a
    ``Literal``) or its former one; None is none. It then raises ``ValueError`` for a capability of another name."""
    known = {*get_args(names)}
    former = {name: name for name in known} | RENAMED

    def changed(cls: type[T]) -> type[T]:
        made: Any = cls.__init__

        @wraps(made)
        def init(self: T, *positional: Any, **given: Any) -> None:
            moved = {former[name]: given.pop(name) for name in former.keys() & given.keys()}
            if moved:
                kept = {name: target for name, target in moved.items() if target is not None}
                given["capabilities"] = {**given.get("capabilities", {}), **kept}
            if strange := {*given.get("capabilities", {})} - known:
                raise ValueError(f"capabilities: {min(strange)!r}: must be some of {', '.join(sorted(known))}")
            made(self, *positional, **given)

        setattr(cls, "__init__", init)  # noqa: B010  (mypy lets nobody assign it)
        return cls

    return changed
