"""Replay explicit circuits and recount plans from the instance alone, with the physical limits."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from synth.arrays import BoolArray, Int32Array, IntArray
from synth.kernels import jit
from synth.method import Verdict
from synth_models.optree.check.counts import count_steps
from synth_models.optree.instance import OpTreeInstance
from synth_models.optree.solution import COLUMNS, Circuits, Solution, StepCount

MAX_FAULTS = 20
MOST_SLOTS = 2**30  # links x directions x wavelengths that a replay keeps track of, 4 bytes each
_RANGE, _SELF, _LONG, _UNHELD, _CLASH, _OFF, _END = range(7)


def check_solution(instance: OpTreeInstance, solution: Solution) -> Verdict:
    """The number of steps as value, recomputed; faults of the schedule; time and physical limits as facts."""
    if isinstance(solution, StepCount):
        return _check_count(instance, solution)
    return _check_circuits(instance, solution)


def _check_count(instance: OpTreeInstance, plan: StepCount) -> Verdict:
    facts: dict[str, Any] = {"replayed": False, "counted": plan.algorithm}
    if instance.grid is not None:
        return Verdict(None, facts, [f"{plan.algorithm} counts the steps of a ring, this is a grid"])
    try:
        counted = count_steps(instance.nodes, instance.wavelengths, plan.algorithm, plan.numbers)
    except ValueError as error:
        return Verdict(None, facts, [str(error)])
    faults = []
    if counted.longest > instance.max_hops:
        faults.append(f"{plan.algorithm} needs circuits of {counted.longest} hops: {_limit(instance)}")
    facts |= counted.facts
    facts |= {"steps": counted.steps, "seconds": counted.steps * instance.step_seconds}
    facts |= physical_facts(instance, counted.longest)
    return Verdict(None if faults else float(counted.steps), facts, faults)


def physical_facts(instance: OpTreeInstance, hops: int) -> dict[str, Any]:
    """Longest path and, where the instance has the parameters, its loss, laser power, SNR and bit error rate."""
    interfaces = hops + 1
    facts: dict[str, Any] = {"longest_circuit_hops": hops, "path_interfaces": interfaces}
    if instance.power is not None:
        facts["insertion_loss_db"] = round(instance.power.loss_db(interfaces), 9)
        facts["laser_needed_dbm"] = round(instance.power.laser_needed_dbm(interfaces), 9)
    if instance.crosstalk is not None:
        snr = instance.crosstalk.snr_db(interfaces)
        facts["worst_snr_db"] = snr if np.isfinite(snr) else None
        facts["worst_ber"] = instance.crosstalk.ber(interfaces)
    return facts


def _limit(instance: OpTreeInstance) -> str:
    return f"the {instance.limiting_budget} allows {instance.max_hops}"


def _check_circuits(instance: OpTreeInstance, circuits: Circuits) -> Verdict:
    nodes = instance.nodes
    facts: dict[str, Any] = {"steps": circuits.steps, "circuits": len(circuits)}
    if nodes > 20_000:
        return Verdict(None, facts, ["explicit circuits are replayed up to 20000 nodes"])
    columns: list[Int32Array] = [getattr(circuits, name) for name in COLUMNS]
    if np.any(circuits.step[1:] < circuits.step[:-1]):  # not by differences: those of 32 bits wrap
        order = np.argsort(circuits.step, kind="stable")
        columns = [column[order] for column in columns]
    used = min(instance.wavelengths, int(circuits.wavelength.max(initial=0)) + 1)
    slots = 2 * len(instance.dimensions) * nodes * used
    if slots > MOST_SLOTS:
        words = f"explicit circuits are replayed up to {MOST_SLOTS} wavelengths of links, not {slots}"
        return Verdict(None, facts, [words])
    lines = _Lines(*(np.array(column, dtype=np.int64) for column in zip(*instance.dimensions, strict=True)))
    limits = instance.wavelengths, max(1, used), instance.max_hops, MAX_FAULTS
    kinds, rows, details, count, held, longest, hops_sum = _replay(nodes, lines, *limits, _Rows(*columns))
    faults = [
        _words(instance, int(kind), [int(column[row]) for column in columns], int(detail))
        for kind, row, detail in zip(kinds, rows, details, strict=True)
    ]
    if count > len(faults):
        faults.append(f"and {count - len(faults)} more faults")
    missing = np.argwhere(~held)
    faults += [f"at the end node {v} misses the item of node {k}" for k, v in missing[:MAX_FAULTS].tolist()]
    if len(missing) > MAX_FAULTS:
        faults.append(f"and {len(missing) - MAX_FAULTS} more missing items")
    if faults:
        return Verdict(None, facts, faults)
    steps = circuits.steps
    facts["redundant_circuits"] = len(circuits) - nodes * (nodes - 1)
    facts["wavelength_use"] = round(hops_sum / (instance.directed_links * instance.wavelengths * steps), 6)
    facts["seconds"] = steps * instance.step_seconds
    return Verdict(float(steps), facts | physical_facts(instance, int(longest)))


def _words(instance: OpTreeInstance, kind: int, row: list[int], detail: int) -> str:
    step, src, dst, direction, wavelength, origin = row
    turn = {0: "clockwise", 1: "counterclockwise"}.get(direction, f"direction {direction}")
    if instance.grid is not None:
        turn = f"direction {direction}"
    where = f"step {step}: circuit {src}->{dst} {turn}, wavelength {wavelength}, item {origin}"
    what = {
        _RANGE: "a number is out of range",
        _SELF: "starts and ends at the same node",
        _LONG: f"{detail} hops, but {_limit(instance)}",
        _UNHELD: f"node {src} does not hold the item before the step",
        _OFF: "the two ends do not lie on one ring or line of that dimension",
        _END: "a line does not go on beyond its end",
        _CLASH: f"the wavelength is already used on the link at node {detail} in this step",
    }
    return f"{where}: {what[kind]}"


class _Lines(NamedTuple):
    """The dimensions, shape (dimensions,) each: ``side`` nodes on a ``ring`` (1) or line (0), ``stride`` apart."""

    side: IntArray
    stride: IntArray
    ring: IntArray


class _Rows(NamedTuple):
    """Circuits sorted by step, shape (circuits,) each."""

    step: Int32Array
    src: Int32Array
    dst: Int32Array
    direction: Int32Array
    wavelength: Int32Array
    origin: Int32Array


@jit
def _replay(
    nodes: int, lines: _Lines, wavelengths: int, used: int, max_hops: int, limit: int, circuits: _Rows
) -> tuple[IntArray, IntArray, IntArray, int, BoolArray, int, int]:
    """Replay circuits: fault kinds, rows and details (at most ``limit``), their true count, who holds what at the end
    (shape (items, nodes)), the longest circuit and the sum of all hops. A link is named by its node lower down;
    wavelengths from ``used`` on are those of no circuit."""
    sides, strides, rings = lines.side, lines.stride, lines.ring
    step, src, dst = circuits.step, circuits.src, circuits.dst
    direction, wavelength, origin = circuits.direction, circuits.wavelength, circuits.origin
    kinds, rows, details = np.empty(limit, np.int64), np.empty(limit, np.int64), np.empty(limit, np.int64)
    found = 0
    held = np.zeros((nodes, nodes), np.bool_)
    for v in range(nodes):
        held[v, v] = True
    taken = np.zeros((2 * len(sides), nodes, used), np.int32)  # last step in which a wavelength of a link was used
    longest = 0
    hops_sum = 0
    begin, count = 0, len(step)
    usable = np.zeros(count, np.bool_)
    while begin < count:
        end = begin
        while end < count and step[end] == step[begin]:
            i = end
            end += 1
            kind, detail = -1, 0
            there = 0 <= src[i] < nodes and 0 <= dst[i] < nodes and 0 <= origin[i] < nodes
            turns = 0 <= direction[i] < 2 * len(sides)
            if step[i] < 1 or not there or not turns or not 0 <= wavelength[i] < wavelengths:
                kind = _RANGE
            elif src[i] == dst[i]:
                kind = _SELF
            else:
                side, stride = sides[direction[i] // 2], strides[direction[i] // 2]
                down = direction[i] % 2 == 1
                place, goal = src[i] // stride % side, dst[i] // stride % side
                base = src[i] - place * stride  # the first node of its ring or line
                hops = place - goal if down else goal - place
                if base + goal * stride != dst[i]:
                    kind = _OFF
                elif hops < 0 and not rings[direction[i] // 2]:
                    kind = _END
                if kind < 0:
                    hops = hops % side
                    if hops > max_hops:
                        kind, detail = _LONG, hops
                    elif not held[origin[i], src[i]]:
                        kind = _UNHELD
                    for _ in range(hops):
                        if down:
                            place = place - 1 if place > 0 else side - 1
                        link = base + place * stride
                        if taken[direction[i], link, wavelength[i]] == step[i] and kind < 0:
                            kind, detail = _CLASH, link
                        taken[direction[i], link, wavelength[i]] = step[i]
                        if not down:
                            place = place + 1 if place < side - 1 else 0
                    longest = max(longest, hops)
                    hops_sum += hops
                    usable[i] = kind != _UNHELD
            if kind >= 0:
                if found < limit:
                    kinds[found], rows[found], details[found] = kind, i, detail
                found += 1
        for i in range(begin, end):  # arrivals count from the next step on
            if usable[i]:
                held[origin[i], dst[i]] = True
        begin = end
    shown = min(found, limit)
    return kinds[:shown], rows[:shown], details[:shown], found, held, longest, hops_sum
