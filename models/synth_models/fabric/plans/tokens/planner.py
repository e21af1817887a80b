"""Plans of the tokens of a layer of experts: out to the experts and back, each with a certified bound.

A token goes once to every box in which an expert of it is, over the rail that plan and bound leave room on, and from
there to the ranks that want it (mode ``any``). What the experts make of it goes the same way back, and is added up
inside the box (mode ``sum``): the plan of the way out on the reversed machine, played backwards.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from synth.arrays import IntArray
from synth.errors import InputError, UnsupportedError
from synth.method import Verdict
from synth.text.input_file import InputFile
from synth_models.fabric.bounds.proven import Proven
from synth_models.fabric.bounds.tokens import Crossing, TokenBounds
from synth_models.fabric.instance import MOST_BYTES, FabricInstance
from synth_models.fabric.plans.certified import Certified
from synth_models.fabric.plans.demands.balanced_plan import cuts
from synth_models.fabric.plans.demands.decomposition import decomposed
from synth_models.fabric.plans.demands.layout import Layout
from synth_models.fabric.plans.tokens.batches import Batches, Pieces, batches_of, dealt, pieces_of
from synth_models.fabric.plans.tokens.classes import Classes, of_routing, pairs_of
from synth_models.fabric.plans.tokens.statement import Ends, ends_of, schedule_of, stated
from synth_models.fabric.plans.tokens.timeline import Starts, placed
from synth_models.fabric.plans.tokens.token_table import Draw, Tokens, drawn, drawn_experts, read_experts, read_tokens
from synth_models.fabric.problem.clock import ROOM
from synth_models.fabric.problem.exact import float_above
from synth_models.fabric.solution import Schedule

CELLS = 16  # of the time on the rails, that no batch is longer than,
OUT_BYTES, BACK_BYTES = 7168 + 7168 // 128 * 4, 2 * 7168  # of DeepSeek-V3: FP8 with a scale for 128, and BF16
INSIDE = 4  # and parts of what stays in its box
QUANTA = 128  # that the longest row or column of a decomposition is of


class Made(NamedTuple):
    """What of a plan serves both ways: the copies of every class, which go in which batch, and what must cross."""

    classes: Classes
    batches: Batches
    pieces: Pieces
    crossing: Crossing
    alone: IntArray


@dataclass(frozen=True, eq=False)
class PlannedTokens(Certified):
    """One way of the tokens, out (``dispatch``) or back (``combine``).

    ``seconds``: the completion time, rounded up; ``token_bytes``: of every token; ``matrix_bytes``: from rank to rank
    if every wanter had a copy of its own from the source, shape (ranks, ranks), box after box.
    """

    planner: TokenPlanner
    name: str
    token_bytes: int
    seconds: float
    proven: Proven
    _made: Made
    _starts: Starts

    @property
    def by(self) -> str:
        """What kind of plan it is."""
        return "tokens"

    @property
    def tried(self) -> tuple[str, ...]:
        """The references that ran: none."""
        return ()

    @property
    def is_back(self) -> bool:
        """Whether it is the way back."""
        return self.name == "combine"

    @property
    def matrix_bytes(self) -> IntArray:
        """Bytes from rank to rank, each copy on its own."""
        alone = self._made.alone.T if self.is_back else self._made.alone
        return alone * self.token_bytes

    @property
    def nic_bytes(self) -> int:
        """The most bytes that come into a box, or leave it."""
        crossing = self._made.crossing
        return int(max(crossing.enter_box.max(), crossing.leave_box.max())) * self.token_bytes

    @cached_property
    def _ends(self) -> Ends:
        return ends_of(self._made.classes, self.planner.layout)

    @cached_property
    def instance(self) -> FabricInstance:
        """The tokens as traffic: a block for each rank and all copies that the same ranks of a box want of it."""
        return stated(self.planner.machine, self._made.classes, self._ends, self.token_bytes, self.is_back)

    @cached_property
    def schedule(self) -> Schedule:
        """Transfers with exact times: a solution of the instance, as the family's check replays it."""
        made, back = self._made, self._ends.several if self.is_back else None
        layout = self.planner.reversed_layout if self.is_back else self.planner.layout
        return schedule_of(layout, made.classes, (made.batches, made.pieces, self._starts), self.token_bytes, back)

    def numbered(self, block: IntArray) -> Schedule:
        """The schedule where every class has this number of a block, shape (classes,)."""
        return replace(self.schedule, piece_block=block[self.schedule.piece_block])

    def check(self) -> Verdict:
        """Replay the schedule and verify the bound's certificate, both from the instance alone."""
        if not len(self._made.classes.tokens):
            return Verdict(0.0, {}, [])
        return super().check()


