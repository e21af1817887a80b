"""Independent, slow versions of what the family does fast: a replay in plain Python and an exhaustive search."""

from __future__ import annotations

import itertools
from collections import Counter
from typing import Any

from synth_models.mlfm.instance import MLFMInstance
from synth_models.mlfm.solution import Phases

Link = tuple[str, tuple[int, int], frozenset[int]]


def failed_links(instance: MLFMInstance, leaf: tuple[int, int], spine: frozenset[int]) -> bool:
    """Whether the cable between that leaf and that spine is out of order."""
    parts = instance.failed
    return (
        leaf in parts.leaves
        or spine in [frozenset(s) for s in parts.spines]
        or any(link.leaf == leaf and frozenset(link.spine) == spine for link in parts.links)
    )


def hops(instance: MLFMInstance, start: tuple[int, int], end: tuple[int, int]) -> list[list[Link]]:
    """All ways leaf -> spine -> leaf over working cables, each as its up- and its down-link."""
    found: list[list[Link]] = []
    for spine in map(frozenset, itertools.combinations(range(instance.d + 1), 2)):
        joins = start[1] in spine and end[1] in spine
        if joins and not failed_links(instance, start, spine) and not failed_links(instance, end, spine):
            found.append([("up", start, spine), ("down", end, spine)])
    return found


def routes(instance: MLFMInstance, start: tuple[int, int], end: tuple[int, int]) -> list[list[Link]]:
    """All allowed routes between two leaves, as lists of links."""
    if start == end:
        return [[]]
    found = hops(instance, start, end)
    if instance.routes == "detour":
        for middle in itertools.product(range(instance.d), range(instance.d + 1)):
            if middle[1] not in (start[1], end[1]):
                for one in hops(instance, start, middle):
                    found += [one + two for two in hops(instance, middle, end)]
    return found


def asked(instance: MLFMInstance) -> Counter[tuple[int, int]]:
    """How often every rank is to send to every other: once to all, or what the demand says of working servers."""
    ranks = {tuple(server): rank for rank, server in enumerate(instance.servers.tolist())}
    if instance.demand is None:
        return Counter(itertools.product(ranks.values(), repeat=2))
    wanted: Counter[tuple[int, int]] = Counter()
    for pair in instance.demand:
        if pair.source in ranks and pair.target in ranks:
            wanted[ranks[pair.source], ranks[pair.target]] += pair.count
    return wanted


