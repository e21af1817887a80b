"""From what a file shows to a machine that can be scheduled: several boxes, classes of links and nodes that are left
out, numbers that a person supplies. What is still unknown after that is refused by name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import networkx as nx

from synth.errors import Fault, InputError
from synth.exchange.machines.machine import NET, Link, Machine, Port, listed
from synth.network.links_table import too_large
from synth.text.amounts import scaled_rate
from synth.text.quantities import counted

MOST_BOXES = 4096


@dataclass(frozen=True)
class Supplied:
    """Numbers by class of link; under ``""`` those for every link whose own number is unknown. A number for a class by
    name fills the gaps of the class; where it has none it takes the place of the file's. ``words``: the same as they
    were typed."""

    bandwidth: Mapping[str, float]
    latency: Mapping[str, float]
    words: tuple[str, ...] = ()


def completed(machine: Machine, given: Supplied, boxes: int = 1, kinds: Sequence[str] = ()) -> Machine:
    """As many boxes, only these classes of links (all where none is named), with the numbers given; :func:`missing`
    says what is still unknown. Raises :class:`InputError`."""
    box = supplied(only(several(machine, 1) if boxes == 1 else machine, kinds), given)
    whole = without_dead_ends(box if boxes == 1 else several(box, boxes))
    return replace(whole, ports=(), box=_with_ways_out(box))


def _with_ways_out(machine: Machine) -> Machine | None:
    """One box with its ports and what leads to them, what leads nowhere left out; None where nothing leads out."""
    box = without_dead_ends(machine, ways_out=True)
    near = {end for link in box.links for end in (link.src, link.dst)}
    ports = tuple(port for port in box.ports if port.node in near)
    return replace(box, ports=ports) if ports and len(machine.boxes) < 2 else None


def several(machine: Machine, boxes: int) -> Machine:
    """``boxes`` such machines, their ports joined by one switch (class NET); of one box the ports are left out. Of a
    box's switches those that only lead to ports come last. Raises :class:`InputError` where there are no ports, or too
    many nodes."""
    if boxes == 1:
        ways = listed(port.name for port in machine.ports)
        words = (f"{ways}: they lead out of this one box (boxes=2 joins two such boxes)",) if ways else ()
        return replace(machine, left_out=machine.left_out + words)
    if boxes > MOST_BOXES:
        raise InputError([Fault("--boxes", f"must be at most {MOST_BOXES}", boxes, True)])
    if not machine.ports:
        raise InputError([Fault("--boxes", "the file shows no way out of the box (no NIC)", boxes, True)])
    nodes = machine.nodes * boxes + 1
    faults = too_large(nodes, boxes * (len(machine.links) + 2 * len(machine.ports)))
    if faults:
        raise InputError(faults)
    out = _dead_ends(machine)
    place = _places(machine, boxes, out)
    names = [""] * (nodes - 1) + ["net"]
    for (b, v), number in place.items():
        names[number] = f"{b}/{machine.names[v]}"
    own = machine.boxes or (tuple(machine.ranks),)
    return replace(
        machine,
        name=f"{machine.name}-x{boxes}",
        source=f"{boxes} of: {machine.source}",
        names=tuple(names),
        switches=frozenset(range(boxes * len(machine.ranks), nodes)),
        links=tuple(link for b in range(boxes) for link in _of_box(machine, b, place, nodes - 1, out)),
        ports=(),
        assumed=(*machine.assumed, f"{boxes} boxes alike, every port joined to one switch without limits of its own"),
        boxes=tuple(tuple(place[b, v] for v in ranks) for b in range(boxes) for ranks in own),
    )


def _places(machine: Machine, boxes: int, out: set[int]) -> dict[tuple[int, int], int]:
    """The number of every box's node: all ranks come before all switches, of a box's those in ``out`` last."""
    order = machine.ranks, sorted(machine.switches, key=lambda v: (v in out, v))
    starts = 0, boxes * len(machine.ranks)
    return {
        (b, v): start + b * len(part) + i
        for start, part in zip(starts, order, strict=True)
        for b in range(boxes)
        for i, v in enumerate(part)
    }


def _of_box(
    machine: Machine, box: int, place: Mapping[tuple[int, int], int], net: int, out: set[int]
) -> Iterator[Link]:
    """The links of one of several boxes, those to nodes that only lead to ports last, and those of its ports to the
    switch ``net``; ``place``: number of a box's node."""
    for link in sorted(machine.links, key=lambda one: one.src in out or one.dst in out):
        group = None if link.group is None else f"{box}/{link.group}"
        yield replace(link, src=place[box, link.src], dst=place[box, link.dst], group=group)
    for port in machine.ports:
        for ends in ((place[box, port.node], net), (net, place[box, port.node])):
            yield Link(*ends, NET, port.bandwidth, port.latency)


