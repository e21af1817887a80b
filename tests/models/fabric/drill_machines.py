"""Small machines that are hard on a drill, and what may fail of them, read off their files alone.

Links of one direction, parallel ones, buses, hubs, NICs between a rank and a rail, latencies of zero, any collective
and root, parts of the ranks, switches that store, machines of which something has failed before.
"""

from __future__ import annotations

import random
from collections.abc import Iterable
from fractions import Fraction
from typing import Any

from models.fabric.small_machines import COLLECTIVES, machine

from synth_models.fabric.instance import FabricInstance

Pair = tuple[int, int]
Shape = tuple[int, int, list[tuple[int, int, bool]]]  # ranks, switches, cables (True: both ways)


def drawn(seed: int) -> FabricInstance:
    """A machine of two to six ranks, and a collective on it."""
    chooser = random.Random(seed)
    while True:
        ranks, switches, cables = chooser.choice([_mesh, _mesh, _hub, _rails, _ring])(chooser)
        nodes = ranks + switches
        own = _asked(chooser, ranks)
        own["failed"] = _failed_before(chooser, nodes, cables)
        try:
            made = machine(nodes, _links(chooser, cables), range(ranks, nodes), name=f"drawn-{seed}", **own)
        except ValueError:
            continue  # parts of the ranks do not reach each other
        return made


def _mesh(chooser: random.Random) -> Shape:
    ranks, switches = chooser.randint(2, 4), chooser.randint(0, 2)
    nodes = ranks + switches
    pairs = [(u, v) for u in range(nodes) for v in range(u)]
    kept = chooser.sample(pairs, min(len(pairs), chooser.randint(nodes - 1, nodes + 3)))
    one_way = chooser.choice([0.0, 0.0, 0.3])
    return ranks, switches, [(*chooser.sample(pair, 2), chooser.random() >= one_way) for pair in kept]  # type: ignore[misc]


def _hub(chooser: random.Random) -> Shape:
    """All ranks at one or two switches, behind NICs or not; a cable between two ranks now and then."""
    ranks, hubs, nics = chooser.randint(2, 5), chooser.randint(1, 2), chooser.random() < 0.4
    cables = []
    for rank in range(ranks):
        for hub in range(hubs):
            nic = ranks + hubs + rank
            ends = [(rank, nic), (nic, ranks + hub)] if nics and hub == 0 else [(rank, ranks + hub)]
            cables += [(*pair, True) for pair in ends]
    if chooser.random() < 0.4:
        cables.append((0, 1, chooser.random() < 0.5))
    return ranks, hubs + ranks * nics, cables


def _rails(chooser: random.Random) -> Shape:
    """Two boxes of two ranks, each with a switch and an NIC a rank, one rail or two."""
    rails = chooser.randint(1, 2)
    cables = []
    for rank in range(4):
        box, nic = 4 + rank // 2, 6 + rank
        cables += [(rank, box, True), (rank, nic, True), (nic, 10 + rank % rails, True)]
    return 4, 6 + rails, cables


def _ring(chooser: random.Random) -> Shape:
    ranks, both = chooser.randint(3, 6), chooser.random() < 0.6
    chords = [(*chooser.sample(range(ranks), 2), both)] if chooser.random() < 0.5 else []
    around = {frozenset((v, (v + 1) % ranks)): (v, (v + 1) % ranks, both) for v in range(ranks)}
    return ranks, 0, [*around.values(), *(c for c in chords if frozenset(c[:2]) not in around)]  # type: ignore[list-item]


def _links(chooser: random.Random, cables: Iterable[tuple[int, int, bool]]) -> list[tuple[Any, ...]]:
    rates = chooser.choice([[1.0], [1.0, 2.0], [0.7, 2.5, 12.3], [2.0]])
    late = chooser.choice([[0.0], [0.5], [0.0, 0.3, 1.0]])
    shared = chooser.choice([0.0, 0.0, 0.0, 0.3])
    found: list[tuple[Any, ...]] = []
    for u, v, both in cables:
        rate, latency = chooser.choice(rates), chooser.choice(late)
        group = chooser.choice("ab") if chooser.random() < shared else None
        for _ in range(chooser.choice([1, 1, 1, 1, 2])):
            found += [(*way, rate, latency, group) for way in ((u, v), (v, u))[: 1 + both]]
    return found


