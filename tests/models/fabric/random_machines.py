"""Valid instances drawn over everything that an instance file may state: :func:`random_instance`.

One to eight ranks; networks by shape, by link and by name of a machine; rates and latencies alike or worlds apart;
switches that cut through, store, copy, add, with limits; links of one direction, parallel ones, buses; failures; every
collective, roots, groups, relays, demands, several collectives with releases. A seed always gives the same instance.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from pydantic import TypeAdapter

from synth.errors import InputError
from synth.instance import parse
from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.problem.blocks import COLLECTIVES, SHARED_OUT
from synth_models.fabric.problem.machine import Machine
from synth_models.fabric.problem.network_spec import FabricSpec, built

Raw = dict[str, Any]
Pair = tuple[int, int]
MOST_RANKS = 8
READER: TypeAdapter[FabricSpec] = TypeAdapter(FabricSpec)
DRAWN = tuple(name for name in COLLECTIVES if name != "traffic")  # of which test_traffic.py draws its own
ROOTED = ("broadcast", "reduce", "gather", "scatter")
RATES = (
    (1e9,), (1e9, 2e9), (1e9, 3e9, 25e9), (50e9, 450e9), (1e10 / 3, 12.3e9, 7e8), (1e6, 1e12), (1.0, 2.5, 0.7),
    (25e9, 0.004, 3e17),
)  # fmt: skip
DELAYS = ((0.0,), (1e-6,), (1e-9, 3e-3), (0.0, 5e-7), (7e-7, 1.3e-6, 2e-5), (1e-12, 0.25), (0.5, 0.3, 1.0))
SIZES = (1, 2, 3, 7, 8, 16, 125, 1000, 1024, 4099, 65_536, 10**6 + 3, 2**20, 2**27 + 1, 2**30)
MACHINES = (
    "dgx1", "dgx2", "dgx-a100", "dgx-h100", "dgx-h100-nvls", "dgx-b200-nvls", "ndv2", "mi250", "amd16",
)  # fmt: skip


@lru_cache(maxsize=256)
def random_instance(seed: int) -> FabricInstance:
    """The instance of that number, named ``random-<seed>``."""
    chooser = random.Random(seed)
    while True:
        raw = random_file(chooser) | {"name": f"random-{seed}"}
        try:
            return parse(raw, FabricInstance, f"random-{seed}")
        except InputError:
            continue  # parts do not reach each other, or nothing is left


def random_file(chooser: random.Random) -> Raw:
    """What an instance file may hold; often ranks cannot reach each other, which the instance refuses."""
    raw: Raw = {"format": "synth-instance/1", "family": "fabric", "source": "drawn"}
    raw["network"] = chooser.choices([_by_link, _by_shape, _by_name], [8, 4, 1])[0](chooser)
    raw |= _switching(chooser, raw["network"])
    machine = _machine_of(raw["network"])
    ranks, pairs = machine.ranks.tolist(), sorted(set(_ends(machine)))
    raw |= _failed(chooser, machine.nodes, pairs)
    left = [rank for rank in ranks if rank not in raw.get("failed", {}).get("nodes", ())]
    if chooser.random() < 0.3:
        raw["relay"] = chooser.random() < 0.7
    return raw | (_several(chooser, left) if chooser.random() < 0.15 else _one(chooser, left))


# ---- networks


def _by_link(chooser: random.Random) -> Raw:
    """Links one by one: any of the shapes below, each with its own rates, parallel links, buses, abilities."""
    ranks, switches, cables = chooser.choice([_mesh, _mesh, _cycle, _hubs, _tree, _rails])(chooser)
    rates, delays = chooser.choice(RATES), chooser.choice(DELAYS)
    if chooser.random() < 0.1:
        rates, delays = (10 ** chooser.uniform(-2, 17), 10 ** chooser.uniform(3, 12)), (10 ** chooser.uniform(-12, 3),)
    shared, parallel = chooser.choice([0.0, 0.0, 0.0, 0.2, 0.6]), chooser.choice([0.0, 0.0, 0.2])
    links: list[Raw] = []
    for u, v, both in cables:
        rate, delay = chooser.choice(rates), chooser.choice(delays)
        group = chooser.choice(["a", "b", f"{u}-{v}"]) if chooser.random() < shared else None
        for _ in range(1 + (chooser.random() < parallel)):
            for tail, head in ((u, v), (v, u))[: 1 + both]:
                links.append({"src": tail, "dst": head, "bandwidth": rate, "latency": delay})
                links[-1] |= {"group": group} if group else {}
                if chooser.random() < 0.1:
                    links[-1] |= {"bandwidth": chooser.choice(rates), "latency": chooser.choice(delays)}
    chooser.shuffle(links)
    return _renumbered(chooser, ranks, switches, links)


def _renumbered(chooser: random.Random, ranks: int, switches: int, links: list[Raw]) -> Raw:
    """Ranks first and then switches, or in any order."""
    nodes = ranks + switches
    number = list(range(nodes))
    if chooser.random() < 0.3:
        chooser.shuffle(number)
    rows = [link | {"src": number[link["src"]], "dst": number[link["dst"]]} for link in links]
    hubs = sorted(number[ranks:])
    network: Raw = {"kind": "links", "nodes": nodes, "links": rows} | ({"switches": hubs} if hubs else {})
    if hubs and chooser.random() < 0.25:
        network["abilities"] = [_ability(chooser, hub) for hub in hubs if chooser.random() < 0.7]
    return network


def _ability(chooser: random.Random, switch: int) -> Raw:
    own: Raw = {"switch": switch, "copies": chooser.random() < 0.7, "adds": chooser.random() < 0.7}
    own |= {"streams": chooser.choice([1, 2, 5])} if chooser.random() < 0.3 else {}
    return own | ({"add_rate": chooser.choice([0.5, 5e8, 1e9, 4e10])} if chooser.random() < 0.3 else {})


Shape = tuple[int, int, list[tuple[int, int, bool]]]  # ranks, switches, cables (True: both ways)


def _mesh(chooser: random.Random) -> Shape:
    """Any pairs of ranks and switches, some of one direction."""
    ranks, switches = chooser.randint(1, MOST_RANKS), chooser.randint(0, 3)
    nodes = max(2, ranks + switches)
    pairs = [(u, v) for u in range(nodes) for v in range(u)]
    kept = chooser.sample(pairs, min(len(pairs), chooser.randint(nodes - 1, 2 * nodes)))
    one_way = chooser.choice([0.0, 0.0, 0.2, 0.5])
    cables = [(*_turned(chooser, pair), chooser.random() >= one_way) for pair in kept]
    return ranks, nodes - ranks, cables


def _cycle(chooser: random.Random) -> Shape:
    """A ring of one or both directions, chords, a switch in the place of some ranks."""
    nodes, both = chooser.randint(3, MOST_RANKS), chooser.random() < 0.5
    switches = chooser.choice([0, 0, 1, 2])
    order = chooser.sample(range(nodes), nodes)
    cables = [(order[v - 1], order[v], both) for v in range(nodes)]
    for _ in range(chooser.choice([0, 0, 1, 3])):
        u, v = chooser.sample(range(nodes), 2)
        cables.append((u, v, chooser.random() < 0.5))
    return nodes - switches, switches, cables


def _hubs(chooser: random.Random) -> Shape:
    """Ranks at one to three switches, each at some of them, with a NIC before or without; switches joined or not."""
    ranks, hubs, nics = chooser.randint(1, MOST_RANKS), chooser.randint(1, 3), chooser.random() < 0.25
    cables = []
    for rank in range(ranks):
        for hub in chooser.sample(range(hubs), chooser.randint(1, hubs)):
            nic = ranks + hubs + rank
            ends = [(rank, nic), (nic, ranks + hub)] if nics and hub == 0 else [(rank, ranks + hub)]
            cables += [(*pair, True) for pair in ends]
    if chooser.random() < 0.5:
        cables += [(ranks + u, ranks + v, True) for v in range(hubs) for u in range(v)]
    if ranks > 1 and chooser.random() < 0.3:
        u, v = chooser.sample(range(ranks), 2)
        cables.append((u, v, chooser.random() < 0.5))
    return ranks, hubs + ranks * nics, cables


def _tree(chooser: random.Random) -> Shape:
    """A tree whose inner nodes are switches, now and then ranks."""
    ranks, switches = chooser.randint(2, MOST_RANKS), chooser.randint(1, 4)
    cables = [(ranks + v, ranks + chooser.randrange(v), True) for v in range(1, switches)]
    for rank in range(ranks):
        above = chooser.randrange(rank) if rank and chooser.random() < 0.15 else ranks + chooser.randrange(switches)
        cables.append((rank, above, True))
    return ranks, switches, cables


def _rails(chooser: random.Random) -> Shape:
    """Boxes of two or three ranks: a switch each (or links between its ranks), and rails between the boxes."""
    boxes, each = chooser.choice([(2, 2), (2, 3), (3, 2), (4, 2)])
    rails, inside = chooser.randint(1, 2), chooser.random() < 0.7
    ranks = boxes * each
    cables = []
    for rank in range(ranks):
        box, place = divmod(rank, each)
        cables.append((rank, ranks + boxes * inside + place % rails, True))
        if inside:
            cables.append((rank, ranks + box, True))
        else:
            cables += [(rank, other, True) for other in range(box * each, rank)]
    return ranks, boxes * inside + rails, cables


def _turned(chooser: random.Random, pair: Pair) -> Pair:
    u, v = pair
    return (u, v) if chooser.random() < 0.5 else (v, u)


def _by_shape(chooser: random.Random) -> Raw:
    """One of the shapes with a name."""
    shapes: list[Raw] = [
        {"kind": "line", "nodes": chooser.randint(2, MOST_RANKS)},
        {"kind": "ring", "nodes": chooser.randint(3, MOST_RANKS), "bidirectional": chooser.random() < 0.5},
        {"kind": "mesh", "rows": chooser.randint(1, 2), "cols": chooser.randint(2, 4)},
        {"kind": "torus", "rows": chooser.randint(2, 3), "cols": 2},
        {"kind": "torus", "rows": 2, "cols": 2, "layers": 2},
        {"kind": "hypercube", "dimension": chooser.randint(1, 3)},
        {"kind": "kautz", "nodes": (n := chooser.randint(3, MOST_RANKS)), "degree": min(n - 1, chooser.randint(1, 3))},
        {"kind": "full", "nodes": chooser.randint(2, MOST_RANKS)},
        {"kind": "star", "nodes": chooser.randint(2, MOST_RANKS)},
        {"kind": "star", "nodes": chooser.randint(2, 4)},
        _fat_tree(chooser),
        _fat_tree(chooser),
        {"kind": "dragonfly", "groups": chooser.randint(2, 3), "routers": 1, "hosts": chooser.randint(1, 2)},
        {"kind": "dragonfly", "groups": 2, "routers": 2, "hosts": chooser.randint(1, 2)},
    ]
    own = chooser.choice(shapes) | {"latency": chooser.choice(chooser.choice(DELAYS))}
    own["bandwidth"] = chooser.choice(chooser.choice(RATES))
    if own["kind"] == "dragonfly" and chooser.random() < 0.5:
        own["global_bandwidth"] = own["bandwidth"] * chooser.choice([0.5, 2, 7])
    return own


def _fat_tree(chooser: random.Random) -> Raw:
    leaves, hosts = chooser.choice([(1, 3), (2, 2), (2, 3), (3, 2), (2, 4), (4, 2), (3, 1)])
    own: Raw = {"kind": "fat_tree", "leaves": leaves, "hosts": hosts, "spines": chooser.randint(1, 2)}
    return own | ({"uplink_bandwidth": chooser.choice([5e8, 1e9, 3e10])} if chooser.random() < 0.5 else {})


def _by_name(chooser: random.Random) -> Raw:
    """Boxes of a machine that comes with the package, of which only the first ranks are there."""
    boxes = chooser.choice([1, 2, 2, 3])
    own: Raw = {"kind": "machine", "name": chooser.choice(MACHINES), "boxes": boxes}
    own["gpus"] = [chooser.randint(1, MOST_RANKS // boxes) for _ in range(boxes)]
    if chooser.random() < 0.5:
        own["gpus"] = [own["gpus"][0]] * boxes
    if boxes > 1 and own["name"].startswith("dgx-") and chooser.random() < 0.3:
        own |= {"leaf": chooser.randint(1, boxes), "rails": chooser.random() < 0.5}
    return own


def _machine_of(network: Raw) -> Machine:
    """The machine of a network as a file states it, everything usable."""
    return built(READER.validate_json(json.dumps(network), strict=True))


def _ends(machine: Machine) -> Iterator[Pair]:
    return zip(machine.network.src.tolist(), machine.network.dst.tolist(), strict=True)


# ---- what switches do, what has failed


def _switching(chooser: random.Random, network: Raw) -> Raw:
    """How switches forward, or nothing said of it."""
    if chooser.random() < 0.3:
        return {}
    if network.get("abilities") or chooser.random() < 0.5:
        own: Raw = {"mode": "cut_through", "multicast": chooser.random() < 0.4}
        if chooser.random() < 0.4:
            own["adds"] = chooser.random() < 0.8
        if own["multicast"] or own.get("adds"):
            own |= {"streams": chooser.choice([1, 2, 3])} if chooser.random() < 0.25 else {}
            own |= {"add_rate": chooser.choice([0.5, 5e8, 1e9, 4e10])} if chooser.random() < 0.25 else {}
        return {"switching": own}
    adds, buffer = chooser.random() < 0.3, chooser.random() < 0.5
    own = {"mode": "store_and_forward", "buffer": buffer or adds, "copies": chooser.random() < 0.5 or adds}
    return {"switching": own | ({"adds": True} if adds else {})}


def _failed(chooser: random.Random, nodes: int, pairs: list[Pair]) -> Raw:
    """Links of one or both directions, nodes, shares of rates, or nothing."""
    if chooser.random() < 0.6 or not pairs:
        return {}
    own: Raw = {}
    if chooser.random() < 0.6:
        u, v = chooser.choice(pairs)
        own["links"] = [[u, v]] + ([[v, u]] if (v, u) in pairs and chooser.random() < 0.4 else [])
    if chooser.random() < 0.3:
        own["nodes"] = [chooser.randrange(nodes)]
    if chooser.random() < 0.4:
        whole = [pair for pair in pairs if list(pair) not in own.get("links", [])]
        kept = chooser.sample(whole, min(len(whole), chooser.randint(1, 3)))
        own["reduced"] = [[u, v, chooser.choice(["1/2", "2/3", "11/12", "1/1000"])] for u, v in kept]
    return {"failed": own} if own else {}


# ---- what is asked


def _one(chooser: random.Random, ranks: list[int], most: int = len(SIZES)) -> Raw:
    """One collective over all ranks or some, in their order or another."""
    own: Raw = {"collective": chooser.choice(DRAWN)}
    group = ranks
    if ranks and chooser.random() < 0.3:
        group = chooser.sample(ranks, chooser.randint(min(2, len(ranks)) - (chooser.random() < 0.05), len(ranks)))
        own["ranks"] = group
    if group and own["collective"] in ROOTED and chooser.random() < 0.6:
        own["root"] = chooser.choice(group)
    size = chooser.choice(SIZES[:most])
    if own["collective"] == "demand":
        if len(group) < 2:
            return own | {"collective": "broadcast", "bytes": size}
        rows = [[*chooser.sample(group, 2), chooser.choice([1, size, 3 * size])] for _ in range(chooser.randint(1, 9))]
        return own | {"demand": rows, "bytes": sum(row[2] for row in rows)}
    return own | {"bytes": size * len(group) if own["collective"] in SHARED_OUT else size}


def _several(chooser: random.Random, ranks: list[int]) -> Raw:
    """Two or three collectives at once, with releases and priorities."""
    latest = chooser.choice([0.0, 1e-9, 2e-6, 1e-3, 1.0])
    rows = []
    for k in range(chooser.randint(2, 3) - (chooser.random() < 0.1)):
        row = _one(chooser, ranks, 12) | {"release": chooser.choice([0.0, latest, k * latest / 3, latest / 7])}
        row |= {"priority": chooser.choice([1, 2, 999_999])} if chooser.random() < 0.5 else {}
        rows.append(row | ({"name": f"job{k}"} if chooser.random() < 0.3 else {}))
    own: Raw = {"collective": "several", "collectives": rows, "bytes": sum(row["bytes"] for row in rows)}
    return own | ({"objective": chooser.choice(["last_end", "weighted_ends"])} if chooser.random() < 0.7 else {})
