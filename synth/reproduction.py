"""A paper's printed figures beside ours: what ``synth reproduce`` collects from a family and writes as one page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Comparison:
    """One printed number and ours; ``paper`` is a text where the paper prints a range or a curve read by eye."""

    where: str
    what: str
    paper: float | str
    ours: float | None
    unit: str = ""
    remark: str = ""

    @property
    def difference(self) -> float | None:
        """``(ours - paper) / |paper|``; None where either is no number or the paper prints 0."""
        if isinstance(self.paper, str) or self.ours is None or not self.paper:
            return None
        return (self.ours - self.paper) / abs(self.paper)


@dataclass(frozen=True)
class Erratum:
    """Something the paper gets wrong, with the computation that shows it (what was computed, and its result)."""

    where: str
    printed: str
    corrected: str
    computation: str


@dataclass
class Reproduction:
    """Collects a family's reproduction. ``folder`` takes figures and records; ``quick`` asks for the short form."""

    folder: Path
    quick: bool = False
    comparisons: list[Comparison] = field(default_factory=list)
    errata: list[Erratum] = field(default_factory=list)
    tables: list[tuple[str, pd.DataFrame]] = field(default_factory=list)
    figures: list[tuple[Path, str]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def compare(
        self, where: str, what: str, paper: float | str, ours: float | None, unit: str = "", remark: str = ""
    ) -> None:
        """Put a printed number beside ours."""
        self.comparisons.append(Comparison(where, what, paper, ours, unit, remark))

    def erratum(self, where: str, printed: str, corrected: str, computation: str) -> None:
        """Record an error of the paper with the computation that shows it."""
        self.errata.append(Erratum(where, printed, corrected, computation))

    def table(self, title: str, rows: pd.DataFrame) -> None:
        """A table of ours that has no single printed counterpart."""
        self.tables.append((title, rows))

    def figure(self, figure: Figure, name: str, caption: str, formats: Sequence[str] = ("svg", "png")) -> None:
        """Save a figure below ``folder`` as ``<name>.svg`` and ``.png`` and put it on the page."""
        self.folder.mkdir(parents=True, exist_ok=True)
        for suffix in formats:
            figure.savefig(self.folder / f"{name}.{suffix}", bbox_inches="tight")
        self.figures.append((self.folder / f"{name}.{formats[-1]}", caption))

    def note(self, text: str) -> None:
        """A remark for the page: an unstated parameter, a modelling choice."""
        self.notes.append(text)
