"""Routes and wavelengths of one stage as 0/1 programs (a program file: it builds and solves nothing).

The stage is the one-stage all-to-all of Dai, Chen, Huang, Zhang (Lemma 1, see ``parts/one_stage.py``); the program asks
whether ``W`` wavelengths are enough.

==================  =======================  ==========================================================  ===========
paper               code                     index set                                                   unit
==================  =======================  ==========================================================  ===========
``m``               ``nodes``                one number                                                  nodes
``W``               ``wavelengths``          one number                                                  wavelengths
``x[u,v,d,l]``      ``use[u, v, d, l]``      circuit u -> v, direction it may take, wavelength           0/1
==================  =======================  ==========================================================  ===========

    (1) routed          sum_{d,l} x[u,v,d,l] = 1              for every circuit u -> v
    (2) link capacity   sum over circuits through e of x[u,v,d,l] <= 1     for every link e, direction d, wavelength l
    (3) in order        x[u_l,v_l,d,l] = 1      for circuits u_l -> v_l, l = 1, 2, …, that must cross the middle link

Strengthening: where the load bound leaves no hop to spare, longer directions are dropped (``shortest_directions``).
(3) is symmetry breaking: wavelengths are interchangeable.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from synth.solvers.names import name_variables
from synth.solvers.rows import Row, ones
from synth_models.optree.parts.one_stage import Stage

Key = tuple[int, int, int, int]
"""Source, destination, direction (0 clockwise, 1 counterclockwise), wavelength."""
Variables = Mapping[Key, Any]


@dataclass
class StageProgram:
    """Index sets: ``routes`` are the directions a circuit may take, ``keys`` the variables, in order."""

    nodes: int
    shape: str
    max_hops: int
    wavelengths: int
    routes: dict[tuple[int, int], list[int]] = field(default_factory=dict)
    keys: list[Key] = field(default_factory=list)

    def __post_init__(self) -> None:
        pairs = [(u, v) for u in range(self.nodes) for v in range(self.nodes) if u != v]
        self.routes = {pair: self._directions(*pair) for pair in pairs}
        shortest_directions(self)
        for (u, v), directions in self.routes.items():
            self.keys += [(u, v, d, wave) for d in directions for wave in range(self.wavelengths)]

    def _directions(self, u: int, v: int) -> list[int]:
        allowed = [d for d in (0, 1) if len(links_of(self.nodes, u, v, d)) <= self.max_hops]
        return [d for d in allowed if self.shape == "ring" or d == (0 if v > u else 1)]

    def stage(self, chosen: Iterable[Key]) -> Stage:
        """The stage of a point, given as its variables that are 1."""
        return Stage(tuple(chosen))


def links_of(nodes: int, u: int, v: int, direction: int) -> list[int]:
    """Links of a circuit; link ``k`` lies between nodes ``k`` and ``k+1``."""
    if direction == 0:
        return [(u + k) % nodes for k in range((v - u) % nodes)]
    return [(u - 1 - k) % nodes for k in range((u - v) % nodes)]


def routed(use: Variables) -> dict[tuple[int, int], Row]:
    """(1), Lemma 1's all-to-all: every circuit has one direction and wavelength."""
    of_circuit: dict[tuple[int, int], list[Any]] = {}
    for (u, v, _, _), variable in use.items():
        of_circuit.setdefault((u, v), []).append(variable)
    return {circuit: (ones(chosen), "==", 1) for circuit, chosen in of_circuit.items()}


def link_capacity(program: StageProgram, use: Variables) -> dict[tuple[int, int, int], Row]:
    """(2): a wavelength of a link carries one circuit in a direction."""
    on_link: dict[tuple[int, int, int], list[Any]] = {}
    for (u, v, d, wave), variable in use.items():
        for link in links_of(program.nodes, u, v, d):
            on_link.setdefault((d, link, wave), []).append(variable)
    return {where: (ones(chosen), "<=", 1) for where, chosen in on_link.items()}


def shortest_directions(program: StageProgram) -> None:
    """Strengthening: drop directions that no colouring with so few wavelengths can afford.

    On a ring the shortest circuits are ``m * floor(m^2/4)`` hops in sum. Where that is all that ``2m`` links times
    ``W`` offer, every circuit must be a shortest one.
    """
    nodes = program.nodes
    if program.shape == "ring" and 2 * program.wavelengths == nodes * nodes // 4:
        for (u, v), directions in program.routes.items():
            program.routes[u, v] = [d for d in directions if 2 * len(links_of(nodes, u, v, d)) <= nodes]


def wavelengths_in_order(program: StageProgram) -> list[Key]:
    """(3), symmetry breaking: the variables that may be 1. Circuits that must all cross the middle link, in each
    direction, take wavelengths in order; crossing circuits with a choice of direction are left out."""
    middle = program.nodes // 2 - 1
    fixed: list[Key] = []
    for d in (0, 1):
        forced = [
            (u, v)
            for (u, v), directions in program.routes.items()
            if directions == [d] and middle in links_of(program.nodes, u, v, d)
        ]
        fixed += [(u, v, d, wave) for wave, (u, v) in enumerate(forced[: program.wavelengths])]
    return fixed


def build(program: StageProgram) -> Any:
    """The Pyomo model (feasibility: zero objective), variables ``use``."""
    from synth.solvers.algebra import pyo
    from synth.solvers.rows import add_rows, variables

    model = pyo.ConcreteModel()
    model.use = variables("u v d l", program.keys, domain=pyo.Binary)
    use = dict(zip(program.keys, model.use.values(), strict=True))
    add_rows(model, "routed", routed(use), "u v")
    add_rows(model, "link_capacity", link_capacity(program, use), "d e l")
    for key in wavelengths_in_order(program):
        model.use[key].setlb(1)
    model.objective = pyo.Objective(expr=0)
    return model


def build_cpsat(program: StageProgram, hint: Stage | None = None) -> tuple[Any, dict[Key, Any]]:
    """The CP-SAT model and its variables; ``hint`` is a stage to start from."""
    from ortools.sat.python import cp_model

    model = cp_model.CpModel()
    use = {key: model.new_bool_var("") for key in program.keys}
    name_variables(model, "use", "u v d l", use)
    for terms, _, _ in routed(use).values():
        model.add_exactly_one(variable for _, variable in terms)
    for terms, _, _ in link_capacity(program, use).values():
        model.add_at_most_one(variable for _, variable in terms)
    for key in wavelengths_in_order(program):
        model.add(use[key] == 1)
    if hint is not None:
        chosen = set(hint.rows)
        for key, variable in use.items():
            model.add_hint(variable, key in chosen)
    return model, use
