"""Method ``steps``: SCCL's question for any collective, and the front of steps against rounds a chunk.

With ``steps``, ``rounds`` and ``chunks`` it is one question, answered by a plan or a proof that there is none. What is
left out is searched: the most chunks, the fewest rounds, the fewest steps. With none of them, or ``pareto=on``, it is
the front: from the fewest steps on, for every number of steps the fewest rounds a chunk among R <= S + ``extra``
(SCCL's k-synchronous plans), or up to the fewest that counting leaves if these are more, kept where it is less than
with fewer steps; every corner with the refutation of the next better one. The plan becomes a schedule in seconds, and
the quickest corner's is returned.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np

from synth.errors import SizeLimitError, UnsupportedError
from synth.method import Outcome, Termination
from synth.options import RunOptions
from synth.solvers import cpsat
from synth.solvers.catalogue import takes
from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.plans.first_schedule import hold_first
from synth_models.fabric.scheduling.chunks import seconds
from synth_models.fabric.solution import Schedule
from synth_peers.sccl.check.counted_steps import MOST_STEPS, Question, chunks_of_a_block, rounds_a_chunk
from synth_peers.sccl.check.plan import HOPS, JOINING, LENGTHS, PARTS, PATHS, SOLVER, TIMED
from synth_peers.sccl.programs.counting_proof import Certificate
from synth_peers.sccl.programs.one_question import Decided, Decider
from synth_peers.sccl.programs.plan import Plan, packed, schedule_of, synchronous_seconds

MANY = 10**6  # rounds, beside which it does not matter that the first and last cannot be used
SLICE = 0.3  # part of the time that is left for one of several questions
MOST_CORNER_STEPS = 3  # steps beyond the fewest that the front looks at unless told
NUMBER = {"hops": HOPS, "paths": PATHS, "parts": PARTS, "timed": TIMED, "lengths": LENGTHS, "joining": JOINING}
_NONE = np.zeros(0, dtype=np.int64)
NOTHING = Schedule(1, _NONE, _NONE, _NONE, _NONE, _NONE.astype(bool), np.zeros(1, dtype=np.int64), _NONE)


def solve(instance: FabricInstance, options: RunOptions) -> Outcome:
    """Method ``steps``. Raises :class:`UnsupportedError` for machines and demands that SCCL's steps do not know."""
    if instance.special_switches:
        return Outcome("unsupported", message="steps knows switches that are all alike and add nothing")
    if not len(instance.blocks):
        return Outcome("finished", NOTHING, message="nothing has to move")
    try:
        chunks_of_a_block(instance, _asked(options, "chunks") or len(instance.members))
    except ValueError as error:
        raise UnsupportedError(str(error)) from None
    search = Search(instance, options)
    if not search.asks:
        hold_first(instance, options, "the search for a plan", 0)
    outcome = search.run()
    if takes(options.solver or "highs", "cp"):
        outcome.message = cpsat.with_caveat(outcome.message, options)
    return outcome


def _asked(options: RunOptions, name: str) -> int | None:
    value: int | None = options.method.get(name)
    return value


