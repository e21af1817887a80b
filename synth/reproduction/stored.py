"""A page as it is stored: what its tables say, and the answer and picture that it opens with.

The module of a page may have ``opening(found: Stored) -> Opening``, which makes the answer of what stands below it.
Thus a page can be laid out again from its file (``synth reproduce PAGE --from-stored``), and nothing is solved. If the
module has ``redrawn(folder) -> Iterator[tuple[str, Figure]]``, pictures are then drawn again from the CSV tables there.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pandas as pd

from synth.errors import InputError
from synth.text.quantities import GAP, NOTHING

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FIGURES, REMARKS, COMPARED, ERRATA = "Figures", "Remarks", "Printed numbers and ours", "Errata"
GAP_LINE = f"On this page {GAP}."
NEAR = 0.01  # of a printed number: ours is "within 1 %"
_PICTURE = re.compile(r"!\[([^\]]*)\]\(([^)]+)\)\n\n\1\n*")
_NUMBER = re.compile(r"[-+−]?\d+(?:\.\d+)?(?:e[-+]?\d+)?")


@dataclass(frozen=True)
class Opening:
    """What a page begins with: ``sentences``, and the picture called ``figure`` (without its ending). ``drawn`` are
    pictures made of the page's own tables: name, caption, and what draws it."""

    sentences: Sequence[str]
    figure: str
    drawn: Sequence[tuple[str, str, Callable[[], Figure]]] = ()


@dataclass
class Stored:
    """A page's parts: ``head`` (title, and the line that names command and source), ``left_out``, ``sections`` (their
    text by title), ``figures`` (captions by address)."""

    head: str
    left_out: str = ""
    sections: dict[str, str] = field(default_factory=dict)
    figures: dict[str, str] = field(default_factory=dict)

    def table(self, title: str) -> pd.DataFrame:
        """The table of the one section whose title begins so; every cell is a text. Raises :class:`InputError`."""
        named = [name for name in self.sections if name.startswith(title)]
        rows = [line for line in self.sections[named[0]].splitlines() if line.startswith("|")] if named else []
        if len(named) != 1 or len(rows) < 3:
            raise InputError(f"the page has no one table called {title!r}")
        cells = [[cell.strip() for cell in re.split(r"(?<!\\)\|", row)[1:-1]] for row in rows]
        return pd.DataFrame(cells[2:], columns=cells[0])

    @property
    def compared(self) -> pd.DataFrame:
        """The printed numbers and ours."""
        return self.table(COMPARED)

    @property
    def notes(self) -> list[str]:
        """The remarks."""
        return [line[2:] for line in self.sections.get(REMARKS, "").splitlines() if line.startswith("* ")]

    def note(self, pattern: str) -> re.Match[str]:
        """What a remark or an erratum says, by a regular expression. Raises :class:`InputError`."""
        found = re.search(pattern, "\n".join([*self.notes, self.sections.get(ERRATA, "")]))
        if found is None:
            raise InputError(f"no remark of the page says {pattern!r}")
        return found

    @property
    def printed(self) -> str:
        """In a sentence: how many printed numbers ours meet, and how many errata the page computes."""
        differences = numbers(self.compared["difference"]).dropna().abs()
        near = int((differences <= 100 * NEAR).sum())
        errata = len(re.findall(r"^\d+\. \*\*", self.sections.get(ERRATA, ""), re.MULTILINE))
        words = f"Of {len(differences)} printed numbers beside which ours stand, {near} agree within {100 * NEAR:g} %"
        if not errata:
            return f"{words}."
        return f"{words}; {'one erratum is' if errata == 1 else f'{errata} errata are'} shown by computation."


def numbers(cells: pd.Series) -> pd.Series:
    """The first number of every cell; none for a dash."""
    return cells.map(number).astype(float)


def number(cell: str) -> float | None:
    """The first number of a cell: ``4 139 116``, ``+0.99 %``, ``1.62×``; None where there is none."""
    found = _NUMBER.match(re.sub(r"(?<=\d) (?=\d{3}\b)", "", cell).replace("−", "-").lstrip("*"))
    return None if cell == NOTHING or found is None else float(found[0])


def parse(text: str) -> Stored:
    """The parts of a page, without what it opens with. Raises :class:`InputError` for a page of another kind."""
    top, *parts = re.split(r"^## ", text, flags=re.MULTILINE)
    made = re.match(r"# .*\n\nMade by `synth reproduce.*\n", top)
    if made is None:
        raise InputError("was not made by synth reproduce")
    found = Stored(made[0])
    if left_out := re.search(r"^\*\*Left out of this run\*\*\n\n(?:\* .*\n)+", top, re.MULTILINE):
        found.left_out = left_out[0]
    for part in parts:
        title, _, body = part.partition("\n\n")
        found.sections[title] = body.rstrip("\n") + "\n"
    for caption, address in _PICTURE.findall(top + found.sections.pop(FIGURES, "")):
        found.figures[address] = caption
    return found


def laid_out(found: Stored, opening: Opening) -> str:
    """The page: its answer and picture, then everything else."""
    first = [address for address in found.figures if re.split(r"[/.]", address)[-2] == opening.figure]
    if len(first) != 1:
        raise InputError(f"the page has no picture {opening.figure}")
    pictures = {address: f"![{caption}]({address})\n\n{caption}\n" for address, caption in found.figures.items()}
    parts = [found.head, " ".join(opening.sentences) + "\n", pictures.pop(first[0])]
    sections = {title: f"## {title}\n\n{body}" for title, body in found.sections.items()}
    remarks = sections.pop(REMARKS, None)
    rest = [*filter(None, [found.left_out]), *sections.values()]
    rest += [f"## {FIGURES}\n", *pictures.values()] if pictures else []
    rest += [remarks] if remarks else []
    if any("gap" in part.lower() for part in parts + rest):
        parts.append(f"{GAP_LINE}\n")
    return "\n".join(parts + rest)
