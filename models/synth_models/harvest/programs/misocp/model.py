"""Harvest's program for one interval (Rahman et al., appendix A): the best single topology for steps a … b, any ports.

A program file: it builds models and calls no solver. Deviations from the print, each stated where it is made: demands
are unit demands (the print has ``m_i`` in the demand and again in the time); the latency of (3) is in the objective,
which needs flows hop by hop; commodities with one source are one flow, which carries up to the rate of *all* its
targets; equal steps are one block with a count; rates are bounded by what the ports allow instead of 1. Row and column
sums equal ``d`` with loops allowed (a loop is an idle port), since adding links never hurts. A step of no bytes has
rate ``1 / pairs``, which every topology that reaches its pairs allows, and no time.

=================  =======================  ================================  ===========================
paper              code                     index set                         unit
=================  =======================  ================================  ===========================
V                  ``model.gpus``           one number                        GPUs
a … b, i           ``model.blocks``         blocks k with their ``count``     steps
x[u,v]             ``model.links``          ordered pairs of GPUs and loops   links
theta_i            ``model.rate``           block                             ports' bandwidth per pair
T_i                ``model.time``           block                             ``model.unit`` seconds
f[s,t,i](u,v)      ``model.flow``           block, source, hop, u, v          as ``model.rate``
(arrivals)         ``model.arrival``        block, source, hop, t             as ``model.rate``
l_i                ``model.uses``           block, hop 2 … ``model.layers``   0/1: l_i >= hop
(range of theta)   ``model.ranges``         block                             as ``model.rate``
D, M_i             ``Block.pairs``          block                             pairs
beta * m_i         ``Block.seconds``        block                             seconds at one port's rate
d                  ``model.ports``          one number                        links
c                  1                        one number                        ports' bandwidth
alpha, delta       ``model.fixed_cost``,    one number each                   seconds
                   ``instance.hop_delay``
=================  =======================  ================================  ===========================

Hop ``layers + 1`` of ``model.flow`` moves data that has already made ``layers`` hops any number of hops further at no
further latency. The program is exact with ``layers = gpus - 1`` and for latency off; with fewer layers it is a
relaxation, exact where its answer needs no more. The rate form is used because T = m / rate is convex in it.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any

from synth.solvers.algebra import pyo
from synth.solvers.names import give_letters
from synth.solvers.rows import Row, Term, add_rows, linear, variables
from synth_models.harvest.instance import HarvestInstance
from synth_models.harvest.programs.misocp.blocks import Block

LEAST_DELAY = 1e-9  # of a hop, in the objective's unit: solvers take no smaller coefficient
SMALLEST_UNIT = 1e-2  # of the propagation time: keeps the coefficients of the objective within reason


def build(
    instance: HarvestInstance,
    blocks: Sequence[Block],
    layers: int,
    tangents: Sequence[Sequence[float]] | None,
    ranges: Sequence[tuple[float, float]] | None = None,
    loops: bool = True,
) -> pyo.ConcreteModel:
    """The model of one interval; ``tangents`` (rates per block) replace the cone (16) by cuts, None keeps the cone.
    ``ranges`` are smallest and largest rates per block where those of :func:`rate_range` can be narrowed. ``loops`` as
    for :func:`start`."""
    model = start(instance, blocks, loops)
    model.layers = layers
    model.ranges = [rate_range(block, instance.ports) for block in blocks] if ranges is None else list(ranges)
    latency = instance.hop_delay > 0
    rate_variables(model)
    flow_variables(model, latency)
    out_degree(model)
    in_degree(model)
    flow_conservation(model)
    link_capacity(model)
    if latency:
        longest_route(model)
    if tangents is None:
        transmission_cone(model)
    else:
        transmission_cuts(model, tangents)
    cost: list[Term] = [(block.count, model.time[k]) for k, block in enumerate(blocks)]
    if instance.hop_delay >= LEAST_DELAY * model.unit:  # a smaller one only lowers the program's optimum: a bound stays
        cost += [(blocks[k].count * instance.hop_delay / model.unit, var) for (k, _), var in model.uses.items()]
    least_total_time(model, cost, instance.alpha + instance.hop_delay)
    return model


def rate_range(block: Block, ports: int) -> tuple[float, float]:
    """Rates a pair of largest volume can have: from all pairs over one link to all ports shared by the busiest GPU's
    pairs. Without bytes any rate is as good as the smallest."""
    least = 1 / sum(block.share.values())
    return least, ports / block.degree if block.seconds > 0 else least


def start(instance: HarvestInstance, blocks: Sequence[Block], loops: bool = True) -> Any:
    """A model with the sizes, the unit of time (about the interval's transmission time, or a small part of its
    propagation where that is all there is) and the link counts. Without ``loops`` (10) and (11) are at most ``ports``:
    where a link more costs something, any output and any input may stay idle."""
    model: Any = pyo.ConcreteModel()
    model.gpus, model.ports, model.blocks = instance.gpus, instance.ports, tuple(blocks)
    transmission = sum(block.count * block.seconds for block in blocks)
    propagation = sum(block.count for block in blocks) * instance.hop_delay
    model.unit = max(transmission, propagation * SMALLEST_UNIT) or 1.0
    nodes = range(instance.gpus)
    ends = [(u, v) for u, v in product(nodes, nodes) if loops or u != v]
    model.links = variables("u v", ends, domain=pyo.Integers, bounds=(0, instance.ports))
    model.ports_used = "==" if loops else "<="
    return model


def rate_variables(model: Any) -> None:
    """theta and T of every block, within the block's range of rates."""
    kinds = range(len(model.blocks))
    seconds = [block.seconds for block in model.blocks]
    model.rate = variables("k", kinds, bounds=lambda m, k: m.ranges[k])
    model.time = variables(
        "k", kinds, bounds=lambda m, k: (seconds[k] / m.ranges[k][1] / m.unit, seconds[k] / m.ranges[k][0] / m.unit)
    )


