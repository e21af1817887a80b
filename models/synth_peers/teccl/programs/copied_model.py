"""The program for data that is copied: TE-CCL's MILP (Liu et al., SIGCOMM 2024, section 3.1) for K epochs.

Reproduced: sends in epochs, possession that grows, capacity over windows, switches without buffers that copy.
Deviations: the question is feasibility, horizon by horizon (theirs rewards early arrivals and searches the number of
epochs by bisection); variables that no plan of K epochs can use do not exist; a node gets every chunk once. Theirs has
F of 0 or 1, which loses nothing where switches copy. To a switch that does not copy, a chunk goes as often as it goes
on from there, over a quick link more than once an epoch: with F of 0 or 1 such plans would be infeasible.

| paper | here | index set | unit |
|---|---|---|---|
| F[s,i,j,k,c] | ``sent[c, e, k]`` | chunk (with its origin), link, epoch | 0 … ``times``, mostly 0 or 1 |
| B[s,n,k,c] | ``held[c, v, k]`` | chunk, node that keeps it, epoch at whose beginning | 0 … 1 |
| delta, kappa | ``grid.lag``, ``grid.window`` | link | epochs |
| T tau | ``grid.quota`` | link | chunks a window |
| K | ``horizon`` | – | epochs |

    (1) sends what it holds   F[c,e,k] <= times[e] B[c,tail(e),k]                 where tail(e) keeps data
    (2) possession grows      B[c,v,k] = B[c,v,k-1] + sum_{e into v} F[c,e,k-lag(e)]
    (3) switches pass on      F[c,e,k] <= sum_{f into the switch} F[c,f,k-lag(f)]; the sum over e out of it, if it does
                              not copy
    (4) nothing from nowhere  turn[c,u,k] + 1 <= turn[c,v,k] + n (1 - F[c,(u,v),k])   among n switches without lags
    (5) link capacity         sum_c sum_{k <= j < k + window(e)} F[c,e,j] <= quota[e]
    (6) groups take turns     sum_{e of g} sum_c sum_{k <= j < k + window(g)} F[c,e,j] / capacity[e] <= window(g)
    (7) all arrive            B[c,v,K] = 1                                        where v wants c
    (8) leaves in time        sum_{e out of the cut} sum_{k <= last(c)} F[c,e,k] >= 1        (ours, strengthening)
    (9) chunks in order       F[c+1,e,k] / times[e] <= sum_{f out of the origin} sum_{j <= k} F[c,f,j]   (symmetry)

n in (4) is the number of switches that send to each other in one epoch, as many as ``turn`` has values.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np

from synth.arrays import IntArray
from synth.graph.rows import lists_by
from synth.solvers.mathprog import building
from synth.solvers.rows import Row, Term, add_rows, ones, variables
from synth.time_expanded.rows import arrived, loads, merged, summed
from synth.time_expanded.windows import TimedIndex, Windows, at_nodes, on_arcs
from synth_peers.teccl.programs.grid import Grid
from synth_peers.teccl.programs.sends import Sends, in_order
from synth_peers.teccl.programs.symmetric_images import Folding

Loads = Mapping[tuple[int, int], list[Term]]
"""What links carry of all chunks, by link and epoch."""


@dataclass(frozen=True, eq=False)
class CopiedProgram:
    """The Pyomo model, and its variables by chunk, link (node) and epoch, images sharing one.

    ``times``: how often a chunk may be sent over every link in an epoch, shape (links,).
    """

    grid: Grid
    horizon: int
    folding: Folding
    model: Any
    sent: dict[TimedIndex, Any]
    held: dict[TimedIndex, Any]
    times: IntArray

    @cached_property
    def lag(self) -> list[int]:
        """Epochs that every link takes."""
        found: list[int] = self.grid.lag.tolist()
        return found

    def x(self, chunk: int, link: int, epoch: int) -> Any:
        """The variable of a send, None where no plan can use it."""
        return self.sent.get((*self.folding.item_link.stands_for(chunk, link), epoch))

    def h(self, chunk: int, node: int, epoch: int) -> Any:
        """The variable of a possession, None where it is impossible."""
        return self.held.get((*self.folding.item_node.stands_for(chunk, node), epoch))

    def sends(self) -> Sends:
        """The solver's point as sends, in order."""
        used = [
            index
            for index, variable in self.sent.items()
            if variable.value is not None and variable.value > 0.5
            for _ in range(round(variable.value))
        ]
        points = np.array(used, dtype=np.int64).reshape(-1, 3)
        chunk, link, which = self.folding.item_link.images(points[:, 0], points[:, 1])
        return in_order(self.grid, Sends(chunk, link, points[which, 2]))


