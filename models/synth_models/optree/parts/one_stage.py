"""One stage: an all-to-all in which every node sends its item straight to every other node.

A circuit takes one of the two directions and one wavelength on all its links (Dai, Chen, Huang, Zhang, Lemma 1). The
stage goes all round the ring (``shape`` ``ring``), or without the link between node N-1 and node 0 (``segment``, on
which routes are forced). ``W`` wavelengths make ``ceil(W/w)`` steps.

**Load bound.** Segment: ``floor(m/2) * ceil(m/2) = floor(m^2/4)`` circuits cross the middle link in each direction.
Ring: the shortest ways of all circuits are ``m * floor(m^2/4)`` hops, over ``2m`` directed links:
``ceil(floor(m^2/4) / 2)``. Both are reached for every ``m`` (``parts/stage_layout.py``). So the paper's
``floor(m^2/4)`` is right, and its ``ceil(m^2/8)`` is right for even ``m`` and one too many for every odd ``m``.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from synth.errors import UnsupportedError
from synth.options import RunOptions
from synth_models.optree.instance import OpTreeInstance
from synth_models.optree.parts.budgets import require_hops
from synth_models.optree.solution import Circuits


@dataclass(frozen=True)
class Stage:
    """One circuit per row of an all-to-all: source, destination, direction, wavelength."""

    rows: tuple[tuple[int, int, int, int], ...]

    @property
    def wavelengths(self) -> int:
        """How many wavelengths it uses."""
        return 1 + max(wavelength for _, _, _, wavelength in self.rows)

    def circuits(self, wavelengths: int) -> Circuits:
        """As a schedule of ``wavelengths`` wavelengths a step."""
        src, dst, direction, wavelength = (np.array(column) for column in zip(*self.rows, strict=True))
        order = np.argsort(wavelength, kind="stable")
        step = 1 + wavelength // wavelengths
        return Circuits.of(*(x[order] for x in (step, src, dst, direction, wavelength % wavelengths, src)))


def load_bound(nodes: int, shape: str) -> int:
    """The link-load bound on the wavelengths of an all-to-all on a ``ring`` or a ``segment`` (see the module)."""
    return nodes * nodes // 4 if shape == "segment" else (nodes * nodes // 4 + 1) // 2


def published_wavelengths(nodes: int, shape: str) -> int:
    """The paper's Lemma 1: ``floor(m^2/4)`` on a line, ``ceil(m^2/8)`` on a ring."""
    return nodes * nodes // 4 if shape == "segment" else -(-nodes * nodes // 8)


def shape_within(instance: OpTreeInstance, options: RunOptions, most: int, what: str) -> str:
    """The shape asked for. Raises :class:`UnsupportedError` beyond ``most`` nodes, or if circuits would be too long."""
    shape, nodes = str(options.method.get("shape", "ring")), instance.nodes
    if nodes > most:
        raise UnsupportedError(f"{what} colours the one-stage circuits of up to {most} nodes, not {nodes}")
    require_hops(instance, nodes - 1 if shape == "segment" else nodes // 2, f"one stage on a {shape}")
    return shape