def _asked(chooser: random.Random, ranks: int) -> dict[str, Any]:
    """The collective, its ranks and bytes, and how switches forward."""
    group = list(range(ranks))
    own: dict[str, Any] = {"collective": chooser.choice(COLLECTIVES)}
    if ranks > 2 and chooser.random() < 0.2:
        group = chooser.sample(group, chooser.randint(2, ranks - 1))
        own |= {"ranks": group, "relay": chooser.random() < 0.7}
    if own["collective"] in ("broadcast", "reduce", "gather", "scatter") and chooser.random() < 0.5:
        own["root"] = chooser.choice(group)
    if own["collective"] == "demand":
        own["demand"] = [(*chooser.sample(group, 2), chooser.randint(1, 9)) for _ in range(chooser.randint(1, 4))]
    own["bytes"] = sum(row[2] for row in own.get("demand", ())) or len(group) * chooser.choice([1, 3, 12])
    if chooser.random() < 0.3:
        own["switching"] = {
            "mode": chooser.choice(["cut_through", "store_and_forward"]),
            "multicast": chooser.random() < 0.5,
            "buffer": chooser.random() < 0.5,
            "copies": chooser.random() < 0.5,
        }
    return own


def _failed_before(chooser: random.Random, nodes: int, cables: list[tuple[int, int, bool]]) -> dict[str, Any]:
    u, v, both = chooser.choice(cables)
    ways = [[u, v], [v, u]][: 1 + both]
    said = chooser.random()
    if said < 0.07:
        return {"links": ways, "nodes": []}
    return {"links": [], "nodes": [], "reduced": [[*way, "2/3"] for way in ways]} if said < 0.14 else {}


def what_may_fail(file: dict[str, Any], slower: bool) -> dict[str, frozenset[Pair]]:
    """By name (nodes have their numbers as names), the directions from node to node that a failure takes along."""
    pairs = usable(file)
    found = {}
    for u, v in pairs:
        both = (v, u) in pairs
        name = f"link {u} {v}" if both else f"link {u} -> {v}"
        if not both or f"link {v} {u}" not in found:
            found[name] = frozenset({(u, v), (v, u)} if both else {(u, v)})
    groups: dict[str, set[Pair]] = {}
    for link in file["network"]["links"]:
        if link.get("group") and (link["src"], link["dst"]) in pairs:
            groups.setdefault(link["group"], set()).add((link["src"], link["dst"]))
    found |= {f"group {name}": frozenset(held) for name, held in groups.items()}
    for switch in [] if slower else file["network"]["switches"]:
        held = frozenset(pair for pair in pairs if switch in pair)
        found |= {f"node {switch}": held} if held else {}
    return found


def usable(file: dict[str, Any]) -> list[Pair]:
    """The directions over which anything may go, in the file's order."""
    network, failed = file["network"], file["failed"]
    gone = set(failed["nodes"])
    if file.get("ranks") and not file.get("relay"):
        gone |= set(range(network["nodes"])) - set(network["switches"]) - set(file["ranks"])
    ends = dict.fromkeys((link["src"], link["dst"]) for link in network["links"])
    return [pair for pair in ends if list(pair) not in failed["links"] and not gone & set(pair)]


def slowed_to(file: dict[str, Any], pairs: frozenset[Pair], share: str) -> dict[Pair, Fraction]:
    """What must be left of the bandwidth of each link, by its ends, when these keep a share of what they had."""
    before = {(u, v): Fraction(left) for u, v, left in file["failed"].get("reduced") or ()}
    return before | {pair: before.get(pair, Fraction(1)) * Fraction(share) for pair in pairs}


def reached(start: int, pairs: Iterable[Pair]) -> set[int]:
    """The nodes to which links lead from a node."""
    pairs, found = list(pairs), {start}
    while more := {v for u, v in pairs if u in found} - found:
        found |= more
    return found


def is_parted(file: dict[str, Any], pairs: Iterable[Pair]) -> bool:
    """Whether some rank no longer gets what the collective brings it."""
    pairs = list(pairs)
    ranks = [
        v for v in range(file["network"]["nodes"]) if v not in {*file["network"]["switches"], *file["failed"]["nodes"]}
    ]
    group, collective = file.get("ranks") or ranks, file["collective"]
    root = group[0] if file.get("root") is None else file["root"]
    if collective == "demand":
        return any(v not in reached(u, pairs) for u, v, _ in file["demand"])
    if collective in ("broadcast", "scatter"):
        return not set(group) <= reached(root, pairs)
    sources = group if collective not in ("reduce", "gather") else [u for u in group if u != root]
    goals = [root] if collective in ("reduce", "gather") else group
    return any(not set(goals) <= reached(u, pairs) for u in sources)