def size(grid: Grid, horizon: int) -> int:
    """Send variables of the program before it is folded."""
    return sending(grid, horizon).count


def build(
    grid: Grid, horizon: int, folding: Folding, cut: tuple[int, ...] = (), ordered: bool = False
) -> CopiedProgram:
    """The program for ``horizon`` epochs; with the rows of ``cut`` and of ``ordered`` chunks where they are given."""
    from synth.solvers.algebra import pyo

    with building():
        model = pyo.ConcreteModel()
        sent = sending(grid, horizon).only(folding.item_link.kept).indices()
        held = holding(grid, horizon).only(folding.item_node.kept).indices()
        times = _times(grid)
        most = times.tolist()
        whole = dict(domain=pyo.NonNegativeIntegers)
        model.sent = variables("c e k", sent, **whole, bounds=lambda _, c, e, k: (0, most[e]))
        model.held = variables("c v k", held, bounds=(0, 1))
        variable = dict(model.sent.items()), dict(model.held.items())
        program = CopiedProgram(grid, horizon, folding, model, *variable, times)
        add_rows(model, "sends_what_it_holds", sends_what_it_holds(program), "c e k")
        add_rows(model, "possession_grows", possession_grows(program), "c v k")
        add_rows(model, "switches_pass_on", switches_pass_on(program), "c e k" if grid.copies else "c v k")
        circle = _circle(grid)
        if len(circle):
            add_rows(model, "nothing_from_nowhere", nothing_from_nowhere(program, circle), "c e k")
        load = loads(folding.item_link, program.sent)
        add_rows(model, "link_capacity", link_capacity(program, load), "e k")
        add_rows(model, "groups_take_turns", groups_take_turns(program, load), "g k")
        add_rows(model, "all_arrive", all_arrive(program), "c v")
        if cut:
            add_rows(model, "leaves_in_time", leaves_in_time(program, cut), "c")
        if ordered and grid.chunks > 1 and len(folding) == 1:
            add_rows(model, "chunks_in_order", chunks_in_order(program), "c e k")
        model.feasible = pyo.Objective(expr=0.0)
    return program


def sends_what_it_holds(program: CopiedProgram) -> dict[TimedIndex, Row]:
    """(1): a node that keeps data sends what it holds at the epoch's beginning (paper: F <= B plus what has
    arrived)."""
    grid, src = program.grid, program.grid.src.tolist()
    rows: dict[TimedIndex, Row] = {}
    for (c, e, k), x in program.sent.items():
        if grid.holds[src[e]] and src[e] != grid.origin[c]:
            h = program.h(c, src[e], k)
            most = float(program.times[e])
            rows[c, e, k] = [(1.0, x), (-most, h)] if h is not None else [(1.0, x)], "<=", 0.0
    return rows


def possession_grows(program: CopiedProgram) -> dict[TimedIndex, Row]:
    """(2): what a node holds is what it held, and what has arrived since (paper: the buffers' equation); so it gets
    every chunk once."""
    into = lists_by(program.grid.dst, program.grid.instance.machine.nodes)
    rows: dict[TimedIndex, Row] = {}
    for (c, v, k), h in program.held.items():
        terms: list[Term] = [(1.0, h)]
        before = program.h(c, v, k - 1)
        if before is not None:
            terms.append((-1.0, before))
        terms += _arrivals(program, c, k, into[v])
        rows[c, v, k] = terms, "==", 0.0
    return rows


