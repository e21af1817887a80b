"""What methods are and hand back: targets, methods, outcomes, and what the check found.

A family (:mod:`synth.family`) has methods; third parties add more through the entry-point group ``synth.methods``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, get_args

from synth.options import Parameter, RunOptions
from synth.plugins import entry_points

if TYPE_CHECKING:
    from synth.clock.deadline import Held

Kind = Literal["program", "reference", "bound", "submitted"]
"""A method's; ``submitted`` is what somebody handed in, of no method of ours."""
Termination = Literal[
    "finished", "optimal", "infeasible", "time_limit", "size_limit", "unsupported", "error", "out_of_memory", "killed"
]
Need = Literal["milp", "miqcp", "cp", "highspy"]
"""What a method needs of its solver, and a solver can take: Pyomo models with linear rows (``milp``) or also quadratic
ones (``miqcp``), OR-Tools' ``CpModel`` (``cp``), or HiGHS's own interface, through which a program grows between two
solves or gives its dual prices (``highspy``)."""
SUBMITTED = "submitted"  # instead of a method's name
Target = str
"""``"module:name"``: where a part of a family is."""


def load(target: Target) -> Any:
    """What the target names, its module imported if it is not yet."""
    module, _, name = target.partition(":")
    return getattr(import_module(module), name)


@dataclass(frozen=True)
class Objective:
    """What is minimised, and in which unit."""

    name: str
    unit: str


@dataclass
class Outcome:
    """What a method hands back. Why it stopped, the point it holds and the bound it proved are separate facts.

    ``bound`` is a proven lower bound or None; ``bound_proof`` says in words by what. ``certificate`` is data with
    which the family can verify the bound again (a cut, say), beside a solution or alone. A bound without certificate is
    the word of the run's solver; where no solver ran, it counts as proven by nobody. ``made_by``: the method that made
    the solution, where that is not the one that ran, and behind it those that made its parts. ``beaten``: what else
    was made on the way, each by another method, for who improves solutions; no record holds it.
    """

    termination: Termination
    solution: Any = None
    bound: float | None = None
    bound_proof: str | None = None
    certificate: Mapping[str, Any] | None = None
    message: str | None = None
    build_s: float = 0.0
    solve_s: float = 0.0
    made_by: tuple[str, ...] | None = None
    beaten: tuple[Outcome, ...] = ()

    def take_over(self, held: Held) -> None:
        """Fill in what a run held when it had to stop, where it hands back none itself."""
        if self.termination not in ("time_limit", "out_of_memory"):
            return
        if self.solution is None and held.solution is not None:
            self.solution, self.made_by = held.solution(), held.made_by
            self.message = "; ".join(filter(None, (held.words, self.message)))
        if self.bound is None and held.bound is not None:
            self.bound, self.bound_proof, self.certificate = held.bound, held.bound_proof, held.certificate


@dataclass
class Verdict:
    """What the check found: the objective recomputed from the solution, facts about it, and its faults.

    ``unverified`` is what a stored record states and nobody can compute again, such as a solver's bound; families leave
    it empty.
    """

    value: float | None
    facts: dict[str, Any] = field(default_factory=dict)
    faults: list[str] = field(default_factory=list)
    unverified: list[str] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        """Whether nothing is wrong."""
        return not self.faults


@dataclass(frozen=True)
class Method:
    """One way to solve a family's instances.

    The function behind ``target`` takes ``(instance, RunOptions)`` and returns an :class:`Outcome`. ``needs`` are the
    kinds of model that it can hand to a solver, the best first: it runs with every solver that takes one of them
    (:func:`synth.solvers.catalogue.solvers_for`). It ``repeats`` if instance, options and seed alone decide the
    solution, as long as the time limit does not end it: then ``synth check`` can run it again
    (:mod:`synth.records.repetition`).
    """

    name: str
    kind: Kind
    summary: str
    target: Target
    needs: tuple[Need, ...] = ()
    parameters: tuple[Parameter, ...] = ()
    repeats: bool = False
    origin: str | None = None  # who else than this distribution it comes from: filled in where it is found
    folder: Path | None = None  # of a method in a file (synth.plugins.method_file): where the modules of its target are

    def __post_init__(self) -> None:
        """Raise ``ValueError`` for what no method can be: others write methods too."""
        if self.kind not in get_args(Kind) or (self.kind == "submitted") != (self.name == SUBMITTED):
            kinds = ", ".join(kind for kind in get_args(Kind) if kind != "submitted")
            raise ValueError(f"method {self.name}: kind = {self.kind!r}: must be one of {kinds}")
        if unknown := set(self.needs) - set(get_args(Need)):
            raise ValueError(
                f"method {self.name}: needs {unknown.pop()!r}: must be some of {', '.join(get_args(Need))}"
            )
        if not re.fullmatch(r"[A-Za-z0-9_.]+(:[A-Za-z0-9_]+)?", self.name):  # records' files are named for it
            raise ValueError(f"method {self.name!r}: a name has letters, digits and _ only")

    def load(self) -> Callable[[Any, RunOptions], Outcome]:
        """The function behind the method."""
        function: Callable[[Any, RunOptions], Outcome]
        function = load(self.target) if self.folder is None else entry_points.load_in(self.folder, self.target)
        return function


@dataclass(frozen=True)
class Certificates:
    """The checks of what a method of another distribution states, under a name that the family's own check does not
    know; found through the entry-point group ``synth.certificates``, named ``<family>.<name>``.

    Every check reads the instance and what a file says alone, imports no method, and raises ``ValueError`` on what is
    no proof. ``asked`` are the method's options whose values a certificate repeats when it says that the question which
    they ask has no answer. Family ``fabric`` looks for them.
    """

    name: str
    argument: Target | None = None  # (instance, bound, certificate) -> faults, where its ``argument`` is the name
    table: Target | None = None  # (instance, table) -> faults of what is beside a bound under the name
    plan: Target | None = None  # (instance, solution) -> Verdict without a value, of a plan whose ``kind`` is the name
    asked: tuple[str, ...] = ()


def by_name(*methods: Method) -> Mapping[str, Method]:
    """Methods as a read-only mapping from their names, in this order."""
    return MappingProxyType({method.name: method for method in methods})
