"""The argument ``orbit_moments``: moments of a few demands stand for those of all their images under symmetries.

The block is one (of a broadcast, a reduce, an allreduce). ``images`` are permutations of the nodes that keep links,
ranks, members and the block's ends; they generate a group G. A demand is as :mod:`synth_models.fabric.check.moments`
has it, its moments given by class of ranks (``classes``, a number for every rank, and ``since`` for every number). It
stands for its images under all of G, with an equal share of its ``weight`` each. Every image of a demand is a demand
of the block, so together they are worth as much as the demand itself. For a pair of ranks (u, v) the windows of the
images of a demand are those of the demand for the images of (u, v), each as often: what is open for (u, v) is the mean
over the orbit of (u, v), and it is the same for all pairs of an orbit and all links of one.

Links out of ranks may take a ``toll`` of every byte: ``toll_of`` (of every link the number of its toll + 1, 0 for
none), which changes at the moments ``toll_at``: it may be 0 at first, and never rises once it has begun. What a route
pays at its first link it need not pay at one that bears a share and is no faster: the toll falls while a transfer
crosses the first link, and the other link, which is occupied for as long or longer, is paid for by what the toll has
left at the same time after its beginning. That holds of transfers that start when the toll has begun: it counts for an
orbit of pairs only if all their windows begin then or later.

Where switches cut through, those that copy or add may make several transfers of one, on links at them and at switches
joined to them over others. These links bear no share, and a transfer over them may be no crossing: for every row and
pair of ranks that they join, the second's moment is at most the first's plus the least latency between them. A route
is on such links alone or on none, for its inner nodes are switches.

``backwards``: time is reversed, every link leads from its end to its start, and the block's ends are exchanged. There
transfers end together on all links of their route, and the link with a share must be no slower.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from synth.arrays import BoolArray, IntArray
from synth.text import untrusted
from synth_models.fabric.check.arguments import Argument, Needed
from synth_models.fabric.check.moments import (
    MOST_DEMANDS,
    MOST_SHARE,
    MOST_WEIGHT,
    STRICTLY,
    Until,
    least_share,
)
from synth_models.fabric.check.payments import transfers_pay_alone
from synth_models.fabric.check.windows import HIGHEST_PRICE, LONGEST, UNREACHABLE, Fabric
from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.problem.blocks import EVERYONE
from synth_models.fabric.problem.exact import exact

MOST_IMAGES = 3 * 10**7  # pairs of ranks, times permutations
MOST_CLASSES = 2**10
NONE = -1
MOST_CELLS = 2 * 10**8  # rows of moments, times pairs of classes that an orbit joins


class _Rows(NamedTuple):
    """Moments: ``of`` (which demand), ``weight``: shape (rows,); ``since``: shape (rows, classes), ticks.
    ``classes``: of every rank for every demand, shape (demands, ranks)."""

    of: IntArray
    weight: IntArray
    since: IntArray
    classes: IntArray


class _Tolls(NamedTuple):
    """``of``: of every link the number of its toll, -1 for none. ``at``: the moments at which they change, ascending,
    shape (moments,); ``change``: by how much each changes at every moment, shape (tolls, moments). ``begin``: when
    each begins, shape (tolls,). ``total``: the integral of each over time."""

    of: IntArray
    at: IntArray
    change: IntArray
    begin: IntArray
    total: list[int]


class _Orbit(NamedTuple):
    """Pairs of ranks that the group maps onto each other: how many, and for every demand the pairs of classes that they
    join, with how often: lists of (first class, second class, times), shape (pairs of classes, 3) each."""

    pairs: int
    joined: list[IntArray]


class _Crossing(NamedTuple):
    """How pairs of ranks cross a link: their orbit, ticks from their beginning to the link and from there to their end,
    and the toll that they have paid, -1 for none."""

    orbit: _Orbit
    ahead: int
    behind: int
    toll: int


def orbit_moments(instance: FabricInstance, certificate: Mapping[str, Any]) -> Needed:
    """What all demands and their images are worth, and what the links can carry in their windows."""
    fabric = Fabric(instance, bool(untrusted.flags({"backwards": [certificate.get("backwards", 0)]}, "backwards")[0]))
    if len(instance.blocks) != 1:
        raise ValueError("orbit_moments prove nothing of several blocks")
    if instance.switching.mode == "store_and_forward" and not transfers_pay_alone(fabric):
        raise ValueError("orbit_moments prove nothing where switches copy or add what they store")
    finer = untrusted.whole(certificate, "finer", 1, 2**40)
    ticks = fabric.ticks_per_s * finer
    if ticks > 10**18 or int(fabric.delay.max(initial=0)) * finer * fabric.nodes > LONGEST:
        raise ValueError("the ticks are too fine")
    ranks = np.flatnonzero(fabric.is_rank)
    rows, until = _rows(fabric, certificate, ranks)
    share = untrusted.whole_numbers(certificate, "share", 0, MOST_SHARE, (len(fabric.tail),))
    multiplied = _multiplied(fabric)
    if np.any(share[multiplied]):
        raise ValueError("a link at switches that copy or add bears a share")
    worth = least_share(fabric, np.where(multiplied, HIGHEST_PRICE, share), ranks)
    if worth >= HIGHEST_PRICE:
        raise ValueError("all routes are over switches that copy or add")
    _no_crossing_over(fabric, multiplied, rows, ranks, finer)
    if "toll" in certificate and worth > 1:
        raise ValueError("beside tolls a route may bear one share only")
    needed = worth * untrusted.exact_sum(rows.weight) * int(instance.blocks.bytes[0])
    images, tolls = _images(fabric, certificate), _tolls(fabric, certificate, share)
    carried = _carried(fabric, rows, share, ranks, images, tolls, finer) / ticks
    return needed - STRICTLY, Until(ticks, [], until, carried)


ARGUMENTS: dict[str, Argument] = {"orbit_moments": orbit_moments}


def _rows(fabric: Fabric, certificate: Mapping[str, Any], ranks: IntArray) -> tuple[_Rows, int]:
    """The moments, and the least of those of the demands' goals."""
    source = untrusted.whole_numbers(certificate, "source", 0, fabric.nodes - 1)
    target = untrusted.whole_numbers(certificate, "target", 0, fabric.nodes - 1, (len(source),))
    ends = (fabric.instance.blocks.origin[0], fabric.instance.blocks.goal[0])
    for end, wanted in zip((source, target), ends[::-1] if fabric.is_reversed else ends, strict=True):
        if np.any(~np.isin(end, fabric.members) if wanted == EVERYONE else end != wanted):
            raise ValueError("a demand is none of the block's")
    classes = untrusted.whole_numbers(certificate, "classes", 0, MOST_CLASSES - 1, (len(source) * len(ranks),))
    classes = classes.reshape(len(source), len(ranks))
    of = untrusted.whole_numbers(certificate, "of", 0, len(source) - 1)
    if not 1 <= len(of) <= MOST_DEMANDS:
        raise ValueError(f"there are not 1..{MOST_DEMANDS} moments")
    weight = untrusted.whole_numbers(certificate, "weight", 1, MOST_WEIGHT, (len(of),))
    width = int(classes.max()) + 1
    since = untrusted.whole_numbers(certificate, "since", 0, LONGEST, (len(of) * width,)).reshape(len(of), width)
    begin, end = (
        since[np.arange(len(of)), classes[of, np.searchsorted(ranks, nodes)[of]]] for nodes in (source, target)
    )
    if np.any(source == target) or np.any(begin):
        raise ValueError("a demand's origin has a moment other than 0, or is its goal")
    return _Rows(of, weight, since, classes), int(end.min())


