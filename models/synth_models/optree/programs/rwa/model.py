"""Routes and wavelengths of one stage as 0/1 programs (a program file: it builds and solves nothing).

The stage is the one-stage all-to-all of Dai, Chen, Huang, Zhang (Lemma 1, see ``parts/one_stage.py``); the program asks
whether ``W`` wavelengths are enough.

==================  =======================  ==========================================================  ==========
paper               code                     index set                                                   unit
==================  =======================  ==========================================================  ==========
``m``               ``nodes``                one number                                                  nodes
``W``               ``wavelengths``          one number                                                  wavelengths
``x[u,v,d,l]``      ``use``, at the place    circuit u -> v, direction it may take, wavelength           0/1
                    of its key in ``keys``
==================  =======================  ==========================================================  ==========

    (1) routed          sum_{d,l} x[u,v,d,l] = 1              for every circuit u -> v
    (2) link capacity   sum over circuits through e of x[u,v,d,l] <= 1     for every link e, direction d, wavelength l

Strengthening: where the load bound leaves no hop to spare, ways round are dropped (``shortest_ways``). Symmetry
breaking: circuits that must cross the middle link take the interchangeable wavelengths in order
(``wavelengths_in_order``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from synth_models.optree.parts.one_stage import Stage

Key = tuple[int, int, int, int]
"""Source, destination, direction (0 clockwise, 1 counterclockwise), wavelength."""


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
        shortest_ways(self)
        for (u, v), directions in self.routes.items():
            self.keys += [(u, v, d, wave) for d in directions for wave in range(self.wavelengths)]

    def _directions(self, u: int, v: int) -> list[int]:
        allowed = [d for d in (0, 1) if len(links_of(self.nodes, u, v, d)) <= self.max_hops]
        return [d for d in allowed if self.shape == "ring" or d == (0 if v > u else 1)]

    def stage(self, chosen: Sequence[bool]) -> Stage:
        """The stage of a point, given as a truth value per variable."""
        return Stage(tuple(key for key, on in zip(self.keys, chosen, strict=True) if on))


def links_of(nodes: int, u: int, v: int, direction: int) -> list[int]:
    """Links of a circuit; link ``k`` lies between nodes ``k`` and ``k+1``."""
    if direction == 0:
        return [(u + k) % nodes for k in range((v - u) % nodes)]
    return [(u - 1 - k) % nodes for k in range((u - v) % nodes)]


def routed(program: StageProgram) -> list[list[int]]:
    """(1), Lemma 1's all-to-all: of each of these sets of variables exactly one is 1."""
    of_circuit: dict[tuple[int, int], list[int]] = {}
    for i, (u, v, _, _) in enumerate(program.keys):
        of_circuit.setdefault((u, v), []).append(i)
    return list(of_circuit.values())


def link_capacity(program: StageProgram) -> list[list[int]]:
    """(2), a wavelength of a link carries one circuit: of each of these sets of variables at most one is 1."""
    on_link: dict[tuple[int, int, int], list[int]] = {}
    for i, (u, v, d, wave) in enumerate(program.keys):
        for link in links_of(program.nodes, u, v, d):
            on_link.setdefault((d, link, wave), []).append(i)
    return list(on_link.values())


def shortest_ways(program: StageProgram) -> None:
    """Strengthening: drop ways round that no colouring with so few wavelengths can afford.

    On a ring the shortest ways are ``m * floor(m^2/4)`` hops in sum. Where that is all that ``2m`` links times ``W``
    offer, every circuit must take a shortest way.
    """
    nodes = program.nodes
    if program.shape == "ring" and 2 * program.wavelengths == nodes * nodes // 4:
        for (u, v), directions in program.routes.items():
            program.routes[u, v] = [d for d in directions if 2 * len(links_of(nodes, u, v, d)) <= nodes]


def wavelengths_in_order(program: StageProgram) -> list[int]:
    """Symmetry breaking: variables that may be 1. Circuits that must all cross the middle link, in each direction,
    take wavelengths in order; crossing circuits with a choice of direction are left out."""
    middle, place = program.nodes // 2 - 1, {key: i for i, key in enumerate(program.keys)}
    fixed: list[int] = []
    for d in (0, 1):
        forced = [
            (u, v)
            for (u, v), directions in program.routes.items()
            if directions == [d] and middle in links_of(program.nodes, u, v, d)
        ]
        fixed += [place[u, v, d, wave] for wave, (u, v) in enumerate(forced[: program.wavelengths])]
    return fixed


def build(program: StageProgram) -> Any:
    """The Pyomo model (feasibility: zero objective), variables ``use``."""
    from synth.solvers.algebra import pyo
    from synth.solvers.rows import add_rows, ones

    model = pyo.ConcreteModel()
    model.use = pyo.Var(range(len(program.keys)), domain=pyo.Binary)
    use = list(model.use.values())
    add_rows(model, "routed", [(ones(use[i] for i in of_circuit), "==", 1) for of_circuit in routed(program)])
    add_rows(model, "link_capacity", [(ones(use[i] for i in on_link), "<=", 1) for on_link in link_capacity(program)])
    for i in wavelengths_in_order(program):
        use[i].setlb(1)
    model.objective = pyo.Objective(expr=0)
    return model


def build_cpsat(program: StageProgram, hint: Stage | None = None) -> tuple[Any, list[Any]]:
    """The CP-SAT model and its variables; ``hint`` is a stage to start from."""
    from ortools.sat.python import cp_model

    model = cp_model.CpModel()
    use = [model.new_bool_var("") for _ in program.keys]
    for of_circuit in routed(program):
        model.add_exactly_one(use[i] for i in of_circuit)
    for on_link in link_capacity(program):
        model.add_at_most_one(use[i] for i in on_link)
    for i in wavelengths_in_order(program):
        model.add(use[i] == 1)
    if hint is not None:
        chosen = set(hint.rows)
        for key, variable in zip(program.keys, use, strict=True):
            model.add_hint(variable, key in chosen)
    return model, use
