"""Rows of a step's flow (as in :class:`Schedule`) and a topology's profile for a step; used by all ways of routing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from synth.arrays import FloatArray, IntArray


class Profile(NamedTuple):
    """How well a topology serves a pattern: the smallest load for every hop limit that matters.

    ``hops`` ascending and ``unit_load`` strictly descending, both of shape (points,): with routes of at most
    ``hops[j]`` hops the largest sum of shares per parallel link is ``unit_load[j]``. Empty when a pair cannot be
    reached at all.
    """

    hops: IntArray
    unit_load: FloatArray


UNREACHABLE = Profile(np.zeros(0, dtype=np.int64), np.zeros(0))


@dataclass(frozen=True)
class FlowRows:
    """Rows (pair, hop, src, dst, share) of one step."""

    pair: IntArray
    hop: IntArray
    src: IntArray
    dst: IntArray
    share: FloatArray


@dataclass(frozen=True)
class LinkFlow:
    """Rows of one step by the topology's rows: share of ``pair`` that makes its ``hop``-th hop on ``link``."""

    pair: IntArray
    hop: IntArray
    link: IntArray
    share: FloatArray


def merged(gpus: int, rows: FlowRows) -> FlowRows:
    """The same flow with every (pair, hop, src, dst) once and rows of no share left out, sorted."""
    keep = rows.share > 0
    hops = int(rows.hop.max(initial=0)) + 1
    keys = ((rows.pair * hops + rows.hop) * gpus + rows.src) * gpus + rows.dst
    places, at = np.unique(keys[keep], return_inverse=True)
    share = np.bincount(at, rows.share[keep], len(places)).astype(np.float64)
    ends, dst = np.divmod(places, gpus)
    when, src = np.divmod(ends, gpus)
    pair, hop = np.divmod(when, hops)
    return FlowRows(pair, hop, src, dst, share)
