"""What a family says of an instance whose parts may fail (its ``breakable``): data and protocols."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from synth.arrays import IntArray

MOST_NAMED = 8


@dataclass(frozen=True)
class Cut:
    """How a failure parts the ranks, by name: the ``parts``, the nodes of a ``closed`` set that no link leaves any
    more, and what has ``failed`` of the links that left it."""

    parts: list[list[str]]
    closed: list[str]
    failed: list[str]

    def __str__(self) -> str:
        parts = " | ".join(_listed(part) for part in self.parts)
        return f"parted into {parts}: no link leaves {_listed(self.closed)} without {_listed(self.failed)}"


def _listed(names: list[str]) -> str:
    more = f", … ({len(names)})" if len(names) > MOST_NAMED else ""
    return "{" + ", ".join(names[:MOST_NAMED]) + more + "}"


class Failure(Protocol):
    """Something that fails."""

    @property
    def name(self) -> str:
        """As a person writes it."""

    @property
    def kind(self) -> str:
        """``link``, ``switch``, …"""

    @property
    def pairs(self) -> frozenset[tuple[int, int]]:
        """The directions from node to node that it takes along."""

    @property
    def parts(self) -> Sequence[Any]:
        """One for a single failure."""


class Orbit(Protocol):
    """Failures that symmetries map onto each other."""

    @property
    def members(self) -> Sequence[Failure]:
        """The representative first."""

    @property
    def images(self) -> Sequence[IntArray]:
        """For each member where nodes go under a symmetry that maps the representative to it."""

    @property
    def representative(self) -> Failure:
        """Which one is solved."""


class Breakable(Protocol):
    """An instance whose parts may fail."""

    def names(self) -> list[str]:
        """What a failure can move in a schedule, by number: the vertices that symmetries permute."""

    def ranks(self) -> Sequence[int]:
        """Those of them that hold data."""

    def orbits(self, share: str | None, most_pairs: int | None) -> Sequence[Any]:
        """All failures by orbit (:class:`Orbit`)."""

    def find(self, text: str, share: str | None) -> Any:
        """The failure that a person means. Raises :class:`InputError`."""

    def broken(self, failure: Any, share: str | None) -> Any:
        """The instance with the failure."""

    def cut(self, failure: Any) -> Cut | None:
        """How the failure parts the ranks, if it does."""

    def core(self, failure: Any) -> frozenset[tuple[int, int]]:
        """The directions from node to node that the failure leaves between ranks: without those to dead ends. Failures
        of the same core have the same schedules."""

    def used(self, solution: Any, broken: Any) -> frozenset[tuple[int, int]]:
        """The directions from node to node that a solution uses."""

    def carried(self, solution: Any, image: Any, source: Any, target: Any) -> Any:
        """The solution of one instance on another, moved by a symmetry of the whole machine. Raises ``ValueError``."""

    def seconds_slowed(self, solution: Any, source: Any, target: Any, most: float) -> float | None:
        """Seconds of a solution where links are slower; None beyond ``most``."""

    def plot(self, losses: Mapping[str, float], orbits: Sequence[Any], title: str) -> Any:
        """A figure of the machine, coloured by losses."""
