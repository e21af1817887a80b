"""What ranks say each for itself, put together: messages and collectives meet, ranks that are alike become one class,
and all comes in the order of issue. Readers of traces fill a :class:`Reading` with nodes and hand it to
:func:`finished`.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any

from synth.errors import Fault, InputError
from synth_models.step.instance import MOST_NODES, SHOWN
from synth_models.step.parts.folding import Folded, folded
from synth_models.step.parts.order import cycles, ordered

MOST_READ = 1 << 20  # nodes of all ranks


@dataclass(frozen=True)
class Assumed:
    """What a trace may not say: ``groups``: ranks by name; ``size``: of a group that is not named there; ``flops``:
    operations a second of a rank; ``link``: the one class of links."""

    groups: Mapping[str, list[int]]
    size: int | None
    flops: float | None
    link: str


@dataclass
class Reading:
    """Nodes by number, where each stands, and all that is wrong. ``waits``: what each comes after, as places."""

    files: dict[int, str]
    assumed: Assumed
    nodes: list[dict[str, Any]] = field(default_factory=list)
    place: list[str] = field(default_factory=list)
    turn: list[int] = field(default_factory=list)  # in the order of its file
    number: dict[tuple[int, int], int] = field(default_factory=dict)  # (rank, id): node
    waits: dict[tuple[int, int], list[int]] = field(default_factory=dict)
    of_group: Counter[tuple[int, str]] = field(default_factory=Counter)
    met: dict[tuple[Any, ...], int] = field(default_factory=dict)  # collective or message: node
    alone: int = 0  # collectives of one rank
    other: Counter[str] = field(default_factory=Counter)
    faults: list[Fault] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def fault(self, place: str, words: str) -> None:
        """Note what is wrong there."""
        self.faults.append(Fault(place, words))

    def add(self, here: str, node: dict[str, Any]) -> int:
        """Take a node; returns its number."""
        self.nodes.append(node)
        self.place.append(here)
        return len(self.nodes) - 1

    def keep(self, rank: int, own: int, turn: int, number: int) -> None:
        """Note which node a rank means by its own number of it, and its turn in the rank's order."""
        self.number[rank, own] = number
        if number == len(self.turn):
            self.turn.append(turn)


def message(reading: Reading, ends: tuple[int, int], sends: bool, tag: int, size: int, name: str, here: str) -> int:
    """The number of the node of a message, which its send and its receive share; ``ends``: from and to."""
    rank, peer = ends if sends else ends[::-1]
    tagged = (*ends, tag)
    turn = reading.of_group[rank, f"{sends} {tagged}"]
    reading.of_group[rank, f"{sends} {tagged}"] += 1
    key = ("message", *tagged, turn)
    if key not in reading.met:
        reading.met[key] = reading.add(
            here, {"kind": "operation", "name": name, "collective": "send", "bytes": size, "ranks": [rank],
                   "peer": peer, "group": 2, "link": reading.assumed.link})  # fmt: skip
        return reading.met[key]
    number = reading.met[key]
    if reading.nodes[number]["bytes"] != size:
        reading.fault(here, f"{size} bytes, but {reading.place[number]} has {reading.nodes[number]['bytes']}")
    reading.nodes[number]["ranks"] = list(ends)
    return number


def finished(reading: Reading, source: str) -> tuple[dict[str, Any], list[str]]:
    """The nodes with the classes of ranks that are alike, and what was assumed, in words. Raises
    :class:`InputError` with all that is wrong."""
    _missing(reading)
    alike = _folded(reading)
    before = _join(reading, alike)
    if reading.faults:
        raise InputError(reading.faults, source)
    raw = _quotient(reading, alike, before)
    if not 0 < len(raw["nodes"]) <= MOST_NODES:
        raise InputError(f"has {len(raw['nodes'])} nodes of classes of ranks: 1 to {MOST_NODES} are supported", source)
    return raw, _notes(reading, alike)


