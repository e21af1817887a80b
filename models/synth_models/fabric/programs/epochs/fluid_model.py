"""The program for data that is not copied: TE-CCL's LP (Liu et al., SIGCOMM 2024, section 4.1) for K epochs.

Flows are added up by origin. Folded by the instance's symmetries without loss: a plan may be replaced by the average of
its images. Deviation: the question is feasibility for K epochs, with the fewest shares in motion.

| paper | here | index set | unit |
|---|---|---|---|
| F[s,i,j,k] | ``sent[s, e, k]`` | origin, link, epoch | chunks |
| B[s,n,k] and what was read | ``held[s, v, k]`` | origin, node that keeps data, epoch after whose sends | chunks |
| R[s,d,K] | ``wanted`` | origin, goal | chunks |
| T tau | ``grid.capacity`` | link | chunks an epoch |

    (1) flow conservation   sum_{e into v} F[s,e,k-lag(e)] + B[s,v,k-1] = sum_{e out of v} F[s,e,k] + B[s,v,k],
                            B = 0 at switches without buffers, B[s,v,K] = R[s,v]
    (2) link capacity       sum_s F[s,e,k] <= T tau
    (3) groups take turns   sum_{e of g} sum_s F[s,e,k] / (T tau) <= 1

Minimised is the sum of all F.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import Any

import numpy as np

from synth.arrays import FloatArray, IntArray
from synth.solvers.mathprog import building
from synth.solvers.rows import Row, Term, add_rows, linear, ones, variables
from synth_models.fabric.programs.epochs.folding import Folding, added, by_link
from synth_models.fabric.programs.epochs.grid import FAR, Grid


@dataclass(frozen=True, eq=False)
class FluidProgram:
    """The Pyomo model, and its variables by number of the origin, link (node) and epoch, images sharing one.

    ``origins``: their nodes; ``wanted``: chunks, shape (origins, nodes).
    """

    grid: Grid
    horizon: int
    folding: Folding
    origins: IntArray
    wanted: FloatArray
    model: Any
    sent: dict[tuple[int, int, int], Any]
    held: dict[tuple[int, int, int], Any]

    def x(self, origin: int, link: int, epoch: int) -> Any:
        """The variable of a flow, None where no plan can use it."""
        links = self.grid.instance.machine.links
        return self.sent.get((*divmod(int(self.folding.item_link[origin, link]), links), epoch))

    def flows(self) -> tuple[IntArray, FloatArray]:
        """The solver's point: rows (number of the origin, link, epoch) and chunks, images written out."""
        links = self.grid.instance.machine.links
        on: dict[int, list[tuple[int, float]]] = defaultdict(list)
        for (s, e, k), variable in self.sent.items():
            if variable.value is not None and variable.value > 1e-9:
                on[s * links + e].append((k, variable.value))
        rows = [
            (s, e, k, value)
            for s in range(len(self.origins))
            for e in range(links)
            for k, value in on.get(int(self.folding.item_link[s, e]), ())
        ]
        index = np.array([row[:3] for row in rows], dtype=np.int64).reshape(-1, 3)
        return index, np.array([row[3] for row in rows], dtype=float)


def size(grid: Grid, horizon: int, folding: Folding) -> int:
    """Flow variables of the folded program."""
    origins, wanted = _wanted(grid)
    first, last = _spans(grid, horizon, origins, wanted)
    own = folding.item_link == np.arange(folding.item_link.size).reshape(folding.item_link.shape)
    return int((np.maximum(last - first + 1, 0) * own).sum())


def build(grid: Grid, horizon: int, folding: Folding) -> FluidProgram:
    """The program for ``horizon`` epochs."""
    from synth.solvers.algebra import pyo

    origins, wanted = _wanted(grid)
    with building():
        model = pyo.ConcreteModel()
        sent, held = _indices(grid, horizon, folding, origins, wanted)
        model.sent = variables("s e k", sent, domain=pyo.NonNegativeReals)
        model.held = variables("s v k", held, domain=pyo.NonNegativeReals)
        variable = dict(model.sent.items()), dict(model.held.items())
        program = FluidProgram(grid, horizon, folding, origins, wanted, model, *variable)
        add_rows(model, "flow_conservation", flow_conservation(program), "s v k")
        add_rows(model, "link_capacity", link_capacity(program), "e k")
        add_rows(model, "groups_take_turns", groups_take_turns(program), "g k")
        terms = [(1.0, x) for x in program.sent.values()]
        model.in_motion = pyo.Objective(expr=linear(terms) if terms else 0.0)
    return program


