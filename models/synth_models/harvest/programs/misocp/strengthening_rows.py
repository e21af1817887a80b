"""Rows that cut off fractional or repeated topologies and no best one; each can be left out. A program file beside
:mod:`synth_models.harvest.programs.misocp.model`, whose links x and late hops z it takes.

The hop volume (all hops of all flow fit into all links) needs no row: degrees and link capacities add up to it.

=================  =========================  ==================================  ============
page               code                       index set                           unit
=================  =========================  ==================================  ============
x[u,v]             ``model.links``            ordered pairs of GPUs and loops     links
z[k,h]             ``model.uses``             block, hop 2 … ``model.layers``     0/1
W[u,v]             ``weights``                ordered pairs of GPUs               preference
g                  ``relabellings``           maps of GPUs that keep all blocks   --
K                  ``blocks_of_partner``      a block of each of some partners    blocks
d                  ``model.ports``            one number                          links
=================  =========================  ==================================  ============
"""

from __future__ import annotations

from itertools import combinations, product
from typing import Any

from synth.solvers.rows import Row, add_rows
from synth_models.harvest.programs.misocp.blocks import relabellings

MOST_COMBINATIONS = 200


def symmetry_breaking(model: Any, links: Any) -> None:
    """(22): of all topologies that relabellings of the GPUs turn into each other, keep one. ``links`` are those of the
    topology, or of one of several that are relabelled together.

    With any weights W on the links, the orbit's member of largest W satisfies W(x) >= W(g x) for all relabellings g.
    The weights favour links of GPU 0 (of the first pair's source) to its partners, heaviest steps first.
    """
    order = sorted(model.blocks, key=lambda block: -block.seconds * block.count)
    source = order[0].pairs[0][0]
    partners = [t for block in order for t in block.partners().get(source, [])]
    targets = list(dict.fromkeys([*partners, *range(model.gpus)]))
    weights = {(source, v): float(2 * (model.gpus - i)) for i, v in enumerate(targets)}
    rows: dict[tuple[tuple[tuple[int, int], float], ...], Row] = {}
    for relabelling in relabellings(model.blocks, model.gpus):
        difference = dict(weights)
        for (u, v), weight in weights.items():
            moved = relabelling.link(u, v)
            difference[moved] = difference.get(moved, 0.0) - weight
        kept = tuple(sorted((link, c) for link, c in difference.items() if c and link in links))
        if kept:
            rows[kept] = ([(c, links[link]) for link, c in kept], ">=", 0)
    add_rows(model, "symmetry_breaking", list(rows.values()))


def direct_or_late(model: Any) -> None:
    """(23): a step whose routes have one hop only needs a link for every pair."""
    rows: list[Row] = [
        ([(1, model.links[pair]), (1, model.uses[k, 2])], ">=", 1)
        for k, block in enumerate(model.blocks)
        if (k, 2) in model.uses
        for pair in block.pairs
    ]
    add_rows(model, "direct_or_late", rows)


def moore(model: Any) -> None:
    """(24): within h hops a GPU reaches, and is reached from, d + d^2 + … + d^h others: more partners than that in
    different steps cannot all have routes of h hops."""
    rows: dict[tuple[int, tuple[int, ...]], Row] = {}
    for side in (0, 1):
        for gpu in range(model.gpus):
            blocks_of_partner: dict[int, list[int]] = {}
            for k, block in enumerate(model.blocks):
                for pair in block.pairs:
                    if pair[side] == gpu:
                        blocks_of_partner.setdefault(pair[1 - side], []).append(k)
            for hop in range(1, model.layers):
                reached = sum(model.ports**i for i in range(1, hop + 1))
                if len(blocks_of_partner) > reached:
                    _moore_rows(model, rows, hop, reached, list(blocks_of_partner.values()))
    add_rows(model, "moore", list(rows.values()))


def _moore_rows(
    model: Any, rows: dict[tuple[int, tuple[int, ...]], Row], hop: int, reached: int, choices: list[list[int]]
) -> None:
    """One of any ``reached + 1`` partners is served late, whichever of its steps is meant (a step may hold several)."""
    for some in combinations(choices, reached + 1):
        for number, steps in enumerate(product(*some)):
            if number >= MOST_COMBINATIONS:
                break
            key = (hop, tuple(sorted(set(steps))))
            rows.setdefault(key, ([(1, model.uses[k, hop + 1]) for k in key[1]], ">=", 1))