def switches_pass_on(program: CopiedProgram) -> dict[TimedIndex, Row]:
    """(3): a switch without buffer sends what comes in that epoch; with copies on every link, else on one. By link, or
    without copies by switch."""
    grid, nodes = program.grid, program.grid.instance.machine.nodes
    into, out_of, src = lists_by(grid.dst, nodes), lists_by(grid.src, nodes), grid.src.tolist()
    rows: dict[TimedIndex, Row] = {}
    shared: dict[TimedIndex, list[Term]] = defaultdict(list)
    for (c, e, k), x in program.sent.items():
        if grid.holds[src[e]]:
            continue
        if grid.copies:
            rows[c, e, k] = [(1.0, x), *_arrivals(program, c, k, into[src[e]])], "<=", 0.0
        else:
            shared[c, src[e], k] = []
    for c, v, k in shared:
        out = [program.x(c, e, k) for e in out_of[v]]
        terms = ones(x for x in out if x is not None)
        rows[c, v, k] = [*terms, *_arrivals(program, c, k, into[v])], "<=", 0.0
    return rows


def nothing_from_nowhere(program: CopiedProgram, circle: list[int]) -> dict[TimedIndex, Row]:
    """(4): of switches that copy and pass on to each other in the same epoch, a chunk comes to each after the one that
    sent it (ours; Miller, Tucker and Zemlin's rows): else two of them may each have it from the other."""
    grid, horizon, chunks = program.grid, program.horizon, range(len(program.grid.origin))
    src, dst = grid.src.tolist(), grid.dst.tolist()
    nodes = sorted({src[e] for e in circle})
    program.model.turn = variables("c v k", product(chunks, nodes, range(horizon)), bounds=(0, len(nodes) - 1))
    turn, most = program.model.turn, float(len(nodes))
    rows: dict[TimedIndex, Row] = {}
    for c, e, k in product(chunks, circle, range(horizon)):
        x = program.x(c, e, k)
        if x is not None:
            rows[c, e, k] = [(1.0, turn[c, src[e], k]), (-1.0, turn[c, dst[e], k]), (most, x)], "<=", most - 1.0
    return rows


def link_capacity(program: CopiedProgram, load: Loads) -> dict[tuple[int, int], Row]:
    """(5): over any window a link begins at most its quota (paper: the capacity constraint over kappa epochs)."""
    grid = program.grid
    rows: dict[tuple[int, int], Row] = {}
    for e in program.folding.kept_links:
        for start in range(program.horizon):
            terms = [term for k in range(start, start + int(grid.window[e])) for term in load.get((e, k), ())]
            if sum(images for images, _ in terms) * program.times[e] > grid.quota[e]:
                rows[e, start] = terms, "<=", float(grid.quota[e])
    return rows


def groups_take_turns(program: CopiedProgram, load: Loads) -> dict[tuple[int, int], Row]:
    """(6): over the longest window of a group's links, they are busy for no more than it."""
    grid, group = program.grid, program.grid.instance.machine.group
    rows: dict[tuple[int, int], Row] = {}
    for g, span in enumerate(grid.group_window.tolist()):
        links = [(e, 1.0 / float(grid.capacity[e])) for e in np.flatnonzero(group == g).tolist()]
        for start in range(program.horizon):
            terms = merged(
                (part * images, x)
                for e, part in links
                for k in range(start, start + span)
                for images, x in load.get((e, k), ())
            )
            if terms:
                rows[g, start] = terms, "<=", float(span)
    return rows


def all_arrive(program: CopiedProgram) -> dict[tuple[int, int], Row]:
    """(7): in the end everything is where it is wanted."""
    rows: dict[tuple[int, int], Row] = {}
    for c, v in program.folding.item_node.kept_pairs():
        if program.grid.wanted[c, v] and v != program.grid.origin[c]:
            h = program.h(c, v, program.horizon)
            rows[c, v] = [(1.0, h)] if h is not None else [], "==", 1.0
    return rows


