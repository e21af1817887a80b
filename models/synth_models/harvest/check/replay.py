"""The check of the harvest family: everything is recomputed from the topologies and flows of the schedule.

Imports no method. A topology's links respect the ports of every GPU; the flow of every pair starts at
its source with share 1, is conserved hop by hop and ends at its destination; the time of a step is alpha + hop delay *
longest route + bytes * (largest sum of shares times volumes per link) / port bandwidth; what a change of the link
counts between two steps costs is counted in :mod:`synth_models.harvest.check.changes`, the first topology is free.

Shares are floats, so 1 and conservation hold up to rounding: of every pair the *sum* of all that is wrong, at its
source and at every GPU after every hop, may be 1e-9 at most. At least 1 minus that sum really goes from the source to
the destination (split the flow into routes: what leaves the source arrives or is one of the losses). Scaled up until
all of the pair's bytes arrive, it loads no link more than the stated shares over 1 minus that sum, and these are what
the time is computed from (from 1e-14 on): no schedule gains by what it loses. Sums are exact
(:mod:`synth_models.harvest.check.exact_shares`); a share times a volume is rounded once.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import fsum
from typing import Any

import numpy as np

from synth.arrays import FloatArray, IntArray
from synth.method import Verdict
from synth_models.harvest.check.changes import changes_of
from synth_models.harvest.check.exact_shares import BITS, CUT_OFF, magnitude, parts_of, sums, value
from synth_models.harvest.instance import HarvestInstance
from synth_models.harvest.solution import Schedule

TOLERANCE = 1e-9  # of a pair's bytes, over all of its way
ROUNDING = 1e-14  # below it, what is wrong is how floats add up, and changes no time
MAX_FAULTS = 20
LARGEST_KEY = 2**62

Flow = tuple[IntArray, IntArray, IntArray, IntArray, FloatArray]  # pair, hop, src, dst, share


@dataclass(frozen=True)
class StepTimes:
    """Seconds of every step, shape (steps,), split by cause, with what they follow from.

    ``reconfiguration[i]`` is what precedes step i and is not hidden. ``hops`` is the longest route, ``unit_load`` the
    largest sum of pairs' shares times volumes on one link, ``theta`` = largest row or column sum of the step's matrix
    of volumes / (ports * unit_load).
    """

    alpha: FloatArray
    delta: FloatArray
    bandwidth: FloatArray
    reconfiguration: FloatArray
    hops: IntArray
    unit_load: FloatArray
    theta: FloatArray

    @property
    def total(self) -> float:
        """Completion time in seconds."""
        return fsum(np.concatenate([self.alpha, self.delta, self.bandwidth, self.reconfiguration]).tolist())


def check_schedule(instance: HarvestInstance, schedule: Schedule) -> Verdict:
    """Replay the schedule; the value is the completion time in seconds."""
    faults = [*_topology_faults(instance, schedule), *_shape_faults(instance, schedule)]
    if faults:
        return Verdict(None, {}, faults[:MAX_FAULTS])
    for step in range(len(instance.steps)):
        faults += _flow_faults(instance, schedule, step)
        if len(faults) >= MAX_FAULTS:
            break
    if faults:
        return Verdict(None, {}, faults[:MAX_FAULTS])
    times = step_times(instance, schedule)
    if not np.isfinite(times.total):
        return Verdict(None, {}, ["the schedule's time is beyond the range of a float"])
    changes = changes_of(instance, schedule)
    facts: dict[str, Any] = {
        "steps": len(instance.steps),
        "reconfigurations": int(changes.differ.sum()),
        "alpha_s": fsum(times.alpha.tolist()),
        "delta_s": fsum(times.delta.tolist()),
        "bandwidth_s": fsum(times.bandwidth.tolist()),
        "reconfiguration_s": fsum(times.reconfiguration.tolist()),
        "longest_route": int(times.hops.max()),
        "lowest_theta": float(times.theta.min()),
        "flow_rows": len(schedule.share),
    }
    if instance.delay_varies or instance.overlap.any():
        facts |= {
            "circuits_set_up": int(changes.circuits.sum()),
            "ports_changed": int(changes.ports.sum()),
            "hidden_s": fsum((changes.seconds - changes.paid).tolist()),
        }
    return Verdict(times.total, facts)


def step_times(instance: HarvestInstance, schedule: Schedule) -> StepTimes:
    """Times of every step of a schedule whose flows are right, with each pair's shares scaled so that all its bytes
    arrive."""
    steps = len(instance.steps)
    hops, load, theta = np.zeros(steps, dtype=np.int64), np.zeros(steps), np.zeros(steps)
    for step in range(steps):
        rows = _rows(schedule, step)
        hops[step] = schedule.hop[rows].max() + 1
        pairs = instance.pairs[step]
        wrong = float(_violations(instance.gpus, pairs, _flow(schedule, step))[0].max())
        load[step] = _largest_load(instance, schedule, step) / (1 - wrong if wrong > ROUNDING else 1)
        volume = instance.demands[step][:, 2]
        largest = max(float(np.bincount(pairs[:, side], volume).max()) for side in (0, 1))
        theta[step] = largest / (instance.ports * load[step])
    return StepTimes(
        np.full(steps, instance.alpha),
        (instance.hop_delay * hops).astype(np.float64),
        instance.bytes_per_pair * load / instance.port_bandwidth,
        changes_of(instance, schedule).paid,
        hops,
        load,
        theta,
    )


def _rows(schedule: Schedule, step: int) -> slice:
    return slice(int(schedule.flow_start[step]), int(schedule.flow_start[step + 1]))


def _flow(schedule: Schedule, step: int) -> Flow:
    rows = _rows(schedule, step)
    return schedule.pair[rows], schedule.hop[rows], schedule.src[rows], schedule.dst[rows], schedule.share[rows]


def _topology_faults(instance: HarvestInstance, schedule: Schedule) -> list[str]:
    faults, gpus = [], instance.gpus
    for index, links in enumerate(schedule.topologies):
        where = f"topology {index}"
        if links.ndim != 2 or links.shape[1] != 3:
            faults.append(f"{where}: a link is source, destination, count")
            continue
        src, dst, count = links.T
        if np.any((src < 0) | (src >= gpus) | (dst < 0) | (dst >= gpus)):
            faults.append(f"{where}: a link ends at a GPU that does not exist")
            continue
        if np.any(count < 1) or np.any(count > instance.ports):
            faults.append(f"{where}: a link count lies outside 1..{instance.ports}")
            continue
        if np.any(src == dst):
            faults.append(f"{where}: a link leads from a GPU to itself")
        if len(np.unique(src * gpus + dst)) < len(links):
            faults.append(f"{where}: the same two ends stand twice")
        for word, ends in (("leave", src), ("enter", dst)):
            degree = np.zeros(gpus, dtype=np.int64)
            np.add.at(degree, ends, count)
            if degree.max(initial=0) > instance.ports:
                gpu = int(degree.argmax())
                faults.append(f"{where}: {degree[gpu]} links {word} GPU {gpu}, which has {instance.ports} ports")
    return faults


def _shape_faults(instance: HarvestInstance, schedule: Schedule) -> list[str]:
    steps, of_step = len(instance.steps), schedule.topology_of_step
    if len(of_step) != steps or len(schedule.flow_start) != steps + 1:
        return [f"the schedule is for {len(of_step)} steps, the instance has {steps}"]
    if np.any((of_step < 0) | (of_step >= len(schedule.topologies))):
        return ["a step names a topology that does not exist"]
    begins = schedule.flow_start
    columns = {len(column) for column in (schedule.pair, schedule.hop, schedule.src, schedule.dst, schedule.share)}
    if len(columns) > 1 or begins[0] != 0 or np.any(np.diff(begins) < 0) or begins[-1] not in columns:
        return ["the flow rows are not cut into consecutive parts, one a step"]
    return []


def _flow_faults(instance: HarvestInstance, schedule: Schedule, step: int) -> list[str]:
    gpus, pairs = instance.gpus, instance.pairs[step]
    pair, hop, src, dst, share = _flow(schedule, step)
    where = f"step {step}"
    if not len(pair):
        return [f"{where}: no pair is routed"]
    if np.any((pair < 0) | (pair >= len(pairs))) or np.any((hop < 0) | (hop > len(pair))):
        return [f"{where}: a flow row names a pair or hop that does not exist"]
    if len(pairs) * (int(hop.max()) + 2) * gpus > LARGEST_KEY:
        return [f"{where}: a route of {int(hop.max()) + 1} hops is longer than the check can follow"]
    if np.any((src < 0) | (src >= gpus) | (dst < 0) | (dst >= gpus)):
        return [f"{where}: a flow row ends at a GPU that does not exist"]
    if not np.all(np.isfinite(share)) or np.any(share <= 0) or np.any(share > 1 + TOLERANCE):
        return [f"{where}: a share is not in (0, 1]"]
    links = schedule.topologies[schedule.topology_of_step[step]]
    off = np.flatnonzero(~np.isin(src * gpus + dst, links[:, 0] * gpus + links[:, 1]))
    if len(off):
        return [f"{where}: pair {pair[off[0]]} uses {src[off[0]]} to {dst[off[0]]}, which is no link of its topology"]
    return _conservation_faults(where, gpus, pairs, (pair, hop, src, dst, share))


def _conservation_faults(where: str, gpus: int, pairs: IntArray, flow: Flow) -> list[str]:
    """What reaches a GPU in a hop leaves it in the next one, except at the pair's destination, where it stays."""
    pair, hop, src, dst, share = flow
    first = hop == 0
    astray = np.flatnonzero(first & (src != pairs[pair, 0]))
    if len(astray):
        number = int(pair[astray[0]])
        return [f"{where}: pair {number} starts at {src[astray[0]]}, its source is {pairs[number, 0]}"]
    left = np.flatnonzero(src == pairs[pair, 1])
    if len(left):
        return [f"{where}: pair {pair[left[0]]} leaves its destination {src[left[0]]} again"]
    wrong, sent, places, lost = _violations(gpus, pairs, flow)
    off = np.flatnonzero(np.abs(sent - 1) > TOLERANCE)
    if len(off):
        return [f"{where}: the shares of pair {off[0]} sum to {sent[off[0]]:.12g}, not 1"]
    off = np.flatnonzero(lost > TOLERANCE)
    if len(off):
        place, gpu = divmod(int(places[off[0]]), gpus)
        number, layer = divmod(place, int(hop.max()) + 2)
        return [
            f"{where}: pair {number}: {lost[off[0]]:.3g} reaches GPU {gpu} in {layer} hops and does not go on, or "
            "goes on and has not reached it"
        ]
    off = np.flatnonzero(wrong > TOLERANCE)
    if len(off):
        number = int(off[0])
        arrives = float(share[(pair == number) & (dst == pairs[number, 1])].sum())
        return [
            f"{where}: pair {number}: {wrong[number]:.3g} of its bytes are lost or appear on the way in all, "
            f"{arrives:.12g} of them arrive"
        ]
    return []


