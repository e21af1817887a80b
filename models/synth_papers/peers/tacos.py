"""TACOS: the 32x32 torus in steps, and what its rule does on links of unequal speed.

The rule, as read in astra-sim/tacos @1811f1f (`Synthesizer::solve`): at every moment at which a transfer ends, each
pair of a piece and a rank that misses it is looked at in random order and takes the quickest free link from a rank that
has the piece. A piece may so be on its way to a rank twice. When a transfer ends whose piece has come another way, the
link is said to have carried *another* piece instead, any that its sender has by now: also one that the sender did not
have when the transfer began. The replay below counts those. Written from that description, not from the code.
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np
import pandas as pd

from synth.reproduction import printed
from synth.reproduction.collect import Reproduction
from synth.text.quantities import percent
from synth_models.fabric.check.replay import check_schedule
from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.problem import clock
from synth_models.fabric.scheduling.chunks import seconds
from synth_models.fabric.solution import Schedule
from synth_papers.fabric.grid import made
from synth_papers.peers.runs import changed, solved

PRINTED = printed.read(__file__)
GIB = 2**30
SEEDS = 8


def torus(page: Reproduction) -> None:
    """Steps on the torus: links of one chunk a step, one chunk a rank, no latency."""
    side = 8 if page.quick else 32
    chunk = 1000
    instance = made(network="torus", rows=str(side), cols=str(side), bandwidth="1e9", latency="0",
                    collective="allgather", bytes=str(side * side * chunk))  # fmt: skip
    found = solved(page, instance, "tacos", ("bound", "pull"), 60.0)
    step = chunk / 1e9
    steps, least = round(found.value / step), int(np.ceil(found.bound / step - 1e-9))
    if page.quick:
        page.skip("TACOS's torus of 32x32 (--quick: 8x8)")
    else:
        page.compare(PRINTED["tacos.steps"], steps, f"bound {least}")
    rows = [("torus " + f"{side}x{side}", steps, least, round(found.records["pull"].run_s, 1),
             round(found.records["bound"].run_s, 1), percent(found.gap))]  # fmt: skip
    columns = ["network", "steps, pull", "bound", "pull [s]", "bound [s]", "gap"]
    page.table("TACOS's torus, allgather of a chunk a rank", pd.DataFrame(rows, columns=columns))
    if not page.quick:
        page.note(f"TACOS prints {PRINTED['tacos.seconds'].text} for that torus.")


def causality(page: Reproduction) -> None:
    """Its own test of unequal links (`tests/test_tacos_mesh_2d_hetero.cpp`): a 5x5 mesh, 50 GiB/s along rows and 75
    GiB/s along columns, 0.5 us, 1 GiB."""
    instance = unequal_mesh()
    broken, times, total, faults = [], [], 0, ""
    for seed in range(SEEDS):
        schedule, early = by_the_rule(instance, seed)
        verdict = check_schedule(instance, schedule)
        broken.append(early)
        times.append(float(seconds(instance, schedule)) * 1e6)
        total += schedule.transfers
        faults = faults or (verdict.faults[0] if verdict.faults else "")
    found = solved(page, instance, "tacos", ("bound", "tacos", "pull", "forest"), 30.0)
    causal = found.records["tacos"].value
    assert causal is not None
    page.erratum(
        "TACOS, links of unequal speed",
        f"the times of its rule as times of schedules ({PRINTED['tacos.unequal-mesh'].text} in its test of a 5x5 mesh "
        "of 50 and 75 GiB/s, 0.5 us, 1 GiB).",
        f"By its rule, as we read it, some transfers carry a piece that the sender did not have when they began, so "
        f"these are times of no schedule. Made causal, the greedy takes {causal * 1e6:.1f} us with as many pieces as "
        f"suit it, and ours {found.value * 1e6:.1f} us. Nothing takes less than {found.bound * 1e6:.1f} us.",
        f"Its rule replayed {SEEDS} times on that mesh with a piece a rank: {min(times):.1f} to {max(times):.1f} us as "
        f"it counts; {sum(broken)} of {total} transfers carry what was not there ({min(broken)} to {max(broken)} a "
        f"run). The check refuses the first schedule: {faults or 'nothing'}.",
        "code",
    )


def unequal_mesh() -> FabricInstance:
    """The 5x5 mesh of its test; 1 GiB is rounded up to 25 equal shares."""
    rows = cols = 5
    mesh = made(network="mesh", rows=str(rows), cols=str(cols), bandwidth="1e9", latency="0",
                collective="allgather", bytes=str(25 * -(-GIB // 25)))  # fmt: skip
    links = []
    for u in range(rows * cols):
        for v, rate in ((u + 1, 50), (u + cols, 75)):
            if v < rows * cols and (rate == 75 or v % cols):
                for a, b in ((u, v), (v, u)):
                    links.append({"src": a, "dst": b, "bandwidth": float(rate * GIB), "latency": 5e-7})
    network = {"kind": "links", "nodes": rows * cols, "switches": [], "links": links}
    return changed(mesh, network=network, name="tacos-mesh-5x5-hetero")


def by_the_rule(instance: FabricInstance, seed: int) -> tuple[Schedule, int]:
    """The schedule of the rule above, a piece a rank, and how many of its transfers carry what was not there when they
    began."""
    machine, net = instance.machine, instance.machine.network
    size = int(instance.blocks.bytes.max())
    ticks = clock.ticks_per_second(machine, 1.0)
    took = (clock.durations(machine, ticks, size) + clock.latencies(machine, ticks)).tolist()
    run = _Run(instance.members, net.src.tolist(), net.dst.tolist(), took, np.random.default_rng(seed),
               [{int(rank): 0} for rank in instance.blocks.origin])  # fmt: skip
    moments = [0]
    while moments:
        now = heapq.heappop(moments)
        while moments and moments[0] == now:
            heapq.heappop(moments)
        run.end(now)
        for end in run.begin(now):
            heapq.heappush(moments, end)
    starts, links, pieces = (np.array(column, dtype=np.int64) for column in zip(*sorted(run.done), strict=True))
    whole = np.arange(len(run.done) + 1, dtype=np.int64)
    blocks = np.arange(len(instance.blocks), dtype=np.int64)
    nothing = np.zeros(len(run.done), dtype=bool)
    return Schedule(ticks, blocks, instance.blocks.bytes, starts, pieces, nothing, whole, links), run.early


class _Transfer(NamedTuple):
    """What runs on a link; ticks."""

    piece: int
    start: int
    end: int


@dataclass
class _Run:
    """A run of the rule: ``src``, ``dst`` and ``took`` (ticks) by link; ``since[piece][rank]`` is the tick from which
    the rank has the piece, ``running`` what is on a link, ``done`` start, link and piece of what has ended."""

    members: Sequence[int]
    src: list[int]
    dst: list[int]
    took: list[int]
    random: np.random.Generator
    since: list[dict[int, int]]
    running: dict[int, _Transfer] = field(default_factory=dict)
    done: list[tuple[int, int, int]] = field(default_factory=list)
    early: int = 0

    @cached_property
    def into(self) -> dict[int, list[int]]:
        """The links that enter a node."""
        found: dict[int, list[int]] = defaultdict(list)
        for link, node in enumerate(self.dst):
            found[node].append(link)
        return found

    def end(self, now: int) -> None:
        """End what is due; where its piece has come another way the link is said to have carried another one."""
        for link in sorted(link for link, transfer in self.running.items() if transfer.end <= now):
            piece, start, _ = self.running.pop(link)
            if self.dst[link] in self.since[piece]:
                others = [q for q, has in enumerate(self.since) if self.src[link] in has and self.dst[link] not in has]
                if not others:
                    continue
                piece = others[int(self.random.integers(len(others)))]
            self.early += self.since[piece][self.src[link]] > start
            self.since[piece][self.dst[link]] = now
            self.done.append((start, link, piece))

    def begin(self, now: int) -> Iterator[int]:
        """Begin what the rule chooses, and say when each ends."""
        wanted = [(piece, rank) for piece, has in enumerate(self.since) for rank in self.members if rank not in has]
        for k in self.random.permutation(len(wanted)).tolist():
            piece, rank = wanted[k]
            free = [
                link for link in self.into[rank] if link not in self.running and self.src[link] in self.since[piece]
            ]
            if free:
                least = min(self.took[link] for link in free)
                quickest = [link for link in free if self.took[link] == least]
                link = quickest[int(self.random.integers(len(quickest)))]
                self.running[link] = _Transfer(piece, now, now + least)
                yield now + least