def only(machine: Machine, kinds: Sequence[str]) -> Machine:
    """Without links of other classes (and ports, unless NET is one of them), and without what is unknown or assumed of
    these alone. Raises :class:`InputError` for a class that is not there."""
    if not kinds:
        return machine
    faults = [
        Fault("--only", f"no such class of links; there are {', '.join(machine.classes)}", kind, True)
        for kind in kinds
        if kind not in machine.classes
    ]
    if faults:
        raise InputError(faults)
    left = [kind for kind in machine.kinds if kind not in kinds]
    links = tuple(link for link in machine.links if link.kind in kinds)
    kept = without_dead_ends(replace(machine, links=links), ways_out=NET in kinds)
    words = (f"links of the classes {', '.join(left)} (--only {','.join(kinds)})",) if left else ()
    unknown, assumed = (
        tuple(text for text in texts if text not in machine.about or set(machine.about[text]) & set(kinds))
        for texts in (machine.unknown, machine.assumed)
    )
    return replace(kept, unknown=unknown, assumed=assumed, left_out=machine.left_out + words)


def without_dead_ends(machine: Machine, ways_out: bool = False) -> Machine:
    """Without switches that have one neighbour or none, again and again: nothing goes through them. ``ways_out``: a
    port counts as a neighbour."""
    gone = _dead_ends(machine, ways_out)
    if not gone:
        return machine
    others = [machine.names[v] for v in sorted(gone - {port.node for port in machine.ports})]
    words = [f"{listed(others)}: switches that lead nowhere"] if others else []
    kept = [v for v in range(machine.nodes) if v not in gone]
    place = {v: i for i, v in enumerate(kept)}
    return replace(
        machine,
        names=tuple(machine.names[v] for v in kept),
        switches=frozenset(place[v] for v in machine.switches - gone),
        links=tuple(
            replace(link, src=place[link.src], dst=place[link.dst])
            for link in machine.links
            if link.src in place and link.dst in place
        ),
        ports=tuple(replace(port, node=place[port.node]) for port in machine.ports if port.node in place),
        boxes=tuple(tuple(place[v] for v in ranks) for ranks in machine.boxes),
        left_out=machine.left_out + tuple(words),
    )


def _dead_ends(machine: Machine, ways_out: bool = False) -> set[int]:
    """Switches that have at most one neighbour (``ways_out``: or port) once all others of these are gone."""
    near: dict[int, set[int]] = {v: set() for v in range(machine.nodes)}
    for i, port in enumerate(machine.ports if ways_out else ()):
        near[port.node].add(-1 - i)
    for link in machine.links:
        near[link.src].add(link.dst)
        near[link.dst].add(link.src)
    queue = [v for v in machine.switches if len(near[v]) < 2]
    gone: set[int] = set()
    while queue:
        node = queue.pop()
        if node in gone:
            continue
        gone.add(node)
        for other in near.pop(node):
            if other < 0:
                continue  # a port
            near[other].discard(node)
            if other in machine.switches and other not in gone and len(near[other]) < 2:
                queue.append(other)
    return gone


def supplied(machine: Machine, given: Supplied) -> Machine:
    """With the numbers given. Raises :class:`InputError` for a class that is not there, and for a number that nothing
    needs."""
    faults: list[Fault] = []
    rows: list[Link | Port] = [*machine.links, *machine.ports]
    said: list[str] = []
    gone: set[str] = set()
    for what, values in (("bandwidth", given.bandwidth), ("latency", given.latency)):
        faults += _unneeded(machine, rows, what, values)
        for kind in values:
            words, replaced = _effect(rows, what, kind)
            said += words
            gone |= {kind} if replaced and what == "bandwidth" else set()
        open_kinds = {_kind(row) for row in rows if getattr(row, what) is None}
        try:
            rows = [_with(row, what, values, open_kinds) for row in rows]
        except ValueError as error:
            faults.append(Fault(f"--{what}", f"times the number of bonded links {error}"))
    if faults:
        raise InputError(faults)
    return replace(
        machine,
        links=tuple(row for row in rows if isinstance(row, Link)),
        ports=tuple(row for row in rows if isinstance(row, Port)),
        given=(*machine.given, *given.words, *said),
        assumed=tuple(text for text in machine.assumed if not set(machine.about.get(text, ("",))) <= gone),
    )


def _unneeded(machine: Machine, rows: Sequence[Link | Port], what: str, values: Mapping[str, float]) -> Iterator[Fault]:
    """Classes that are not there, and a number for every gap where there is none."""
    for kind in values:
        if kind and kind not in machine.classes:
            known = ", ".join(machine.classes)
            yield Fault(f"--{what}", f"no such class of links; there are {known}", kind, True)
    if "" in values and all(getattr(row, what) is not None for row in rows):
        yield Fault(f"--{what}", f"every {what} is known; a class by name (CLASS=…) takes the place of the file's")


