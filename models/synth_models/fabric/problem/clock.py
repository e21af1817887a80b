"""Ticks: the unit of time of a schedule, chosen so that an instance's durations are whole numbers where they can be."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from synth.arrays import FloatArray, IntArray
from synth.errors import UnsupportedError
from synth_models.fabric.problem.exact import exact
from synth_models.fabric.problem.machine import Machine

ROOM = 2**60  # ticks that the longest schedule of ours may take
COARSEST = 10**9  # ticks a second at least, where the time allows it


def ticks_per_second(machine: Machine, seconds: float) -> int:
    """Ticks a second under which every latency, and every whole number of bytes on every link, takes whole ticks, if
    a schedule of ``seconds`` then still fits; otherwise the finest power of two that fits. Those of a machine that has
    a clock (``machine.ticks_per_s``), if that fits. Raises :class:`UnsupportedError` for a schedule of more than 36
    years."""
    most = int(Fraction(ROOM) / max(Fraction(seconds), Fraction(1)))
    if most < COARSEST:
        raise UnsupportedError(f"a schedule of {seconds:.3g} s is longer than any clock here runs (36 years)")
    if machine.ticks_per_s is not None and machine.ticks_per_s <= most:
        return machine.ticks_per_s
    ticks = _whole_for_all(machine)
    return ticks if ticks <= most else 2 ** (most.bit_length() - 1)


def suits(machine: Machine, ticks_per_s: int) -> bool:
    """Whether under this clock every latency, and every number of bytes on every link, takes whole ticks."""
    return ticks_per_s % _whole_for_all(machine) == 0


def _whole_for_all(machine: Machine) -> int:
    """The least number of ticks a second under which every latency, and every number of bytes on every link, takes
    whole ticks."""
    net, ticks = machine.network, 1
    rates = machine.abilities.add_rate if machine.stated is not None else net.bandwidth[:0]
    for bandwidth in np.unique(np.concatenate([net.bandwidth, rates[np.isfinite(rates)]])):
        ticks = math.lcm(ticks, exact(float(bandwidth)).numerator)
    for latency in np.unique(net.latency):
        ticks = math.lcm(ticks, exact(float(latency)).denominator)
    return ticks


def latencies(machine: Machine, ticks_per_s: int) -> IntArray:
    """Latency of every link in ticks, rounded up, shape (links,); at most :data:`ROOM`, as :func:`durations`."""
    return _by_value(machine.network.latency, lambda value: min(_ceil(exact(value) * ticks_per_s), ROOM))


def durations(machine: Machine, ticks_per_s: int, size: int) -> IntArray:
    """Ticks for which ``size`` bytes occupy every link, rounded up, shape (links,); :data:`ROOM` at most, which no
    link that a schedule uses reaches if its clock was chosen for it."""
    return _by_value(machine.network.bandwidth, lambda value: ticks_for(size, ticks_per_s, value))


def duration_table(machine: Machine, ticks_per_s: int, sizes: IntArray) -> tuple[IntArray, IntArray]:
    """Ticks per distinct bandwidth and distinct size, shape (bandwidths, sizes), and the bandwidth's row of every
    link, shape (links,); ``sizes`` are the distinct sizes in bytes. As :func:`durations`."""
    values, row = np.unique(machine.network.bandwidth, return_inverse=True)
    ticks = [_durations(sizes, ticks_per_s, rate) for rate in map(exact, values.tolist())]
    return np.array(ticks, dtype=np.int64).reshape(len(values), len(sizes)), row.reshape(-1).astype(np.int64)


def _durations(sizes: IntArray, ticks_per_s: int, rate: Fraction) -> IntArray:
    """Ticks for which each size takes a rate; at once where a byte takes whole ticks."""
    each, rest = divmod(ticks_per_s * rate.denominator, rate.numerator)
    if not rest and each * int(sizes.max(initial=1)) <= ROOM:
        return sizes * each
    return np.array([_ticks(n, ticks_per_s, rate) for n in sizes.tolist()], dtype=np.int64)


def _by_value(values: FloatArray, ticks: object) -> IntArray:
    assert callable(ticks)
    distinct, inverse = np.unique(values, return_inverse=True)
    found = np.array([ticks(float(value)) for value in distinct], dtype=np.int64)
    return found[inverse.reshape(-1)] if len(found) else np.zeros(0, dtype=np.int64)


def ticks_for(size: int, ticks_per_s: int, bandwidth: float) -> int:
    """Ticks for which so many bytes take ``bandwidth`` bytes/s, rounded up; :data:`ROOM` at most."""
    return _ticks(size, ticks_per_s, exact(bandwidth))


def _ticks(size: int, ticks_per_s: int, rate: Fraction) -> int:
    return min(-(-size * ticks_per_s * rate.denominator // rate.numerator), ROOM)


def _ceil(value: Fraction) -> int:
    return -(-value.numerator // value.denominator)
