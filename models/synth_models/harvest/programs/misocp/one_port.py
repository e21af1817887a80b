"""Appendix A for one port a GPU, where it is a linear program: a program file beside
:mod:`synth_models.harvest.programs.misocp.model`, whose links, degrees (10), (11) and objective (9) it takes.

With one link out of every GPU a pair has one route, so the largest load ``1 / theta_i`` is a whole number of pairs (a
sum of their shares of the largest volume where volumes differ) and the route's length is the number of its links.
Counting pairs instead of rates makes the time linear, so that (14) to
(16) are not needed, and lets every pair's route be bounded by the links on its own, which is much tighter than (13).

=================  ======================  ==================================  ====================
paper              code                    index set                           unit
=================  ======================  ==================================  ====================
V, d, c            ``model.gpus``, 1, 1    one number each                     GPUs, links, link
a … b, i           ``model.blocks``        blocks k with their ``count``       steps
x[u,v]             ``model.links``         ordered pairs of GPUs and loops     links (0 or 1)
f[s,t,i](u,v)      ``model.route``         pair (s, t) of any block, u, v      0/1 with whole links
1 / theta_i        ``model.heaviest``      block                               pairs
l_i                ``model.hops``          block                               hops
D, M_i             ``Block.pairs``         block                               pairs
beta * m_i         ``Block.seconds``       block                               seconds a pair
T_i                heaviest * seconds      block                               seconds
alpha, delta       ``model.fixed_cost``,   one number each                     seconds
                   ``instance.hop_delay``
=================  ======================  ==================================  ====================
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Any

from synth.solvers.algebra import pyo
from synth.solvers.rows import Row, Term, add_rows, ones, variables
from synth_models.harvest.instance import HarvestInstance
from synth_models.harvest.programs.misocp.blocks import Block
from synth_models.harvest.programs.misocp.model import LEAST_DELAY, in_degree, least_total_time, out_degree, start

MOST_PARTNERS = 6  # subsets of a GPU's partners are listed up to this many


def build(instance: HarvestInstance, blocks: Sequence[Block], loops: bool = True) -> pyo.ConcreteModel:
    """The model of one interval; ``loops`` as for :func:`~synth_models.harvest.programs.misocp.model.start`. Raises
    ``ValueError`` with more than one port."""
    if instance.ports != 1:
        raise ValueError("routes are forced with one port only")
    model = start(instance, blocks, loops)
    gpus = model.gpus
    kinds = range(len(blocks))
    keys = [
        (s, t, u, v)
        for s, t in dict.fromkeys(pair for block in blocks for pair in block.pairs)
        for u in range(gpus)
        for v in range(gpus)
        if u != v and v != s and u != t
    ]
    model.route = variables("s t u v", keys, bounds=(0, 1))
    model.heaviest = variables("k", kinds, bounds=lambda _, k: (1, sum(blocks[k].share.values())))
    for k, block in enumerate(blocks):
        model.heaviest[k].domain = pyo.Reals if block.volumes else pyo.Integers
    model.hops = variables("k", kinds, domain=pyo.Integers, bounds=(1, gpus - 1))
    of_pair: dict[tuple[int, int], dict[tuple[int, int], Any]] = {}
    for (s, t, u, v), var in model.route.items():
        of_pair.setdefault((s, t), {})[u, v] = var
    out_degree(model)
    in_degree(model)
    route_conservation(model, of_pair)
    route_on_links(model)
    largest_load(model, of_pair)
    longest_route(model, of_pair)
    cost: list[Term] = [(block.count * block.seconds / model.unit, model.heaviest[k]) for k, block in enumerate(blocks)]
    if instance.hop_delay >= LEAST_DELAY * model.unit:
        cost += [(block.count * instance.hop_delay / model.unit, model.hops[k]) for k, block in enumerate(blocks)]
    least_total_time(model, cost, instance.alpha)
    return model


Routes = dict[tuple[int, int], dict[tuple[int, int], Any]]


def route_conservation(model: Any, of_pair: Routes) -> None:
    """(18), which is (12) with unit demands: a route leaves the source, enters the destination and goes on everywhere
    else."""
    rows: dict[tuple[int, int, int], Row] = {}
    for (s, t), route in of_pair.items():
        for node in range(model.gpus):
            into = [(1, var) for (_, v), var in route.items() if v == node]
            out = [(1 if node == s else -1, var) for (u, _), var in route.items() if u == node]
            terms = out if node == s else into if node == t else into + out
            rows[s, t, node] = terms, "==", int(node in (s, t))
    add_rows(model, "route_conservation", rows, "s t v")


def route_on_links(model: Any) -> None:
    """(19), which is (13) for one pair at a time: routes use links that are there."""
    rows: dict[Any, Row] = {
        (s, t, u, v): ([(1, var), (-1, model.links[u, v])], "<=", 0) for (s, t, u, v), var in model.route.items()
    }
    add_rows(model, "route_on_links", rows, "s t u v")


def largest_load(model: Any, of_pair: Routes) -> None:
    """(20), which is (13) for all pairs of a step: a GPU has one link out and one in, and neither carries more pairs
    (shares of the largest volume) than ``heaviest``."""
    rows: dict[Any, Row] = {}
    for k, block in enumerate(model.blocks):
        through: dict[tuple[str, int], list[Term]] = {}
        for pair in block.pairs:
            for (u, v), var in of_pair[pair].items():
                through.setdefault(("out", u), []).append((block.share[pair], var))
                through.setdefault(("in", v), []).append((block.share[pair], var))
        rows |= {(k, *end): ([*terms, (-1, model.heaviest[k])], "<=", 0) for end, terms in through.items()}
    add_rows(model, "largest_load", rows, "k side u")


def longest_route(model: Any, of_pair: Routes) -> None:
    """(21), the latency term l_i of the paper's (3): no route of a step is longer than ``hops``."""
    rows: dict[Any, Row] = {
        (k, *pair): ([*ones(of_pair[pair].values()), (-1, model.hops[k])], "<=", 0)
        for k, block in enumerate(model.blocks)
        for pair in block.pairs
    }
    add_rows(model, "longest_route", rows, "k s t")


def distances_differ(model: Any) -> None:
    """Strengthening: along a cycle no two GPUs are equally far, so q partners of one GPU are at least
    1 + 2 + … + q away in all, in either direction."""
    lengths: dict[tuple[int, int], dict[int, list[Term]]] = {}
    for (s, t, _, _), var in model.route.items():
        lengths.setdefault((0, s), {}).setdefault(t, []).append((1, var))
        lengths.setdefault((1, t), {}).setdefault(s, []).append((1, var))
    rows: list[Row] = []
    for partners in lengths.values():
        sizes = range(2, len(partners) + 1) if len(partners) <= MOST_PARTNERS else (2, len(partners))
        for size in sizes:
            for some in combinations(partners, size):
                rows.append(([term for t in some for term in partners[t]], ">=", size * (size + 1) // 2))
    add_rows(model, "distances_differ", rows)