def _effect(rows: Sequence[Link | Port], what: str, kind: str) -> tuple[list[str], bool]:
    """What a number for a class does to those that the file states, in words, and whether it replaces them."""
    mine = [getattr(row, what) is not None for row in rows if _kind(row) == kind]
    stated = sum(mine)
    if not stated:
        return [], False
    if stated < len(mine):
        return [f"--{what} {kind} fills gaps only, beside {counted(stated, 'stated number')}"], False
    return [f"--{what} {kind} takes the place of {counted(stated, 'stated number')}"], True


def missing(machine: Machine) -> list[Fault]:
    """What has to be supplied before anything can be scheduled, by class, with the option that does."""
    faults = []
    for what, example in (("bandwidth", "25GB/s"), ("latency", "0.7us")):
        kinds: dict[str, int] = {}
        for link in machine.links:
            if getattr(link, what) is None:
                kinds[link.kind] = kinds.get(link.kind, 0) + 1
        if kinds:
            words = ", ".join(f"{kind} ({count:,} links)" for kind, count in kinds.items())
            option = f"--{what} " + ",".join(f"{kind}={example if what == 'latency' else '…'}" for kind in kinds)
            lanes = " (NV: of one NVLink, one direction)" if what == "bandwidth" and _bonded(machine) else ""
            faults.append(Fault(what, f"unknown for {words}; give {option}{lanes}"))
    if faults and len(machine.kinds) > 1:
        faults.append(Fault("classes", f"or leave some out: --only {machine.kinds[0]}"))
    return faults


def described(machine: Machine) -> list[tuple[str, int, str, str]]:
    """A row a class: its name, how many links, their bandwidths, their latencies."""
    from synth.text.quantities import shown

    rows = []
    for kind in machine.kinds:
        links = [link for link in machine.links if link.kind == kind]
        rates = sorted({link.bandwidth for link in links if link.bandwidth is not None})
        waits = sorted({link.latency for link in links if link.latency is not None})
        words = [listed(shown(value, unit) for value in values) for values, unit in ((rates, "bytes/s"), (waits, "s"))]
        lanes = sorted({link.lanes for link in links if link.bandwidth is None})
        open_rate = any(link.bandwidth is None for link in links)
        if open_rate:
            bonds = f" (bonds of {listed(lanes)})" if lanes != [1] else ""
            words[0] = ", ".join(filter(None, (words[0], f"unknown{bonds}")))
        if any(link.latency is None for link in links):
            words[1] = ", ".join(filter(None, (words[1], "unknown")))
        rows.append((kind, len(links), words[0], words[1]))
    return rows


def parted(machine: Machine) -> str | None:
    """In words, which ranks do not reach each other over the links; None where all do."""
    graph: nx.DiGraph[int] = nx.DiGraph()
    graph.add_nodes_from(range(machine.nodes))
    graph.add_edges_from((link.src, link.dst) for link in machine.links)
    parts = [sorted(part - machine.switches) for part in nx.strongly_connected_components(graph)]
    parts = sorted(part for part in parts if part)
    if len(parts) < 2:
        return None
    words = listed(("{" + listed(machine.names[v] for v in part) + "}" for part in parts), 4)
    return f"the ranks fall into {len(parts)} parts that do not reach each other: {words}"


def by_class(text: str, read: Callable[[str], float]) -> dict[str, float]:
    """``0.7us`` or ``NV=25GB/s,PIX=12GB/s`` as numbers by class. Raises ``ValueError``."""
    found: dict[str, float] = {}
    for part in text.split(","):
        kind, equals, value = part.rpartition("=")
        kind = kind.strip()
        if (equals and not kind) or kind in found:
            raise ValueError("must be a value, or CLASS=VALUE with commas between, every class once")
        found[kind] = read(value)
    return found


def _kind(row: Link | Port) -> str:
    return NET if isinstance(row, Port) else row.kind


def _with(row: Link | Port, what: str, values: Mapping[str, float], open_kinds: set[str]) -> Link | Port:
    unknown = getattr(row, what) is None
    value = values.get(_kind(row)) if unknown or _kind(row) not in open_kinds else None
    if value is None and unknown:
        value = values.get("")
    if value is None:
        return row
    lanes = row.lanes if isinstance(row, Link) else 1
    return replace(row, bandwidth=scaled_rate(value, lanes)) if what == "bandwidth" else replace(row, latency=value)


def _bonded(machine: Machine) -> bool:
    return any(link.bandwidth is None and link.lanes > 1 for link in machine.links)