def _multiplied(fabric: Fabric) -> BoolArray:
    """Links at switches that copy or add where they cut through, and at those joined to them over other switches."""
    instance, able = fabric.instance, fabric.instance.machine.abilities
    if instance.switching.mode == "store_and_forward":
        return np.zeros(len(fabric.tail), dtype=bool)
    inside = ~fabric.is_rank & (able.copies | able.adds | instance.switching.multicast)
    while True:
        touched = inside[fabric.tail] | inside[fabric.head]
        near = fabric.mask(np.concatenate([fabric.tail[touched], fabric.head[touched]])) & ~fabric.is_rank
        if np.array_equal(near | inside, inside):
            return touched
        inside |= near


def _no_crossing_over(fabric: Fabric, multiplied: BoolArray, rows: _Rows, ranks: IntArray, finer: int) -> None:
    """Raise ``ValueError`` where a transfer over these links could begin at its first rank's moment or later and arrive
    before its last one's."""
    leaving = multiplied & fabric.is_rank[fabric.tail] & ~fabric.is_rank[fabric.head]
    pairs: list[IntArray] = [np.zeros((3, 0), dtype=np.int64)]
    for place, u in enumerate(ranks.tolist()):
        out = np.flatnonzero(leaving & (fabric.tail == u))
        begin = np.full(fabric.nodes, UNREACHABLE, dtype=np.int64)
        np.minimum.at(begin, fabric.head[out], fabric.delay[out])
        away = fabric.reach_from(begin, fabric.delay, True)[ranks]
        there = np.flatnonzero(away < UNREACHABLE)
        pairs.append(np.stack([np.full_like(there, place), there, away[there] * finer]))
    us, vs, ticks = np.concatenate(pairs, axis=1)
    for d, classes in enumerate(rows.classes):
        one, other, least = np.unique(np.stack([classes[us], classes[vs], ticks]), axis=1)
        since = rows.since[rows.of == d]
        if len(since) * len(one) > MOST_CELLS:
            raise ValueError("there are too many moments for this machine")
        if np.any(since[:, other] > since[:, one] + least):
            raise ValueError("a transfer over switches that copy or add may be a crossing")


