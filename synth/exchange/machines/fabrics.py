"""Networks above the boxes, as all their formats give them: hosts, switches, cables.

A host is a rank; :mod:`~synth.exchange.machines.joined` puts a box of GPUs in its place. Cables of a host stay apart,
each with the adapter that it leads to; those between two switches are one link of so many lanes. Classes: NET (of a
host), UP (between switches).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import networkx as nx

from synth.errors import Fault, InputError
from synth.exchange.machines.machine import Link, Machine, listed
from synth.network.links_table import too_large
from synth.text.amounts import scaled_rate
from synth.text.visible import visible

NET, UP = "NET", "UP"


@dataclass(frozen=True)
class Cable:
    """A cable between two nodes by name, bytes/s one way and seconds where they are known; ``adapter``: whose port it
    is on the host's side, empty where the file does not say."""

    ends: tuple[str, str]
    bandwidth: float | None = None
    latency: float | None = None
    adapter: str = ""


@dataclass(frozen=True)
class Fabric(Machine):
    """A machine whose ranks are hosts. ``adapters``: of every link the host's adapter, empty where none is named."""

    adapters: tuple[str, ...] = ()


@dataclass
class Found:
    """What a reader found: hosts and switches by name, in order, cables, and what is to be said."""

    hosts: dict[str, None] = field(default_factory=dict)
    switches: dict[str, None] = field(default_factory=dict)
    cables: list[Cable] = field(default_factory=list)
    assumed: list[str] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)


def fabric(found: Found, name: str, format_name: str, words: str) -> Fabric:
    """The machine: hosts, then switches. Raises :class:`InputError` for none and for too many."""
    names = _names(found)
    number = {node: i for i, node in enumerate((*found.hosts, *found.switches))}
    links, adapters = [], []
    for cable, lanes in _bundled(found):
        u, v = (number[end] for end in cable.ends)
        kind = NET if u < len(found.hosts) or v < len(found.hosts) else UP
        total = None if cable.bandwidth is None else scaled_rate(cable.bandwidth, lanes)
        links += [Link(*ends, kind, total, cable.latency, lanes=lanes) for ends in ((u, v), (v, u))]
        adapters += [cable.adapter, cable.adapter]
    _say_parts(found)
    if any(link.lanes > 1 for link in links):
        found.assumed.append("cables between the same two switches are one link of their rates' sum")
    return Fabric(
        name, format_name, words, tuple(names), frozenset(range(len(found.hosts), len(names))), tuple(links),
        unknown=tuple(found.unknown), assumed=tuple(found.assumed), left_out=tuple(found.left_out),
        adapters=tuple(map(visible, adapters)),
    )  # fmt: skip


def _say_parts(found: Found) -> None:
    """What the file leaves open where its cables do not join all nodes."""
    joined: nx.utils.UnionFind[str] = nx.utils.UnionFind([*found.hosts, *found.switches])
    for cable in found.cables:
        joined.union(*cable.ends)
    parts = [min(part, key=lambda node: node in found.hosts) for part in joined.to_sets()]
    if len(parts) > 1:
        found.unknown.append(f"what joins the {len(parts)} parts of the network (of {listed(sorted(parts))}): no cable")


def _names(found: Found) -> list[str]:
    """What the nodes are called, hosts first. Raises :class:`InputError` where there is no machine of them."""
    both = [node for node in found.hosts if node in found.switches]
    names = [visible(node) for node in (*found.hosts, *found.switches)]
    faults = too_large(len(names), 2 * len(found.cables))
    for wrong, words in (
        (not found.hosts, "holds no host"),
        (not found.cables, "holds no cable"),
        (bool(both), f"a host and a switch have one name: {listed(both)}"),
        (not both and len(set(names)) < len(names), "two nodes have one name once unprintable characters are replaced"),
    ):
        if wrong:
            faults.append(Fault("", words))
    if faults:
        raise InputError(faults)
    return names


def _bundled(found: Found) -> Sequence[tuple[Cable, int]]:
    """Cables and how many each stands for: those between two switches of one rate are one."""
    count: Counter[Cable] = Counter()
    for cable in found.cables:
        ends = cable.ends if any(end in found.hosts for end in cable.ends) else tuple(sorted(cable.ends))
        count[Cable((ends[0], ends[1]), cable.bandwidth, cable.latency, cable.adapter)] += 1
    bundled: list[tuple[Cable, int]] = []
    for cable, times in count.items():
        apart = any(end in found.hosts for end in cable.ends)
        bundled += [(cable, 1)] * times if apart else [(cable, times)]
    return bundled


def words_of(what: str, found: Found, cables: Iterable[Cable]) -> str:
    """What was read, in words."""
    from synth.text.quantities import counted

    sizes = (("host", len(found.hosts)), ("switch", len(found.switches)), ("cable", len(list(cables))))
    return f"{what}, {', '.join(counted(number, word) for word, number in sizes)}"
