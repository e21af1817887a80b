"""The methods that other distributions add to a family, through the entry-point group ``synth.methods``."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import replace

from synth.method import Method
from synth.plugins import entry_points


def of(family: str, own: Container[str]) -> list[Method]:
    """The methods that other distributions add to the family of that name. One that has the name of one of its ``own``
    is left out, with a complaint."""
    added = []
    for entry in entry_points.entries(entry_points.METHODS).values():
        to, _, name = entry.name.partition(".")
        method = entry_points.load(entry_points.METHODS, entry, Method) if to == family else None
        if method is None:
            continue
        origin = entry_points.origin(entry)
        if method.name != name:
            words = f"of {origin} names the method {method.name!r}: must be {to}.{method.name}"
        elif name in own:
            words = f"of {origin} is left out: family {to} has a method {name} of its own"
        else:
            added.append(replace(method, origin=origin))
            continue
        entry_points.complain(entry_points.METHODS, entry.name, words)
    return added
