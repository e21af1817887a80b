"""Who goes first: rules of priority for the hops of pieces. Images under the symmetries get equal numbers."""

from __future__ import annotations

import numpy as np

from synth.arrays import IntArray
from synth_models.fabric.programs.flow.orders import Rule
from synth_models.fabric.programs.flow.pieces import Pieces


def priorities(pieces: Pieces, rule: Rule, seed: int) -> IntArray:
    """Priority of every transfer under a rule."""
    kind = pieces.plan.routes.kind[pieces.plan.path[pieces.part]]
    phase = np.full(len(kind), 0.5)
    order = kind
    if rule.random:
        kinds = int(kind.max(initial=0)) + 1
        generator = np.random.default_rng(seed)
        phase, order = generator.random(kinds)[kind], generator.permutation(kinds)[kind]
    paced = rule.pace * (pieces.turn + phase) / pieces.turns
    left = (pieces.hops[pieces.piece] - pieces.hop) / max(1, int(pieces.hops.max(initial=1)))
    key = np.round(paced[pieces.piece] - rule.far * left, 12)
    turn, path = pieces.turn[pieces.piece], order[pieces.piece]
    by = np.lexsort((pieces.hop, turn, path, key))
    columns = np.stack([key[by], path[by].astype(float), turn[by].astype(float), pieces.hop[by].astype(float)])
    new = np.any(columns[:, 1:] != columns[:, :-1], axis=0) if len(by) else np.zeros(0, dtype=bool)
    found = np.empty(len(by), dtype=np.int64)
    found[by] = np.concatenate([[0], np.cumsum(new)])[: len(by)]
    return found
