"""Instances of the harvest family: a sequence of communication steps on a fabric whose topology can be changed.

The file lists the steps themselves, so that any collective algorithm is data; ``algorithm`` only says where they come
from. Times in seconds, bandwidth in bytes per second, sizes in bytes.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Annotated, Any, Literal

import numpy as np
import numpy.typing as npt
from pydantic import Field

from synth.errors import Fault
from synth.instance import Instance, Part

IntArray = npt.NDArray[np.int64]

Gpu = Annotated[int, Field(ge=0)]


class Step(Part):
    """One step: every listed pair ``(source, destination)`` exchanges ``bytes`` bytes, all pairs at once.

    Written as ``pairs`` or, when every GPU u sends to ``(u + shift) mod gpus``, as ``shift``.
    """

    bytes: Annotated[float, Field(gt=0)]
    pairs: tuple[tuple[Gpu, Gpu], ...] | None = None
    shift: Annotated[int, Field(ge=1)] | None = None


class Candidate(Part):
    """A topology to be tried beside the generated ones: ``links`` are ``[src, dst, parallel links]``."""

    name: Annotated[str, Field(min_length=1)]
    links: tuple[tuple[Gpu, Gpu, Annotated[int, Field(ge=1)]], ...]


class HarvestInstance(Instance):
    """When to change the topology during a collective, and to what.

    ``gpus`` GPUs with ``ports`` ports of ``port_bandwidth`` bytes/s each (a GPU's full capacity is the product).
    ``alpha`` is the start-up time of a step, ``delta`` the propagation time of a hop (left out of the cost when
    ``latency`` is ``"off"``, as in the paper's appendix A), ``reconfiguration_delay`` the time a change of topology takes.
    """

    family: Literal["harvest"] = "harvest"
    gpus: Annotated[int, Field(ge=2, le=4096)]
    ports: Annotated[int, Field(ge=1, le=64)]
    port_bandwidth: Annotated[float, Field(gt=0)]
    alpha: Annotated[float, Field(ge=0)]
    delta: Annotated[float, Field(ge=0)]
    reconfiguration_delay: Annotated[float, Field(ge=0)]
    latency: Literal["on", "off"] = "on"
    algorithm: dict[str, str | int | float] | None = None
    steps: Annotated[tuple[Step, ...], Field(min_length=1)]
    candidates: tuple[Candidate, ...] = ()

    @classmethod
    def faults_in(cls, raw: dict[str, Any]) -> list[Fault]:
        return list(_faults(raw))

    @cached_property
    def pairs(self) -> tuple[IntArray, ...]:
        """The pairs of every step, each of shape (pairs, 2), in the order of the file."""
        sources = np.arange(self.gpus, dtype=np.int64)
        return tuple(
            np.stack([sources, (sources + step.shift) % self.gpus], axis=1)
            if step.shift is not None
            else np.array(step.pairs, dtype=np.int64).reshape(-1, 2)
            for step in self.steps
        )

    @cached_property
    def bytes_per_pair(self) -> npt.NDArray[np.float64]:
        """Bytes per pair of every step, shape (steps,)."""
        return np.array([step.bytes for step in self.steps])

    @property
    def hop_delay(self) -> float:
        """``delta``, or 0 when latency is off: what a hop adds to the cost."""
        return self.delta if self.latency == "on" else 0.0


def _faults(raw: dict[str, Any]) -> Iterator[Fault]:
    """Everything that concerns several fields; parts of the wrong type are pydantic's to report."""
    gpus = raw.get("gpus")
    if not isinstance(gpus, int) or isinstance(gpus, bool):
        return
    steps = raw.get("steps")
    for index, step in enumerate(steps if isinstance(steps, (list, tuple)) else ()):
        if isinstance(step, dict):
            yield from _step_faults(f"steps[{index}]", step, gpus, raw.get("ports"))


def _step_faults(where: str, step: dict[str, Any], gpus: int, ports: Any) -> Iterator[Fault]:
    # TODO(harvest helper): pairs xor shift; out of range; self pairs; repeated pairs; more partners than ports; shift < gpus
    yield from ()
