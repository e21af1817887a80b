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
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from synth.arrays import FloatArray, IntArray
from synth.graph.rows import lists_by
from synth.solvers.mathprog import building
from synth.solvers.rows import Row, Term, add_rows, linear, variables
from synth.time_expanded.rows import arrived, loads, merged, summed
from synth.time_expanded.windows import TimedIndex, Windows, at_nodes, on_arcs
from synth_peers.teccl.programs.grid import UNREACHABLE_EPOCHS, Grid
from synth_peers.teccl.programs.symmetric_images import Folding

Loads = Mapping[tuple[int, int], list[Term]]
"""What links carry of all origins, by link and epoch."""


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
    sent: dict[TimedIndex, Any]
    held: dict[TimedIndex, Any]

    def flows(self) -> tuple[IntArray, FloatArray]:
        """The solver's point: rows (number of the origin, link, epoch) and chunks, images written out."""
        used = [
            (*index, variable.value)
            for index, variable in self.sent.items()
            if variable.value is not None and variable.value > 1e-9
        ]
        points = np.array([index for *index, _ in used], dtype=np.int64).reshape(-1, 3)
        origin, link, which = self.folding.item_link.images(points[:, 0], points[:, 1])
        index = np.stack([origin, link, points[which, 2]], axis=1)
        return index, np.array([value for *_, value in used], dtype=float)[which]


def size(grid: Grid, horizon: int, folding: Folding) -> int:
    """Flow variables of the folded program."""
    origins, wanted = _wanted(grid)
    return sending(grid, horizon, origins, wanted).only(folding.item_link.kept).count


def build(grid: Grid, horizon: int, folding: Folding) -> FluidProgram:
    """The program for ``horizon`` epochs."""
    from synth.solvers.algebra import pyo

    origins, wanted = _wanted(grid)
    with building():
        model = pyo.ConcreteModel()
        sent = sending(grid, horizon, origins, wanted).only(folding.item_link.kept).indices()
        held = holding(grid, horizon, origins).only(folding.item_node.kept).indices()
        model.sent = variables("s e k", sent, domain=pyo.NonNegativeReals)
        model.held = variables("s v k", held, domain=pyo.NonNegativeReals)
        variable = dict(model.sent.items()), dict(model.held.items())
        program = FluidProgram(grid, horizon, folding, origins, wanted, model, *variable)
        add_rows(model, "flow_conservation", flow_conservation(program), "s v k")
        load = loads(folding.item_link, program.sent)
        add_rows(model, "link_capacity", link_capacity(program, load), "e k")
        add_rows(model, "groups_take_turns", groups_take_turns(program, load), "g k")
        terms = [(1.0, x) for x in program.sent.values()]
        model.in_motion = pyo.Objective(expr=linear(terms) if terms else 0.0)
    return program


def flow_conservation(program: FluidProgram) -> dict[TimedIndex, Row]:
    """(1): what a node held, and what arrives, it sends on or still holds: in the end what it wants; a switch
    nothing."""
    grid, horizon, sent, lag = program.grid, program.horizon, program.sent, program.grid.lag.tolist()
    into, out = (lists_by(ends, grid.instance.machine.nodes) for ends in (grid.dst, grid.src))
    near = grid.distance[program.origins]
    rows: dict[TimedIndex, Row] = {}
    for s, v in program.folding.item_node.kept_pairs():
        if v == program.origins[s] or near[s, v] >= UNREACHABLE_EPOCHS:
            continue
        entering, leaving = (program.folding.item_link.of_item(s, links[v]) for links in (into, out))
        for k in range(int(near[s, v]), horizon + 1):
            terms = arrived(entering, sent, k, lag, 1.0) + summed(leaving, sent, k, -1.0)
            right = 0.0
            if grid.holds[v]:
                held = [(1.0, program.held.get((s, v, k - 1))), (-1.0, program.held.get((s, v, k)))]
                terms += [(factor, x) for factor, x in held if x is not None]
                right = float(program.wanted[s, v]) if k == horizon else 0.0
            if terms or right:
                rows[s, v, k] = terms, "==", right
    return rows


def link_capacity(program: FluidProgram, load: Loads) -> dict[tuple[int, int], Row]:
    """(2): in every epoch a link carries at most its capacity, of all origins together."""
    kept = set(program.folding.kept_links)
    return {(e, k): (terms, "<=", float(program.grid.capacity[e])) for (e, k), terms in load.items() if e in kept}


def groups_take_turns(program: FluidProgram, load: Loads) -> dict[tuple[int, int], Row]:
    """(3): in every epoch the links of a group are busy for no more than it."""
    grid, group = program.grid, program.grid.instance.machine.group.tolist()
    rows: dict[tuple[int, int], list[Term]] = defaultdict(list)
    for (e, k), terms in load.items():
        if group[e] >= 0:
            rows[group[e], k] += [(images / float(grid.capacity[e]), x) for images, x in terms]
    return {key: (merged(terms), "<=", 1.0) for key, terms in rows.items()}


def _wanted(grid: Grid) -> tuple[IntArray, FloatArray]:
    blocks = grid.instance.blocks
    origins, number = np.unique(blocks.origin, return_inverse=True)
    wanted = np.zeros((len(origins), grid.instance.machine.nodes))
    np.add.at(wanted, (number, blocks.goal), blocks.bytes / float(grid.chunk))
    return origins.astype(np.int64), wanted


def sending(grid: Grid, horizon: int, origins: IntArray, wanted: FloatArray) -> Windows:
    """The epochs in which a flow can be of use on every link; none on those into its origin."""
    to_goal = np.stack([grid.distance[:, row > 0].min(axis=1) for row in wanted])
    in_time = on_arcs(grid.distance[origins], horizon - to_goal, grid.src, grid.dst, grid.lag)
    return in_time.only(grid.dst != origins[:, None])


def holding(grid: Grid, horizon: int, origins: IntArray) -> Windows:
    """The epochs after whose sends a node that keeps data can hold something, the last excepted; none at its origin."""
    nodes = np.arange(grid.instance.machine.nodes)
    return at_nodes(grid.distance[origins], horizon - 1).only(grid.holds & (nodes != origins[:, None]))