def _tolls(fabric: Fabric, certificate: Mapping[str, Any], share: IntArray) -> _Tolls:
    """The tolls, each on links out of ranks that bear no share."""
    if "toll" not in certificate:
        nothing = np.zeros(0, dtype=np.int64)
        return _Tolls(np.full(len(share), NONE, dtype=np.int64), nothing, nothing.reshape(0, 0), nothing, [])
    at = untrusted.whole_numbers(certificate, "toll_at", 0, LONGEST)
    toll = untrusted.whole_numbers(certificate, "toll", 0, MOST_WEIGHT)
    if share.max() > 1:
        raise ValueError("beside tolls there are shares of 1 only")
    if len(at) < 2 or np.any(np.diff(at) < 0) or len(toll) % (len(at) - 1):
        raise ValueError("the tolls' moments do not ascend, or there are not as many tolls")
    toll = toll.reshape(-1, len(at) - 1)
    of = untrusted.whole_numbers(certificate, "toll_of", 0, len(toll), (len(share),)) - 1
    begun = np.cumsum(toll, axis=1, dtype=object) > 0
    if np.any(begun[:, :-1] & (np.diff(toll, axis=1) > 0)):
        raise ValueError("a toll rises")
    if np.any((of >= 0) & ((share > 0) | ~fabric.is_rank[fabric.tail])):
        raise ValueError("a toll is on a link that bears a share, or that leaves no rank")
    change = np.diff(toll, axis=1, prepend=0, append=0)
    begin = at[np.sum(~begun, axis=1)]
    total = [untrusted.exact_dot(row, np.diff(at)) for row in toll]
    return _Tolls(of, at, change, begin, total)


def _images(fabric: Fabric, certificate: Mapping[str, Any]) -> IntArray:
    """The permutations, each verified to keep the instance as it is, shape (permutations, nodes)."""
    images = untrusted.whole_numbers(certificate, "images", 0, fabric.nodes - 1)
    pairs = int(np.sum(fabric.is_rank)) ** 2
    if len(images) % fabric.nodes or len(images) // fabric.nodes * max(fabric.nodes, pairs) > MOST_IMAGES:
        raise ValueError("images are no permutations of the nodes, or too many")
    images = images.reshape(-1, fabric.nodes)
    member, blocks = fabric.mask(fabric.members), fabric.instance.blocks
    here = _links_by_ends(fabric, np.arange(fabric.nodes))
    for image in images:
        if not np.array_equal(np.sort(image), np.arange(fabric.nodes)):
            raise ValueError("an image is no permutation")
        if np.any(fabric.is_rank[image] != fabric.is_rank) or np.any(member[image] != member):
            raise ValueError("an image moves ranks to switches, or out of the group")
        if any(v != EVERYONE and image[v] != v for v in (int(blocks.origin[0]), int(blocks.goal[0]))):
            raise ValueError("an image moves the root")
        there = _links_by_ends(fabric, image)
        if not np.array_equal(here[0], there[0]):
            raise ValueError("an image does not keep the links")
    return images


