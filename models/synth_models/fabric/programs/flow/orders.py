"""The kinds of orders in which the hops of pieces are tried."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Rule:
    """The key of a hop: ``pace * (turn + phase) / turns - far * hops left / most hops``, the least first; ``phase`` is
    1/2, or random per path (``random``). Ties go by path, equal for images, then by turn."""

    name: str
    pace: float
    far: float
    random: bool = False


@dataclass(frozen=True)
class Busiest:
    """The weight of a hop: the sum, over the links that its piece has yet to cross, of (left on the link / most left on
    any) to the ``power``, plus ``far`` times the hops left, plus a little chance. ``backwards``: time runs from the
    end, every piece from its goal to its origin."""

    power: float
    far: float = 0.0
    backwards: bool = False

    @property
    def name(self) -> str:
        """How a message calls it."""
        return f"busiest links first{', backwards' if self.backwards else ''} ({self.power:g}, {self.far:g})"


Order = Rule | Busiest
