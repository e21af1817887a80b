"""Harvest's program for one interval (Rahman et al., appendix A): the best single topology for steps a … b, any ports.

A program file: it builds models and calls no solver. Deviations from the print, each stated where it is made: demands
are unit demands (the print has ``m_i`` in the demand and again in the time); the latency term is in the objective,
which needs flows hop by hop; commodities with one source are one flow, which carries up to the rate of *all* its
targets; equal steps are one block with a count. Row and column sums equal ``d`` with loops allowed (a loop is an idle
port), since adding links never hurts. A step of no bytes has rate ``1 / pairs``, which every topology that reaches its
pairs allows, and no (16).

=================  ==================  =====================================  ==========================
paper              code                index set                              unit
=================  ==================  =====================================  ==========================
x[u,v]             ``model.links``     ordered pairs of GPUs (and loops)      links
theta_i            ``model.rate``      block                                  ports' bandwidth per pair
T_i                ``model.time``      block                                  ``model.unit`` seconds
f[s,t,i](u,v)      ``model.flow``      block, source, hop, u, v               as ``model.rate``
(arrivals)         ``model.arrival``   block, source, hop, t                  as ``model.rate``
l_i                ``model.uses``      block, hop 2..layers                   0/1: l_i >= hop
D, M_i             ``Block.pairs``     block                                  pairs
m_i * beta         ``Block.seconds``   block                                  seconds at one port's rate
d, c               ``ports``, 1        one number                             links, ports' bandwidth
=================  ==================  =====================================  ==========================

Hop ``layers + 1`` of ``model.flow`` moves data that has already made ``layers`` hops any number of hops further at no
further latency. The program is exact with ``layers = gpus - 1`` and for latency off; with fewer layers it is a
relaxation, exact where its answer needs no more. The rate form is used because T = m / rate is convex in it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import pyomo.environ as pyo
from pyomo.core.expr.numeric_expr import LinearExpression, MonomialTermExpression
from pyomo.core.expr.relational_expr import EqualityExpression, InequalityExpression

from synth_models.harvest.instance import HarvestInstance
from synth_models.harvest.programs.misocp.blocks import Block

SMALLEST_UNIT = 1e-2  # of the propagation time: keeps the coefficients of the objective within reason

Term = tuple[float, Any]
Row = tuple[Sequence[Term], str, float]


def linear(terms: Iterable[Term]) -> Any:
    """Sum of coefficient times variable."""
    return LinearExpression([v if c == 1 else MonomialTermExpression((c, v)) for c, v in terms])


def add_rows(model: Any, name: str, rows: Sequence[Row]) -> None:
    """A block of linear constraints (terms, ``"<="``, ``">="`` or ``"=="``, right side)."""

    def rule(_: Any, i: int) -> Any:
        terms, sense, rhs = rows[i]
        body = linear(terms)
        if sense == "==":
            return EqualityExpression((body, rhs))
        return InequalityExpression((body, rhs) if sense == "<=" else (rhs, body), strict=False)

    setattr(model, name, pyo.Constraint(range(len(rows)), rule=rule))


def build(
    instance: HarvestInstance,
    blocks: Sequence[Block],
    layers: int,
    tangents: Sequence[Sequence[float]] | None,
    ranges: Sequence[tuple[float, float]] | None = None,
) -> pyo.ConcreteModel:
    """The model of one interval; ``tangents`` (rates per block) replace the cone (16) by cuts, None keeps the cone.
    ``ranges`` are smallest and largest rates per block where those of :func:`rate_range` can be narrowed."""
    model = start(instance, blocks)
    gpus, ports = model.gpus, model.ports
    kinds = range(len(blocks))
    model.ranges = [rate_range(block, ports) for block in blocks] if ranges is None else list(ranges)
    least, most = [r[0] for r in model.ranges], [r[1] for r in model.ranges]
    model.layers = layers
    arcs = [key for k in kinds for key in _arcs(k, blocks[k], gpus, layers)]
    ends = [
        (k, s, hop, t)
        for k in kinds
        for s, targets in blocks[k].partners().items()
        for hop in range(1, layers + 1)
        for t in targets
    ]
    latency = instance.hop_delay > 0
    model.rate = pyo.Var(kinds, bounds=lambda _, k: (least[k], most[k]))
    model.time = pyo.Var(
        kinds,
        bounds=lambda _, k: (blocks[k].seconds / most[k] / model.unit, blocks[k].seconds / least[k] / model.unit),
    )
    targets = [{s: len(found) for s, found in block.partners().items()} for block in blocks]
    model.flow = pyo.Var(arcs, bounds=lambda _, k, s, *__: (0, min(most[k] * targets[k][s], ports)))
    model.arrival = pyo.Var(ends, bounds=lambda _, k, *__: (0, most[k]))
    hops = [(k, hop) for k in kinds for hop in range(2, layers + 1) if latency]
    model.uses = pyo.Var(hops, domain=pyo.Integers, bounds=(0, 1))
    degrees(model)
    flow_conservation(model)
    link_capacity(model)
    if latency:
        longest_route(model)
    if tangents is None:
        transmission_cone(model)
    else:
        transmission_cuts(model, tangents)
    cost: list[Term] = [(block.count, model.time[k]) for k, block in enumerate(blocks)]
    cost += [(blocks[k].count * instance.hop_delay / model.unit, var) for (k, _), var in model.uses.items()]
    finish(model, cost, instance.alpha + instance.hop_delay)
    return model


def rate_range(block: Block, ports: int) -> tuple[float, float]:
    """Rates a pair can have: from all pairs over one link to all ports shared by the busiest GPU's pairs. Without bytes
    any rate is as good as the smallest."""
    least = 1 / len(block.pairs)
    return least, ports / block.degree if block.seconds > 0 else least


def start(instance: HarvestInstance, blocks: Sequence[Block]) -> Any:
    """A model with the sizes, the unit of time (about the interval's transmission time, or a small part of its
    propagation where that is all there is) and the link counts."""
    model: Any = pyo.ConcreteModel()
    model.gpus, model.ports, model.blocks = instance.gpus, instance.ports, tuple(blocks)
    transmission = sum(block.count * block.seconds for block in blocks)
    propagation = sum(block.count for block in blocks) * instance.hop_delay
    model.unit = max(transmission, propagation * SMALLEST_UNIT) or 1.0
    nodes = range(instance.gpus)
    model.links = pyo.Var(nodes, nodes, domain=pyo.Integers, bounds=(0, instance.ports))
    return model


def finish(model: Any, cost: list[Term], fixed: float) -> None:
    """(9): least total time in ``model.unit``; ``fixed`` seconds a step are the same for all topologies."""
    model.cost = cost
    model.fixed_cost = sum(block.count for block in model.blocks) * fixed
    model.objective = pyo.Objective(expr=linear(cost))


def cutoff(model: Any, seconds: float) -> None:
    """Only topologies that take at most ``seconds`` for the interval; what is infeasible then is proven worse."""
    add_rows(model, "cutoff", [(model.cost, "<=", (seconds - model.fixed_cost) / model.unit)])


def relax(model: Any) -> None:
    """The linear relaxation: link counts and decisions may be fractions within their bounds."""
    for var in model.component_data_objects(pyo.Var):
        var.domain = pyo.Reals


def _arcs(k: int, block: Block, gpus: int, layers: int) -> list[tuple[int, int, int, int, int]]:
    """Where flow may go: away from the source on hop 1, later never back to it, and not on from an only destination."""
    found = []
    for s, targets in block.partners().items():
        only = targets[0] if len(targets) == 1 else -1
        found += [(k, s, 1, s, v) for v in range(gpus) if v != s]
        inner = [(u, v) for u in range(gpus) for v in range(gpus) if len({u, v, s}) == 3 and u != only]
        for hop in range(2, layers + 2):
            if hop > gpus - 1:
                break
            last = hop == layers == gpus - 1
            found += [(k, s, hop, u, v) for u, v in inner if not last or v in targets]
    return found


def degrees(model: Any) -> None:
    """(10), (11): every GPU has ``ports`` links out and in, idle ports being loops."""
    nodes = range(model.gpus)
    rows: list[Row] = [([(1, model.links[u, v]) for v in nodes], "==", model.ports) for u in nodes]
    rows += [([(1, model.links[u, v]) for u in nodes], "==", model.ports) for v in nodes]
    add_rows(model, "degrees", rows)


def flow_conservation(model: Any) -> None:
    """(12) hop by hop: what arrives at a GPU on a hop ends there or leaves it on the next; every pair gets ``rate``."""
    balance: dict[tuple[int, int, int, int], list[Term]] = {}
    for (k, s, hop, u, v), var in model.flow.items():
        balance.setdefault((k, s, min(hop, model.layers), v), []).append((1, var))
        if hop > 1:
            balance.setdefault((k, s, hop - 1, u), []).append((-1, var))
    served: dict[tuple[int, int, int], list[Term]] = {}
    for (k, s, hop, t), var in model.arrival.items():
        balance.setdefault((k, s, hop, t), []).append((-1, var))
        served.setdefault((k, s, t), []).append((1, var))
    add_rows(model, "balance", [(terms, "==", 0) for terms in balance.values()])
    add_rows(model, "served", [([*terms, (-1, model.rate[k])], "==", 0) for (k, _, _), terms in served.items()])


def link_capacity(model: Any) -> None:
    """(13): all flow of a step over the links from u to v, in ports' bandwidth, is at most their number."""
    load: dict[tuple[int, int, int], list[Term]] = {}
    for (k, _, _, u, v), var in model.flow.items():
        load.setdefault((k, u, v), []).append((1, var))
    add_rows(model, "capacity", [([*t, (-1, model.links[u, v])], "<=", 0) for (_, u, v), t in load.items()])


