"""A bound that has been proven: its exact value, the proof in words, and the certificate."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from synth.text.quantities import SECONDS, shown


@dataclass(frozen=True)
class Proven:
    """``seconds`` is exact; ``certificate`` is made, and ``words`` said, when they are wanted."""

    seconds: Fraction
    argument: str
    words: Callable[[], str]
    certificate: Callable[[], Mapping[str, Any]]

    def __str__(self) -> str:
        return f"{self.argument}: {self.words()}, so at least {shown(float(self.seconds), SECONDS)}"


NOTHING = Proven(Fraction(0), "nothing", lambda: "nothing has to move", lambda: {"argument": "nothing"})
