"""Tokens as traffic: the blocks that the check replays, and a plan as transfers with exact times."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from pydantic import BaseModel

from synth.arrays import BoolArray, IntArray
from synth.kernels import jit
from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.plans.demands.layout import Layout
from synth_models.fabric.plans.tokens.batches import Batches, Pieces
from synth_models.fabric.plans.tokens.classes import Classes
from synth_models.fabric.plans.tokens.timeline import Starts
from synth_models.fabric.problem.blocks import Blocks, in_set
from synth_models.fabric.problem.rows import picked
from synth_models.fabric.problem.traffic import ANY, SUM, HeldBlock
from synth_models.fabric.solution import Schedule


class Ends(NamedTuple):
    """Of every class the sender, the code of who wants it among ``sets``, and whether these are several; shape
    (classes,)."""

    sender: IntArray
    goal: IntArray
    several: BoolArray
    sets: tuple[tuple[int, ...], ...]


def ends_of(classes: Classes, layout: Layout) -> Ends:
    """Who sends each class, and who wants it, as nodes."""
    boxes, size, node = layout.boxes, layout.size, layout.node
    k = np.repeat(np.arange(len(classes.row) - 1), np.diff(classes.row))
    box, sender = k // size % boxes, k // (size * boxes) * size + k % size
    pairs, which = np.unique(np.stack([box, classes.wanted]), axis=1, return_inverse=True)
    goals, codes, sets = [], list[int](), list[tuple[int, ...]]()
    for c, wanted in pairs.T.tolist():
        goals.append(tuple(int(node[c * size + h]) for h in range(size) if wanted >> h & 1))
    for ranks in goals:
        codes.append(ranks[0] if len(ranks) == 1 else in_set(len(sets)))
        sets += [tuple(sorted(ranks))] if len(ranks) > 1 else []
    of = which.reshape(-1)
    lengths = np.array([len(ranks) for ranks in goals], dtype=np.int64)
    return Ends(node[sender], np.array(codes, dtype=np.int64)[of], lengths[of] > 1, tuple(sets))


def stated(machine: FabricInstance, classes: Classes, ends: Ends, token_bytes: int, back: bool) -> FabricInstance:
    """The tokens as an instance of collective ``traffic``, a block a class: copies (mode ``any``) on their way out;
    ``back``, sums (mode ``sum``) of what the ranks of a box that want it have made of them."""
    size = classes.tokens * token_bytes
    name = "combine" if back else "dispatch"
    holds, wants = (ends.goal, ends.sender) if back else (ends.sender, ends.goal)
    blocks = Blocks(holds, wants, size, ends.several & back, ends.sets)
    rows = tuple(
        HeldBlock.model_construct(
            bytes=amount, holders=blocks.ranks(u, ()), mode=SUM if back else ANY, wanters=blocks.ranks(v, ())
        )
        for u, v, amount in zip(holds.tolist(), wants.tolist(), size.tolist(), strict=True)
    )
    own: dict[str, Any] = {"collective": "traffic", "traffic": rows, "root": None, "demand": None}
    own |= {"bytes": int(size.sum()) or 1, "name": f"{machine.name[:90]}-{name}"}
    own["source"] = f"tokens on the machine of {machine.name}: {name}"
    instance = BaseModel.model_copy(machine, update=own)  # not validated again: what is counted has been
    instance._file = instance._sha256 = None
    instance.__dict__["blocks"] = blocks
    return instance


def schedule_of(
    layout: Layout, classes: Classes, made: tuple[Batches, Pieces, Starts], token_bytes: int, back: BoolArray | None
) -> Schedule:
    """The transfers of a plan. ``back``, shape (classes,): it was made on the reversed machine, and is played
    backwards; True where what is transferred is a partial sum."""
    batches, pieces, starts = made
    routes = layout.routes
    piece, route, start = _transfers(
        classes.wanted, batches, pieces, starts, (layout.boxes, token_bytes), routes.slowest
    )
    size = pieces.tokens * token_bytes
    rows = routes.row, routes.link
    adds = np.zeros(len(piece), dtype=bool)
    if back is not None:
        end = start + routes.latency[route] + size[piece] * routes.slowest[route]
        start = int(starts.ticks[0]) - end
        owner = np.repeat(np.arange(len(routes.latency)), np.diff(routes.row))
        rows = routes.row, routes.link[routes.row[:-1][owner] + routes.row[1:][owner] - 1 - np.arange(len(owner))]
        adds = back[pieces.kind[piece]]
    return Schedule(layout.ticks_per_s, pieces.kind, size, start, piece, adds, *picked(rows, route))


@jit
def _transfers(
    wanted: IntArray, batches: Batches, pieces: Pieces, starts: Starts, sizes: tuple[int, int], slowest: IntArray
) -> tuple[IntArray, IntArray, IntArray]:
    """Piece, route and start of every transfer. ``sizes``: boxes, and bytes of a token."""
    boxes, token_bytes = sizes
    size, count = batches.fan.shape[1], len(pieces.tokens)
    most = 0
    for p in range(count):
        mask = wanted[pieces.kind[p]]
        most += 2
        while mask > 0:
            most += mask & 1
            mask >>= 1
    piece, route, start = np.zeros(most, np.int64), np.zeros(most, np.int64), np.zeros(most, np.int64)
    inside, top, now_of = boxes * boxes * size, 0, -1
    gone, gone_to = np.int64(0), np.zeros(size, np.int64)
    for p in range(count):
        i, n = pieces.batch[p], pieces.tokens[p]
        if i != now_of:
            gone, now_of = np.int64(0), i
            gone_to[:] = 0
        s, c, q = batches.origin[i], batches.box[i], batches.rail[i]
        if starts.before[i] >= 0:
            r = inside + s * size + q
            piece[top], route[top] = p, r
            start[top] = starts.before[i] + gone * token_bytes * slowest[r]
            top += 1
        if starts.across[i] >= 0:
            r = (s // size * boxes + c) * size + q
            piece[top], route[top] = p, r
            start[top] = starts.across[i] + gone * token_bytes * slowest[r]
            top += 1
        gone += n
        for h in range(size):
            if h != q and wanted[pieces.kind[p]] >> h & 1:
                r = inside + (c * size + q) * size + h
                piece[top], route[top] = p, r
                start[top] = starts.behind[i, h] + gone_to[h] * token_bytes * slowest[r]
                gone_to[h] += n
                top += 1
    return piece[:top], route[:top], start[:top]
