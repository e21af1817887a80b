"""One question: is there a plan of S steps and R rounds for C chunks? Counting first, then the program that fits."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from synth.options import RunOptions
from synth.solvers import program
from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.problem.blocks import EVERYONE
from synth_peers.sccl.check.counted_steps import Question, chunks_of_a_block, fault_of
from synth_peers.sccl.programs import flows, sums, trees
from synth_peers.sccl.programs.counting_proof import Certificate, Refuter
from synth_peers.sccl.programs.one_chunk import OneChunk
from synth_peers.sccl.programs.plan import Plan, Row, reversed_in_time, stretched
from synth_peers.sccl.programs.rank_arcs import UNREACHABLE, RankArcs, rank_arcs

Answer = Literal["feasible", "infeasible", "limit"]
QUICK = 0.25  # part of the time that is left for a way that finds plans but proves nothing
MIRRORED = 0.6  # the same for an allreduce that is a mirror image, which finds most plans
BRIEF = 0.1  # the same before there is a quick way to refute
PRICED = 0.9  # the same for prices of one chunk, which only refute
LARGEST_SUMS = 50_000  # variables of the exact allreduce program that are worth building


@dataclass(frozen=True)
class Decided:
    """``plan`` if feasible. If infeasible, the ``certificate`` if counting shows it, otherwise it is a solver's word.
    ``words`` say how it was found."""

    answer: Answer
    plan: Plan | None = None
    certificate: Certificate | None = None
    words: str = ""


@dataclass
class Decider:
    """Answers of one instance, remembered: more steps, more rounds and fewer chunks are never harder."""

    instance: FabricInstance
    options: RunOptions
    arcs: RankArcs = field(init=False)
    refuter: Refuter = field(init=False)
    one_chunk: OneChunk = field(init=False)
    found: list[Plan] = field(default_factory=list)
    refuted: list[tuple[Question, Certificate | None]] = field(default_factory=list)
    build_s: float = 0.0
    solve_s: float = 0.0

    def __post_init__(self) -> None:
        self.arcs = rank_arcs(self.instance.machine)
        self.refuter = Refuter(self.instance, self.arcs)
        self.one_chunk = OneChunk(self.arcs, self.instance.members, self.copies_allowed)

    @property
    def solver(self) -> str:
        """The solver's name in words."""
        from synth.solvers.catalogue import known_solvers

        return known_solvers()[self.options.solver].title if self.options.solver else ""

    @property
    def unit(self) -> int:
        """Chunks come in multiples of this: an alltoall's in N."""
        return len(self.instance.members) if self.instance.collective == "alltoall" else 1

    @property
    def fewest_steps(self) -> int:
        """The greatest distance that something has to go."""
        hops, members = self.arcs.hops, list(self.instance.members)
        far = 1
        for origin, goal in zip(self.instance.blocks.origin.tolist(), self.instance.blocks.goal.tolist(), strict=True):
            one, other = (members if end == EVERYONE else [end] for end in (origin, goal))
            far = max(far, int(hops[one][:, other].max()))
        return far

    @property
    def copies_allowed(self) -> bool:
        """Whether complete sums may replace what a rank holds."""
        return bool(self.options.method.get("copies", True))

    def countable(self, question: Question) -> Certificate | None:
        """A proof by counting, from this question or a remembered one."""
        certificate = self.refuter.refuted(question)
        if certificate is not None:
            self._remember_refuted(question, certificate)
        return certificate

    def decide(self, question: Question) -> Decided:
        """The answer within the time that is left. Raises ``RuntimeError`` when a solver fails."""
        steps, rounds, chunks = question
        if rounds < steps:
            return Decided("infeasible", words=f"{steps} steps take {steps} rounds at least")
        for plan in self.found:
            fewer, sooner, cut = plan.question
            if fewer <= steps and sooner <= rounds and cut == chunks:
                if plan.question != question and self.instance.collective != "allreduce":
                    plan = stretched(self.arcs, plan, steps, rounds)
                return Decided("feasible", plan, words="a plan found before")
        certificate = self.countable(question)
        if certificate is not None:
            return Decided("infeasible", certificate=certificate, words=f"by counting ({certificate['argument']})")
        if self._known_to_fail(question):
            return Decided("infeasible", words=f"{self.solver} refuted more steps or rounds for no more chunks")
        answer = self._by_program(question)
        if answer.plan is not None:
            self.found.append(answer.plan)
        elif answer.answer == "infeasible":
            self._remember_refuted(question, answer.certificate)
        return answer

    def hurry(self, part: float) -> _Hurry:
        """A context in which only this part of the time that is left may be used."""
        return _Hurry(self, part)

    def _remember_refuted(self, question: Question, certificate: Certificate | None) -> None:
        if all(question != known for known, _ in self.refuted):
            self.refuted.append((question, certificate))

    def _by_program(self, question: Question) -> Decided:
        _, _, chunks = question
        copies = chunks_of_a_block(self.instance, chunks)
        if self.instance.collective == "allreduce":
            return self._allreduce(question)
        if self.instance.collective in ("alltoall", "gather", "scatter"):
            return self._exact(question, lambda steps, rounds: self._flows(steps, rounds, copies))
        return self._exact(question, lambda steps, rounds: self._trees(steps, rounds, copies))

    def _exact(self, question: Question, ask: Callable[[int, int], Decided | Plan | None]) -> Decided:
        """Fewer steps first, which is a smaller program and enough for more; the last question is the one asked."""
        steps, rounds, chunks = question
        for fewer in range(self.fewest_steps, steps):
            if self.refuter.refuted((fewer, rounds, chunks)) is None and not self._known_to_fail(
                (fewer, rounds, chunks)
            ):
                with _Hurry(self, QUICK):
                    plan = ask(fewer, rounds)
                if isinstance(plan, Plan):
                    return Decided("feasible", stretched(self.arcs, plan, steps, rounds), words=f"by {self.solver}")
        plan = ask(steps, rounds)
        if isinstance(plan, Plan):
            return Decided("feasible", plan, words=f"by {self.solver}")
        return plan or Decided("limit")

    def _known_to_fail(self, question: Question) -> bool:
        """Whether a question of no fewer steps, no fewer rounds and no more chunks was refuted."""
        steps, rounds, chunks = question
        return any(s >= steps and r >= rounds and c <= chunks for (s, r, c), _ in self.refuted)

    def _solved(
        self, model: Any, read: Callable[[Sequence[int]], Sequence[Row]], rounds: Sequence[int], copies: int
    ) -> Decided | Plan | None:
        """The plan of a model's point, a refutation, or None for no answer in time."""
        solved = program.solve(model, self.options)
        self.build_s += solved.build_s
        self.solve_s += solved.solve_s
        if solved.answer == "feasible":
            length = tuple(int(solved.value[x]) for x in rounds)
            return Plan(length, copies * self.unit, copies, tuple(read(solved.value)))
        if solved.answer == "infeasible":
            return Decided("infeasible", words=f"{self.solver} proves it infeasible")
        return None

    def _trees(self, steps: int, rounds: int, copies: int) -> Decided | Plan | None:
        blocks = self.instance.blocks
        reducing = bool((blocks.origin == EVERYONE).any())
        arcs = self.arcs.reversed() if reducing else self.arcs
        ends = (blocks.goal if reducing else blocks.origin).tolist()
        origins = [v for v in ends for _ in range(copies)]
        with _Building(self):
            model = trees.build(arcs, origins, self.instance.members, steps, rounds)
        found = self._solved(model.program, _reader(model), model.rounds, copies)
        if reducing and isinstance(found, Plan):
            backwards = reversed_in_time([row[:3] for row in found.sends], steps)
            return replace(found, rounds=found.rounds[::-1], sends=tuple(backwards))
        return found

    def _flows(self, steps: int, rounds: int, copies: int) -> Decided | Plan | None:
        scatters = self.instance.collective == "scatter"
        arcs = self.arcs.reversed() if scatters else self.arcs
        chunks: dict[int, dict[int, list[int]]] = {}
        blocks = self.instance.blocks
        for b, (origin, goal) in enumerate(zip(blocks.origin.tolist(), blocks.goal.tolist(), strict=True)):
            u, v = (goal, origin) if scatters else (origin, goal)
            chunks.setdefault(v, {})[u] = list(range(b * copies, (b + 1) * copies))
        with _Building(self):
            model = flows.build(arcs, chunks, steps, rounds)
        found = self._solved(model.program, _reader(model), model.rounds, copies)
        if scatters and isinstance(found, Plan):
            backwards = sorted((steps - 1 - s, i, e, False) for s, i, e, _ in found.sends)
            return replace(found, rounds=found.rounds[::-1], sends=tuple(backwards))
        return found

    def _allreduce(self, question: Question) -> Decided:
        """Half of the steps to sum up to roots and the same backwards to spread, not for long; then what one chunk
        costs, the halves again, and the exact program."""
        steps, rounds, chunks = question
        decided = None
        if chunks > 1 and self.one_chunk.fits(steps, rounds):
            decided = self._halves(question, BRIEF) or self._too_dear(question)
        decided = decided or self._halves(question, MIRRORED)
        if decided is not None:
            return decided
        members = len(self.instance.members)
        size = chunks * steps * members * (self.arcs.nodes + self.arcs.count)
        if size > LARGEST_SUMS:
            return Decided("limit", words=f"the exact program would have {size} variables")
        with _Building(self):
            model = sums.build(self.arcs, self.instance.members, chunks, steps, rounds, self.copies_allowed)
        found = self._solved(model.program, model.sends, model.rounds, chunks)
        if isinstance(found, Plan):
            return Decided("feasible", found, words=f"sums in place by {self.solver}")
        useful = members * (members - 1)
        if found and not self.copies_allowed and steps >= useful and chunks == 1:
            words = f"{found.words}, and so in any number of steps: each that is of use lets one of {members} sums grow"
            return replace(found, words=f"{words}, from 1 contribution to {members}")
        return found or Decided("limit")

    def _halves(self, question: Question, part: float) -> Decided | None:
        """A plan that is a mirror image, within this part of the time that is left for every kind of roots."""
        steps, rounds, chunks = question
        if self.copies_allowed and self.arcs.two_way:
            for roots in self._roots(chunks):
                with _Hurry(self, part):
                    plan = self._sums_then_spreads(steps, rounds, roots)
                if plan is not None:
                    return Decided("feasible", plan, words=f"trees to roots and back by {self.solver}")
        return None

    def _too_dear(self, question: Question) -> Decided | None:
        """A refutation by prices at which one chunk costs too much, for this number of chunks and maybe fewer."""
        with _Hurry(self, PRICED):
            fewest, build_s, solve_s = self.one_chunk.impossible(question, lambda: self.options)
        self.build_s += build_s
        self.solve_s += solve_s
        if fewest is None:
            return None
        certificate = self.one_chunk.certificate(*question[:2])
        if certificate is not None and fault_of(self.instance, (*question[:2], fewest), certificate) is not None:
            certificate = None
        self._remember_refuted((*question[:2], fewest), certificate)
        who = f"{self.solver} proves" if certificate is None else "cases prove"
        return Decided("infeasible", None, certificate, f"{who} that one chunk costs more than a {fewest}th of all")

    def _roots(self, chunks: int) -> Iterator[list[int | None]]:
        """Roots of the chunks: an equal share each (what an allgather has), or free ones."""
        members = self.instance.members
        if chunks % len(members) == 0:
            yield [v for v in members for _ in range(chunks // len(members))]
        yield [None] * chunks

    def _sums_then_spreads(self, steps: int, rounds: int, roots: Sequence[int | None]) -> Plan | None:
        """Spreading in half of the steps and rounds, and its mirror image before it. None if there is none in time."""
        half = steps // 2
        room = min(rounds // 2, (rounds - steps % 2) // 2)
        if half < 1 or room < half or (half == 1 and self.fewest_steps > 1) or int(self.arcs.hops.max()) >= UNREACHABLE:
            return None
        for fewer in (half, *range(self.fewest_steps, half)):
            with _Building(self):
                model = trees.build(self.arcs, roots, self.instance.members, fewer, room)
            with _Hurry(self, MIRRORED):
                found = self._solved(model.program, _reader(model), model.rounds, len(roots))
            if isinstance(found, Plan):
                return stretched(self.arcs, self._with_mirror_image(found), steps, rounds)
            if found is not None and fewer == half:
                return None
        return None

    def _with_mirror_image(self, spread: Plan) -> Plan:
        """Every chunk's tree up to its root and down again."""
        steps = len(spread.rounds)
        back = {pair: e for e, pair in enumerate(_ends(self.arcs))}
        opposite = [back[v, u] for u, v in _ends(self.arcs)]
        up = [(steps - 1 - s, i, opposite[e], True) for s, i, e, _ in spread.sends]
        down = [(steps + s, i, e, False) for s, i, e, _ in spread.sends]
        return replace(spread, rounds=(*spread.rounds[::-1], *spread.rounds), sends=tuple(sorted(up + down)))


def _reader(model: trees.Trees | flows.Flows) -> Callable[[Sequence[int]], list[Row]]:
    """What a model's point says is sent, as rows of a plan that add nothing."""
    return lambda value: [(s, i, e, False) for s, i, e in model.sends(value)]


def _ends(arcs: RankArcs) -> list[tuple[int, int]]:
    return list(zip(arcs.tail.tolist(), arcs.head.tolist(), strict=True))


class _Hurry:
    """While it lasts, the decider has only a part of the time that is left."""

    def __init__(self, decider: Decider, part: float) -> None:
        self.decider, self.part, self.kept = decider, part, decider.options

    def __enter__(self) -> None:
        left = self.kept.remaining()
        if left is not None and self.part < 1:
            spent = (self.kept.time_limit_s or 0.0) - left
            self.decider.options = replace(self.kept, time_limit_s=spent + left * self.part)

    def __exit__(self, *_: object) -> None:
        self.decider.options = self.kept


class _Building:
    """Adds the time that it lasts to the decider's building."""

    def __init__(self, decider: Decider) -> None:
        self.decider = decider

    def __enter__(self) -> None:
        self.started = time.monotonic()

    def __exit__(self, *_: object) -> None:
        self.decider.build_s += time.monotonic() - self.started