def _missing(reading: Reading) -> None:
    """Note the ranks of groups that have no file, and name messages and collectives that a traced rank lacks."""
    alone: dict[str, list[int]] = defaultdict(list)
    for key, number in reading.met.items():
        node = reading.nodes[number]
        group = key[1] if key[0] == "collective" else ""
        peer = node.pop("peer", None)
        named = [node["ranks"][0], peer] if peer is not None else reading.assumed.groups.get(group) or (
            list(reading.files) if not group else node["ranks"])  # fmt: skip
        lacking = [rank for rank in named if rank in reading.files and rank not in node["ranks"]]
        if lacking:
            files = ", ".join(reading.files[rank] for rank in lacking[:SHOWN])
            reading.fault(reading.place[number], f"nothing in {files} meets it")
        if len(node["ranks"]) < node["group"]:
            alone["messages" if peer is not None else f"group {group}" if group else "all ranks"].append(number)
    for words, numbers in alone.items():
        first = reading.nodes[numbers[0]]
        reading.notes.append(
            f"Of {words} ({first['group']} ranks) {len(first['ranks'])} traced: "
            "the others are taken to come when these do"
        )


def _folded(reading: Reading) -> Folded:
    """The classes of the ranks by what their files say."""
    own: dict[int, list[int]] = {rank: [] for rank in reading.files}
    looks: dict[int, list[Hashable]] = {rank: [] for rank in reading.files}
    place: dict[tuple[int, int], int] = {}
    for rank, one in reading.waits:
        place[rank, one] = len(own[rank])
        own[rank].append(reading.number[rank, one])
    for (rank, one), deps in reading.waits.items():
        node = reading.nodes[reading.number[rank, one]]
        what = (node["seconds"], node["stream"]) if node["kind"] == "computation" else (
            node["collective"], node["bytes"], node["group"], node["ranks"].index(rank) if
            node["collective"] == "send" else 0)  # fmt: skip
        looks[rank].append((*what, *(place.get((rank, dep), -1) for dep in deps)))
    ranks_of = [node["ranks"] if node["kind"] == "operation" else [node["rank"]] for node in reading.nodes]
    return folded(own, ranks_of, looks)


def _join(reading: Reading, alike: Folded) -> dict[int, set[int]]:
    """What every node that stands for others comes after, by numbers; names what waits for itself."""
    before: dict[int, set[int]] = {number: set() for number in alike.groups}
    for (rank, own), deps in reading.waits.items():
        number = reading.number[rank, own]
        if alike.stands[number] != number:
            continue
        for one in deps:
            if (rank, one) in reading.number:
                before[number].add(alike.stands[reading.number[rank, one]])
            else:
                here = f"{reading.files[rank]}, node {own}"
                reading.fault(here, f"depends on node {one}, which is not in this file")
    place = {number: i for i, number in enumerate(before)}
    for cycle in cycles([sorted(place[k] for k in row) for row in before.values()]):
        more = f" and {len(cycle) - SHOWN} more" if len(cycle) > SHOWN else ""
        names = [reading.place[number] for number, i in place.items() if i in set(cycle[:SHOWN])]
        reading.fault(names[0], f"waits for itself: {'; '.join(names)}{more}")
    return before


def _quotient(reading: Reading, alike: Folded, before: dict[int, set[int]]) -> dict[str, Any]:
    """Nodes of the classes in the order of issue: each behind what it comes after, else by its turn in its file."""
    numbers = list(before)
    place = {number: i for i, number in enumerate(numbers)}
    rows = [sorted(place[k] for k in before[number]) for number in numbers]
    order = ordered(rows, [float(reading.turn[number]) for number in numbers])
    first = {rank: one[0] for one in alike.classes for rank in one}
    among: dict[tuple[tuple[int, ...], ...], int] = {}
    found = []
    for i in order:
        node = reading.nodes[numbers[i]]
        node["after"] = [reading.nodes[numbers[k]]["name"] for k in rows[i]]
        if node["kind"] == "operation" and len(alike.classes) < len(first):
            table = tuple(alike.groups[numbers[i]])
            node["ranks"] = list(dict.fromkeys(first[rank] for rank in node["ranks"]))
            if all(len(group) == node["group"] for group in table):  # else some of its ranks have no file
                node["among"] = among.setdefault(table, len(among))
        found.append(node)
    if len(alike.classes) == len(first):
        return {"nodes": found}
    return {"classes": alike.classes, "groups": list(among), "nodes": found}


def _notes(reading: Reading, alike: Folded) -> list[str]:
    notes = list(reading.notes)
    if len(alike.classes) < len(reading.files):
        notes.append(f"{len(reading.files)} ranks are {len(alike.classes)} classes of ranks that are alike")
    if reading.alone:
        notes.append(f"{reading.alone} collectives of groups of one rank move nothing")
    if reading.other:
        told = ", ".join(f"{many} {kind}" for kind, many in reading.other.most_common())
        notes.append(f"Nodes of kinds that are not understood keep their place and duration: {told}")
    return notes
