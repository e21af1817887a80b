"""Families: one per paper. A family ties an instance type to methods, a check and views of its solutions.

Families are found through the entry-point group ``synth.families``, so a distribution of its own can add one.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from synth.errors import Fault, InputError, UnsupportedError
from synth.instance import Instance
from synth.options import Parameter, RunOptions

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from synth.frames import Frames
    from synth.reproduction import Reproduction

ENTRY_POINT_GROUP = "synth.families"

Kind = Literal["program", "reference", "bound"]
Termination = Literal[
    "finished", "optimal", "infeasible", "time_limit", "size_limit", "unsupported", "error", "out_of_memory", "killed",
]  # fmt: skip


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
    the word of the run's solver; where no solver ran, it counts as proven by nobody.
    """

    termination: Termination
    solution: Any = None
    bound: float | None = None
    bound_proof: str | None = None
    certificate: Mapping[str, Any] | None = None
    message: str | None = None
    build_s: float = 0.0
    solve_s: float = 0.0


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

    ``target`` is ``"module:function"``, imported only when the method runs; the function takes
    ``(instance, RunOptions)`` and returns an :class:`Outcome`. ``solvers`` are the solvers it can use, default first.
    """

    name: str
    kind: Kind
    summary: str
    target: str
    solvers: tuple[str, ...] = ()
    parameters: tuple[Parameter, ...] = ()

    def load(self) -> Callable[[Any, RunOptions], Outcome]:
        """The function behind the method."""
        module, _, function = self.target.partition(":")
        return getattr(import_module(module), function)  # type: ignore[no-any-return]


class Family(ABC):
    """The problem class of one paper."""

    name: str
    title: str
    citation: str
    objective: Objective
    instance_type: type[Instance]
    methods: ClassVar[Mapping[str, Method]]
    default_methods: ClassVar[Sequence[str]]

    def method(self, name: str) -> Method:
        """The method of that name. Raises :class:`InputError` naming the known ones."""
        if name not in self.methods:
            raise InputError(f"unknown method {name!r} of family {self.name}; one of {', '.join(self.methods)}")
        return self.methods[name]

    def defaults_for(self, instance: Any) -> Sequence[str]:
        """The methods to run on this instance when the user names none."""
        return self.default_methods

    @abstractmethod
    def make(self, parameters: Mapping[str, str]) -> Instance:
        """An instance from ``key=value`` texts. Raises :class:`InputError` listing every fault."""

    @abstractmethod
    def check(self, instance: Any, solution: Any) -> Verdict:
        """Replay the solution from the instance alone."""

    @abstractmethod
    def check_bound(self, instance: Any, bound: float, certificate: Mapping[str, Any]) -> list[str]:
        """Verify a bound from its certificate; the faults found. Bounds without certificate are not passed here."""

    @abstractmethod
    def pack(self, solution: Any) -> dict[str, Any]:
        """The solution as plain values and flat numpy arrays; all that is needed to check it again."""

    @abstractmethod
    def unpack(self, instance: Any, packed: Mapping[str, Any]) -> Any:
        """The inverse of :meth:`pack`. Raises ``ValueError`` or ``KeyError`` on data that is no solution."""

    @abstractmethod
    def table(self, instance: Any, solution: Any) -> pd.DataFrame:
        """The solution as one flat table with stable columns."""

    def flow_table(self, instance: Any, solution: Any) -> pd.DataFrame:
        """What flows over the links, as one flat table beside :meth:`table`. By default there is none:
        raises :class:`InputError`."""
        raise InputError(f"--flows: the table of family {self.name} holds everything; it has no flows beside it")

    @abstractmethod
    def describe(self, instance: Any, solution: Any) -> str:
        """The solution for a person to read, in plain text."""

    @abstractmethod
    def plot(self, instance: Any, solution: Any, title: str) -> Figure:
        """The solution drawn."""

    def frames(self, instance: Any, solution: Any) -> Frames | None:
        """The solution as an animation for a study's report, or None (the default) where it cannot be stepped through.

        Only for the page: nothing is checked against it. Called for one record per instance; return None rather
        than build what is far too large to look at. See :class:`synth.frames.Frames`.
        """
        return None

    def reproduce(self, page: Reproduction) -> None:
        """Put the paper's printed figures beside ours . By default raises :class:`UnsupportedError`."""
        raise UnsupportedError(f"family {self.name} has no reproduction of its paper")


@cache
def _family_entries() -> dict[str, EntryPoint]:
    return {entry.name: entry for entry in entry_points(group=ENTRY_POINT_GROUP)}


def family_names() -> list[str]:
    """Names of all installed families."""
    return sorted(_family_entries())


@cache
def get_family(name: str) -> Family:
    """The installed family of that name. Raises :class:`InputError` naming the known ones."""
    entry = _family_entries().get(name)
    if entry is None:
        raise InputError(
            [Fault("", f"unknown family {name!r}; one of {', '.join(family_names()) or '(none installed)'}")]
        )
    family = entry.load()
    if not isinstance(family, Family):
        raise InputError(f"the entry point of family {name!r} is not a Family")
    return family
