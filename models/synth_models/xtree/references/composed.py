"""Method ``composed`` (ours): a schedule made of those that the library has of other instances.

* An allgather is that of the same network under other numbers, or a reduce-scatter of the reversed network backwards.
* A reduce-scatter is the like.
* An allreduce is a reduce-scatter and then an allgather, or an allreduce of the same network under other numbers, or of
  the reversed network backwards.

Of fewer chunks a node, several schedules follow each other. What is found is shifted in time
(:mod:`synth_models.xtree.references.shifted`), so that an allreduce may be shorter than its two halves.
Complexity: a search for an isomorphism per network that the library has, and the shifts. Guarantee: no longer than its
parts together.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import copy
from functools import partial, reduce
from itertools import islice
from typing import NamedTuple

import numpy as np

from synth.arrays import IntArray
from synth.errors import UnsupportedError
from synth.library.known_schedules import Known, of_others
from synth.method import Outcome
from synth.network import Network
from synth.options import RunOptions
from synth.schedule import Schedule
from synth.schedule.quotient import listed
from synth_models.xtree.bounds.timestep_bounds import lower_bound
from synth_models.xtree.check.replay import check_schedule
from synth_models.xtree.instance import XTreeInstance
from synth_models.xtree.parts.isomorphic import carried, renumberings
from synth_models.xtree.references.shifted import shifted

MOST_LISTED = 2_000_000  # transfers of a schedule that symmetry repeats, up to which it is taken
IMAGES = 8  # renumberings that are tried
BACKWARDS = {"allgather": "reduce_scatter", "reduce_scatter": "allgather", "allreduce": "allreduce"}


class Part(NamedTuple):
    """A schedule of a known instance: ``steps`` in all where it is repeated ``times`` times, each for other chunks, its
    network turned around where it is played ``backwards``, and the nodes' ``image``."""

    steps: float
    times: int
    known: Known
    backwards: bool
    image: IntArray

    @property
    def words(self) -> str:
        """What it is."""
        often = f"{self.times} times " if self.times > 1 else ""
        return f"{often}{self.known.row.instance} by {self.known.makers[0]}{' backwards' if self.backwards else ''}"


def solve(instance: XTreeInstance, options: RunOptions) -> Outcome:
    """Method ``composed``. Stops at the bound, at the time limit or after ``passes``. Raises :class:`InputError`
    without a library, and :class:`UnsupportedError` where it has nothing that fits."""
    bound, proof, certificate = lower_bound(instance)
    options.held.offer_bound(float(bound), proof, certificate)
    random = np.random.default_rng(options.seed)
    best: tuple[Schedule, Sequence[Part], str] | None = None
    known = of_others(instance, options.method.get("library"))
    passes = int(options.method["passes"])
    for schedule, parts in _compositions(instance, known, IMAGES if passes else 1):
        if best is not None and (options.out_of_time() or best[0].steps <= bound):
            break
        if not check_schedule(instance, schedule).ok:
            continue  # what the library has may be redundant, which cannot be played backwards, or false
        made = shifted(instance.topology, schedule, bound, passes, options, random)
        saved = f", {schedule.steps - made.steps} timesteps less by shifts" if made.steps < schedule.steps else ""
        if best is None or made.steps < best[0].steps:
            best = made, parts, saved
            options.held.offer(partial(copy, made), made.steps, _words(parts) + saved, _makers(parts))
    if best is None:
        raise UnsupportedError("the library has no schedule of the same network, whatever its numbers")
    schedule, parts, saved = best
    told = _words(parts) + saved
    return Outcome("finished", schedule, float(bound), proof, certificate, told, made_by=_makers(parts))


def _words(parts: Sequence[Part]) -> str:
    return ", then ".join(part.words for part in parts)


def _makers(parts: Sequence[Part]) -> tuple[str, ...]:
    return ("composed", *dict.fromkeys(name for part in parts for name in part.known.makers))


def _compositions(
    instance: XTreeInstance, known: Sequence[Known], images: int
) -> Iterator[tuple[Schedule, Sequence[Part]]]:
    """Schedules of the instance, each with its parts: what is of its collective, then halves that follow each other,
    the second one as so many symmetries of the network turn it."""
    network, chunks = instance.topology, instance.chunks
    for whole in _shortest(network, instance.collective, chunks, known)[:1]:
        yield _made(network, whole, chunks), (whole,)
    if instance.collective == "allreduce":
        for up in _shortest(network, "reduce_scatter", chunks, known)[:1]:
            for down in _shortest(network, "allgather", chunks, known)[:images]:
                yield _made(network, up, chunks).then(_made(network, down, chunks)), (up, down)


def _shortest(network: Network, collective: str, chunks: int, known: Sequence[Known]) -> list[Part]:
    """The shortest schedule known of a collective on this network with so many chunks a node, once for each of several
    renumberings; empty where there is none."""
    for steps, times, one, backwards in sorted(_alike(collective, chunks, known), key=lambda fit: fit[0]):
        assert isinstance(one.instance, XTreeInstance)
        source = one.instance.topology.reversed() if backwards else one.instance.topology
        images = list(islice(renumberings(source, network), IMAGES))
        if images:
            return [Part(steps, times, one, backwards, image) for image in images]
    return []


def _alike(collective: str, chunks: int, known: Sequence[Known]) -> Iterator[tuple[float, int, Known, bool]]:
    """Timesteps, how often, what and whether backwards: of the collective or the one that it is backwards, with a
    number of chunks that divides this one."""
    for one in known:
        assert isinstance(one.instance, XTreeInstance)
        times, rest = divmod(chunks, one.instance.chunks)
        for backwards, wanted in ((False, collective), (True, BACKWARDS[collective])):
            if not rest and one.instance.collective == wanted:
                yield one.value * times, times, one, backwards


def _made(network: Network, part: Part, chunks: int) -> Schedule:
    """The part's schedule on this network, whose nodes have so many chunks."""
    source = part.known.instance
    assert isinstance(source, XTreeInstance)
    own, there = listed(source.topology, part.known.solution(), MOST_LISTED), source.topology
    if part.backwards:  # copies are sums, and sums copies
        own, there = own.reversed_in_time(adds=~own.adds), there.reversed()
    moved = carried(own, there, network, part.image, source.chunks)
    node, number = np.divmod(moved.chunk, source.chunks)
    shares = [
        Schedule.of(moved.step, moved.link, node * chunks + k * source.chunks + number, moved.adds)
        for k in range(part.times)
    ]
    return reduce(Schedule.then, shares)
