"""The solvers the toolkit knows, found without importing any of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec

from synth.errors import SolverMissingError, one_of


@dataclass(frozen=True)
class SolverInfo:
    """One solver: the Pyomo interface that drives it (None for CP-SAT), its package and what it is for."""

    name: str
    title: str
    module: str
    package: str
    interface: str | None
    licence: str
    install: str

    @property
    def installed(self) -> bool:
        """Whether its package can be imported."""
        return find_spec(self.module) is not None

    @property
    def binding(self) -> str:
        """The module that a run with this solver imports."""
        return "ortools.sat.python.cp_model" if self.name == "cpsat" else self.module

    @property
    def version(self) -> str | None:
        """The installed version, or None."""
        try:
            return version(self.package)
        except PackageNotFoundError:
            return None


SOLVERS = {
    info.name: info
    for info in (
        SolverInfo("highs", "HiGHS", "highspy", "highspy", "highs", "free (MIT)", "pip install 'highspy>=1.12,<1.14'"),
        SolverInfo("cpsat", "OR-Tools CP-SAT", "ortools", "ortools", None, "free (Apache 2)", "pip install ortools"),
        SolverInfo("scip", "SCIP", "pyscipopt", "pyscipopt", "scip_direct", "free (Apache 2)",
                   "pip install 'collective-synth[scip]'"),
        SolverInfo("gurobi", "Gurobi", "gurobipy", "gurobipy", "gurobi_direct",
                   "commercial; the pip licence takes 2000 variables", "pip install 'collective-synth[gurobi]'"),
    )
}  # fmt: skip


def require(name: str) -> SolverInfo:
    """The installed solver of that name. Raises :class:`SolverMissingError` if unknown or not installed."""
    info = SOLVERS.get(name)
    if info is None:
        raise SolverMissingError(f"unknown solver {name!r}; {one_of(name, SOLVERS)}")
    if not info.installed:
        raise SolverMissingError(f"solver {info.title} is not installed; {info.install}")
    return info


def preload(solvers: Sequence[str], chosen: str | None) -> None:
    """Import what a method with these solvers needs to run the chosen one: no time limit counts that, so that solvers
    are compared by solving alone. Programs that only HiGHS solves call it without Pyomo."""
    if chosen == "cpsat":
        import_module("ortools.sat.python.cp_model")
    elif chosen is not None and sum(SOLVERS[name].interface is not None for name in solvers) > 1:
        import_module("synth.solvers.guarded")
        import_module("pyomo.environ")
