"""The second checker's networks: the links that models/formats/instances.md makes of a few numbers, in their order.

Written from that page alone, with the standard library alone. ``verify.py`` calls ``links_of`` and ``built_machine``.
"""

import math
from collections import namedtuple
from fractions import Fraction
from itertools import combinations, islice, product

from verify_base import ceiling, cover, number, whole

MOST_LINKS = 2**20  # larger networks are not covered
LEAST = 5e-324  # the least double above 0

GRIDS = {"line": "nodes", "ring": "nodes", "hypercube": "dimension", "mesh": "rows cols layers",
         "torus": "rows cols layers", "equimesh": "rows cols"}  # fmt: skip
Link = namedtuple("Link", "tail head bandwidth latency")  # bandwidth (bytes/s) and latency (s): exact fractions


def grid_links(sides, wrapped):
    """Return the links (tail, head) of a grid in their order: axis by axis, node by node, there and back."""
    links, nodes, stride = [], math.prod(sides), math.prod(sides)
    for side in sides:
        stride //= side
        for node in range(nodes):
            place = node // stride % side
            after = node + stride if place + 1 < side else node - place * stride
            if place + 1 < side or (wrapped and side > 2):
                links += [(node, after), (after, node)]
    return links


def simple_network(network):
    """Return (ranks, switches, [(tail, head) or (tail, head, bandwidth)]) of a network that a few numbers describe."""

    def size(key, default=None):
        return whole(network.get(key, default), 1, 20 if key == "dimension" else 10**6, f"network.{key}")

    kind, switches, near = network["kind"], 0, network.get("bandwidth", 128e9)
    if kind in GRIDS and network.get("bidirectional", True):
        sides = [size(key) for key in GRIDS[kind].split() if key != "layers" or network.get(key) is not None]
        sides = sides if kind != "hypercube" else [2] * sides[0]
        cover(math.prod(sides) * 2 * len(sides) <= MOST_LINKS, f"a network of over {MOST_LINKS} links")
        ranks, links = math.prod(sides), grid_links(sides, kind in ("ring", "torus"))
        if kind == "equimesh":  # and four rings along its edges
            nodes, cols, rings = range(ranks), sides[1], network.get("rings") or {}
            edges = (nodes[:cols], nodes[-cols:], nodes[::cols], nodes[cols - 1 :: cols])
            for edge, along in zip(("top", "bottom", "left", "right"), edges):
                up = ("even_up", "odd_up").index(rings.get(edge, "even_up"))
                ring = [*along[up::2], *along[1 - up :: 2][::-1]]
                links += zip(ring, ring[1:] + ring[:1])
    elif kind == "dragonfly":
        groups, routers, hosts = map(size, ("groups", "routers", "hosts"))
        ranks, switches, far = groups * routers * hosts, groups * routers, network.get("global_bandwidth") or near
        cover(ranks + switches * routers + groups**2 <= MOST_LINKS, f"a network of over {MOST_LINKS} links")
        of = [range(ranks + g * routers, ranks + g * routers + routers) for g in range(groups)]
        ends = [(v, ranks + v // hosts, near) for v in range(ranks)]
        ends += [(u, v, near) for group in of for u, v in combinations(group, 2)]
        ends += [(of[g][(h - 1) % routers], of[h][g % routers], far) for g, h in combinations(range(groups), 2)]
        links = [x for u, v, b in ends for x in ((u, v, b), (v, u, b))]
    elif kind in ("star", "fat_tree"):
        leaves, hosts = (1, size("nodes")) if kind == "star" else (size("leaves"), size("hosts"))
        ranks = leaves * hosts
        cover(ranks + leaves * network.get("spines", 1) <= MOST_LINKS, f"a network of over {MOST_LINKS} links")
        spines = range(ranks + leaves, ranks + leaves + (size("spines", 1) if kind == "fat_tree" else 0))
        ends, up = [(v, ranks + v // hosts, near) for v in range(ranks)], network.get("uplink_bandwidth", near)
        ends += [(leaf, spine, up) for leaf in range(ranks, ranks + leaves) for spine in spines]
        switches, links = leaves + len(spines), [x for u, v, b in ends for x in ((u, v, b), (v, u, b))]
    else:
        ranks, degree = size("nodes"), size("degree", None if kind == "kautz" else 1)
        makers = {"full": (x for u, v in combinations(range(ranks), 2) for x in ((u, v), (v, u)))}
        makers["kautz"] = ((u, -(degree * u + j) % ranks) for u in range(ranks) for j in range(1, degree + 1))
        makers["ring"] = ((v, (v + 1) % ranks) for v in range(ranks))
        links = [link for link in islice(makers[kind], MOST_LINKS + 1) if link[0] != link[1]]
    cover(len(links) <= MOST_LINKS, f"a network of over {MOST_LINKS} links")
    return ranks, switches, [(u, v, *(bandwidth or [near])) for u, v, *bandwidth in links]


def new_link(tail, head, bandwidth, latency):
    number(bandwidth, "bandwidth", LEAST), number(latency, "latency", 0)
    return Link(tail, head, Fraction(repr(bandwidth)), Fraction(repr(latency)))  # the shortest decimals, exactly


def links_of(network, bandwidth=None, latency=0):
    """Return (number of ranks, of switches, links) of a network that is listed link by link, or simple."""
    if network["kind"] != "links":
        ranks, switches, links = simple_network(network)
        return ranks, switches, [new_link(*link, network.get("latency", 20e-9)) for link in links]
    cover(all(x.get("group") is None for x in network["links"]), "groups of links that take turns")
    links = [(x["src"], x["dst"], x.get("bandwidth", bandwidth), x.get("latency", latency)) for x in network["links"]]
    return whole(network["nodes"], 1, 2**20, "network.nodes"), 0, [new_link(*link) for link in links]


def built_machine(network, file):
    """Return (number of ranks, of switches, links, abilities of nodes) of a machine of one or more boxes."""
    cover(network.get("gpus") is None and network.get("rails", True), "boxes in part, leaves that rails share")
    cover(not network.get("bandwidths") and not network.get("latencies"), "numbers by class of link")
    leaf = network.get("leaf")
    cover("domain" not in file and "ranks" not in file, "NVLink domains over several boxes")
    boxes = whole(network.get("boxes", 1), 1, file.get("most_boxes", 2**20), "network.boxes")
    several = ("box_switches", "shared_switches", "uplinks")
    more, shared, uplinks = (file.get(key, []) if boxes > 1 else [] for key in several)
    share = boxes if leaf is None else whole(leaf, 1, 2**20, "network.leaf")
    names = ([f"gpu{i}" for i in range(file["gpus"])], file.get("switches", []) + more)
    nodes = [(b, name) for kind in names for b in range(boxes) for name in kind]  # a shared one: (group of boxes, name)
    leaves = [(g, name) for g in range(ceiling(boxes, share)) for name in shared]
    nodes += leaves
    at, links = {name: number for number, name in enumerate(nodes)}, []

    for b, link in product(range(boxes), file.get("links", []) + uplinks):
        u, v = (at[b // share if name in shared else b, name] for name in (link["src"], link["dst"]))
        for tail, head in ((u, v), (v, u)) if link.get("both", True) else ((u, v),):
            links.append(new_link(tail, head, link["bandwidth"], link.get("latency", 0)))
    ports = [x for x in uplinks if x["dst"] in shared or (x.get("both", True) and x["src"] in shared)]
    over = number(network.get("oversubscription", 1), "network.oversubscription", LEAST)
    most = max(1, round(boxes * len(ports) / over / 64))
    spines = 0 if leaf is None else network.get("spines") or most
    for (g, name), spine in product(leaves, range(spines)):
        mine = [port for port in ports if name in (port["src"], port["dst"])]
        bandwidth = leaf * sum(port["bandwidth"] for port in mine) / over / spines
        latency, ends = max(port.get("latency", 0) for port in mine), (at[g, name], len(nodes) + spine)
        links += [new_link(u, v, bandwidth, latency) for u, v in (ends, ends[::-1])]
    known, ranks = file.get("abilities", {}), boxes * file["gpus"]
    abilities = {v: known[name] for v, (_, name) in enumerate(nodes) if name in known}
    return ranks, len(nodes) + spines - ranks, links, abilities
