"""The second checker's networks: the links that models/formats/instances.md makes of a few numbers, in their order.

Written from that page alone; ``verify.py`` beside it calls ``links_of``. Python's standard library alone.
"""

import math
from collections import namedtuple
from fractions import Fraction
from itertools import combinations, islice

from verify_base import cover, number, whole

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
