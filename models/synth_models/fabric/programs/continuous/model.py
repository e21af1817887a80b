"""The program of ``continuous`` (ours): which routes pieces take, and when, so that the last arrival is soonest.

Optional intervals as in Laborie and others (IBM ILOG CP Optimizer for scheduling, Constraints 2018), solved by CP-SAT.

| symbol | name | set | unit |
|---|---|---|---|
| p, r | ``piece``, ``route`` | pieces; routes from a node that can hold pieces (:mod:`.transfer_routes`) | |
| x_pr | ``OptionalTransfer.there`` | piece p is sent over route r (once) | 0, 1 |
| s_pr | ``OptionalTransfer.starts`` | start of the transfer (of every hop where hops may wait) | unit of time |
| a_pv | ``ready[p, v]`` | when p is wholly at v (sums: when v has all it adds) | unit |
| T | ``makespan`` | last arrival | unit |

    (1) received once       sum_{r into v} x_pr = 1 where v wants p; elsewhere <= 1, 1 where p leaves v, and 0 where not
    (2) sent once           sum_{r out of v} x_pr = 1 for members but the goal; elsewhere <= 1, 1 where sums come
    (3) last arrival        T >= a_pv where v wants p
    (4) ready on arrival    a_pv >= s_pr + lag_pr if x_pr, r into v
    (5) leaves when ready   s_pr >= a_pv if x_pr, r out of v
    (6) links take turns    of two transfers over a link or group one ends before the other begins
    (7) hops in order       s_pr at a hop >= s_pr at the hop before + its duration and latency
    (8) alike in order      a_pv <= a_qv for pieces p, q of a block that are of one size          (symmetry breaking)
    (9) own or received     o_pv + sum_{r into v} x_pr = 1, a_pv >= ready_v if o_pv, where v holds p and is late

In (1), (4), (5) a holder that is ready at once has p. In (2) every holder is a member; in (4) it is ready at the
earliest when its own part is.

Spreading takes (1), a sum for one goal (2): an in-tree, which is no restriction, as a second sending would count the
sender's contribution twice. Allreduce is in :mod:`.allreduce_model`. It never helps to receive a piece twice, or to
send it over the same route twice.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Any

from synth.solvers.names import name_variables
from synth_models.fabric.programs.continuous.problem import Problem, Row, resources
from synth_models.fabric.programs.continuous.transfer_routes import Timing, TransferRoute


@dataclass(frozen=True, eq=False)
class OptionalTransfer:
    """A piece over a route, if it is ``there`` (a Boolean variable). ``lag``: units until it has truly arrived at every
    leaf, rounded up once; ``timing`` rounds every link up, so that its arrivals may be later."""

    piece: int
    number: int
    route: TransferRoute
    timing: Timing
    there: Any
    starts: tuple[Any, ...]
    adds: bool
    lag: tuple[int, ...]

    def arrival(self, leaf: int) -> Any:
        """When it is at a leaf at the latest, as an expression."""
        return self.starts[-1] + self.timing.arrival[leaf]

    def absent(self, leaf: int) -> Any:
        """The last unit that begins before it is at a leaf, as an expression."""
        return self.starts[-1] + self.lag[leaf] - 1


class Program:
    """The model of a problem within ``horizon`` units.

    ``least``: a proven bound in units. ``allowed``: the routes that some pieces may take (default: all). ``twins``:
    whether pieces of a block that are alike are put in order, which cuts off mirror images only.
    """

    def __init__(
        self,
        problem: Problem,
        horizon: int,
        least: int = 0,
        allowed: Mapping[int, Sequence[tuple[int, bool]]] | None = None,
        twins: bool = True,
    ) -> None:
        from ortools.sat.python import cp_model

        self.problem, self.horizon = problem, horizon
        self.model = cp_model.CpModel()
        self.moves: list[OptionalTransfer] = []
        self.into: dict[tuple[int, int], list[tuple[OptionalTransfer, int]]] = {}
        self.out: dict[tuple[int, int], list[OptionalTransfer]] = {}
        self.ready: dict[tuple[int, int], Any] = {}
        self.makespan = self.model.new_int_var(min(least, horizon), horizon, "")
        self.there: dict[tuple[int, int, str], Any] = {}
        self.starts: dict[tuple[int, int, str, int], Any] = {}
        self.carries: dict[tuple[int, int, int], Any] = {}
        self.before: dict[tuple[int, int, int], Any] = {}
        self.whole: dict[tuple[int, int], Any] = {}
        self.possible = least <= horizon
        for piece in range(len(problem.size)):
            self._moves_of(piece, None if allowed is None else allowed.get(piece))
        self.links_take_turns()
        for piece in range(len(problem.size)):
            if not problem.adds[piece]:
                self.spread(piece)
            elif not problem.spread_sums[piece]:
                self.sum_up(piece)
        if problem.sums:
            from synth_models.fabric.programs.continuous.allreduce_model import add_sums

            add_sums(self)
        if twins:
            self.alike_in_order()
        self.model.minimize(self.makespan)
        for name, letters, variables in (
            ("makespan", "", {(): self.makespan}), ("there", "p r kind", self.there),
            ("starts", "p r kind hop", self.starts), ("ready", "p v", self.ready), ("carries", "p m i", self.carries),
            ("before", "p m n", self.before), ("whole", "p v", self.whole),
        ):  # fmt: skip
            name_variables(self.model, name, letters, variables)

    # variables

    def _moves_of(self, piece: int, allowed: Sequence[tuple[int, bool]] | None) -> None:
        kinds = (True, False) if self.problem.spread_sums[piece] else (self.problem.adds[piece],)
        chosen = (
            allowed if allowed is not None else [(w, k) for w in range(len(self.problem.routes.all)) for k in kinds]
        )
        for number, adds in chosen:
            self._move(piece, number, adds)

    def _move(self, piece: int, number: int, adds: bool) -> None:
        route, timing = self.problem.routes.all[number], self.problem.timing(number, piece)
        took = self._hops_took(route, timing)  # before each hop
        first, latest = self._window(piece, route, timing, adds)
        if latest - took[-1] < first:
            return
        there = self.model.new_bool_var("")
        starts = tuple(self.model.new_int_var(first + at, latest - took[-1] + at, "") for at in took)
        index = piece, number, "adds" if adds else "copies"
        self.there[index] = there
        self.starts |= {(*index, hop): start for hop, start in enumerate(starts)}
        lag = tuple(-(-ticks // self.problem.unit) for ticks in self.problem.timing(number, piece, False).arrival)
        move = OptionalTransfer(piece, number, route, timing, there, starts, adds, lag)
        self.hops_in_order(move)
        self.moves.append(move)
        self.out.setdefault((piece, route.source), []).append(move)
        for leaf, (v, _) in enumerate(route.leaves):
            self.into.setdefault((piece, v), []).append((move, leaf))

    def _hops_took(self, route: TransferRoute, timing: Timing) -> list[int]:
        """Units from the start of a route to that of every hop that may wait, at least; a 0 where none may."""
        late = self.problem.latency_units
        return [0, *accumulate(timing.duration[k] + late[route.links[k]] for k in range(route.starts - 1))]

    def _window(self, piece: int, route: TransferRoute, timing: Timing, adds: bool) -> tuple[int, int]:
        """First start of a piece over a route and latest of its last hop; none in between where that is of no use."""
        problem = self.problem
        away, ready = problem.distance[problem.kind[piece]], problem.ready
        holding, wanting, source = problem.holders[piece], problem.wanters[piece], route.source
        first, useless = 0, len(wanting) == 1 and source == wanting[0]
        if not problem.adds[piece]:
            first = min(ready[u] + away[u][source] for u in holding)
            useless |= any(v in holding and not ready[v] for v, _ in route.leaves)
        elif not problem.spread_sums[piece]:
            first = ready[source] if source in holding else 0
            useless |= adds and len(route.leaves) > 1  # a contribution in two places would count twice
        left = min(away[v][wanting[0]] for v, _ in route.leaves) if len(wanting) == 1 else 0
        return first, first - 1 if useless else self.horizon - min(timing.arrival) - left

    def when(self, piece: int, node: int) -> Any:
        """The variable a_pv."""
        if (piece, node) not in self.ready:
            self.ready[piece, node] = self.model.new_int_var(0, self.horizon, "")
        return self.ready[piece, node]

    # constraints

    def spread(self, piece: int) -> None:
        """What a holder sends, at every node where it may come by."""
        wanted, holding = self.problem.wanters[piece], self.problem.holders[piece]
        nodes = {v for p, v in (*self.into, *self.out) if p == piece} | set(wanted)
        prompt = {v for v in holding if not self.problem.ready[v]}
        for v in sorted(nodes - prompt):
            if v in holding:
                self.own_or_received(piece, v)
            elif not self.received_once(piece, v, v in wanted):
                self.possible = False
                return
            if v in wanted:
                self.last_arrival(piece, v)
            self.ready_on_arrival(piece, v)
            self.leaves_when_ready(piece, v)

    def sum_up(self, piece: int) -> None:
        """What one goal adds up, at every node where it may come by."""
        (goal,), holding = self.problem.wanters[piece], self.problem.holders[piece]
        nodes = {v for p, v in (*self.into, *self.out) if p == piece} | {goal, *holding}
        for v in sorted(nodes):
            if v in holding:
                self.model.add(self.when(piece, v) >= self.problem.ready[v])
            if v == goal:
                self.last_arrival(piece, v)
            elif not self.sent_once(piece, v, v in holding):
                self.possible = False
                return
            self.ready_on_arrival(piece, v)
            self.leaves_when_ready(piece, v)

    def received_once(self, piece: int, v: int, wanted: bool) -> bool:
        """(1): a node that wants a piece receives it once, another at most once, and only to send it on. Whether it
        can."""
        model, coming, going = self.model, self.into.get((piece, v), []), self.out.get((piece, v), [])
        count = sum(move.there for move, _ in coming)
        if wanted:
            if coming:
                model.add(count == 1)
            return bool(coming)
        model.add(count <= 1)
        for move in going:
            model.add(move.there <= count)
        if coming:
            model.add(count <= sum(move.there for move in going))
        return True

    def own_or_received(self, piece: int, v: int) -> None:
        """(9): a holder that is late passes on its own, or what it receives before."""
        model, coming, going = self.model, self.into.get((piece, v), []), self.out.get((piece, v), [])
        own = model.new_bool_var("")
        model.add(own + sum(move.there for move, _ in coming) == 1)
        model.add_bool_or([own, *(move.there for move in going)])
        model.add(self.when(piece, v) >= self.problem.ready[v]).only_enforce_if(own)

    def sent_once(self, piece: int, v: int, member: bool) -> bool:
        """(2): a member sends its sum once, another node at most once, what has come to it. Whether it can."""
        model, coming, going = self.model, self.into.get((piece, v), []), self.out.get((piece, v), [])
        count = sum(move.there for move in going)
        if member:
            if going:
                model.add(count == 1)
            return bool(going)
        model.add(count <= 1)
        model.add(count <= sum(move.there for move, _ in coming))
        for move, _ in coming:
            model.add(move.there <= count)
        return True

    def last_arrival(self, piece: int, v: int) -> None:
        """(3): the end is no sooner than a wanted arrival."""
        self.model.add(self.makespan >= self.when(piece, v))

    def ready_on_arrival(self, piece: int, v: int) -> None:
        """(4): a piece is ready at a node when it has wholly arrived, a sum when all that is added has."""
        for move, leaf in self.into.get((piece, v), []):
            self.model.add(self.when(piece, v) >= move.arrival(leaf)).only_enforce_if(move.there)

    def leaves_when_ready(self, piece: int, v: int) -> None:
        """(5): it leaves no sooner."""
        for move in self.out.get((piece, v), []):
            self.model.add(move.starts[0] >= self.when(piece, v)).only_enforce_if(move.there)

    def links_take_turns(self) -> None:
        """(6): a link, and a group, carries one transfer at a time."""
        busy: dict[int, list[Any]] = {}
        for move in self.moves:
            for r, hop, begin, end in resources(self.problem, move.route, move.timing):
                interval = self.model.new_optional_fixed_size_interval_var(
                    move.starts[hop] + begin, end - begin, move.there, ""
                )
                busy.setdefault(r, []).append(interval)
        for intervals in busy.values():
            if len(intervals) > 1:
                self.model.add_no_overlap(intervals)

    def hops_in_order(self, move: OptionalTransfer) -> None:
        """(7): where hops may wait, each begins when the one before has delivered."""
        for (sooner, later), (begin, end) in zip(
            pairwise(move.starts), pairwise(self._hops_took(move.route, move.timing)), strict=True
        ):
            self.model.add(later >= sooner + end - begin)

    def alike_in_order(self) -> None:
        """(8), symmetry breaking: pieces of one block and one size can be exchanged, so they come to one node in the
        order of their numbers (sums for one goal: they leave one member so)."""
        problem = self.problem
        last: dict[tuple[int, int], int] = {}
        for piece in range(len(problem.size)):
            before = last.get((problem.block[piece], problem.size[piece]))
            last[problem.block[piece], problem.size[piece]] = piece
            if before is None:
                continue
            wanted = problem.wanters[piece]
            if wanted:
                self.model.add(self.when(before, wanted[-1]) <= self.when(piece, wanted[-1]))

    # points

    def hint(self, rows: Sequence[Row]) -> None:
        """Begin with this schedule."""
        unit = self.problem.unit
        known = {(row.piece, row.route, row.adds): row for row in rows}
        for move in self.moves:
            row = known.get((move.piece, move.number, move.adds))
            self.model.add_hint(move.there, row is not None)
            if row is not None:
                for variable, start in zip(move.starts, row.starts, strict=True):
                    self.model.add_hint(variable, min(max(start // unit, 0), self.horizon))

    def rows(self, solver: Any) -> list[Row]:
        """The transfers of a solved model, starts in ticks."""
        unit = self.problem.unit
        return [
            Row(move.piece, move.number, tuple(solver.value(s) * unit for s in move.starts), move.adds)
            for move in self.moves
            if solver.value(move.there)
        ]
