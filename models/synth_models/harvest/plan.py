"""The solution type of all methods: a topology and the flows of every step."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Plan:
    """Which topology each step runs on, and how its pairs are routed there.

    ``topologies``: arrays of shape (links, 3): source, destination, number of parallel links, each pair of ends once and no
    loops. ``topology_of_step``: index into them, shape (steps,). ``flows``: one array per step of structured rows in five
    columns: ``pair`` (index into the step's pairs), ``hop`` (from 0), ``src``, ``dst`` and, beside them, ``share``
    (fraction of the pair's bytes that makes its hop-th hop on this link). Time-expanded, so that the longest route is
    the largest hop + 1 and conservation holds hop by hop; whole routes need not be listed. Rows of step i are
    ``flow_start[i]:flow_start[i + 1]``.
    """

    topologies: tuple[IntArray, ...]
    topology_of_step: IntArray
    flow_start: IntArray
    pair: IntArray
    hop: IntArray
    src: IntArray
    dst: IntArray
    share: FloatArray


def pack(plan: Plan) -> dict[str, Any]:
    """Plain values and flat arrays."""
    raise NotImplementedError  # TODO(harvest helper)


def unpack(packed: Mapping[str, Any]) -> Plan:
    """The inverse of :func:`pack`. Raises ``ValueError`` or ``KeyError`` on data that is no plan."""
    raise NotImplementedError  # TODO(harvest helper)