def flow_conservation(program: FluidProgram) -> dict[tuple[int, int, int], Row]:
    """(1): what a node held, and what arrives, it sends on or still holds: in the end what it wants; a switch
    nothing."""
    grid, horizon = program.grid, program.horizon
    nodes = grid.instance.machine.nodes
    near = grid.distance[program.origins]
    rows: dict[tuple[int, int, int], Row] = {}
    for s, origin in enumerate(program.origins.tolist()):
        for v in range(nodes):
            if v == origin or program.folding.item_node[s, v] != s * nodes + v or near[s, v] >= FAR:
                continue
            into, out = np.flatnonzero(grid.dst == v).tolist(), np.flatnonzero(grid.src == v).tolist()
            for k in range(int(near[s, v]), horizon + 1):
                found = [(1.0, program.x(s, e, k - int(grid.lag[e]))) for e in into]
                found += [(-1.0, program.x(s, e, k)) for e in out]
                right = 0.0
                if grid.holds[v]:
                    found += [(1.0, program.held.get((s, v, k - 1))), (-1.0, program.held.get((s, v, k)))]
                    right = float(program.wanted[s, v]) if k == horizon else 0.0
                terms = added([(factor, x) for factor, x in found if x is not None])
                if terms or right:
                    rows[s, v, k] = terms, "==", right
    return rows


def link_capacity(program: FluidProgram) -> dict[tuple[int, int], Row]:
    """(2): in every epoch a link carries at most its capacity, of all origins together."""
    grid, by_time = program.grid, by_link(program.folding, program.sent)
    return {
        (e, k): (added(ones(sent, 1.0)), "<=", float(grid.capacity[e]))
        for (e, k), sent in by_time.items()
        if program.folding.one_link[e] == e
    }


def groups_take_turns(program: FluidProgram) -> dict[tuple[int, int], Row]:
    """(3): in every epoch the links of a group are busy for no more than it."""
    grid, by_time = program.grid, by_link(program.folding, program.sent)
    group = grid.instance.machine.group.tolist()
    terms: dict[tuple[int, int], list[Term]] = defaultdict(list)
    for (e, k), sent in by_time.items():
        if group[e] >= 0:
            terms[group[e], k] += ones(sent, 1.0 / float(grid.capacity[e]))
    return {key: (added(row), "<=", 1.0) for key, row in terms.items()}


def _wanted(grid: Grid) -> tuple[IntArray, FloatArray]:
    blocks = grid.instance.blocks
    origins, number = np.unique(blocks.origin, return_inverse=True)
    wanted = np.zeros((len(origins), grid.instance.machine.nodes))
    np.add.at(wanted, (number, blocks.goal), blocks.bytes / float(grid.chunk))
    return origins.astype(np.int64), wanted


def _spans(grid: Grid, horizon: int, origins: IntArray, wanted: FloatArray) -> tuple[IntArray, IntArray]:
    """First and last epoch in which a flow can be of use, shape (origins, links)."""
    near = np.stack([grid.distance[:, row > 0].min(axis=1) for row in wanted])
    first = grid.distance[origins][:, grid.src]
    last = horizon - grid.lag[None, :] - near[:, grid.dst]
    return first, np.where(grid.dst[None, :] == origins[:, None], -FAR, last)


def _indices(
    grid: Grid, horizon: int, folding: Folding, origins: IntArray, wanted: FloatArray
) -> tuple[list[tuple[int, int, int]], list[tuple[int, int, int]]]:
    first, last = _spans(grid, horizon, origins, wanted)
    links, nodes = grid.instance.machine.links, grid.instance.machine.nodes
    sent = [
        (s, e, k)
        for s in range(len(origins))
        for e in range(links)
        if folding.item_link[s, e] == s * links + e
        for k in range(int(first[s, e]), int(last[s, e]) + 1)
    ]
    near = grid.distance[origins]
    held = [
        (s, v, k)
        for s, origin in enumerate(origins.tolist())
        for v in range(nodes)
        if grid.holds[v] and v != origin and folding.item_node[s, v] == s * nodes + v
        for k in range(int(near[s, v]), horizon)
    ]
    return sent, held
