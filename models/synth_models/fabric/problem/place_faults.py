"""Nodes and links that an instance file names but that do not exist, have failed, stand twice or are switches."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass
from typing import Any

from synth.errors import Fault
from synth_models.fabric.problem.machine import Machine

MOST_TOLD = 3  # nodes of one cell


@dataclass(frozen=True)
class Places:
    """The nodes that may hold data: ranks of the machine that are not ``broken`` and, if there is one, in the
    ``group``."""

    machine: Machine
    broken: Set[int] = frozenset()
    group: Set[int] | None = None

    @property
    def names(self) -> Sequence[str]:
        """What all nodes are called."""
        return self.machine.names

    def fault(self, node: int) -> str | None:
        """What is wrong with a node that is to hold data."""
        if node >= self.machine.nodes:
            return f"no such node: there are 0..{self.machine.nodes - 1}"
        if self.machine.is_switch[node]:
            return f"is a switch ({self.machine.names[node]}): only ranks hold data"
        if node in self.broken:
            return "has failed"
        return "is no member of ranks" if self.group is not None and node not in self.group else None

    def checked(self, nodes: Sequence[int]) -> None:
        """Raises ``ValueError`` for the nodes that may not, each in words."""
        told = {node: self.fault(node) for node in nodes}
        if wrong := [f"{node}: {words}" for node, words in told.items() if words]:
            raise ValueError("; ".join(wrong[:MOST_TOLD]) + (f"; … ({len(wrong)})" if wrong[MOST_TOLD:] else ""))


def rows_of_three(rows: Any) -> Iterator[tuple[int, Any, Any, Any]]:
    """Number and parts of the rows that have three."""
    for i, row in enumerate(rows if isinstance(rows, (list, tuple)) else ()):
        if isinstance(row, (list, tuple)) and len(row) == 3:
            yield (i, *row)


def place_faults(raw: dict[str, Any], machine: Machine) -> Iterator[Fault]:
    """Nodes that do not exist, are switches, have failed, or stand twice."""
    failed = raw.get("failed")
    broken: set[int] = set()
    if isinstance(failed, dict):
        nodes = failed.get("nodes")
        broken = {node for node in (nodes if isinstance(nodes, (list, tuple)) else ()) if whole(node)}
        yield from _failed_faults(failed, machine)
    ranks = raw.get("ranks")
    group: set[int] | None = None
    if isinstance(ranks, (list, tuple)):
        group = {node for node in ranks if whole(node)}
        yield from _member_faults(ranks, machine, broken)
    if whole(raw.get("root")):
        yield from _rank_fault("root", raw["root"], Places(machine, broken, group))
    places = Places(machine, broken, group)
    for i, src, dst, amount in rows_of_three(raw.get("demand")):
        if all(map(whole, (src, dst, amount))):
            yield from _rank_fault(f"demand[{i}].src", src, places)
            yield from _rank_fault(f"demand[{i}].dst", dst, places)
            if src == dst:
                yield Fault(f"demand[{i}]", "goes from a rank to itself", src, True)
    stated = list(ranks_of(raw.get("traffic")))
    if any(places.fault(node) for node in {node for _, node in stated}):
        for path, node in stated:
            yield from _rank_fault(path, node, places)


def ranks_of(rows: Any) -> Iterator[tuple[str, int]]:
    """All holders and wanters of ``traffic``, each behind where it stands."""
    for i, row in enumerate(rows if isinstance(rows, (list, tuple)) else ()):
        for key in ("holders", "wanters"):
            stated = row.get(key) if isinstance(row, dict) else None
            for node in stated if isinstance(stated, (list, tuple)) else ():
                if whole(node):
                    yield f"traffic[{i}].{key}", node


def _failed_faults(failed: dict[str, Any], machine: Machine) -> Iterator[Fault]:
    """Failed nodes and links that there are not, and shares of links that cannot be."""
    nodes, links, reduced = (failed.get(key) or () for key in ("nodes", "links", "reduced"))
    for i, node in enumerate(nodes if isinstance(nodes, (list, tuple)) else ()):
        if whole(node) and node >= machine.nodes:
            yield Fault(f"failed.nodes[{i}]", f"no such node: there are 0..{machine.nodes - 1}", node, True)
    net = machine.network
    there = set(zip(net.src.tolist(), net.dst.tolist(), strict=True)) if links or reduced else set()
    yield from _reduced_faults(reduced, there, links)
    for i, pair in enumerate(links if isinstance(links, (list, tuple)) else ()):
        if not isinstance(pair, (list, tuple)) or len(pair) != 2 or not all(map(whole, pair)):
            continue
        if tuple(pair) not in there:
            yield Fault(f"failed.links[{i}]", f"there is no link from {pair[0]} to {pair[1]}")


def _member_faults(ranks: Sequence[Any], machine: Machine, broken: set[int]) -> Iterator[Fault]:
    for i, node in enumerate(ranks):
        if whole(node):
            yield from _rank_fault(f"ranks[{i}]", node, Places(machine, broken))
    for node, times in Counter(node for node in ranks if whole(node)).items():
        if times > 1:
            yield Fault("ranks", f"names node {node} {times} times")


def _reduced_faults(reduced: Any, there: set[tuple[int, int]], gone: Any) -> Iterator[Fault]:
    """Links of which a share is left: there are such, each stands once and has not failed, the share is below 1."""
    listed = gone if isinstance(gone, (list, tuple)) else ()
    seen = {tuple(pair) for pair in listed if isinstance(pair, (list, tuple)) and all(map(whole, pair))}
    for i, u, v, share in rows_of_three(reduced):
        if not whole(u) or not whole(v):
            continue
        path = f"failed.reduced[{i}]"
        if (u, v) not in there:
            yield Fault(path, f"there is no link from {u} to {v}")
        if (u, v) in seen:
            yield Fault(path, f"the link from {u} to {v} stands twice")
        seen.add((u, v))
        above, slash, below = str(share).partition("/")
        if slash and above.isdecimal() and below.isdecimal() and not int(above) < int(below):
            yield Fault(path, "the share that is left must be less than 1", share, True)


def _rank_fault(path: str, node: int, places: Places) -> Iterator[Fault]:
    """What is wrong with a node that is to be a rank."""
    words = places.fault(node)
    if words:
        yield Fault(path, words, node, True)


def whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0
