"""What entry points add to a family: methods (``synth.methods``), and checks (``synth.certificates``)."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping
from dataclasses import replace
from functools import cache
from types import MappingProxyType
from typing import TYPE_CHECKING, TypeVar

from synth.method import Certificates, Method
from synth.plugins import entry_points

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

Named = TypeVar("Named", Method, Certificates)


def methods(family: str, own: Container[str]) -> list[Method]:
    """The methods added to the family of that name. One that has the name of one of its ``own`` is left out, with a
    complaint."""
    found = []
    for entry, method in _added(entry_points.METHODS, family, Method):
        if method.name in own:
            words = (
                f"of {entry_points.origin(entry)} is left out: family {family} has a method {method.name} of its own"
            )
            entry_points.complain(entry_points.METHODS, entry.name, words)
        else:
            ours = entry_points.is_ours(entry)
            found.append(method if ours else replace(method, origin=entry_points.origin(entry)))
    return found


@cache
def certificates(family: str) -> Mapping[str, Certificates]:
    """The checks added to the family of that name, by the names of what they check."""
    added = _added(entry_points.CERTIFICATES, family, Certificates)
    return MappingProxyType({one.name: one for _, one in added})


def _added(group: str, family: str, kind: type[Named]) -> Iterator[tuple[EntryPoint, Named]]:
    """What a group adds to the family, of those that are named as their entry points are."""
    for entry in entry_points.entries(group).values():
        to, _, name = entry.name.partition(".")
        one = entry_points.load(group, entry, kind) if to == family else None
        if one is None:
            continue
        if one.name == name:
            yield entry, one
        else:
            what = "method" if kind is Method else "certificates"
            words = f"names the {what} {one.name!r}: must be {to}.{one.name}"
            entry_points.complain(group, entry.name, f"of {entry_points.origin(entry)} {words}")