def _links_by_ends(fabric: Fabric, image: IntArray) -> tuple[IntArray, IntArray]:
    """Ends, bandwidth and latency of every link whose ends are moved, in ascending order, and the links in it."""
    speed = np.unique(fabric.instance.machine.network.bandwidth, return_inverse=True)[1].reshape(-1)
    columns = np.stack([image[fabric.tail], image[fabric.head], speed, fabric.delay])
    order = np.lexsort(columns)
    return columns[:, order], order.astype(np.int64)


def _least_of_orbits(count: int, here: IntArray, images: list[IntArray]) -> IntArray:
    """The number of the orbit of each of ``count`` things; thing ``here[i]`` goes to ``image[i]`` for every image."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    there = np.concatenate([*images, here])
    graph = coo_array((np.ones(len(there), dtype=np.int8), (np.tile(here, len(images) + 1), there)), (count, count))
    found: IntArray = connected_components(graph.tocsr(), directed=False)[1].astype(np.int64)
    return found


def _carried(
    fabric: Fabric, rows: _Rows, share: IntArray, ranks: IntArray, images: IntArray, tolls: _Tolls, finer: int
) -> Fraction:
    """Bytes times price times ticks a second that all links together can carry."""
    count = len(ranks)
    place = np.zeros(fabric.nodes, dtype=np.int64)
    place[ranks] = np.arange(count)
    u, v = np.divmod(np.arange(count * count), count)
    pair_orbit = _least_of_orbits(count * count, u * count + v, [
        place[image[ranks]][u] * count + place[image[ranks]][v] for image in images
    ])  # fmt: skip
    order = _links_by_ends(fabric, np.arange(fabric.nodes))[1]
    link_orbit = _least_of_orbits(len(share), order, [_moved(fabric, image, order) for image in images])
    rate = [exact(float(value)) for value in fabric.instance.machine.network.bandwidth]
    known: dict[int, _Orbit] = {}
    total, by_orbit = Fraction(0), np.argsort(pair_orbit, kind="stable")
    first = np.searchsorted(pair_orbit[by_orbit], np.arange(int(pair_orbit.max()) + 2))
    for e in np.flatnonzero(tolls.of >= 0).tolist():
        total += rate[e] * tolls.total[tolls.of[e]]
    for orbit in range(int(link_orbit.max()) + 1):
        inside = np.flatnonzero(link_orbit == orbit)
        if np.ptp(share[inside]) or np.ptp(tolls.of[inside]):
            raise ValueError("links of one orbit bear unlike shares or tolls")
        if not share[inside[0]]:
            continue
        routes = []
        for us, vs, ahead, behind, toll in _crossing(fabric, int(inside[0]), ranks, tolls, rate):
            for number in np.unique(pair_orbit[us * count + vs]).tolist():
                if number not in known:
                    members = by_orbit[first[number] : first[number + 1]]
                    known[number] = _joined(rows, u[members], v[members])
                routes.append(_Crossing(known[number], ahead * finer, behind * finer, toll))
        total += (
            sum((rate[k] for k in inside.tolist()), Fraction(0)) * int(share[inside[0]]) * _most(rows, routes, tolls)
        )
    return total


def _crossing(
    fabric: Fabric, e: int, ranks: IntArray, tolls: _Tolls, rate: list[Fraction]
) -> Iterator[tuple[IntArray, IntArray, int, int, int]]:
    """The pairs of ranks that a route from one to the other over switches and link e may join, shape (pairs,) each, by
    the ticks from the first to the link and from there to the second, and the toll that is certainly paid before."""
    back = Fabric(fabric.instance, not fabric.is_reversed)
    tail, head = int(fabric.tail[e]), int(fabric.head[e])
    far = back.reach(back.mask([tail]), fabric.delay, True)
    ends, left = _rank_ends(fabric, head, ranks)
    starts: list[tuple[int, int, int]] = []  # rank, by place, ticks, toll
    if fabric.is_rank[tail]:
        starts.append((int(np.searchsorted(ranks, tail)), 0, NONE))
    else:
        inner = fabric.is_rank[fabric.tail] & ~fabric.is_rank[fabric.head] & (far[fabric.head] < UNREACHABLE)
        for f in np.flatnonzero(inner).tolist():
            slower = rate[e] >= rate[f] if fabric.is_reversed else rate[e] <= rate[f]
            place, ticks = int(np.searchsorted(ranks, fabric.tail[f])), int(fabric.delay[f] + far[fabric.head[f]])
            starts.append((place, ticks, int(tolls.of[f]) if slower else NONE))
    groups: dict[tuple[int, int, int], tuple[list[int], list[int]]] = {}
    for u, ticks, toll in starts:
        for v, rest in zip(ends.tolist(), left.tolist(), strict=True):
            if u != v:
                one, other = groups.setdefault((ticks, rest + int(fabric.delay[e]), toll), ([], []))
                one.append(u)
                other.append(v)
    for (ticks, rest, toll), (us, vs) in groups.items():
        yield np.array(us, dtype=np.int64), np.array(vs, dtype=np.int64), ticks, rest, toll


def _rank_ends(fabric: Fabric, node: int, ranks: IntArray) -> tuple[IntArray, IntArray]:
    """The ranks, by place, at which a route over switches from a node may end, with the ticks that it takes."""
    if fabric.is_rank[node]:
        return np.searchsorted(ranks, [node]).astype(np.int64), np.zeros(1, dtype=np.int64)
    far = fabric.reach(fabric.mask([node]), fabric.delay, True)[ranks]
    found = np.flatnonzero(far < UNREACHABLE).astype(np.int64)
    return found, far[found]


def _moved(fabric: Fabric, image: IntArray, order: IntArray) -> IntArray:
    """Where the links go, in the order ``order`` of where they are."""
    there = _links_by_ends(fabric, image)[1]
    moved = np.empty(len(order), dtype=np.int64)
    moved[there] = order
    return moved[order]


def _joined(rows: _Rows, us: IntArray, vs: IntArray) -> _Orbit:
    joined = []
    for classes in rows.classes:
        pairs, times = np.unique(np.stack([classes[us], classes[vs]]), axis=1, return_counts=True)
        joined.append(np.concatenate([pairs, times[None, :]]).T)
    return _Orbit(len(us), joined)


def _most(rows: _Rows, routes: list[_Crossing], tolls: _Tolls) -> int:
    """The integral over time of the greatest mean weight of open windows, less the toll, over the routes to cross a
    link."""
    if sum(len(route.orbit.joined[d]) for route in routes for d in rows.of.tolist()) > MOST_CELLS:
        raise ValueError("there are too many moments for this machine")
    changes = [_changes(rows, route, tolls) for route in routes]
    moments = np.unique(np.concatenate([at for at, _ in changes]))
    if not len(moments):
        return 0
    most = np.zeros(len(moments), dtype=np.int64)
    for route, (at, by) in zip(routes, changes, strict=True):
        change = np.zeros(len(moments), dtype=np.int64)
        np.add.at(change, np.searchsorted(moments, at), by)
        most = np.maximum(most, -(-np.cumsum(change) // route.orbit.pairs))  # rounded up
    return sum(int(price) * int(length) for price, length in zip(most[:-1], np.diff(moments), strict=True))


def _changes(rows: _Rows, route: _Crossing, tolls: _Tolls) -> tuple[IntArray, IntArray]:
    """When, and by how much, the weight of all pairs of an orbit changes at a link, less their tolls."""
    heaviest = untrusted.exact_sum(rows.weight) + (untrusted.exact_sum(np.abs(tolls.change)) if route.toll >= 0 else 0)
    if route.orbit.pairs * heaviest >= 2**62:
        raise ValueError("the weights are too large")
    at, by = [np.zeros(0, dtype=np.int64)], [np.zeros(0, dtype=np.int64)]
    first = LONGEST
    for row, d in enumerate(rows.of.tolist()):
        one, other, times = route.orbit.joined[d].T
        begin, end = rows.since[row, one] + route.ahead, rows.since[row, other] - route.behind
        open_ = begin < end
        first = min(first, int(begin[open_].min(initial=LONGEST)) - route.ahead)
        worth = times[open_] * int(rows.weight[row])
        at += [begin[open_], end[open_]]
        by += [worth, -worth]
    if route.toll >= 0 and tolls.begin[route.toll] <= first:
        at.append(tolls.at + route.ahead)
        by.append(-tolls.change[route.toll] * route.orbit.pairs)
    return np.concatenate(at), np.concatenate(by)
