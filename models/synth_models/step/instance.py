"""Instances of the step family: computations on streams, collectives on classes of links, and what comes after what.

A *computation* has a rank, a stream and a duration. An *operation* is a collective of a group of ranks over one class
of links. It begins at all its ranks at once, runs without interruption, and takes the port of every one of its ranks to
that class. A stream and a port serve one node at a time. The value is the end of the last node.

Moments and durations are whole picoseconds: durations that are given are rounded, times of algorithms rounded up.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Annotated, Any, Literal, TypeGuard

from pydantic import Field

from synth.errors import Fault
from synth.instance import Instance, Part, Unit
from synth_models.step.parts.classes import class_faults
from synth_models.step.parts.order import cycles

TICKS = 10**12  # a second
MOST_NODES = 1 << 17
MOST_SECONDS = 1e4
MOST_BYTES = 1 << 50
MOST_IN_ALL = 4e6  # seconds, one node after the other: as many picoseconds fit 62 bits
SHOWN = 8  # nodes of a cycle that a fault names

Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._:/-]{0,79}$")]
Rank = Annotated[int, Field(ge=0, lt=1 << 20)]
Ranks = Annotated[tuple[Rank, ...], Field(min_length=1)]
After = Annotated[tuple[Name, ...], Field(max_length=MOST_NODES)]
Duration = Annotated[float, Field(ge=0, le=MOST_SECONDS), Unit("s")]
Kind = Literal["allgather", "reduce_scatter", "allreduce", "alltoall", "broadcast", "send"]


class LinkClass(Part):
    """One port of this class at every rank, of ``bandwidth`` in each direction, into a switch that joins all."""

    name: Name
    bandwidth: Annotated[float, Field(ge=1, le=1e15), Unit("bytes/s")]
    latency: Annotated[float, Field(ge=0, le=1), Unit("s")] = 0.0


class Computation(Part):
    """What ``rank`` computes in ``seconds`` on its stream, when all that it comes ``after`` has ended."""

    kind: Literal["computation"] = "computation"
    name: Name
    rank: Rank
    seconds: Duration
    stream: Name = "compute"
    after: After = ()


class Operation(Part):
    """A collective of ``ranks`` over the ``link`` class, when all that it comes ``after`` has ended.

    ``bytes``: the whole buffer: what an allgather leaves at every rank, what a rank contributes to a reduce_scatter or
    allreduce, sends in an alltoall, and the message of a broadcast or send. ``group``: the ranks that take part, where
    those listed stand for more that are alike. ``seconds``: its duration, where it was measured; it is then given.
    ``among``: where ranks stand for classes, which of the instance's ``groups`` run it, each by itself.
    """

    kind: Literal["operation"] = "operation"
    name: Name
    collective: Kind
    bytes: Annotated[int, Field(ge=0, le=MOST_BYTES), Unit("bytes")]
    ranks: Ranks
    link: Name
    group: Annotated[int, Field(ge=2, le=1 << 20)] | None = None
    seconds: Duration | None = None
    among: Annotated[int, Field(ge=0)] | None = None
    after: After = ()

    @property
    def size(self) -> int:
        """How many ranks take part."""
        return len(self.ranks) if self.group is None else self.group


Node = Annotated[Computation | Operation, Field(discriminator="kind")]


class StepInstance(Instance):
    """Put ``nodes`` in order and in time, so that the last ends as early as possible. The nodes stand in the order in
    which the program issues them. Each rank stands for ``alike`` ranks that do the same at the same time, or the first
    of each of the ``classes`` for all of it; of a send's ``groups`` the first rank sends to the second."""

    family: Literal["step"] = "step"
    links: Annotated[tuple[LinkClass, ...], Field(max_length=64)] = ()
    alike: Annotated[int, Field(ge=1, le=1 << 20)] = 1
    classes: Annotated[tuple[Ranks, ...], Field(max_length=MOST_NODES)] = ()
    groups: Annotated[tuple[tuple[Ranks, ...], ...], Field(max_length=MOST_NODES)] = ()
    nodes: Annotated[tuple[Node, ...], Field(min_length=1, max_length=MOST_NODES)]

    @classmethod
    def faults_in(cls, raw: dict[str, Any]) -> list[Fault]:
        rows, links = raw.get("nodes"), raw.get("links", [])
        if not isinstance(rows, (list, tuple)) or not all(isinstance(row, dict) for row in rows):
            return []
        names = [row.get("name") for row in rows]
        if not isinstance(links, (list, tuple)) or not all(isinstance(name, str) for name in names):
            return []
        known = [one for one in links if isinstance(one, dict)]
        found = [*_faults(rows, [one.get("name") for one in known]), *_too_long(rows, known)]
        return [*found, *class_faults(raw, rows)]

    @cached_property
    def before(self) -> tuple[tuple[int, ...], ...]:
        """Of every node the numbers of those that it comes after."""
        number = {node.name: i for i, node in enumerate(self.nodes)}
        return tuple(tuple(number[name] for name in node.after) for node in self.nodes)

    @cached_property
    def places(self) -> tuple[tuple[tuple[str, int, str], ...], ...]:
        """Of every node the streams and ports that it takes: ``("stream" or "port", rank, name)``."""
        return tuple(
            (("stream", node.rank, node.stream),)
            if isinstance(node, Computation)
            else tuple(("port", rank, node.link) for rank in node.ranks)
            for node in self.nodes
        )

    @cached_property
    def link_of(self) -> dict[str, LinkClass]:
        """The classes of links by name."""
        return {link.name: link for link in self.links}


