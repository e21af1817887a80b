"""That no plan of S steps and R rounds brings C chunks, by counting: verified from numbers alone, in exact arithmetic.

SCCL's time (Cai et al., PPoPP 2021, section 3): S steps one after the other, of which each takes one round or more, R
rounds in all; in a step of r rounds a link of capacity c carries at most c r chunks; what arrives in a step can be sent
on in the next. The capacities are the bandwidths, divided by the greatest number that divides them all. So a link that
nothing useful can cross in the first ``h`` steps and in the last ``g`` serves for at most R - h - g rounds, and not at
all if h + g >= S.

An argument names what a chunk of every block has to pay, and prices of links per chunk:

``hops``: a chunk goes over one link a step, and some goal is more than S links away.

``paths`` (``length``, a price of every link): a chunk travels from its origin to every goal, in a reduction from every
contributor to the goal, so it pays at least the greatest of these shortest distances. With price 1 on the links out of
a set of nodes that is a cut; for blocks from rank to rank it is the dual of the concurrent flow.

``parts`` (``part`` of every node, each with a member): with price 1 between the parts, what is spread from one rank to
all pays k - 1, as every other part has to be entered (a sum over all for one rank: left), and an allreduce 2 (k - 1):
one-way gossip (the telegraph problem, Harary and Schwenk 1974).

``timed`` (``price``, of a link in a step, one table or more; ``of``: the table of every delivery): a delivery is a
block, an origin (in a reduction a contributor) and a goal, in the order of blocks, origins and goals. What goes one way
pays at least the shortest distance in steps under its own table, waiting being free. A chunk that serves several
deliveries with one crossing pays the sum of their tables, so a link's price is this sum, and over the blocks the
greatest. The links then earn at most sum of r_s K_s, K_s being the worth of all links in step s, which is greatest if
one step is long. This is the dual of the program in which chunks may be cut at will.

``lengths``: the same with tables of their own for every way to cut R rounds into S steps, as steps have whole lengths.

``joining`` (``price``, of a link in a step, one table for every way to cut R rounds into S steps; one block): whatever
one chunk crosses costs more than a C-th of what the links earn (:mod:`synth_peers.sccl.check.joining_sets`).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from fractions import Fraction
from itertools import combinations
from typing import Any

import numpy as np

from synth.arrays import IntArray
from synth.text import untrusted
from synth_models.fabric.check.windows import UNREACHABLE, Fabric
from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.problem.blocks import EVERYONE
from synth_models.fabric.problem.exact import exact
from synth_peers.sccl.check.joining_sets import JoiningSets

ARGUMENTS = ("hops", "paths", "parts", "timed", "lengths", "joining")
MOST_CASES = 1000
MOST_PRICES = 2**22
MOST_STEPS = 10_000
MOST_CHUNKS = 2**31 - 1
HIGHEST_PRICE = 2**31 - 1

Question = tuple[int, int, int]
"""Steps, rounds, chunks."""


def capacities(instance: FabricInstance) -> list[int]:
    """Chunks a round that every usable link carries. Raises ``ValueError`` where SCCL's model has no room: links of
    switches, and groups."""
    machine = instance.machine
    if np.any(machine.is_switch[machine.network.src] | machine.is_switch[machine.network.dst]):
        raise ValueError("steps are counted on links from rank to rank; this machine has switches")
    if np.any(machine.group >= 0):
        raise ValueError("steps are counted on links of their own; this machine has groups of links")
    rates = [exact(float(value)) for value in machine.network.bandwidth]
    below = math.lcm(*(rate.denominator for rate in rates))
    unit = Fraction(math.gcd(*(int(rate * below) for rate in rates)), below)
    return [int(rate / unit) for rate in rates]


def chunks_of_a_block(instance: FabricInstance, chunks: int) -> int:
    """``chunks`` counts as SCCL's C: those of a block, but for alltoall those of all N blocks that a rank sends, the
    one to itself included. Raises ``ValueError`` for a number that N does not divide, and for a demand."""
    if instance.collective == "demand":
        raise ValueError("steps are counted for blocks of one size; a demand has several")
    if instance.collective != "alltoall":
        return chunks
    share, left = divmod(chunks, len(instance.members))
    if left or not share:
        raise ValueError(f"an alltoall's chunks are those of {len(instance.members)} blocks, and {chunks} are not")
    return share


def check_refutation(instance: FabricInstance, bound: float, certificate: Mapping[str, Any]) -> list[str]:
    """The faults of a record that says of a question (``steps``, ``rounds``, ``chunks``) that counting (``by``) leaves
    it no answer, and nothing of seconds. Raises ``ValueError`` on what is no proof."""
    steps, rounds, chunks = (untrusted.whole(certificate, key, 1, MOST_CHUNKS) for key in ("steps", "rounds", "chunks"))
    if bound != 0:
        return [f"a refutation in steps proves nothing of seconds, the record states {bound:.17g} s"]
    by = untrusted.choice(certificate, "by", *ARGUMENTS)
    fault = fault_of(instance, (steps, rounds, chunks), {**certificate, "argument": by})
    return [f"the refutation is none: {fault}"] if fault else []


def fault_of(instance: FabricInstance, question: Question, certificate: Mapping[str, Any]) -> str | None:
    """What is wrong with the proof that no plan answers the question; None if it proves it. Raises ``ValueError`` on
    what is no proof."""
    steps, rounds, chunks = question
    if not (1 <= steps <= MOST_STEPS and 1 <= rounds <= MOST_CHUNKS and 1 <= chunks <= MOST_CHUNKS):
        raise ValueError("a question's steps, rounds or chunks are out of range")
    if rounds < steps:
        return None
    argument = untrusted.choice(certificate, "argument", *ARGUMENTS)
    fabric = Fabric(instance)
    capacity = capacities(instance)
    copies = chunks_of_a_block(instance, chunks)
    deliveries = list(_deliveries(instance))
    if not deliveries:
        raise ValueError("nothing has to move")
    if argument == "hops":
        one = np.ones(len(fabric.tail), dtype=np.int64)
        farthest = max(_farthest(fabric, one, origins, goals) for origins, goals in deliveries)
        return None if farthest > steps else f"no goal is farther than {farthest} links"
    if argument in ("timed", "lengths"):
        for needed, carried in _timed(instance, fabric, certificate, question, argument == "lengths"):
            if needed <= carried:
                return f"its links carry {carried}, and only {needed} have to pass them ({argument})"
        return None
    if argument == "joining":
        return _joining(fabric, certificate, question, capacity, deliveries)
    price, pays = _priced(instance, fabric, certificate, deliveries)
    served = [delivery for delivery, pay in zip(deliveries, pays, strict=True) if pay]
    needed = copies * sum(pays)
    carried = _carried(fabric, price, capacity, served, steps, rounds)
    return None if needed > carried else f"its links carry {carried}, and only {needed} have to pass them ({argument})"


def rounds_a_chunk(instance: FabricInstance, certificate: Mapping[str, Any]) -> Fraction:
    """The rounds that a chunk (as SCCL counts) costs at least in any number of steps, by ``paths`` or ``parts``; 0 for
    the others. Raises ``ValueError`` on what is no proof."""
    if untrusted.choice(certificate, "argument", *ARGUMENTS) in ("hops", "timed", "lengths", "joining"):
        return Fraction(0)
    price, pays = _priced(instance, Fabric(instance), certificate, list(_deliveries(instance)))
    unit = len(instance.members) if instance.collective == "alltoall" else 1
    room = sum(p * c for p, c in zip(price.tolist(), capacities(instance), strict=True))
    return Fraction(sum(pays), room * unit) if room else Fraction(0)


def _priced(
    instance: FabricInstance, fabric: Fabric, certificate: Mapping[str, Any], deliveries: list[Any]
) -> tuple[IntArray, list[int]]:
    """The price of every link, and what a chunk of every block pays at least."""
    if certificate["argument"] == "paths":
        price = untrusted.whole_numbers(certificate, "length", 0, HIGHEST_PRICE, (len(fabric.tail),))
        return price, [_farthest(fabric, price, origins, goals) for origins, goals in deliveries]
    part = untrusted.whole_numbers(certificate, "part", 0, fabric.nodes - 1, (fabric.nodes,))
    price = (part[fabric.tail] != part[fabric.head]).astype(np.int64)
    return price, _crossings(instance, fabric, part)


def _deliveries(instance: FabricInstance) -> Any:
    """Origins and goals of every block: who has it (or part of the sum) at first, and who wants it."""
    everyone = list(instance.members)
    blocks = instance.blocks
    for origin, goal in zip(blocks.origin.tolist(), blocks.goal.tolist(), strict=True):
        yield (everyone if origin == EVERYONE else [origin]), (everyone if goal == EVERYONE else [goal])


def _farthest(fabric: Fabric, price: IntArray, origins: list[int], goals: list[int]) -> int:
    """The greatest distance from an origin to a goal."""
    if len(origins) > 1 and len(goals) == 1:
        fabric, origins, goals = Fabric(fabric.instance, not fabric.is_reversed), goals, origins
    most = max(int(fabric.reach(fabric.mask([u]), price)[goals].max()) for u in origins)
    if most >= UNREACHABLE:
        raise ValueError("a goal cannot be reached at all")
    return most


def _crossings(instance: FabricInstance, fabric: Fabric, part: IntArray) -> list[int]:
    """How often a chunk of every block goes from part to part at least."""
    count = len(np.unique(part))
    if len(np.unique(part[fabric.members])) < count:
        raise ValueError("a part has no member")
    pays = []
    for origin, goal in zip(instance.blocks.origin.tolist(), instance.blocks.goal.tolist(), strict=True):
        if origin == EVERYONE and goal == EVERYONE:
            pays.append(2 * (count - 1))
        elif EVERYONE in (origin, goal):
            pays.append(count - 1)
        else:
            pays.append(int(part[origin] != part[goal]))
    return pays


def _carried(fabric: Fabric, price: IntArray, capacity: list[int], served: list[Any], steps: int, rounds: int) -> int:
    """Price times chunks that the links carry, each in the steps in which something useful can cross it."""
    one = np.ones(len(fabric.tail), dtype=np.int64)
    back = Fabric(fabric.instance, not fabric.is_reversed)
    origins = sorted({u for sources, _ in served for u in sources})
    goals = sorted({v for _, targets in served for v in targets})
    if not origins:
        return 0
    before = fabric.reach(fabric.mask(origins), one)[fabric.tail].tolist()
    after = back.reach(back.mask(goals), one)[fabric.head].tolist()
    total = 0
    for p, c, h, g in zip(price.tolist(), capacity, before, after, strict=True):
        if h + g < steps:
            total += p * c * (rounds - h - g)
    return total


def _timed(
    instance: FabricInstance,
    fabric: Fabric,
    certificate: Mapping[str, Any],
    question: Question,
    each: bool,
) -> list[tuple[int, int]]:
    """What chunks pay and what the links earn, both ways round: in the one case of all lengths of the steps, or with
    ``each`` in every one of them."""
    steps, rounds, chunks = question
    cases = math.comb(rounds - 1, steps - 1) if each else 1
    if cases > MOST_CASES:
        raise ValueError(f"{steps} steps can be cut from {rounds} rounds in more than {MOST_CASES} ways")
    deliveries = [
        (b, u, v) for b, (origins, goals) in enumerate(_deliveries(instance)) for u in origins for v in goals if u != v
    ]
    price = untrusted.whole_numbers(certificate, "price", 0, HIGHEST_PRICE, (None, len(fabric.tail), steps))
    if max(price.size, len(instance.blocks) * len(fabric.tail) * steps) > MOST_PRICES:
        raise ValueError(f"{price.size} prices")
    tables, left = divmod(len(price), cases)
    if left or not tables:
        raise ValueError(f"{len(price)} tables of prices for {cases} cases")
    of = untrusted.whole_numbers(certificate, "of", 0, tables - 1, (len(deliveries),)).tolist()
    capacity = np.array(capacities(instance), dtype=np.int64)
    copies = chunks_of_a_block(instance, chunks)
    found = []
    for case, lengths in enumerate(_lengths(steps, rounds) if each else [None]):
        pays, worth = _pays_and_worth(instance, fabric, deliveries, of, price[case * tables : (case + 1) * tables])
        earned = [untrusted.exact_dot(worth[:, s], capacity) for s in range(steps)]
        if lengths is None:
            found.append((copies * pays, sum(earned) + (rounds - steps) * max(earned)))
        else:
            found.append((copies * pays, sum(n * amount for n, amount in zip(lengths, earned, strict=True))))
    return found


def _joining(
    fabric: Fabric, certificate: Mapping[str, Any], question: Question, capacity: list[int], deliveries: list[Any]
) -> str | None:
    """None if in every way to cut the rounds each set of crossings that one chunk may have costs more than its share of
    what the links earn; links between the same ranks cost as much as the cheapest of them."""
    steps, rounds, chunks = question
    cases = math.comb(rounds - 1, steps - 1)
    if cases > MOST_CASES or len(deliveries) != 1:
        raise ValueError(f"{cases} ways to cut {rounds} rounds into {steps} steps, {len(deliveries)} blocks")
    price = untrusted.whole_numbers(certificate, "price", 0, HIGHEST_PRICE, (cases, len(fabric.tail), steps))
    [(origins, goals)] = deliveries
    ends = list(zip(fabric.tail.tolist(), fabric.head.tolist(), strict=True))
    pairs = sorted(set(ends))
    for table, lengths in zip(price.tolist(), _lengths(steps, rounds), strict=True):
        earned = sum(
            r * c * p for c, row in zip(capacity, table, strict=True) for r, p in zip(lengths, row, strict=True)
        )
        cheapest = [
            [min(row[s] for row, end in zip(table, ends, strict=True) if end == pair) for pair in pairs]
            for s in range(steps)
        ]
        if not JoiningSets(pairs, cheapest, origins, goals).cost_more(earned // chunks):
            return f"a chunk may pay {earned // chunks}, its share of {earned}, in steps of {lengths} rounds (joining)"
    return None


def _lengths(steps: int, rounds: int) -> Iterator[tuple[int, ...]]:
    """All ways to cut the rounds into steps of one or more, in lexicographic order of where they are cut."""
    for cuts in combinations(range(1, rounds), steps - 1):
        yield tuple(b - a for a, b in zip((0, *cuts), (*cuts, rounds), strict=True))


def _pays_and_worth(
    instance: FabricInstance, fabric: Fabric, deliveries: list[tuple[int, int, int]], of: list[int], price: IntArray
) -> tuple[int, IntArray]:
    """What one chunk of every block pays, and the price of every link in every step."""
    distance: dict[tuple[int, int], IntArray] = {}
    pays = 0
    own = np.zeros((len(instance.blocks), *price.shape[1:]), dtype=np.int64)
    for (b, u, v), table in zip(deliveries, of, strict=True):
        if (table, u) not in distance:
            distance[table, u] = _in_steps(fabric, u, price[table])
        far = int(distance[table, u][v])
        if far >= UNREACHABLE:
            raise ValueError(f"rank {v} is too many links from rank {u}: that is the argument hops")
        pays += far
        own[b] += price[table]
    worth: IntArray = own.max(axis=0)
    return pays, worth


def _in_steps(fabric: Fabric, origin: int, price: IntArray) -> IntArray:
    """The least price of a way from the origin to every node, one link a step at most."""
    found = np.where(fabric.mask([origin]), 0, UNREACHABLE)
    for s in range(price.shape[1]):
        after = found.copy()
        there = found[fabric.tail] < UNREACHABLE
        np.minimum.at(after, fabric.head[there], found[fabric.tail[there]] + price[there, s])
        found = after
    return found
