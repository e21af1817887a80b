"""The one search for the fewest steps: horizons upwards from a proven bound, each decided by a program.

A family states how one horizon is decided; the search keeps the bound, the incumbent, the words of the proof, the curve
of both over time, and says why it ended. ``infeasible`` is a proof for all solutions; ``restricted`` says only that the
class of solutions the program searches (invariant under symmetries, rooted trees, …) holds none, which proves nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from synth.errors import SizeLimitError
from synth.method import Outcome, Termination
from synth.options import RunOptions
from synth.solvers import model_file

Answer = Literal["feasible", "infeasible", "restricted", "limit", "error"]


@dataclass
class Decision:
    """What the program says of one horizon. ``solution`` when feasible, ``by`` whom where it is not the solver's;
    ``message`` in words (for ``restricted``: which class holds none). ``certificate`` when a refutation can be derived
    again without a solver, then with its ``proof`` in words. Times in seconds."""

    answer: Answer
    solution: Any = None
    message: str | None = None
    certificate: Mapping[str, Any] | None = None
    proof: str | None = None
    by: str | None = None
    build_s: float = 0.0
    solve_s: float = 0.0


@dataclass(frozen=True)
class Proven:
    """A lower bound, what proves it in words, and the certificate if the check can derive it again."""

    steps: int
    proof: str
    certificate: Mapping[str, Any] | None = None


@dataclass(frozen=True)
class HorizonProgram:
    """A program that decides horizons, and what its solutions are.

    ``decide`` answers for one horizon; ``by`` names the solver in proofs, ``unit`` what is counted ("timesteps");
    ``size`` counts a solution's. ``hold`` makes the run's own solution of one that the program finds (usually the
    same): then the run holds incumbent and bound in case it is stopped (:class:`synth.clock.deadline.Held`).
    """

    decide: Callable[[int], Decision]
    by: str
    unit: str
    size: Callable[[Any], int]
    hold: Callable[[Any], Any] | None = None


@dataclass(frozen=True)
class Incumbent:
    """A solution from elsewhere (None: there is none); ``origin`` says where it is from."""

    solution: Any = None
    origin: str = ""


NO_INCUMBENT = Incumbent()


def fewest(
    program: HorizonProgram,
    proven: Proven,
    options: RunOptions,
    incumbent: Incumbent = NO_INCUMBENT,
    *,
    horizon: int | None = None,
    most: int | None = None,
    seek: bool = False,
) -> Outcome:
    """The fewest steps, or with ``horizon`` the answer for that number alone, for which the run holds nothing.

    Horizons above ``most`` are not tried.
    With ``seek`` a horizon that stays undecided does not end the search: the time that is left goes into horizons
    between it and the incumbent, where a solution improves the incumbent and a refutation the bound.
    Below ``proven`` the answer is ``infeasible`` without asking the program. Raises ``RuntimeError`` when the program
    answers ``error`` and :class:`SizeLimitError` when it is too large and there is no incumbent.
    """
    if horizon is not None:
        if horizon < proven.steps:
            words = f"{horizon} {program.unit} are fewer than the proven bound {proven.steps}: {proven.proof}"
            return Outcome("infeasible", None, float(proven.steps), proven.proof, proven.certificate, words)
        program = replace(program, hold=None)
    search = _Search(program, proven, options, incumbent.solution)
    if incumbent.solution is not None:
        search.notes.append(f"incumbent {program.size(incumbent.solution)} by {incumbent.origin}")
    return search.one(horizon) if horizon is not None else search.upwards(most, seek)


@dataclass
class _Search:
    """The state of one search: the best bound and solution so far, the words about both, seconds spent."""

    program: HorizonProgram
    proven: Proven
    options: RunOptions
    incumbent: Any
    notes: list[str] = field(default_factory=list)
    build_s: float = 0.0
    solve_s: float = 0.0

    def size(self, solution: Any) -> int:
        """The steps of a solution."""
        return self.program.size(solution)

    def ask(self, horizon: int) -> Decision:
        """One decision, with its times and words kept, and what it proves."""
        program = self.program
        self.note()
        with model_file.deciding(f"is there a solution of {horizon} {program.unit}?"):
            decision = Decision("limit") if self.options.out_of_time() else program.decide(horizon)
        self.build_s += decision.build_s
        self.solve_s += decision.solve_s
        if decision.answer == "error":
            raise RuntimeError(decision.message or f"{program.by} failed")
        if decision.answer == "feasible":
            self.incumbent = decision.solution
            self.notes = [f"schedule of {self.size(decision.solution)} {program.unit} by {decision.by or program.by}"]
        if decision.message:
            self.notes.append(decision.message)
        if decision.answer == "infeasible" and horizon + 1 > self.proven.steps:
            proof = decision.proof or f"{program.by} proves {horizon} {program.unit} infeasible"
            self.proven = Proven(horizon + 1, proof, decision.certificate)
        if decision.answer == "limit":
            self.notes.append(f"{horizon} {program.unit} undecided within the limit")
        self.note()
        return decision

    def one(self, horizon: int) -> Outcome:
        """Is there a solution of this many steps?"""
        decision = self.ask(horizon)
        match decision.answer:
            case "feasible":
                return self.ended("finished")
            case "infeasible":
                if self.proven.proof not in self.notes:
                    self.notes.append(self.proven.proof)
                return self.ended("infeasible")
            case "restricted":
                return self.ended("finished")
        return self.ended("time_limit")

    def upwards(self, most: int | None, seek: bool) -> Outcome:
        """Horizons from the bound to the incumbent. One that only a restricted class refutes leaves the bound there."""
        horizon, undecided = self.proven.steps, False
        while self.incumbent is None or self.size(self.incumbent) > horizon:
            if most is not None and horizon > most:
                break
            try:
                decision = self.ask(horizon)
            except SizeLimitError as error:
                if self.incumbent is None:
                    raise
                self.notes.append(str(error))
                return self.ended("size_limit")
            if decision.answer == "limit":
                undecided = True
                if not seek or self.incumbent is None or self.options.out_of_time():
                    break
            horizon += 1
        return self.ended("time_limit" if undecided else "finished")

    def note(self) -> None:
        """The curve of incumbents and bounds, and what the run holds."""
        hold, found = self.program.hold, self.incumbent
        if hold is not None:
            held = self.options.held
            held.offer_bound(float(self.proven.steps), self.proven.proof, self.proven.certificate)
            if found is not None:
                held.offer(lambda: hold(found), self.size(found), "; ".join(self.notes))
        self.options.progress.note(
            None if self.incumbent is None else self.size(self.incumbent), float(self.proven.steps)
        )

    def ended(self, termination: Termination) -> Outcome:
        """The outcome; optimal whenever incumbent and bound meet."""
        proven = self.proven
        if self.incumbent is not None and self.size(self.incumbent) <= proven.steps:
            termination = "optimal"
        return Outcome(
            termination, self.incumbent, float(proven.steps), proven.proof, proven.certificate,
            "; ".join(self.notes) or None, self.build_s, self.solve_s,
        )  # fmt: skip
