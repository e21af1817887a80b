"""What a solver is: data that says which models it takes, and where the function is that solves one."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from typing import get_args

from synth.method import Need

WORDS: dict[Need, str] = {
    "milp": "linear rows",
    "miqcp": "quadratic rows",
    "cp": "constraint models",
    "highspy": "programs written for highspy",
}


@dataclass(frozen=True)
class Solver:
    """One solver, stated in one file. Nothing here imports its package.

    ``target``, ``"module:name"``, solves a model. For ``milp`` and ``miqcp`` it takes a Pyomo model, the
    :class:`synth.options.RunOptions` and a :class:`Call`, and returns a :class:`synth.solvers.status.SolverResult`;
    where that has a point, the model's variables have its values. For ``cp`` it takes a ``CpModel``, the options and
    ``track``, and returns the result and what the point is read from by ``value(variable)``.
    ``warm_start``: it begins with a point that a program hands it; ``bound``: it proves bounds, optimality and that
    there is no point (what one without says of these counts for nothing); ``seed``: it takes the run's seed.
    """

    name: str
    title: str
    module: str  # whose presence says that it is installed
    package: str  # the distribution whose version a record states
    takes: frozenset[Need]
    target: str
    licence: str = ""
    install: str = ""
    warm_start: bool = False
    bound: bool = True
    seed: bool = True
    imports: tuple[str, ...] = ()  # modules that a run needs; no time limit counts their import
    library: str | None = None  # what every run with it imports, where that is not ``module``
    origin: str | None = None  # the distribution of others that it comes from: filled in where it is found

    def __post_init__(self) -> None:
        """Raise ``ValueError`` for what no solver takes: others write solvers too."""
        if not self.takes or not self.takes <= set(get_args(Need)):
            raise ValueError(f"solver {self.name}: takes = {sorted(self.takes)}: some of {', '.join(get_args(Need))}")

    @property
    def installed(self) -> bool:
        """Whether its package can be imported."""
        try:
            return find_spec(self.module) is not None
        except ModuleNotFoundError:  # a package above it
            return False

    @property
    def binding(self) -> str:
        """The module that a run with this solver imports."""
        return self.library or self.module

    @property
    def version(self) -> str | None:
        """The installed version, or None."""
        try:
            return version(self.package)
        except PackageNotFoundError:
            return None


@dataclass(frozen=True)
class Call:
    """How a program wants its model solved. ``factor``: the model's objective times it is the instance's, so that what
    the solver finds on its way goes into ``options.progress`` (None: it does not). ``quadratic``: some rows are.
    ``interior``: begin with an interior-point method where there is a choice."""

    factor: float | None = None
    quadratic: bool = False
    interior: bool = False
