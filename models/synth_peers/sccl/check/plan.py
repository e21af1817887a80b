"""The check of a plan in steps: S steps, R rounds, C chunks, replayed as SCCL counts them, in whole numbers.

Rules (Cai et al., PPoPP 2021, section 3): step s has ``rounds[s]`` >= 1 rounds; in it a link of capacity c carries at
most c times that many chunks; all that is sent in a step is what its sender held when the step began, so what arrives
can be sent on from the next one. Capacities and C are those of :mod:`synth_peers.sccl.check.counted_steps`. In a
reduction a send that adds brings the sender's sum as of the beginning of the step, which must have no contribution that
the receiver has or gets in the same step; one that does not add brings a complete sum.

A plan may also say which questions (S, R, C) have no answer. What can be counted is counted again here; what only a
solver said is listed as not verified. Shares no code with what makes plans.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from synth.method import Verdict
from synth.text.untrusted import flags, whole, whole_numbers
from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.problem.blocks import EVERYONE
from synth_models.fabric.solution import Schedule
from synth_peers.sccl.check import counted_steps

MOST_SENDS = 2**24
MOST_ROUNDS = 2**31 - 1
MOST_FAULTS = 10
SOLVER, HOPS, PATHS, PARTS, TIMED, LENGTHS, JOINING = range(7)
_NAMES = {HOPS: "hops", PATHS: "paths", PARTS: "parts", TIMED: "timed", LENGTHS: "lengths", JOINING: "joining"}

Held = dict[tuple[int, int], int]
"""By (piece, rank): the contributions that the rank holds, as bits; 1 for what is no sum."""


def check_plan(instance: FabricInstance, schedule: Schedule) -> Verdict:
    """Replay the plan of a schedule: facts ``steps``, ``rounds``, ``chunks``, ``front`` (other plans beside it),
    ``refuted`` (questions without an answer, and by what). Raises ``ValueError`` on numbers that are no plan. Linear in
    sends and steps."""
    plan = schedule.plan
    rounds = whole_numbers(plan, "rounds", 1, MOST_ROUNDS).tolist()
    chunks = whole(plan, "chunks", 1, counted_steps.MOST_CHUNKS)
    if not 1 <= len(rounds) <= counted_steps.MOST_STEPS:
        raise ValueError(f"a plan of {len(rounds)} steps")
    copies = counted_steps.chunks_of_a_block(instance, chunks)
    faults = list(_cutting_faults(instance, schedule, copies))
    if not faults:
        faults = list(_plan_faults(instance, plan, rounds, schedule.piece_block.tolist()))
    facts: dict[str, Any] = {"steps": len(rounds), "rounds": sum(rounds), "chunks": chunks}
    front, wrong = _front(instance, plan)
    refuted, false, unverified = _claims(instance, plan)
    facts |= {key: found for key, found in (("front", front), ("refuted", refuted)) if found}
    return Verdict(None, facts, [f"plan: {text}" for text in _first(faults) + wrong + false], unverified)


def _first(faults: list[str]) -> list[str]:
    more = len(faults) - MOST_FAULTS
    return [*faults[:MOST_FAULTS], f"and {more} more faults"] if more > 0 else faults


def _plan_faults(
    instance: FabricInstance, plan: Mapping[str, Any], rounds: list[int], block_of: list[int]
) -> Iterator[str]:
    """The faults of one plan, whose chunk i is one of block ``block_of[i]``."""
    if len(block_of) * len(instance.members) > MOST_SENDS:
        raise ValueError(f"a plan of {len(block_of)} chunks for {len(instance.members)} ranks")
    sends = _sends(instance, plan, len(rounds), len(block_of))
    faults = list(_capacity_faults(instance, sends, rounds, counted_steps.capacities(instance)))
    yield from faults if faults else _replay(instance, block_of, sends)


def _front(instance: FabricInstance, plan: Mapping[str, Any]) -> tuple[list[str], list[str]]:
    """The other plans that stand beside: what they are, and their faults. ``front_steps``, ``front_chunks``,
    ``front_sends``: one a plan; ``front_rounds`` one a step; the rest one a send."""
    if "front_steps" not in plan:
        return [], []
    steps = whole_numbers(plan, "front_steps", 1, counted_steps.MOST_STEPS).tolist()
    chunks = whole_numbers(plan, "front_chunks", 1, counted_steps.MOST_CHUNKS, (len(steps),)).tolist()
    sends = whole_numbers(plan, "front_sends", 0, MOST_SENDS, (len(steps),)).tolist()
    rounds = whole_numbers(plan, "front_rounds", 1, MOST_ROUNDS, (sum(steps),)).tolist()
    keys = [key for key in ("step", "piece", "link", "adds") if f"front_{key}" in plan]
    columns = {key: np.asarray(plan[f"front_{key}"]) for key in keys}
    if any(column.shape != (sum(sends),) for column in columns.values()):
        raise ValueError("the front's sends are not as many as it says")
    found, wrong = [], []
    at, first = 0, 0
    for count, number, length in zip(steps, chunks, sends, strict=True):
        copies = counted_steps.chunks_of_a_block(instance, number)
        if copies * len(instance.blocks) > MOST_SENDS:
            raise ValueError(f"a plan of {number} chunks")
        part = {key: column[first : first + length] for key, column in columns.items()}
        own = rounds[at : at + count]
        name = f"{count} steps, {sum(own)} rounds, {number} chunks"
        block_of = np.repeat(np.arange(len(instance.blocks)), copies).tolist()
        wrong += [f"front ({name}): {text}" for text in _first(list(_plan_faults(instance, part, own, block_of)))]
        found.append(name)
        at, first = at + count, first + length
    return found, wrong


def _sends(
    instance: FabricInstance, plan: Mapping[str, Any], steps: int, pieces: int
) -> list[tuple[int, int, int, bool]]:
    """Rows (step, piece, link, adds) in order of steps."""
    machine = instance.machine
    step = whole_numbers(plan, "step", 0, steps - 1)
    count = len(step)
    if count > MOST_SENDS:
        raise ValueError(f"a plan of {count} sends")
    piece = whole_numbers(plan, "piece", 0, max(pieces - 1, 0), (count,))
    link = whole_numbers(plan, "link", 0, max(machine.links - 1, 0), (count,))
    adds = flags(plan, "adds", (count,)) if "adds" in plan else np.zeros(count, dtype=bool)
    if count and not (machine.links and pieces):
        raise ValueError("there are sends but no links or pieces")
    order = np.argsort(step, kind="stable")
    columns = [array[order].tolist() for array in (step, piece, link, adds)]
    return list(zip(*columns, strict=True))


def _cutting_faults(instance: FabricInstance, schedule: Schedule, copies: int) -> Iterator[str]:
    """Blocks that are not cut into that many equal chunks (to the byte)."""
    count = np.bincount(schedule.piece_block, minlength=len(instance.blocks))
    for b in np.flatnonzero(count != copies).tolist():
        yield f"block {b} has {count[b]} chunks, not {copies}"
    most = np.zeros(len(count), dtype=np.int64)
    least = instance.blocks.bytes.copy()
    np.maximum.at(most, schedule.piece_block, schedule.piece_bytes)
    np.minimum.at(least, schedule.piece_block, schedule.piece_bytes)
    for b in np.flatnonzero((most - least > 1) & (count == copies)).tolist():
        yield f"the chunks of block {b} have {least[b]} to {most[b]} bytes: they are not equal"


def _capacity_faults(
    instance: FabricInstance, sends: list[tuple[int, int, int, bool]], rounds: list[int], capacity: list[int]
) -> Iterator[str]:
    carried: dict[tuple[int, int], int] = {}
    for step, _, link, _ in sends:
        carried[step, link] = carried.get((step, link), 0) + 1
    for (step, link), count in carried.items():
        if count > capacity[link] * rounds[step]:
            room = f"capacity {capacity[link]} times {rounds[step]} rounds"
            yield f"step {step + 1}: {_link(instance, link)} carries {count} chunks, more than {room}"


def _replay(instance: FabricInstance, block_of: list[int], sends: list[tuple[int, int, int, bool]]) -> Iterator[str]:
    held, complete = _beginning(instance, block_of)
    tails, heads = instance.machine.network.src.tolist(), instance.machine.network.dst.tolist()
    at = 0
    while at < len(sends):
        step, end = sends[at][0], at
        arriving: list[tuple[int, int, int, bool]] = []
        while end < len(sends) and sends[end][0] == step:
            _, piece, link, adds = sends[end]
            sum_of_all = complete[block_of[piece]]
            what = held.get((piece, tails[link]), 0)
            where = f"step {step + 1}: {_link(instance, link)}"
            if not what:
                yield f"{where} carries piece {piece}, which its sender does not hold by then"
            elif adds and sum_of_all == 1:
                yield f"{where} adds to piece {piece}, which is no sum"
            elif not adds and what != sum_of_all:
                yield f"{where} carries piece {piece} as complete, but its sum is not"
            arriving.append((piece, heads[link], what, adds))
            end += 1
        yield from _arrive(held, arriving, step)
        at = end
    yield from _goal_faults(instance, block_of, held, complete)


def _arrive(held: Held, arriving: list[tuple[int, int, int, bool]], step: int) -> Iterator[str]:
    """Copies replace, sums add up; both at once at one rank would have no order."""
    copied = {(piece, rank): what for piece, rank, what, adds in arriving if not adds}
    for piece, rank, what, adds in arriving:
        if adds and (piece, rank) in copied:
            yield f"step {step + 1}: rank {rank} gets piece {piece} as a copy and to be added at once"
        elif adds and held.get((piece, rank), 0) & what:
            yield f"step {step + 1}: rank {rank} adds a contribution to piece {piece} that it has"
        elif adds:
            held[piece, rank] = held.get((piece, rank), 0) | what
    held.update(copied)


def _beginning(instance: FabricInstance, block_of: list[int]) -> tuple[Held, list[int]]:
    """Who holds which pieces at first, and what the complete sum of every block is."""
    members, blocks = instance.members, instance.blocks
    whole_sum = (1 << len(members)) - 1
    origins = blocks.origin.tolist()
    held: Held = {}
    for piece, block in enumerate(block_of):
        if origins[block] == EVERYONE:
            held.update({(piece, rank): 1 << i for i, rank in enumerate(members)})
        else:
            held[piece, origins[block]] = 1
    return held, [whole_sum if origin == EVERYONE else 1 for origin in origins]


def _goal_faults(instance: FabricInstance, block_of: list[int], held: Held, complete: list[int]) -> Iterator[str]:
    goals = instance.blocks.goal.tolist()
    for piece, block in enumerate(block_of):
        for rank in instance.members if goals[block] == EVERYONE else [goals[block]]:
            if held.get((piece, rank), 0) != complete[block]:
                yield f"end: rank {rank} does not hold piece {piece}" + (" complete" if complete[block] > 1 else "")


def _claims(instance: FabricInstance, plan: Mapping[str, Any]) -> tuple[list[str], list[str], list[str]]:
    """Questions that are said to have no answer: those proven here, the faults, and those that rest on a solver."""
    if "refuted" not in plan:
        return [], [], []
    rows = whole_numbers(plan, "refuted", 0, counted_steps.MOST_CHUNKS, (None, 4)).tolist()
    length = iter(whole_numbers(plan, "refuted_length", 0, counted_steps.HIGHEST_PRICE, (None, instance.machine.links)))
    part = iter(whole_numbers(plan, "refuted_part", 0, instance.machine.nodes - 1, (None, instance.machine.nodes)))
    tables = _tables(instance, plan, [steps for steps, _, _, by in rows if by in (TIMED, LENGTHS, JOINING)])
    proven, wrong, unverified = [], [], []
    for steps, rounds, chunks, by in rows:
        question = f"{steps} steps, {rounds} rounds, {chunks} chunks"
        if by == SOLVER:
            unverified.append(f"that {question} are impossible is the solver's word")
            continue
        if by not in _NAMES:
            raise ValueError(f"refuted holds the unknown argument {by}")
        certificate: dict[str, Any] = {"argument": _NAMES[by]}
        if by == PATHS:
            certificate["length"] = next(length, np.zeros(0, dtype=np.int64))
        elif by == PARTS:
            certificate["part"] = next(part, np.zeros(0, dtype=np.int64))
        elif by in (TIMED, LENGTHS, JOINING):
            certificate |= next(tables)
        fault = counted_steps.fault_of(instance, (steps, rounds, chunks), certificate)
        if fault is None:
            proven.append(f"{question}: {_NAMES[by]}")
        else:
            wrong.append(f"it is not proven that {question} are impossible: {fault}")
    return proven, wrong, unverified


def _tables(instance: FabricInstance, plan: Mapping[str, Any], steps: list[int]) -> Iterator[dict[str, Any]]:
    """The prices in time of every refutation that has some: ``refuted_tables`` says how many tables each has,
    ``refuted_of`` which table each way goes by."""
    if not steps:
        return
    links = instance.machine.links
    counts = whole_numbers(plan, "refuted_tables", 1, counted_steps.MOST_PRICES, (len(steps),)).tolist()
    price = np.asarray(plan["refuted_price"])
    which = np.asarray(plan["refuted_of"])
    if max(steps) > counted_steps.MOST_STEPS or price.ndim != 1 or which.ndim != 1 or len(which) % len(steps):
        raise ValueError("the prices of the refutations have no shape")
    ways, at = len(which) // len(steps), 0
    for k, (count, length) in enumerate(zip(counts, steps, strict=True)):
        size = count * links * length
        if at + size > len(price):
            raise ValueError("there are fewer prices than the refutations need")
        yield {
            "price": price[at : at + size].reshape(count, links, length),
            "of": which[k * ways : (k + 1) * ways],
        }
        at += size


def _link(instance: FabricInstance, link: int) -> str:
    net = instance.machine.network
    return f"link {link} ({net.src[link]}->{net.dst[link]})"