def flow_variables(model: Any, latency: bool) -> None:
    """f hop by hop, where it ends, and (with ``latency``) which hops of the longest route are used."""
    layers, partners = model.layers, [block.partners() for block in model.blocks]
    arcs = [key for k, of in enumerate(partners) for key in _arcs(k, of, model.gpus, layers)]
    ends = [
        (k, s, hop, t)
        for k, of in enumerate(partners)
        for s, targets in of.items()
        for hop in range(1, layers + 1)
        for t in targets
    ]
    hops = [(k, hop) for k in range(len(partners)) for hop in range(2, layers + 1) if latency]
    leaving = [{s: sum(b.share[s, t] for t in of[s]) for s in of} for b, of in zip(model.blocks, partners, strict=True)]
    model.flow = variables(
        "k s h u v", arcs, bounds=lambda m, k, s, *_: (0, min(m.ranges[k][1] * leaving[k][s], m.ports))
    )
    model.arrival = variables(
        "k s h t", ends, bounds=lambda m, k, s, _, t: (0, m.ranges[k][1] * m.blocks[k].share[s, t])
    )
    model.uses = variables("k h", hops, domain=pyo.Integers, bounds=(0, 1))


def _arcs(k: int, partners: dict[int, list[int]], gpus: int, layers: int) -> list[tuple[int, int, int, int, int]]:
    """Where flow may go: away from the source on hop 1, later never back to it, and not on from an only destination."""
    found = []
    for s, targets in partners.items():
        only = targets[0] if len(targets) == 1 else -1
        found += [(k, s, 1, s, v) for v in range(gpus) if v != s]
        inner = [(u, v) for u in range(gpus) for v in range(gpus) if len({u, v, s}) == 3 and u != only]
        for hop in range(2, layers + 2):
            if hop > gpus - 1:
                break
            last = hop == layers == gpus - 1
            found += [(k, s, hop, u, v) for u, v in inner if not last or v in targets]
    return found


def least_total_time(model: Any, cost: list[Term], fixed: float) -> None:
    """(9): least total time in ``model.unit``; ``fixed`` seconds a step are the same for all topologies."""
    model.cost = cost
    model.fixed_cost = sum(block.count for block in model.blocks) * fixed
    model.objective = pyo.Objective(expr=linear(cost))


def out_degree(model: Any) -> None:
    """(10): ``ports`` links leave every GPU, idle ports being loops."""
    nodes = range(model.gpus)
    leaving = {u: [(1, model.links[u, v]) for v in nodes if (u, v) in model.links] for u in nodes}
    rows: dict[int, Row] = {u: (terms, model.ports_used, model.ports) for u, terms in leaving.items()}
    add_rows(model, "out_degree", rows, "u")


def in_degree(model: Any) -> None:
    """(11): ``ports`` links enter every GPU, idle ports being loops."""
    nodes = range(model.gpus)
    entering = {v: [(1, model.links[u, v]) for u in nodes if (u, v) in model.links] for v in nodes}
    rows: dict[int, Row] = {v: (terms, model.ports_used, model.ports) for v, terms in entering.items()}
    add_rows(model, "in_degree", rows, "v")


