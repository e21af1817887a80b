"""SimGrid's clusters that are more than a star: TORUS, FAT_TREE and DRAGONFLY, by their ``topo_parameters``.

Cables as its source lays them (github simgrid/simgrid @001fb10e, src/kernel/routing: TorusZone.cpp, FatTreeZone.cpp,
DragonflyZone.cpp):

* ``X,Y,Z``: host n is at (n mod X, n / X mod Y, …) and has a cable to the next in every dimension, round its end too.
* ``levels; down,…; up,…; cables,…``: a node of level l has ``up[l]`` parents, a switch ``down[l]`` children, each over
  so many cables; labels tell who is whose, the first digit counts fastest.
* ``groups,blue; chassis,black; blades,green; nodes``: a router a blade, all of a chassis joined (green), those of equal
  blade in a group (black), and router j of group i with router i of group j (blue), each over so many cables.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import combinations
from math import prod

from synth.network.links_table import MOST_LINKS, MOST_NODES

Cable = tuple[int, int, int]  # two nodes and how many cables; hosts come first, switches behind them
MOST_DIMENSIONS = 16


def cables(kind: str, parameters: str, hosts: int) -> tuple[int, list[Cable]]:
    """The number of switches, and the cables. Raises ``ValueError`` in words."""
    if kind not in KINDS:
        raise ValueError(f"must be FLAT, {', '.join(KINDS)}: give hosts, links and routes")
    rows = [_numbers(part) for part in parameters.split(";")]
    return KINDS[kind](rows, hosts)


def _numbers(text: str) -> list[int]:
    words = [word.strip() for word in text.split(",")]
    if len(words) > MOST_DIMENSIONS or not all(word.isascii() and word.isdigit() and len(word) < 6 for word in words):
        raise ValueError("must hold whole numbers such as 4,4,2")
    numbers = list(map(int, words))
    if 0 in numbers:
        raise ValueError("must hold whole numbers above 0")
    return numbers


def _demand(hosts: int, needed: int, nodes: int, links: int) -> None:
    if needed != hosts:
        raise ValueError(f"is for {needed} hosts; radical names {hosts}")
    if nodes > MOST_NODES:
        raise ValueError(f"makes {nodes:,} nodes; at most {MOST_NODES:,} are supported")
    if links > MOST_LINKS:
        raise ValueError(f"makes {links:,} links; at most {MOST_LINKS:,} are supported")


def _torus(rows: list[list[int]], hosts: int) -> tuple[int, list[Cable]]:
    if len(rows) != 1:
        raise ValueError("must be the sizes of the dimensions, such as 4,4,2")
    sizes = rows[0]
    _demand(hosts, prod(sizes), prod(sizes), 2 * hosts * len(sizes))
    found: list[Cable] = []
    stride = 1
    for size in sizes:
        for n in range(hosts) if size > 1 else ():
            last = n // stride % size == size - 1
            found.append((n, n - (size - 1) * stride if last else n + stride, 1))
        stride *= size
    return 0, found


def _fat_tree(rows: list[list[int]], hosts: int) -> tuple[int, list[Cable]]:
    if len(rows) != 4 or len(rows[0]) != 1 or any(len(row) != rows[0][0] for row in rows[1:]):
        raise ValueError("must be levels; children,…; parents,…; cables,… with as many numbers as levels")
    (levels,), down, up, count = rows
    digits = [up[:level] + down[level:] for level in range(levels + 1)]  # what each digit of a label counts to
    nodes = [prod(row) for row in digits]
    _demand(hosts, nodes[0], sum(nodes), 2 * sum(n * above for n, above in zip(nodes, up, strict=False)))
    first = [sum(nodes[:level]) for level in range(levels + 1)]
    found: list[Cable] = []
    for level in range(levels):
        below = prod(up[:level])
        for n in range(nodes[level]):
            low, high = n % below, n // below // down[level]
            for parent in range(up[level]):
                above = low + below * (parent + up[level] * high)
                found.append((first[level] + n, first[level + 1] + above, count[level]))
    return sum(nodes[1:]), found


def _dragonfly(rows: list[list[int]], hosts: int) -> tuple[int, list[Cable]]:
    if [len(row) for row in rows] != [2, 2, 2, 1]:
        raise ValueError("must be groups,blue; chassis,black; blades,green; nodes")
    (groups, blue), (chassis, black), (blades, green), (width,) = rows
    each = chassis * blades
    _demand(hosts, groups * each * width, groups * each * (width + 1), groups * (each * (blades + chassis) + groups))
    if groups > each:
        raise ValueError(f"joins {groups} groups by {each} routers of each: SimGrid has a router for every group")
    found: list[Cable] = [(n, hosts + n // width, 1) for n in range(hosts)]
    for group in range(groups):
        start = hosts + group * each
        for row in range(chassis):
            found += [(start + row * blades + a, start + row * blades + b, green) for a, b in _pairs(blades)]
        for blade in range(blades):
            found += [(start + a * blades + blade, start + b * blades + blade, black) for a, b in _pairs(chassis)]
    found += [(hosts + a * each + b, hosts + b * each + a, blue) for a, b in _pairs(groups)]
    return groups * each, found


def _pairs(number: int) -> Iterator[tuple[int, int]]:
    return combinations(range(number), 2)


KINDS: Mapping[str, Callable[[list[list[int]], int], tuple[int, list[Cable]]]] = {
    "TORUS": _torus, "FAT_TREE": _fat_tree, "DRAGONFLY": _dragonfly,
}  # fmt: skip
