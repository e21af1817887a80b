"""Logs with one hidden cause and 5 % noise, drawn from the statement of :mod:`synth.explanation.ways`: the sum and the
maximum are taken here once more, size by size, from what each way takes without data and with it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import NamedTuple

import numpy as np

from synth.cli.machine_import import MachineFile
from synth.cli.tune import maker
from synth.explanation import Answer, Library, explain, libraries
from synth.explanation.fit import same

NOISE = 0.05
KINDS = ("rate", "latency", "rail", "algorithm", "step", "protocol")
MACHINES = (
    ("dgx-h100", "boxes=2", "allreduce"),
    ("dgx-h100", "boxes=4", "allgather"),
    ("dgx-a100", "boxes=2", "allreduce"),
    ("dgx-h100", "boxes=8", "allreduce"),
    ("dgx-a100", "boxes=1", "allreduce"),
)
SIZES = tuple(2**k for k in range(10, 34))
SEEN, MOST = 0.1, 4  # a cause is one if it changes so many sizes by so much


class Log(NamedTuple):
    """Models of a machine, seconds by size, and the hidden cause: its kind and of what."""

    models: tuple[Library, ...]
    seconds: np.ndarray
    cause: tuple[str, str]


@cache
def models(machine: tuple[str, str, str], sizes: Sequence[int] = SIZES) -> tuple[Library, ...]:
    name, boxes, collective = machine
    make = maker("synth explain", name, [boxes], MachineFile())
    return tuple(libraries(make, collective, sizes, None, "hopper" if "h100" in name else "ampere"))


def seconds(
    library: Library, way: Sequence[int], latency: Mapping[str, float], rate: Mapping[str, float], step: float = 0.0
) -> np.ndarray:
    """The statement, size by size; ``way``: number of what runs at each."""
    found = []
    for k, number in enumerate(way):
        one = library.ways[number]
        late = sum(count * (latency.get(kind, 0.0) + step) for kind, count in one.steps.items())
        slowest = max(1.0, *(share[k] / rate.get(kind, 1.0) for kind, share in one.share.items()))
        found.append(one.wait[k] + late + one.data[k] * slowest)
    return np.array(found)


def best_of(library: Library, kind: str, name: str) -> list[int]:
    """The number of the quickest way of an algorithm or a protocol at each size."""
    own = [k for k, way in enumerate(library.ways) if getattr(way, kind) == name]
    nominal = np.array([library.ways[k].wait + library.ways[k].data for k in own])
    return [own[k] for k in nominal.argmin(axis=0)]


def drawn(draw: np.random.Generator, kind: str, machines: Sequence[tuple[str, str, str]] = MACHINES) -> Log:
    """A log of a machine, with a cause of that kind that is seen, or none (``none``)."""
    while True:
        own = models(machines[int(draw.integers(len(machines)))])
        library, count = own[0], len(SIZES)
        choice = library.choice.tolist()
        plain = seconds(library, choice, {}, {})
        if kind == "none":
            return Log(own, plain * np.exp(draw.normal(0, NOISE, count)), ("", ""))
        log = _changed(draw, kind, library, plain)
        if log is not None and (np.abs(np.log(log[0] / plain)) > SEEN).sum() >= MOST:
            return Log(own, log[0] * np.exp(draw.normal(0, NOISE, count)), log[1])


def _changed(
    draw: np.random.Generator, kind: str, library: Library, plain: np.ndarray
) -> tuple[np.ndarray, tuple[str, str]] | None:
    choice, count = library.choice.tolist(), len(plain)
    of = library.classes[int(draw.integers(len(library.classes)))]
    if kind == "rate":
        start = 0 if draw.random() < 0.6 else int(draw.integers(8, 18))
        slow = seconds(library, choice, {}, {of: draw.uniform(0.2, 0.7)})
        return np.where(np.arange(count) >= start, slow, plain), (kind, of)
    if kind == "latency":
        return seconds(library, choice, {of: draw.uniform(2, 10) * library.latency[of]}, {}), (kind, of)
    if kind == "step":
        return seconds(library, choice, {}, {}, draw.uniform(3e-6, 2e-5)), (kind, "")
    if kind == "rail":
        nics = library.group.nics
        return (seconds(library, choice, {}, {"between": (nics - 1) / nics}), (kind, "")) if nics > 1 else None
    names = sorted({getattr(way, kind) for way in library.ways})
    name = names[int(draw.integers(len(names)))]
    edge, part = int(draw.integers(6, count - 4)), draw.random()
    places = np.arange(count)
    where = places >= 0 if part < 0.4 else places < edge if part < 0.7 else places >= edge
    return seconds(library, np.where(where, best_of(library, kind, name), choice).tolist(), {}, {}), (kind, name)


def answer_to(log: Log) -> Answer:
    return explain(log.models, np.array(SIZES), log.seconds)


def place_of(answer: Answer, log: Log) -> int | None:
    """The place of the hidden cause among those that are told, 0 for the first; None if it is not there. An algorithm
    with its protocol counts for either; where links are of one class, a step is a message."""
    if answer.verdict != "explained":
        return None
    for place, found in enumerate(answer.causes):
        if len(found.causes) == 1 and log.cause in _meanings(found.causes[0].kind, found.causes[0].of, log):
            return place
    return None


def _meanings(kind: str, of: str, log: Log) -> list[tuple[str, str]]:
    found = [(kind, of)]
    if kind == "way":
        algorithm, _, protocol = of.partition(" ")
        found += [("algorithm", algorithm), ("protocol", protocol)]
    if kind == "step" and len(log.models[0].classes) == 1:
        found.append(("latency", log.models[0].classes[0]))
    return found


def counted(seed: int, logs: int = 40, without: int = 10) -> dict[str, int]:
    """Of logs with a cause those that have it first, first or the same as the first at all sizes of the log, and among
    the first three; of logs without one those that are said to be as predicted."""
    draw = np.random.default_rng(seed)
    found = dict.fromkeys(("first", "same", "three", "predicted"), 0)
    for k in range(logs):
        log = drawn(draw, KINDS[k % len(KINDS)])
        answer = answer_to(log)
        place = place_of(answer, log)
        if place is not None:
            found["first"] += place == 0
            found["same"] += same(answer.causes[0], answer.causes[place], answer.noise)
            found["three"] += place < 3
    for _ in range(without):
        found["predicted"] += answer_to(drawn(draw, "none")).verdict == "predicted"
    return found


if __name__ == "__main__":
    import sys

    for number in map(int, sys.argv[1:]):
        print(number, counted(number), flush=True)
