"""The page ``<paper>.md`` of a reproduction, and its comparisons as a flat table."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from synth.errors import InputError
from synth.reproduction.collect import Reproduction, save_picture
from synth.reproduction.printed import Comparison
from synth.reproduction.stored import COMPARED, FIGURES, GAP_LINE, REMARKS, Opening, Stored, laid_out, parse
from synth.text.files import write_atomically

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from synth.family import Family, Page
    from synth.views.figure_style import FigureStyle

    Answer = Callable[[Stored], Opening]
    Pictures = Callable[[Path], Iterator[tuple[str, Figure]]]  # of the page's folder: names and what is drawn

COLUMNS = ("where", "what", "paper", "ours", "difference", "unit", "remark")


def write_page(page: Reproduction, family: Family | Page, path: Path, opening: Answer | None = None) -> None:
    """Write the page, headed by what ``family`` (or one of its further pages) says of itself, and, beside the figures,
    ``comparisons.csv`` where there are any. ``opening`` makes the answer that it begins with; the short form has none.
    Holds no time or date: the same outcome gives the same bytes."""
    page.folder.mkdir(parents=True, exist_ok=True)
    table = page.folder / "comparisons.csv"
    if page.comparisons:
        comparisons_table(page).to_csv(table, index=False)
    else:
        table.unlink(missing_ok=True)
    text = page_text(page, family, path.parent)
    if opening is not None and not page.quick:
        try:
            text = opened(text, opening, page.folder, page.style)
        except InputError:
            if not page.skipped:  # else a table of the answer is among what was left out
                raise
    write_atomically(path, text.encode())


def opened(text: str, opening: Answer, folder: Path, style: FigureStyle) -> str:
    """The page with the answer and picture that ``opening`` makes of its tables; what it draws goes into ``folder``."""
    found = parse(text)
    made = opening(found)
    for name, caption, draw in made.drawn:
        file = save_picture(draw(), folder, name, style)
        found.figures[f"{folder.name}/{file.name}"] = caption
    return laid_out(found, made)


def again(path: Path, opening: Answer | None, redrawn: Pictures | None, style: FigureStyle) -> None:
    """Lay a stored page out again: its ``opening``, and the pictures that are ``redrawn`` from tables in its folder.
    Raises :class:`InputError` naming the file."""
    if not path.is_file():
        raise InputError("there is no such page to lay out again; leave --from-stored out", str(path))
    folder = path.with_suffix("")
    if opening is not None:
        try:
            text = opened(path.read_text(), opening, folder, style)
        except InputError as error:
            raise InputError(error.faults, str(path)) from None
        write_atomically(path, text.encode())
    try:
        for name, figure in redrawn(folder) if redrawn is not None else ():
            save_picture(figure, folder, name, style)
    except FileNotFoundError as error:
        raise InputError("no such table of the page; leave --from-stored out", str(error.filename)) from None


def comparisons_table(page: Reproduction) -> pd.DataFrame:
    """Columns ``where,what,paper,ours,difference,unit,remark``; ``difference`` is ``(ours - paper) / |paper|``."""
    rows = [
        (c.printed.where, c.what, c.printed.paper, c.ours, c.difference, c.printed.unit, words)
        for c, words in _remarked(page)
    ]
    return pd.DataFrame(rows, columns=list(COLUMNS))


def _remarked(page: Reproduction) -> Iterator[tuple[Comparison, str]]:
    """The rows with their remarks, in which errata have the page's numbers."""
    errata = [item.where for item in page.errata]
    yield from ((row, row.words(errata)) for row in page.comparisons)


def page_text(page: Reproduction, family: Family | Page, folder: Path) -> str:
    """The page as Markdown; figures are linked relative to ``folder``."""
    command = f"synth reproduce {family.name}{' --quick' if page.quick else ''}"
    parts = [f"# {family.title}\n\nMade by `{command}`. {family.citation}.\n"]
    pictures = _pictures(page, folder)
    if page.opening:
        parts += [f"{page.opening}\n", *pictures]
    if page.skipped:
        parts.append("**Left out of this run**\n\n" + "".join(f"* {text}\n" for text in page.skipped))
    if page.comparisons:
        parts.append(f"## {COMPARED}\n\n{_comparisons(page)}")
    parts += _errata(page)
    parts += [f"## {title}\n\n{_table(page, title, rows, folder)}" for title, rows in page.tables]
    if pictures and not page.opening:
        parts += [f"## {FIGURES}\n", *pictures]
    notes = [*page.notes, *filter(None, [page.grades()])]
    if notes:
        parts.append(f"## {REMARKS}\n\n" + "".join(f"* {text}\n" for text in notes))
    if any("gap" in part.lower() for part in parts):
        parts.insert(2 + len(pictures) if page.opening else 1, f"{GAP_LINE}\n")
    return "\n".join(parts)


def _table(page: Reproduction, title: str, rows: pd.DataFrame, folder: Path) -> str:
    """A table, or the link to the file that holds it."""
    file = page.linked.get(title)
    if file is None:
        return markdown(rows)
    return f"{len(rows)} rows: [{file}]({(page.folder / file).relative_to(folder).as_posix()}).\n"


def _errata(page: Reproduction) -> list[str]:
    if not page.errata:
        return []
    head = "## Errata\n\nWhat the authors state and where, what it should be, and the computation that shows it.\n"
    return [
        head,
        *(
            f"{number}. **{item.where}.** {item.stated} Corrected: {item.corrected}\n\n"
            f"   Computed: {item.computation}\n"
            for number, item in enumerate(page.errata, 1)
        ),
    ]


def _pictures(page: Reproduction, folder: Path) -> list[str]:
    return [f"![{caption}]({path.relative_to(folder).as_posix()})\n\n{caption}\n" for path, caption in page.figures]


def _comparisons(page: Reproduction) -> str:
    cells = [
        (c.printed.where, c.what, shown(c.printed.paper), shown(c.ours), _percent(c.difference), c.printed.unit, words)
        for c, words in _remarked(page)
    ]
    return _text(pd.DataFrame(cells, columns=list(COLUMNS)), ("paper", "ours", "difference"))


def markdown(rows: pd.DataFrame) -> str:
    """A table as Markdown, numbers to six digits and to the right."""
    cells = rows.astype(object).map(shown)
    return _text(cells, [name for name, kind in rows.dtypes.items() if kind.kind in "iuf"])


def _text(cells: pd.DataFrame, right: Collection[Any]) -> str:
    """Texts as a Markdown table; a bar or a line's end in one of them does not end its cell."""
    plain: Any = cells.map(lambda text: text.replace("|", "\\|").replace("\n", " "))
    sides = ["right" if name in right else "left" for name in plain.columns]
    return f"{plain.to_markdown(index=False, disable_numparse=True, colalign=sides)}\n"


def shown(value: Any) -> str:
    """A cell: numbers to six digits, a dash for nothing."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:,.0f}".replace(",", " ") if 1e6 <= abs(value) < 1e15 else f"{value:.6g}"
    return str(value)


def _percent(difference: float | None) -> str:
    if difference is None:
        return "–"
    return "0" if abs(difference) < 5e-5 else f"{100 * difference:+.2f} %"
