"""The transfers that a plan makes: those that are needed, of pieces in chunks of one size."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from synth.errors import InputError
from synth.exchange.transfers import Transfers
from synth.schedule.collective import REDUCING


def needed(t: Transfers) -> Transfers:
    """Without what brings a rank a copy that it has already (sums are left as they are)."""
    if t.collective in REDUCING:
        return t
    owner = t.piece_part
    if t.collective == "alltoall":
        owner = owner // t.ranks
    elif t.root is not None and t.collective != "gather":
        owner = np.full(len(owner), t.root)
    order = np.lexsort((t.end_s, t.piece, t.dst))
    first = np.ones(len(order), dtype=bool)
    first[1:] = (t.dst[order[1:]] != t.dst[order[:-1]]) | (t.piece[order[1:]] != t.piece[order[:-1]])
    kept = np.zeros(len(order), dtype=bool)
    kept[order[first]] = True
    return t.taken(np.flatnonzero(kept & (owner[t.piece] != t.dst)))


class Rows(NamedTuple):
    """Columns of transfers as lists, which a loop over them reads far sooner than arrays; ``size``: of every piece."""

    piece: list[int]
    src: list[int]
    dst: list[int]
    adds: list[bool]
    start_s: list[float]
    end_s: list[float]
    size: list[int]


def rows_of(t: Transfers) -> Rows:
    """The transfers as lists."""
    columns = (t.piece, t.src, t.dst, t.adds, t.start_s, t.end_s, t.piece_bytes)
    return Rows(*(column.tolist() for column in columns))


def cut(t: Transfers, instances: int) -> Transfers:
    """Pieces in chunks of a grid that all of them fit, each cut into ``instances``."""
    if instances < 1:
        raise InputError("instances: at least one")
    grid = math.gcd(t.part_bytes, *t.piece_offset.tolist(), *t.piece_bytes.tolist())
    turn = np.arange(instances)
    size = t.piece_bytes // grid
    pieces, moves = len(t.piece_part), len(t.piece)
    return replace(
        t,
        part_bytes=t.part_bytes // grid * instances,
        piece_part=np.repeat(t.piece_part, instances),
        piece_offset=np.repeat(t.piece_offset // grid * instances, instances)
        + np.tile(turn, pieces) * np.repeat(size, instances),
        piece_bytes=np.repeat(size, instances),
        piece=np.repeat(t.piece * instances, instances) + np.tile(turn, moves),
        src=np.repeat(t.src, instances),
        dst=np.repeat(t.dst, instances),
        adds=np.repeat(t.adds, instances),
        start_s=np.repeat(t.start_s, instances),
        end_s=np.repeat(t.end_s, instances),
        channel_hint=np.repeat(t.channel_hint, instances),
        together=None if t.together is None else np.repeat(t.together, instances),
        ticks=None,
        wants=None if t.wants is None else t.wants // grid * instances,
    )
