"""An instance cut into given pieces, in whole units of time, and schedules as choices of routes and starts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from synth.errors import UnsupportedError
from synth.graph.shortest_paths import UNREACHABLE, all_pairs
from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.problem import clock
from synth_models.fabric.problem.ready import in_ticks, moments
from synth_models.fabric.problem.rows import starts
from synth_models.fabric.programs.continuous.transfer_routes import Timing, TransferRoute, TransferRoutes, timing
from synth_models.fabric.programs.continuous.tuned import SUM_PARTS
from synth_models.fabric.solution import Schedule

MOST_TICKS = 2**62  # a second, that a record may state
MOST_UNITS = 2**40
UNITS = 2**30  # of the longest schedule, where the coarsest exact unit leaves more than MOST_UNITS


@dataclass(frozen=True)
class Row:
    """One transfer: piece, number of the route, start of every hop that has one, in ticks, and whether it adds."""

    piece: int
    route: int
    starts: tuple[int, ...]
    adds: bool


@dataclass(frozen=True, eq=False)
class Problem:
    """``block`` and ``size`` (bytes) of every piece; ``unit`` ticks are one unit of the model's time.

    The unit is the greatest common divisor of all latencies and durations: push every transfer of a best schedule to
    the left as its order allows, and every start is a sum of such times. In an allreduce a rank may have to start just
    before something arrives that is not to go with it: the unit is a sixteenth of that, so that a proof there
    leaves out schedules that are quicker by a few of these. ``exact`` is False where the unit had to be coarser, or a
    rank is ready within a tick: times are then rounded up.
    """

    instance: FabricInstance
    routes: TransferRoutes
    block: tuple[int, ...]
    size: tuple[int, ...]
    ticks: int
    unit: int
    exact: bool

    @classmethod
    def of(cls, instance: FabricInstance, routes: TransferRoutes, block: Sequence[int], size: Sequence[int]) -> Problem:
        """With the clock that suits it. Raises :class:`UnsupportedError` where that is too fine."""
        ticks = clock.ticks_per_second(instance.machine, most_seconds(instance, size))
        blocks = instance.blocks
        sums = bool(np.any(blocks.sums & (blocks.goal < 0)))
        ticks *= SUM_PARTS if sums else 1
        if ticks > MOST_TICKS:
            raise UnsupportedError("these rates and latencies need a finer clock than a record states")
        times = [*clock.latencies(instance.machine, ticks).tolist()]
        for n in set(size):
            times += clock.durations(instance.machine, ticks, n).tolist()
        late = in_ticks(instance.ready, instance.machine.nodes, ticks)
        times += late.tolist()
        unit = max(1, math.gcd(*times) // (SUM_PARTS if sums else 1))
        longest = int(most_seconds(instance, size) * ticks)
        fits = longest // unit <= MOST_UNITS
        whole = all(late[rank] == moment * ticks for rank, moment in moments(instance.ready).items())
        return cls(
            instance, routes, tuple(map(int, block)), tuple(map(int, size)), ticks,
            unit if fits else -(-longest // UNITS), fits and whole,
        )  # fmt: skip

    @cached_property
    def ready(self) -> list[int]:
        """Units from which on each node has its own part, rounded up."""
        late = in_ticks(self.instance.ready, self.instance.machine.nodes, self.ticks)
        return [-(-int(n) // self.unit) for n in late]

    @cached_property
    def adds(self) -> list[bool]:
        """Of every piece, whether each holder has a contribution."""
        found: list[bool] = self.instance.blocks.sums[list(self.block)].tolist()
        return found

    @cached_property
    def holders(self) -> list[tuple[int, ...]]:
        """Of every piece, who has it, or a contribution."""
        return self._ranks(self.origin)

    @cached_property
    def wanters(self) -> list[tuple[int, ...]]:
        """Of every piece, who wants it and does not have it."""
        rows = zip(self._ranks(self.goal), self.holders, self.adds, strict=True)
        return [tuple(v for v in wanting if adds or v not in holding) for wanting, holding, adds in rows]

    def _ranks(self, codes: Sequence[int]) -> list[tuple[int, ...]]:
        members = self.instance.members
        known = {code: self.instance.blocks.ranks(code, members) for code in set(codes)}
        return [known[code] for code in codes]

    @cached_property
    def spread_sums(self) -> list[bool]:
        """Of every piece, whether several want a sum (allreduce)."""
        return [adds and len(wanting) > 1 for adds, wanting in zip(self.adds, self.wanters, strict=True)]

    @cached_property
    def origin(self) -> list[int]:
        """Of every piece, as in :class:`synth_models.fabric.problem.blocks.Blocks`."""
        return self.instance.blocks.origin[list(self.block)].tolist()  # type: ignore[no-any-return]

    @cached_property
    def goal(self) -> list[int]:
        """Likewise."""
        return self.instance.blocks.goal[list(self.block)].tolist()  # type: ignore[no-any-return]

    @cached_property
    def resources_of(self) -> list[tuple[int, ...]]:
        """What every link takes: itself, and its group (numbered behind the links) if it has one."""
        group = self.instance.machine.group.tolist()
        return [(e,) if g < 0 else (e, len(group) + g) for e, g in enumerate(group)]

    @cached_property
    def sums(self) -> bool:
        """Whether several want some sum."""
        return any(self.spread_sums)

    @cached_property
    def kind(self) -> list[int]:
        """Number of the distinct size of every piece."""
        at = {n: k for k, n in enumerate(sorted(set(self.size)))}
        return [at[n] for n in self.size]

    @cached_property
    def _latency(self) -> list[int]:
        found: list[int] = clock.latencies(self.instance.machine, self.ticks).tolist()
        return found

    @cached_property
    def latency_units(self) -> list[int]:
        """Of every link, in units rounded up."""
        return [-(-n // self.unit) for n in self._latency]

    @cached_property
    def _durations(self) -> list[list[int]]:
        machine = self.instance.machine
        return [clock.durations(machine, self.ticks, n).tolist() for n in sorted(set(self.size))]

    @cached_property
    def _known(self) -> dict[Any, Timing]:
        return {}

    def timing(self, route: int, piece: int, in_units: bool = True) -> Timing:
        """Of a piece on a route, in units rounded up or in ticks."""
        key = route, self.kind[piece], in_units
        if key not in self._known:
            unit = self.unit if in_units else 1
            took = [-(-n // unit) for n in self._durations[self.kind[piece]]]
            late = self.latency_units if in_units else self._latency
            self._known[key] = timing(self.routes.all[route], took, late, self.routes.hop_by_hop)
        return self._known[key]

    @cached_property
    def distance(self) -> list[list[list[int]]]:
        """Least units from node to node over whatever nodes, per distinct size; ``MOST_UNITS`` for no route."""
        found = []
        for kind in range(len(set(self.size))):
            piece = self.kind.index(kind)
            n = self.instance.machine.nodes
            away = np.full((n, n), UNREACHABLE, dtype=np.int64)
            for number, route in enumerate(self.routes.all):
                for (v, _), took in zip(route.leaves, self._whole(number, piece), strict=True):
                    away[route.source, v] = min(away[route.source, v], took)
            found.append(np.minimum(all_pairs(away), MOST_UNITS).tolist())
        return found

    def _whole(self, route: int, piece: int) -> Sequence[int]:
        """Units from the start of the route to every leaf."""
        found, one = self.timing(route, piece), self.routes.all[route]
        if not one.waits:
            return found.arrival
        return [sum(found.duration) + sum(self.latency_units[e] for e in one.links)]

    # schedules

    def schedule(self, rows: Sequence[Row]) -> Schedule:
        """The transfers as a schedule; hop by hop where switches store."""
        start: list[int] = []
        piece: list[int] = []
        adds: list[bool] = []
        routes: list[tuple[int, ...]] = []
        for row in sorted(rows, key=lambda r: (r.starts[0], r.piece, r.route)):
            route = self.routes.all[row.route]
            if not self.routes.hop_by_hop:
                start.append(row.starts[0])
                piece.append(row.piece)
                adds.append(row.adds)
                routes.append(route.links)
                continue
            offset = self.timing(row.route, row.piece, False).offset
            for k, e in enumerate(route.links):
                start.append(row.starts[k] if route.waits else row.starts[0] + offset[k])
                piece.append(row.piece)
                adds.append(row.adds)
                routes.append((e,))
        lengths = [len(route) for route in routes]
        return Schedule(
            self.ticks,
            np.array(self.block, dtype=np.int64),
            np.array(self.size, dtype=np.int64),
            np.array(start, dtype=np.int64),
            np.array(piece, dtype=np.int64),
            np.array(adds, dtype=bool),
            starts(lengths),
            np.array([e for route in routes for e in route], dtype=np.int64),
        )

    def rows(self, schedule: Schedule) -> list[Row]:
        """The inverse, for schedules whose hops stand together as ours do; start times as near as the clock allows.
        Raises ``ValueError`` for others."""
        scale = self.ticks / schedule.ticks_per_s
        starts = [round(s * scale) if scale != 1 else s for s in schedule.start.tolist()]
        begin = schedule.route_start.tolist()
        links = schedule.link.tolist()
        found: list[Row] = []
        i = 0
        while i < len(starts):
            route, times = links[begin[i] : begin[i + 1]], [starts[i]]
            first = i
            if self.routes.hop_by_hop and not self.routes.by_link:
                while self.routes.is_switch[self.routes.dst[route[-1]]]:
                    i += 1
                    if i == len(starts) or schedule.piece[i] != schedule.piece[first]:
                        raise ValueError("hops do not stand together")
                    route += links[begin[i] : begin[i + 1]]
                    times.append(starts[i])
            number = self.routes.number(route)
            hops = tuple(times) if self.routes.all[number].waits else (times[0],)
            found.append(Row(int(schedule.piece[first]), number, hops, bool(schedule.adds[first])))
            i += 1
        return found

    def completion(self, rows: Sequence[Row]) -> int:
        """Ticks until the last has arrived, and who wants a sum has its own part."""
        late = in_ticks(self.instance.ready, self.instance.machine.nodes, self.ticks).tolist()
        own = [set(self.holders[p]) & set(self.wanters[p]) if adds else set() for p, adds in enumerate(self.adds)]
        last = max((late[rank] for rank in set().union(*own)), default=0)
        for row in rows:
            found, route = self.timing(row.route, row.piece, False), self.routes.all[row.route]
            at = row.starts[-1] if route.waits else row.starts[0]
            last = max(last, at + max(found.arrival))
        return last


def resources(problem: Problem, route: TransferRoute, found: Timing) -> list[tuple[int, int, int, int]]:
    """What a route occupies: rows (resource, hop, from, until) in units from the hop's start. Resources are links, and
    behind them groups; a group that a route has twice at once is occupied once, for as long as either is."""
    spans: dict[tuple[int, int], list[tuple[int, int]]] = {}
    for k, e in enumerate(route.links):
        hop = k if route.waits else 0
        span = found.offset[k], found.offset[k] + found.duration[k]
        for r in problem.resources_of[e]:
            spans.setdefault((r, hop), []).append(span)
    rows = []
    for (r, hop), several in spans.items():
        several.sort()
        merged = [several[0]]
        for a, b in several[1:]:
            if a < merged[-1][1]:
                merged[-1] = merged[-1][0], max(b, merged[-1][1])
            else:
                merged.append((a, b))
        rows += [(r, hop, a, b) for a, b in merged]
    return rows


def plain(instance: FabricInstance) -> bool:
    """Whether all ranks are ready at once, and blocks are those of a collective."""
    return instance.ready is None and instance.traffic is None


def most_seconds(instance: FabricInstance, size: Sequence[int]) -> float:
    """More than any schedule of ours with these pieces takes."""
    net = instance.machine.network
    if not net.links or not len(size):
        return 1e-6
    each = float(max(size)) / float(net.bandwidth.min()) + float(net.latency.max(initial=0.0))
    late = max(map(float, moments(instance.ready).values()), default=0.0)
    return 4.0 * each * len(size) * len(instance.machine.ranks) * 2 + 1e-6 + late