def ranks_of(instance: StepInstance) -> list[int]:
    """The ranks that some node names, in rising order."""
    return sorted({rank for places in instance.places for _, rank, _ in places})


def size(instance: StepInstance) -> int:
    """How many ranks take part, alike ones counted."""
    return sum(map(len, instance.classes)) or len(ranks_of(instance)) * instance.alike


def suited(instance: StepInstance, method: str) -> bool:
    """Whether a default method fits: the program takes small steps."""
    return method != "order" or len(instance.nodes) <= 200


def _faults(rows: Sequence[dict[str, Any]], links: Sequence[Any]) -> Iterator[Fault]:
    names = [row["name"] for row in rows]
    number = {name: i for i, name in enumerate(names)}
    yield from _repeated("nodes", names)
    yield from _repeated("links", list(map(str, links)))
    after: list[list[int]] = []
    for i, row in enumerate(rows):
        stated = row.get("after", ())
        known = [name for name in (stated if isinstance(stated, (list, tuple)) else ()) if isinstance(name, str)]
        after.append(sorted({number[name] for name in known if name in number}))
        yield from _node_faults(f"nodes[{i}] ({row['name']})", row, known, rows, number)
        if row.get("kind") == "operation" and isinstance(row.get("link"), str) and row["link"] not in links:
            yield Fault(f"nodes[{i}] ({row['name']}).link", "is no class of links", row["link"], True)
    for cycle in cycles(after):
        more = f" and {len(cycle) - SHOWN} more" if len(cycle) > SHOWN else ""
        told = ", ".join(names[i] for i in cycle[:SHOWN]) + more
        yield Fault(f"nodes[{cycle[0]}] ({names[cycle[0]]}).after", f"wait for each other: {told}")


def _too_long(rows: Sequence[dict[str, Any]], links: Sequence[dict[str, Any]]) -> Iterator[Fault]:
    """Nodes that take longer than moments can be, at most, one after the other by the slower algorithm."""
    named = {str(link.get("name")): link for link in links}
    total = 0.0
    for row in rows:
        link = named.get(str(row.get("link")), {})
        seconds, size, rate = row.get("seconds"), row.get("bytes"), link.get("bandwidth")
        if _is_number(seconds):
            total += seconds
        elif _is_number(size) and _is_number(rate) and rate >= 1:
            group, latency = row.get("group") or len(_ranks(row)), link.get("latency", 0.0)
            steps = 2.0 * group * latency if _is_number(group) and _is_number(latency) else 0.0
            total += 2.0 * size / rate + steps
    if total > MOST_IN_ALL:
        words = f"take up to {total:.3g} s one after the other: at most {MOST_IN_ALL:.3g} s are supported"
        yield Fault("nodes", words)


def _is_number(value: Any) -> TypeGuard[float]:
    return type(value) in (int, float) and 0 <= value <= 1e18


def _repeated(path: str, names: Sequence[str]) -> Iterator[Fault]:
    for name, many in Counter(names).items():
        if many > 1:
            yield Fault(path, f"{many} have this name", name, True)


def _node_faults(
    path: str, row: dict[str, Any], known: Sequence[str], rows: Sequence[dict[str, Any]], number: dict[str, int]
) -> Iterator[Fault]:
    """What ``after`` and ``ranks`` of one node say that cannot be."""
    own = _ranks(row)
    for name, many in Counter(known).items():
        if name not in number:
            yield Fault(f"{path}.after", "is no node", name, True)
        elif many > 1:
            yield Fault(f"{path}.after", "stands twice", name, True)
        elif own and (other := _ranks(rows[number[name]])) and not own & other:
            yield Fault(f"{path}.after", "shares no rank with it: what is awaited must end at a rank of it", name, True)
    if row.get("kind") == "operation" and own:
        yield from _group_faults(path, row, own)


def _group_faults(path: str, row: dict[str, Any], own: set[int]) -> Iterator[Fault]:
    """What is wrong with the ranks of an operation."""
    listed, group = row["ranks"], row.get("group")
    if len(own) < len(listed):
        yield Fault(f"{path}.ranks", "a rank stands twice")
    if isinstance(group, int) and group < len(own):
        yield Fault(f"{path}.group", f"is less than the {len(own)} ranks listed", group, True)
    if group is None and len(own) < 2:
        yield Fault(f"{path}.ranks", "has one rank: give the group that it stands for")
    members = group if isinstance(group, int) else len(own)
    if row.get("collective") == "send" and members != 2:
        yield Fault(f"{path}.ranks", f"of a send are two, not {members}")


def _ranks(row: dict[str, Any]) -> set[int]:
    listed = row.get("ranks") if row.get("kind") == "operation" else [row.get("rank")]
    listed = listed if isinstance(listed, (list, tuple)) else ()
    return {rank for rank in listed if type(rank) is int}
