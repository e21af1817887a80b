"""The solvers that are known here, ours and others', found without importing any of their packages."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import cache
from importlib import import_module
from types import MappingProxyType

from synth.errors import SolverMissingError, UnsupportedError, one_of
from synth.method import Need, load
from synth.plugins import entry_points
from synth.solvers.solver import WORDS, Solver

OURS = ("highs", "cpsat", "scip", "gurobi")  # modules beside this one


@cache
def known_solvers() -> Mapping[str, Solver]:
    """All solvers by name, installed or not: ours, then what other distributions add as ``synth.solvers``."""
    found: dict[str, Solver] = {}
    for name in OURS:
        found[name] = load(f"synth.solvers.{name}:SOLVER")
    for entry in entry_points.entries(entry_points.SOLVERS).values():
        solver = entry_points.load(entry_points.SOLVERS, entry, Solver)
        if solver is None:
            continue
        origin = entry_points.origin(entry)
        if solver.name != entry.name:
            entry_points.complain(entry_points.SOLVERS, entry.name, f"of {origin} names the solver {solver.name!r}")
        elif entry.name in found:
            entry_points.complain(
                entry_points.SOLVERS, entry.name, f"of {origin} is left out: synth has a solver of that name"
            )
        else:
            found[entry.name] = replace(solver, origin=origin)
    return MappingProxyType(found)


def solvers_for(needs: Iterable[Need]) -> tuple[str, ...]:
    """The solvers that take one of these, those of the first need first: a method's default is the first of all."""
    known = known_solvers().values()
    return tuple(dict.fromkeys(solver.name for need in needs for solver in known if need in solver.takes))


def takes(solver: str, need: Need) -> bool:
    """Whether the solver of that name takes such models."""
    return need in known_solvers()[solver].takes


def require(name: str, need: Need | None = None) -> Solver:
    """The installed solver of that name. Raises :class:`SolverMissingError` if unknown or not installed, and
    :class:`UnsupportedError` if it does not take what is needed."""
    solver = known_solvers().get(name)
    if solver is None:
        why = entry_points.complaint(entry_points.SOLVERS, name)
        words = f"unknown solver {name!r}; {one_of(name, known_solvers())}"
        raise SolverMissingError(f"{words}; {why}" if why else words)
    if not solver.installed:
        raise SolverMissingError(f"solver {solver.title} is not installed; {solver.install}")
    if need is not None and need not in solver.takes:
        others = ", ".join(known_solvers()[other].title for other in solvers_for([need]))
        raise UnsupportedError(f"{solver.title} does not take {WORDS[need]} ({need}); {others} can")
    return solver


def preload(needs: Iterable[Need], chosen: str | None) -> None:
    """Import what a method with these needs runs the chosen solver with: no time limit counts that, so that solvers are
    compared by solving alone. Programs written for highspy do without Pyomo."""
    solver = None if chosen is None else known_solvers()[chosen]
    if solver is not None and next((need for need in needs if need in solver.takes), None) != "highspy":
        for name in solver.imports:
            import_module(name)