def replay(instance: MLFMInstance, solution: Phases) -> tuple[bool, list[int]]:
    """Whether all pairs are sent as often as they should, by allowed routes, in partial permutations; and each phase's
    worst link load."""
    servers = [tuple(s) for s in instance.servers.tolist()]
    spines = list(itertools.combinations(range(instance.d + 1), 2))
    sent: Counter[tuple[int, int]] = Counter()
    loads, fine = [], True
    for rows in solution.rows(7):
        for p in range(len(rows.dest)):
            used: dict[Link, int] = {}
            receivers = []
            for x, y in enumerate(rows.dest[p].tolist()):
                if y == -1:
                    continue
                if not 0 <= y < len(servers):
                    return False, loads
                sent[x, y] += 1
                receivers.append(y)
                start, end = servers[x][:2], servers[y][:2]
                one, middle, two = (int(part[p, x]) for part in (rows.spine, rows.middle, rows.second))
                route: list[Link] = []
                if one >= 0:
                    stops = [start, (middle // (instance.d + 1), middle % (instance.d + 1)), end]
                    stops = stops if middle >= 0 else [start, end]
                    for (tail, head), spine in zip(itertools.pairwise(stops), (one, two), strict=False):
                        route += [("up", tail, frozenset(spines[spine])), ("down", head, frozenset(spines[spine]))]
                fine &= route in routes(instance, start, end)
                for link in route:
                    used[link] = used.get(link, 0) + 1
            fine &= len(set(receivers)) == len(receivers)
            loads.append(max(used.values(), default=0))
    return fine and sent == asked(instance), loads


def least_phases(instance: MLFMInstance, most: int) -> int:
    """The fewest congestion-free phases between servers, by exhaustive search upwards from what one server sends."""
    wanted = asked(instance)
    fewest = max(
        sum(count for pair, count in wanted.items() if pair[0] == rank) for rank in range(len(instance.servers))
    )
    for phases in range(max(1, fewest), most + 1):
        if _possible(instance, phases):
            return phases
    raise AssertionError(f"more than {most} phases")


def _possible(instance: MLFMInstance, phases: int) -> bool:
    servers = [tuple(s) for s in instance.servers.tolist()]
    choices: dict[tuple[int, int, int], list[list[Any]]] = {}
    for (x, y), count in asked(instance).items():
        ends = [("send", x), ("receive", y)]
        for turn in range(count):
            choices[x, y, turn] = [[*ends, *route] for route in routes(instance, servers[x][:2], servers[y][:2])]
    busy: set[tuple[int, Any]] = set()

    def options(pair: tuple[int, int, int], opened: int) -> list[tuple[int, list[Any]]]:
        # phases are alike until used: of the unused ones only the first is tried
        return [
            (p, use)
            for p in range(min(opened + 1, phases))
            for use in choices[pair]
            if not any((p, part) in busy for part in use)
        ]

    def search(left: frozenset[tuple[int, int, int]], opened: int) -> bool:
        if not left:
            return True
        pair, _ = min(((pair, options(pair, phases - 1)) for pair in left), key=lambda item: len(item[1]))
        for p, use in options(pair, opened):
            busy.update((p, part) for part in use)
            if search(left - {pair}, max(opened, p + 1)):
                return True
            busy.difference_update((p, part) for part in use)
        return False

    return search(frozenset(choices), 0)


def colours(flows: list[set[Any]]) -> int:
    """The fewest classes of flows without a common link, at least 1, by trying all partitions."""

    def possible(rest: list[set[Any]], classes: list[set[Any]], most: int) -> bool:
        if not rest:
            return True
        flow, later = rest[0], rest[1:]
        for i, taken in enumerate(classes):
            if not taken & flow and possible(later, [*classes[:i], taken | flow, *classes[i + 1 :]], most):
                return True
        return len(classes) < most and possible(later, [*classes, flow], most)

    flows = [flow for flow in flows if flow]
    return next(most for most in itertools.count(1) if possible(flows, [], most))


def value(instance: MLFMInstance, solution: Phases) -> int:
    """The congestion-free phases that a schedule's phases split into; its routes are taken to be right."""
    servers = [tuple(s) for s in instance.servers.tolist()]
    spines = [frozenset(pair) for pair in itertools.combinations(range(instance.d + 1), 2)]
    total = 0
    for rows in solution.rows(7):
        for p in range(len(rows.dest)):
            flows = []
            for x, y in enumerate(rows.dest[p].tolist()):
                one, middle, two = (int(part[p, x]) for part in (rows.spine, rows.middle, rows.second))
                if y < 0 or one < 0:
                    continue
                stops = [servers[x][:2], divmod(middle, instance.d + 1), servers[y][:2]]
                stops = stops if middle >= 0 else [stops[0], stops[2]]
                hops_of = zip(itertools.pairwise(stops), (one, two), strict=False)
                flows.append({link for (a, b), s in hops_of for link in (("up", a, spines[s]), ("down", b, spines[s]))})
            total += colours(flows)
    return total


def proves(instance: MLFMInstance, weights: dict[Link, int]) -> int:
    """The phases that weights on links prove: all transfers' shortest weighted lengths over all weights, rounded up."""
    servers = [tuple(s)[:2] for s in instance.servers.tolist()]
    needed = 0
    for (x, y), count in asked(instance).items():
        lengths = [sum(weights.get(link, 0) for link in route) for route in routes(instance, servers[x], servers[y])]
        needed += count * min(lengths)
    return -(-needed // sum(weights.values()))