class TokenPlanner:
    """Plan tokens on the machine of an instance of family ``fabric``, between the ranks of its process group.

    What depends on the machine alone (routes, cuts) is found once. Raises :class:`UnsupportedError` where boxes are
    unequal, or have no rails, or switches store.
    """

    def __init__(self, machine: FabricInstance) -> None:
        self.machine = machine
        self.layout = Layout.of(machine)
        there = copy(machine)
        there.__dict__["members"], there.__dict__["boxes"] = machine.members, machine.boxes
        there.__dict__["machine"] = machine.machine.reversed()
        self.reversed_layout = Layout.of(there)
        self._bounds = TokenBounds(machine)
        place = {int(rank): k for k, rank in enumerate(self.layout.node)}
        self.order = np.array([place[rank] for rank in machine.members], dtype=np.int64)

    @property
    def ranks(self) -> tuple[str, ...]:
        """Names of the ranks, in the order of the process group."""
        return tuple(self.machine.machine.names[rank] for rank in self.machine.members)

    @property
    def boxes(self) -> tuple[tuple[str, ...], ...]:
        """Names of the ranks of every box."""
        names = self.machine.machine.names
        return tuple(tuple(names[rank] for rank in box) for box in self.machine.boxes)

    def read(self, file: str, placement: str | None = None) -> Tokens:
        """The tokens of a table. Raises :class:`InputError`."""
        return read_tokens(self.machine, InputFile(file), None if placement is None else InputFile(placement))

    def drawn(self, **numbers: float) -> Tokens:
        """Drawn tokens (:class:`Draw`). Raises :class:`InputError`."""
        return drawn(self.machine, _draw(numbers))

    def experts(self, file: str) -> Tokens:
        """The tokens of a table that names experts, these as goals. Raises :class:`InputError`."""
        return read_experts(self.machine, InputFile(file))

    def drawn_experts(self, **numbers: float) -> Tokens:
        """Drawn tokens as :meth:`drawn`, experts as goals. Raises :class:`InputError`."""
        return drawn_experts(self.machine, _draw(numbers))

    def plan(
        self, source: IntArray, goals: IntArray, dispatch_bytes: int = OUT_BYTES, combine_bytes: int = BACK_BYTES
    ) -> tuple[PlannedTokens, PlannedTokens]:
        """Both ways of tokens: token t is at rank ``source[t]``, shape (tokens,), its experts are at the ranks
        ``goals[t]``, shape (tokens, most), -1 for none; ranks by their place in the process group. Raises
        :class:`InputError`."""
        made = self._batched(of_routing(source, goals, self.order, self.layout.boxes, self.layout.size))
        return (
            self._placed(made, "dispatch", dispatch_bytes, self.layout, made.crossing),
            self._placed(made, "combine", combine_bytes, self.reversed_layout, made.crossing.back),
        )

    def of_classes(self, classes: Classes, token_bytes: int, back: bool) -> PlannedTokens:
        """One way of classes of copies of so many bytes."""
        made = self._batched(classes)
        if back:
            return self._placed(made, "combine", token_bytes, self.reversed_layout, made.crossing.back)
        return self._placed(made, "dispatch", token_bytes, self.layout, made.crossing)

    def _batched(self, classes: Classes) -> Made:
        """The batches of all copies."""
        boxes, size = self.layout.boxes, self.layout.size
        sent, arrive, alone = pairs_of(classes, boxes, size)
        share = dealt(sent)
        fullest = share.sum(axis=2).max(axis=2)
        turns = max(int(fullest.sum(axis=0).max()), int(fullest.sum(axis=1).max()))
        quantum = max(turns // QUANTA, 1)
        stages = decomposed(-(-fullest // quantum) * quantum)
        until = max(turns, int(np.diagonal(sent.max(axis=2)).max(initial=0)) if boxes == 1 else 0)
        batches = batches_of(sent, share, stages, cuts(int(stages.length.sum()), CELLS), INSIDE, until)
        pieces = pieces_of(classes, batches, boxes)
        between = sent.sum(axis=2)
        np.fill_diagonal(between, 0)
        crossing = Crossing(classes.leave_rank, arrive, classes.leave_box, between.sum(axis=0))
        return Made(classes, batches, pieces, crossing, alone)

    def _placed(self, made: Made, name: str, token_bytes: int, layout: Layout, crossing: Crossing) -> PlannedTokens:
        """One way of the plan."""
        if int(made.classes.tokens.sum()) * token_bytes > MOST_BYTES:
            raise InputError(f"the tokens have more than {MOST_BYTES} bytes (256 TiB), the most that an instance holds")
        proven = self._bounds.strongest(crossing, token_bytes)
        if proven.seconds * layout.ticks_per_s > ROOM:
            raise UnsupportedError("the tokens take longer than the machine's ticks count")
        order = np.argsort(made.batches.turn, kind="stable")
        resources = layout.resources
        starts = placed(made.batches, order, token_bytes, layout.routes, layout.boxes, resources)
        seconds = float_above(Fraction(int(starts.ticks[0]), layout.ticks_per_s))
        return PlannedTokens(self, name, token_bytes, seconds, proven, made, starts)


def _draw(numbers: Mapping[str, float]) -> Draw:
    read: dict[str, Any] = {key: float(value) if key == "zipf" else int(value) for key, value in numbers.items()}
    return Draw(**read)
