"""What can fail of a machine, one thing at a time, and which failures are the same but for a symmetry of the machine.

A *link* fails in both directions, with all links parallel to it; a *switch* (an NIC is one) with all links at it; a
*group* (a bus, a port that links share) with all its links. Links may also be left with a share of their bandwidth.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, permutations, product
from typing import Any

import numpy as np

from synth.arrays import IntArray
from synth.errors import InputError
from synth_models.fabric.problem import failures as files
from synth_models.fabric.problem.machine import Machine
from synth_models.fabric.problem.symmetries import Pins, Symmetries

Pair = tuple[int, int]


@dataclass(frozen=True)
class Part:
    """One thing that fails. ``ends``: its vertices, two of a link, one of a switch or (behind the nodes) a group;
    ``pairs``: the directions from node to node that it takes along."""

    kind: str
    ends: tuple[int, ...]
    pairs: frozenset[Pair]


@dataclass(frozen=True)
class Failure:
    """One or several parts that fail together; ``name`` as a file of failures has it."""

    name: str
    parts: tuple[Part, ...]

    @property
    def kind(self) -> str:
        """``link``, ``switch``, ``group``, or several of them."""
        return " and ".join(part.kind for part in self.parts)

    @property
    def pairs(self) -> frozenset[Pair]:
        """The directions from node to node that no longer are."""
        return frozenset().union(*(part.pairs for part in self.parts))

    @property
    def key(self) -> frozenset[tuple[str, frozenset[Pair], frozenset[int]]]:
        """What tells it from all others."""
        return frozenset((part.kind, part.pairs, frozenset(part.ends)) for part in self.parts)

    def stated(self, share: str | None) -> dict[str, Any]:
        """``failed`` of an instance file; ``share``: what is left of the bandwidth, ``1/2``, None for nothing."""
        pairs = sorted(self.pairs)
        if share is not None:
            return {"reduced": [[u, v, share] for u, v in pairs]}
        nodes = sorted(part.ends[0] for part in self.parts if part.kind == "switch")
        at = set(nodes)
        return {"links": [[u, v] for u, v in pairs if not {u, v} & at], "nodes": nodes}


def every_failure(machine: Machine, links_only: bool = False) -> list[Failure]:
    """All single failures: links, then groups, then switches (not with ``links_only``), in the machine's order."""
    net, names = machine.network, machine.names
    directed = dict.fromkeys(zip(net.src.tolist(), net.dst.tolist(), strict=True))
    found: dict[frozenset[Pair], Failure] = {}
    for u, v in directed:
        pairs = frozenset(pair for pair in ((u, v), (v, u)) if pair in directed)
        arrow = "" if len(pairs) == 2 else "-> "
        part = Part("link", (u, v), pairs)
        found.setdefault(pairs, Failure(f"link {names[u]} {arrow}{names[v]}", (part,)))
    failures = list(found.values())
    for g, name in enumerate(machine.group_names):
        at = np.flatnonzero(machine.group == g)
        pairs = frozenset(zip(net.src[at].tolist(), net.dst[at].tolist(), strict=True))
        if pairs:
            failures.append(Failure(f"group {name}", (Part("group", (machine.nodes + g,), pairs),)))
    for node in [] if links_only else np.flatnonzero(machine.is_switch).tolist():
        pairs = frozenset(pair for pair in directed if node in pair)
        if pairs:
            failures.append(Failure(f"node {names[node]}", (Part("switch", (node,), pairs),)))
    return failures


def pairs_of(singles: Sequence[Failure]) -> Iterator[Failure]:
    """Every two failures at once."""
    for one, other in combinations(singles, 2):
        yield Failure(f"{one.name} and {other.name}", one.parts + other.parts)


def moved(failure: Failure, image: IntArray) -> frozenset[tuple[str, frozenset[Pair], frozenset[int]]]:
    """The key of what the failure becomes when vertices move."""
    return frozenset(
        (
            part.kind,
            frozenset((int(image[u]), int(image[v])) for u, v in part.pairs),
            frozenset(int(image[end]) for end in part.ends),
        )
        for part in failure.parts
    )


@dataclass(frozen=True, eq=False)
class Orbit:
    """Failures that symmetries map onto each other: ``members``, the representative first, and for each the images of
    all vertices under a symmetry that maps the representative to it, shape (vertices,)."""

    members: tuple[Failure, ...]
    images: tuple[IntArray, ...]

    @property
    def representative(self) -> Failure:
        """The first in the machine's order."""
        return self.members[0]