def leaves_in_time(program: CopiedProgram, cut: tuple[int, ...]) -> dict[int, Row]:
    """(8): every chunk that must leave ``cut`` does so early enough for the member outside that is furthest (ours;
    counting over these rows and the links' windows is the bound of
    :mod:`synth_peers.teccl.programs.counted_bound`)."""
    grid = program.grid
    inside = np.isin(np.arange(grid.instance.machine.nodes), cut)
    out = np.flatnonzero(inside[grid.src] & ~inside[grid.dst])
    rows: dict[int, Row] = {}
    for c in np.flatnonzero(inside[grid.origin]).tolist():
        outside = np.flatnonzero(grid.wanted[c] & ~inside)
        if not len(outside) or not len(out):
            continue
        left = (grid.lag[out, None] + grid.distance[grid.dst[out]][:, outside]).min(axis=0)
        last = program.horizon - int(left.max())
        leaving = program.folding.item_link.of_item(c, out.tolist())
        rows[c] = [x for term in leaving for k in range(last + 1) for x in summed([term], program.sent, k)], ">=", 1.0
    return rows


def chunks_in_order(program: CopiedProgram) -> dict[TimedIndex, Row]:
    """(9), symmetry breaking: chunks of a block are interchangeable, so the next leaves its origin no sooner than the
    one before."""
    grid = program.grid
    rows: dict[TimedIndex, Row] = {}
    for c in range(len(grid.origin) - 1):
        if (c + 1) % grid.chunks == 0:
            continue
        out = np.flatnonzero(grid.src == grid.origin[c]).tolist()
        so_far: list[Term] = []
        for k in range(program.horizon):
            so_far += [(-1.0, x) for e in out if (x := program.x(c, e, k)) is not None]
            for e in out:
                x = program.x(c + 1, e, k)
                if x is not None:
                    rows[c, e, k] = [(1.0 / float(program.times[e]), x), *so_far], "<=", 0.0
    return rows


def _times(grid: Grid) -> IntArray:
    """How often a chunk may go over every link in an epoch: more than once into a switch that does not copy alone, and
    no more often than there are nodes to keep it."""
    often = ~grid.holds[grid.dst] & (not grid.copies)
    return np.where(often, np.minimum(grid.quota, max(1, int(grid.holds.sum()) - 1)), 1)


def _circle(grid: Grid) -> list[int]:
    """Links on circles of switches that copy, all without a lag."""
    switch, back = grid.instance.machine.is_switch, grid.distance[grid.dst, grid.src]
    found = switch[grid.src] & switch[grid.dst] & (grid.lag == 0) & (back == 0)
    return np.flatnonzero(found & grid.copies).tolist()


def sending(grid: Grid, horizon: int) -> Windows:
    """The epochs in which a chunk can be of use on every link; none on those into its origin."""
    to_goal = np.stack([grid.distance[:, row].min(axis=1) for row in grid.wanted])  # to who wants the chunk
    in_time = on_arcs(grid.distance[grid.origin], horizon - to_goal, grid.src, grid.dst, grid.lag)
    return in_time.only(grid.dst != grid.origin[:, None])


def holding(grid: Grid, horizon: int) -> Windows:
    """The epochs at whose beginning a node that keeps data can hold a chunk; none at its origin, which always does."""
    nodes = np.arange(grid.instance.machine.nodes)
    return at_nodes(grid.distance[grid.origin], horizon).only(grid.holds & (nodes != grid.origin[:, None]))


def _arrivals(program: CopiedProgram, chunk: int, epoch: int, links: list[int]) -> list[Term]:
    """Minus what arrives at a node in this epoch over these links."""
    return arrived(program.folding.item_link.of_item(chunk, links), program.sent, epoch, program.lag, -1.0)