def _violations(gpus: int, pairs: IntArray, flow: Flow) -> tuple[FloatArray, FloatArray, IntArray, FloatArray]:
    """All that is wrong with every pair's flow, and its parts: what every pair sends, and for every place (pair, hops,
    GPU) of the flow, as one number, how much more or less goes on than has reached it."""
    pair, hop, src, dst, share = flow
    first, inflow = hop == 0, dst != pairs[pair, 1]
    parts = parts_of(share)
    total = sums(parts[:, first], pair[first], len(pairs))
    total[0] -= 1 << BITS  # of 1
    wrong, sent = magnitude(total), 1 + value(total)
    layers = int(hop.max()) + 2
    keys = np.concatenate(
        [((pair * layers + hop + 1) * gpus + dst)[inflow], ((pair * layers + hop) * gpus + src)[~first]]
    )
    places, at = np.unique(keys, return_inverse=True)
    lost = magnitude(sums(np.concatenate([parts[:, inflow], -parts[:, ~first]], axis=1), at, len(places)))
    wrong += np.bincount(places // (layers * gpus), lost, len(pairs)) + np.bincount(pair, None, len(pairs)) * CUT_OFF
    return wrong, sent, places, lost


def _largest_load(instance: HarvestInstance, schedule: Schedule, step: int) -> float:
    """Largest sum of shares times volumes per parallel link."""
    rows, links = _rows(schedule, step), schedule.topologies[schedule.topology_of_step[step]]
    volume, gpus = instance.demands[step][:, 2], instance.gpus
    unit = 1 << int(volume.max() - 1).bit_length()  # a power of two, so that volumes of it are exact and at most 1
    keys = links[:, 0] * gpus + links[:, 1]
    order = np.argsort(keys)
    at = np.searchsorted(keys[order], schedule.src[rows] * gpus + schedule.dst[rows])
    amount = schedule.share[rows] * (volume / unit)[schedule.pair[rows]]
    loads = value(sums(parts_of(amount), at, len(keys)))
    return float((loads / links[order, 2]).max()) * unit