def orbits(failures: Sequence[Failure], symmetries: Symmetries) -> list[Orbit]:
    """The orbits of failures, in the order of their first ones. Where the search for a symmetry was cut short an orbit
    comes as several."""
    place = {failure.key: k for k, failure in enumerate(failures)}
    label = list(range(len(failures)))
    by_kind: dict[Any, list[int]] = {}
    for k, failure in enumerate(failures):
        by_kind.setdefault(_invariant(failure, symmetries), []).append(k)
    for same in by_kind.values():
        firsts: list[int] = []
        for k in same:
            if any(_root(label, k) == _root(label, first) for first in firsts):
                continue
            if not any(_joined(failures, first, k, symmetries, place, label) for first in firsts):
                firsts.append(k)
    members: dict[int, list[int]] = {}
    for k in range(len(failures)):
        members.setdefault(_root(label, k), []).append(k)
    found = sorted(members.values())
    return [_orbit(failures, rows, symmetries, place) for rows in found]


def _invariant(failure: Failure, symmetries: Symmetries) -> Any:
    colours = [tuple(sorted(int(symmetries.colour[end]) for end in part.ends)) for part in failure.parts]
    kinds = [(part.kind, len(part.pairs)) for part in failure.parts]
    return tuple(sorted(zip(kinds, colours, strict=True)))


def _root(label: list[int], k: int) -> int:
    while label[k] != k:
        label[k] = label[label[k]]
        k = label[k]
    return k


def _joined(
    failures: Sequence[Failure], first: int, k: int, symmetries: Symmetries, place: dict[Any, int], label: list[int]
) -> bool:
    """Whether a symmetry maps one failure to the other; then all failures are joined with their images."""
    wanted = failures[k].key
    for pins in _pins(failures[first], failures[k]):
        image = symmetries.mapping(pins)
        if image is None:
            continue
        if moved(failures[first], image) != wanted:
            continue
        for i, failure in enumerate(failures):
            j = place.get(moved(failure, image))
            if j is not None:
                a, b = _root(label, i), _root(label, j)
                label[max(a, b)] = min(a, b)
        return True
    return False


def _pins(one: Failure, other: Failure) -> Iterator[Pins]:
    """The ways in which the parts of a failure may become those of another."""
    for order in permutations(other.parts):
        if [part.kind for part in order] == [part.kind for part in one.parts]:
            ends = [list(permutations(part.ends)) for part in order]
            for chosen in product(*ends):
                yield [
                    pin
                    for part, there in zip(one.parts, chosen, strict=True)
                    for pin in zip(part.ends, there, strict=True)
                ]


def _orbit(failures: Sequence[Failure], rows: Sequence[int], symmetries: Symmetries, place: dict[Any, int]) -> Orbit:
    """The orbit with symmetries from its first member to all: walks of generators, breadth first."""
    count = len(symmetries.colour)
    images: dict[int, IntArray] = {rows[0]: np.arange(count, dtype=np.int64)}
    queue = [rows[0]]
    steps = [*symmetries.generators, *(_inverse(image) for image in symmetries.generators)]
    for k in queue:  # which grows
        for image in steps:
            j = place.get(moved(failures[k], image))
            if j is not None and j not in images:
                images[j] = image[images[k]]
                queue.append(j)
    ordered = sorted(images)
    return Orbit(tuple(failures[k] for k in ordered), tuple(images[k] for k in ordered))


def _inverse(image: IntArray) -> IntArray:
    found = np.empty_like(image)
    found[image] = np.arange(len(image))
    return found


def named(text: str, machine: Machine) -> frozenset[Pair] | int:
    """What a person means by ``link A B``, ``link A -> B`` or ``node A``: the pairs of a link, or the node. Raises
    :class:`InputError`."""
    try:
        said = files.statement(1, text.replace(",", " ").strip())
    except ValueError as error:
        raise InputError(f"{text!r}: {error}") from None
    ends = [files.node_number(word, machine) for word in said.ends]
    if None in ends:
        raise InputError(f"{text!r}: no such node: {said.ends[ends.index(None)]}")
    known = [end for end in ends if end is not None]
    if len(known) == 1:
        return known[0]
    u, v = known
    return frozenset([(u, v)] if said.one_way else [(u, v), (v, u)])