@dataclass
class Search:
    """One run: the questions it asks, and the plans and refutations it ends with."""

    instance: FabricInstance
    options: RunOptions
    decider: Decider = field(init=False)
    corners: list[Plan] = field(default_factory=list)
    claims: list[tuple[Question, Certificate | None]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    undecided: bool = False

    def __post_init__(self) -> None:
        self.decider = Decider(self.instance, self.options)

    @property
    def asks(self) -> bool:
        """Whether the options ask for given steps, rounds or chunks."""
        return any(_asked(self.options, name) is not None for name in ("steps", "rounds", "chunks"))

    def run(self) -> Outcome:
        """What the options ask for."""
        steps, rounds, chunks = (_asked(self.options, name) for name in ("steps", "rounds", "chunks"))
        if self.options.method.get("pareto") or steps is rounds is chunks is None:
            self.front(steps, rounds, chunks)
        elif steps and rounds and chunks:
            return self.one((steps, rounds, chunks))
        elif steps and rounds:
            self.most_chunks(steps, rounds)
        elif chunks:
            self.fewest(steps, rounds, chunks)
        else:
            raise UnsupportedError("steps or rounds alone leave too much open: give chunks too, or pareto=on")
        return self.ended()

    def one(self, question: Question) -> Outcome:
        """One question."""
        decided = self.decider.decide(question)
        if decided.plan is not None:
            self.corners.append(decided.plan)
            self.notes.append(f"{_words(question)}: {decided.words}")
            return self.ended()
        told = f"{_words(question)}: {decided.words or 'undecided within the limit'}"
        times = self.decider.build_s, self.decider.solve_s
        if decided.answer == "limit":
            return Outcome("time_limit", message=told, build_s=times[0], solve_s=times[1])
        told += f" (no plan, {self._whose(decided.certificate)})"
        if decided.certificate is None:
            return Outcome("infeasible", message=told, build_s=times[0], solve_s=times[1])
        steps, rounds, chunks = question
        certificate = {"argument": "steps", "steps": steps, "rounds": rounds, "chunks": chunks}
        certificate |= {("by" if key == "argument" else key): value for key, value in decided.certificate.items()}
        proof = f"that {_words(question)} are impossible, by counting ({certificate['by']}); of seconds it says nothing"
        return Outcome("infeasible", None, 0.0, proof, certificate, told, *times)

    def most_chunks(self, steps: int, rounds: int) -> None:
        """The most chunks for these steps and rounds."""
        unit = self.decider.unit
        best = self.best_at(steps, rounds, 1)
        if best is not None:
            self.corners.append(best)
        elif not self.undecided:
            self.notes.append(f"not even {unit} chunk{'s' if unit > 1 else ''} fit {steps} steps and {rounds} rounds")

    def best_at(self, steps: int, rounds: int, least: int) -> Plan | None:
        """The plan with the most chunks, ``least`` units or more, and the refutation of one unit more."""
        unit = self.decider.unit
        above = self.counted_out(steps, rounds, least)
        best: Plan | None = None
        low, high, unknown = least, above, above  # below low are plans, from high on none; from unknown on proven so
        middle = above - 1
        while low < high:
            decided = self.asked((steps, rounds, middle * unit))
            if decided.plan is not None:
                best, low = decided.plan, middle + 1
            else:
                high = middle
                unknown = middle if decided.answer == "infeasible" else unknown
            middle = (low + high) // 2
        if unknown > high:
            self.undecided = True
            told = f"{high * unit} to {(unknown - 1) * unit}" if unknown - high > 1 else f"{high * unit}"
            self.notes.append(f"{steps} steps, {rounds} rounds: {told} chunks undecided within the limit")
        self.claim((steps, rounds, unknown * unit))
        return best

    def counted_out(self, steps: int, rounds: int, least: int) -> int:
        """The least number of units, ``least`` or more, that counting shows to be too many."""
        unit = self.decider.unit
        above = least
        while self.decider.countable((steps, rounds, above * unit)) is None:
            above *= 2
        below = max(above // 2, least - 1)
        while above - below > 1:
            middle = (above + below) // 2
            proven = self.decider.countable((steps, rounds, middle * unit)) is not None
            below, above = (below, middle) if proven else (middle, above)
        return above

    def asked(self, question: Question) -> Decided:
        """One of several questions."""
        if self.options.out_of_time():
            return Decided("limit")
        with self.decider.hurry(SLICE):
            return self.decider.decide(question)

    def claim(self, question: Question) -> None:
        """Keep a refutation for the plan to carry."""
        for known, certificate in self.decider.refuted:
            if known == question:
                self.claims.append((known, certificate))
                return

    def fewest(self, steps: int | None, rounds: int | None, chunks: int) -> None:
        """The fewest rounds for given steps, the fewest steps for given rounds, or first the one, then the other."""
        most = self.most_rounds(chunks)
        if steps is None:
            found = self._least(self.decider.fewest_steps, lambda s: (s, rounds or s * most, chunks), rounds)
            if found is None or rounds:
                return
            steps = found
            self.corners.clear()
        self._least(steps, lambda r: (steps, r, chunks), None)

    def most_rounds(self, chunks: int) -> int:
        """As many rounds a step as let every chunk cross every arc."""
        return max(1, chunks_of_a_block(self.instance, chunks) * len(self.instance.blocks))

    def _least(self, first: int, question: Callable[[int], Question], most: int | None) -> int | None:
        """The least number whose question has a plan, and the refutation of the one before."""
        number = first
        while most is None or number <= most:
            decided = self.asked(question(number))
            if decided.plan is not None:
                self.corners.append(decided.plan)
                if number > first:
                    self.claim(question(number - 1))
                return number
            if decided.answer == "limit":
                self.undecided = True
                self.notes.append(f"{_words(question(number))}: undecided within the limit")
                return None
            number += 1
        return None

    def front(self, steps: int | None, rounds: int | None, chunks: int | None) -> None:
        """Corners from the fewest steps on, until no plan of any number of steps has fewer rounds a chunk."""
        extra = int(self.options.method.get("extra", 6))
        first = self.decider.fewest_steps
        best: Fraction | None = None
        floor = self.least_ratio()
        fewest_rounds = -int(-floor * self.decider.unit // 1)  # counting leaves no plan with fewer
        for number in range(first, (steps or first + MOST_CORNER_STEPS) + 1):
            here: Plan | None = None
            for total in range(number, max(number + extra, fewest_rounds) + 1):
                least = 1 if best is None else int(Fraction(total, self.decider.unit) / best) + 1
                found = self.best_at(number, total, least)
                if found is not None:
                    here, best = found, Fraction(total, found.chunks)
            if here is not None:
                self.corners.append(here)
            if (best is not None and best <= floor) or self.options.out_of_time():
                break
        if best is not None and best == floor:
            self.notes.append(f"no number of steps has fewer than {best} rounds a chunk")
        self.undecided |= self.options.out_of_time()

    def least_ratio(self) -> Fraction:
        """Rounds a chunk that counting leaves at least, whatever the number of steps: by Newton steps, as every
        refutation of a ratio has a ratio of its own that it refutes just so."""
        unit = self.decider.unit
        ratio = Fraction(1, 1000)
        while True:
            chunks = int(MANY / ratio) // unit * unit
            certificate = self.decider.refuter.refuted((MOST_STEPS, MANY, chunks))
            found = rounds_a_chunk(self.instance, certificate) if certificate is not None else ratio
            if found <= ratio:
                return ratio
            ratio = found

    def ended(self) -> Outcome:
        """The quickest corner's schedule, the front and the refutations beside it."""
        times = self.decider.build_s, self.decider.solve_s
        ended: Termination = "time_limit" if self.undecided else "finished"
        if not self.corners:
            message = "; ".join(self.notes) or "no plan found"
            if not (self.undecided or self.asks):
                raise UnsupportedError(f"{message} within the steps and rounds looked at: raise extra")
            return Outcome(
                "time_limit" if self.undecided else "infeasible", message=message, build_s=times[0], solve_s=times[1]
            )
        more = self._claims() | (self._front() if len(self.corners) > 1 else {})
        arcs = self.decider.arcs
        tried = [(plan, schedule_of(self.instance, arcs, plan, more)) for plan in self._cuttable()]
        plan, schedule = min(tried, key=lambda pair: seconds(self.instance, pair[1]))
        corners = ", ".join(f"({s}, {r}, {c})" for s, r, c in (corner.question for corner in self.corners))
        told = [f"(steps, rounds, chunks): {corners}"] if len(self.corners) > 1 else []
        told.append(f"plan of {_words(plan.question)}, at most "
                    f"{float(synchronous_seconds(self.instance, arcs, plan)):.6g} s step by step")  # fmt: skip
        told += [f"{_words(question)} are impossible: {self._whose(proof)}" for question, proof in self.claims]
        message = "; ".join(told + self.notes)
        return Outcome(ended, schedule, message=message, build_s=times[0], solve_s=times[1])

    def _cuttable(self) -> list[Plan]:
        """Corners that cut no block into more chunks than it has bytes."""
        least = int(self.instance.blocks.bytes.min())
        fit = [plan for plan in self.corners if plan.copies <= least]
        if not fit:
            raise SizeLimitError(f"blocks of {least} bytes cannot be cut into so many chunks")
        return fit

    def _whose(self, certificate: Certificate | None) -> str:
        return f"by counting, {certificate['argument']}" if certificate else f"{self.decider.solver}'s word"

    def _claims(self) -> dict[str, Any]:
        """The refutations as the check reads them."""
        if not self.claims:
            return {}
        machine = self.instance.machine
        rows = [(*question, NUMBER[proof["argument"]] if proof else SOLVER) for question, proof in self.claims]
        proofs = [proof for _, proof in self.claims if proof]
        lengths = [proof["length"] for proof in proofs if proof["argument"] == "paths"]
        parts = [proof["part"] for proof in proofs if proof["argument"] == "parts"]
        return _price_tables([proof for proof in proofs if "price" in proof]) | {
            "refuted": np.array(rows, dtype=np.int64).reshape(-1, 4),
            "refuted_length": np.array(lengths, dtype=np.int64).reshape(-1, machine.links),
            "refuted_part": np.array(parts, dtype=np.int64).reshape(-1, machine.nodes),
        }

    def _front(self) -> dict[str, Any]:
        """All corners' plans, one behind the other."""
        plans = [packed(self.decider.arcs, plan) for plan in self.corners]
        found: dict[str, Any] = {
            "front_steps": np.array([len(plan["rounds"]) for plan in plans], dtype=np.int64),
            "front_chunks": np.array([plan["chunks"] for plan in plans], dtype=np.int64),
            "front_sends": np.array([len(plan["step"]) for plan in plans], dtype=np.int64),
        }
        found |= {f"front_{key}": np.concatenate([plan[key] for plan in plans]) for key in
                  ("rounds", "step", "piece", "link")}  # fmt: skip
        adds = [plan.get("adds", np.zeros(len(plan["step"]), dtype=np.int8)) for plan in plans]
        return found | ({"front_adds": np.concatenate(adds)} if any(row.any() for row in adds) else {})


def _price_tables(timed: Sequence[Certificate]) -> dict[str, Any]:
    """The tables of the proofs by prices, one behind the other; nothing where there are none."""
    if not timed:
        return {}
    return {
        "refuted_tables": np.array([len(proof["price"]) for proof in timed], dtype=np.int64),
        "refuted_price": np.concatenate([proof["price"].reshape(-1) for proof in timed]),
        "refuted_of": np.concatenate([proof["of"] for proof in timed]),
    }


def _words(question: Question) -> str:
    steps, rounds, chunks = question
    return f"{steps} steps, {rounds} rounds, {chunks} chunks"