def flow_conservation(model: Any) -> None:
    """(12) hop by hop: what arrives at a GPU on a hop ends there or leaves it on the next; every pair gets ``rate``
    times its share of the largest volume."""
    balance: dict[tuple[int, int, int, int], list[Term]] = {}
    for (k, s, hop, u, v), var in model.flow.items():
        balance.setdefault((k, s, min(hop, model.layers), v), []).append((1, var))
        if hop > 1:
            balance.setdefault((k, s, hop - 1, u), []).append((-1, var))
    served: dict[tuple[int, int, int], list[Term]] = {}
    for (k, s, hop, t), var in model.arrival.items():
        balance.setdefault((k, s, hop, t), []).append((-1, var))
        served.setdefault((k, s, t), []).append((1, var))
    add_rows(model, "flow_conservation", {index: (terms, "==", 0) for index, terms in balance.items()}, "k s h v")
    share = [block.share for block in model.blocks]
    rows: dict[Any, Row] = {
        (k, s, t): ([*of, (-share[k][s, t], model.rate[k])], "==", 0) for (k, s, t), of in served.items()
    }
    add_rows(model, "flow_conservation_served", rows, "k s t")


def link_capacity(model: Any) -> None:
    """(13): all flow of a step over the links from u to v, in ports' bandwidth, is at most their number."""
    load: dict[tuple[int, int, int], list[Term]] = {}
    for (k, _, _, u, v), var in model.flow.items():
        load.setdefault((k, u, v), []).append((1, var))
    rows: dict[Any, Row] = {(k, u, v): ([*t, (-1, model.links[u, v])], "<=", 0) for (k, u, v), t in load.items()}
    add_rows(model, "link_capacity", rows, "k u v")


def longest_route(model: Any) -> None:
    """(17), the latency term l_i of the paper's (3): what a pair receives by routes of ``hop`` hops or more (at most
    its largest rate) needs that hop to be paid for, and the hop before it."""
    late: dict[tuple[int, int, int, int], list[Term]] = {}
    for (k, s, hop, t), var in model.arrival.items():
        for h in range(2, hop + 1):
            late.setdefault((k, h, s, t), []).append((1, var))
    rows: dict[Any, Row] = {
        (k, hop, s, t): ([*terms, (-model.ranges[k][1] * model.blocks[k].share[s, t], model.uses[k, hop])], "<=", 0)
        for (k, hop, s, t), terms in late.items()
    }
    add_rows(model, "longest_route", rows, "k h s t")
    order: dict[Any, Row] = {
        (k, hop): ([(1, model.uses[k, hop]), (-1, model.uses[k, hop - 1])], "<=", 0) for k, hop in model.uses if hop > 2
    }
    add_rows(model, "longest_route_hops", order, "k h")


def transmission_cone(model: Any) -> None:
    """(15), (16): time times rate is at least the transmission time at rate 1, a rotated cone."""
    cone = pyo.Constraint(
        [k for k, block in enumerate(model.blocks) if block.seconds > 0],
        rule=lambda m, k: m.time[k] * m.rate[k] >= m.blocks[k].seconds / m.unit,
    )
    model.transmission_cone = give_letters(cone, "k")


def transmission_cuts(model: Any, tangents: Sequence[Sequence[float]]) -> None:
    """(14) by tangents of a / rate at given rates r: ``time >= a * (2 / r - rate / r^2)``, valid for every rate."""
    rows: dict[tuple[int, int], Row] = {}
    for k, (block, points) in enumerate(zip(model.blocks, tangents, strict=True)):
        size = block.seconds / model.unit  # without bytes there are no points
        for n, r in enumerate(points):
            rows[k, n] = [(1, model.time[k]), (size / r**2, model.rate[k])], ">=", 2 * size / r
    add_rows(model, "transmission_cuts", rows, "k n")


def at_most(model: Any, seconds: float) -> None:
    """Only topologies that take at most ``seconds`` for the interval; what is infeasible then is proven worse."""
    add_rows(model, "at_most", {None: (model.cost, "<=", (seconds - model.fixed_cost) / model.unit)})


def relax(model: Any) -> None:
    """The linear relaxation: link counts and decisions may be fractions within their bounds."""
    for var in model.component_data_objects(pyo.Var):
        var.domain = pyo.Reals