def longest_route(model: Any) -> None:
    """The latency term: what a pair receives by routes of ``hop`` hops or more (at most its largest rate) needs that
    hop to be paid for."""
    late: dict[tuple[int, int, int, int], list[Term]] = {}
    for (k, s, hop, t), var in model.arrival.items():
        for h in range(2, hop + 1):
            late.setdefault((k, h, s, t), []).append((1, var))
    rows: list[Row] = [
        ([*terms, (-model.ranges[k][1], model.uses[k, hop])], "<=", 0) for (k, hop, _, _), terms in late.items()
    ]
    rows += [([(1, model.uses[k, hop]), (-1, model.uses[k, hop - 1])], "<=", 0) for k, hop in model.uses if hop > 2]
    add_rows(model, "longest_route", rows)


def transmission_cone(model: Any) -> None:
    """(15), (16): time times rate is at least the transmission time at rate 1, a rotated cone."""

    def rule(m: Any, k: int) -> Any:
        return m.time[k] * m.rate[k] >= m.blocks[k].seconds / m.unit

    model.cone = pyo.Constraint([k for k, block in enumerate(model.blocks) if block.seconds > 0], rule=rule)


def transmission_cuts(model: Any, tangents: Sequence[Sequence[float]]) -> None:
    """(16) by tangents of a / rate at given rates r: ``time >= a * (2 / r - rate / r^2)``, valid for every rate."""
    rows: list[Row] = []
    for k, (block, points) in enumerate(zip(model.blocks, tangents, strict=True)):
        size = block.seconds / model.unit  # without bytes there are no points
        rows += [([(1, model.time[k]), (size / r**2, model.rate[k])], ">=", 2 * size / r) for r in points]
    add_rows(model, "tangents", rows)
