"""Nodes as people write them: by number, by name, in ranges."""

from __future__ import annotations

from collections.abc import Sequence

from synth.errors import Fault, InputError
from synth.exchange.machines.machine import listed


def nodes_meant(text: str, key: str, names: Sequence[str] | None) -> list[int]:
    """``0,1,4-7`` or ``0/gpu0,1/gpu0`` as numbers; a name comes before a number. Names are left out where no machine
    says what they mean. Raises :class:`InputError`."""
    number = {name: place for place, name in enumerate(names or ())}
    found: list[int] = []
    for part in map(str.strip, text.split(",")):
        first, dash, last = part.partition("-")
        if part in number:
            found.append(number[part])
        elif digits(first) and (not dash or (digits(last) and int(first) <= int(last) < 2**20)):
            found += range(int(first), int(last or first) + 1)
        elif names is not None or not part:
            there = f"; the nodes are {listed(names)}" if names else ""
            raise InputError([Fault(key, f"must be nodes by number or name, such as 0,1,4-7{there}", part, True)])
    return found


def node_meant(text: str, key: str, names: Sequence[str] | None) -> int:
    """One node by name or number. Raises :class:`InputError`."""
    found = nodes_meant(text, key, names) or [0]
    if len(found) != 1 or "," in text:
        raise InputError([Fault(key, "must be one node, by number or name", text, True)])
    return found[0]


def digits(text: str) -> bool:
    """Whether it is a whole number of at most nine digits."""
    return text.isascii() and text.isdecimal() and len(text) < 10
