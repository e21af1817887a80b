"""Room for every text of a figure: nothing beyond the page, no text on another.

Boxes are taken from the drawing as it is laid out. What is too long is set smaller, then in several lines; ticks that
collide are thinned, or turned where they are names; a text inside a panel that still meets another is left out.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from matplotlib.text import Text
    from matplotlib.transforms import Bbox

LEAST_PT = 5.0  # of any type
ROUNDS = 8  # of layout and repair
LINE = 1.17  # of a line over its type's size, in a PDF's boxes
GAP_PT = 1.0  # between two texts
SMALL_PT = 6.0  # of names that can be set in lines
MOST_LINES_OF_NAMES = 60  # beside one panel
TALLEST_IN = 9.5
ROW_PT = 6.0  # between two rows of panels
WIDEST_NAMES = 0.42  # share of the page that the names beside a panel may take
LEAST_PANEL_PT = 60.0  # high
MOST_LEFT_OUT = 0.25  # of a panel's texts: where more of them meet, none is left
BAR_PT = 20.0  # wide at most: a bar of colours
_QUANTITY = re.compile(r"[−-]?[\d.,]+(e[−+-]?\d+)?\s*\S{0,4}")


class Page:
    """A figure as it is laid out: its texts and their boxes, in points from its lower left corner."""

    def __init__(self, figure: Figure) -> None:
        self.figure = figure
        self.renderer: Any = figure.canvas.get_renderer() if hasattr(figure.canvas, "get_renderer") else None
        self.width, self.height = (72 * float(inches) for inches in figure.get_size_inches())
        for axes in self.panels():
            axes.get_tightbbox(self.renderer)  # puts titles and labels where the layout has moved their panel

    def box(self, text: Text, lines: bool = True) -> Bbox:
        """Where the text stands; with ``lines`` as high as a PDF's reader takes its lines to be."""
        from matplotlib.transforms import Bbox

        box = text.get_window_extent(self.renderer)
        points = Bbox(box.get_points() * 72 / self.figure.dpi)
        if not lines:
            return points
        more = (LINE - 1) / 2 * float(text.get_fontsize())
        across = abs(float(text.get_rotation()) % 180 - 90) < 1
        return Bbox.from_extents(
            points.x0 - more * across, points.y0 - more * (not across),
            points.x1 + more * across, points.y1 + more * (not across),
        )  # fmt: skip

    def panels(self) -> list[Any]:
        """The axes that are seen."""
        return [axes for axes in self.figure.findobj(_is_axes) if axes.get_visible()]

    def ticks(self, axis: Any) -> list[tuple[float, Text]]:
        """Place and label of every tick that is seen, in the order of the places."""
        least, most = sorted(axis.get_view_interval())
        slack = 1e-9 * (most - least)
        labels = axis.get_majorticklabels()
        found = [
            (float(at), label)
            for at, label in zip(axis.get_majorticklocs(), labels, strict=False)
            if least - slack <= at <= most + slack and label.get_visible() and label.get_text()
        ]
        return sorted(found, key=lambda tick: tick[0]) if axis.axes.axison and axis.get_visible() else []

    def inside(self) -> dict[int, Any]:
        """The panel of every text within one, by the text's id."""
        return {id(text): axes for axes in self.panels() for text in axes.texts}

    def axis_of(self) -> dict[int, Any]:
        """The axis of every tick's label that is seen, by the label's id."""
        every = [axis for axes in self.panels() for axis in (axes.xaxis, axes.yaxis)]
        return {id(label): axis for axis in every for _, label in self.ticks(axis)}

    def texts(self) -> list[Text]:
        """All that is seen but legends, those first that must stay: of two that meet the later one is left out."""
        panels = self.panels()
        elsewhere = {part for whole in self.figure.findobj(_is_whole) for part in whole.findobj(_is_text)}
        loose = [label for axes in panels for axis in (axes.xaxis, axes.yaxis) for _, label in self.ticks(axis)]
        loose += [text for axes in panels for text in axes.texts]
        fixed: list[Any] = [part for part in self.figure.findobj(_is_text) if part not in elsewhere]
        for axes in panels:
            fixed += [axes.title, axes._left_title, axes._right_title]
            fixed += [axes.xaxis.label, axes.yaxis.label] if axes.axison else []
            fixed += [axes.xaxis.get_offset_text(), axes.yaxis.get_offset_text()] if axes.axison else []
        return [text for text in dict.fromkeys([*fixed, *loose]) if text.get_visible() and text.get_text().strip()]


def _is_whole(artist: Any) -> bool:
    return _is_axes(artist) or _is_legend(artist)


def _is_legend(artist: Any) -> bool:
    from matplotlib.legend import Legend

    return isinstance(artist, Legend)


def _is_text(artist: Any) -> bool:
    from matplotlib.text import Text

    return isinstance(artist, Text)


def _is_axes(artist: Any) -> bool:
    from matplotlib.axes import Axes

    return isinstance(artist, Axes)


def make_room(figure: Figure) -> bool:
    """Change what stands in the way of other text, what loses nothing first; whether anything was changed, so that the
    layout is another."""
    page = Page(figure)
    axes = page.panels()
    axis = [one for panel in axes for one in (panel.xaxis, panel.yaxis)]
    changed = [
        *(_names_shortened(page, one) for one in axes),
        *(_titles_wrapped(page, one) for one in axes),
        *(_label_wrapped(page, one) for one in axes),
        *(_legend_narrowed(page, one) for one in page.figure.findobj(_is_legend)),
        _figure_titles_wrapped(page),
        *(_names_apart(page, one) for one in axis),
        _higher(page),
    ]
    if any(changed):
        return True
    thinned = [_ticks_apart(page, one) for one in axis]
    return any(thinned) or _apart(page)


def _inside(box: Any, page: Page, slack: float = 0.5) -> bool:
    return bool(
        box.x0 >= -slack and box.y0 >= -slack and box.x1 <= page.width + slack and box.y1 <= page.height + slack
    )


def _meetings(boxes: Sequence[tuple[Text, Any]], gap: float) -> list[tuple[int, int]]:
    """Which two of the boxes are less than ``gap`` points apart in both directions, as places in the list."""
    import numpy as np

    x0, y0, x1, y1 = np.array([box.extents for _, box in boxes], dtype=float).reshape(-1, 4).T
    wide = np.minimum(x1[:, None], x1) - np.maximum(x0[:, None], x0) > -gap
    high = np.minimum(y1[:, None], y1) - np.maximum(y0[:, None], y0) > -gap
    return [(int(one), int(other)) for one, other in np.argwhere(np.triu(wide & high, 1))]


def _meet(one: Any, other: Any, gap: float = 0.0) -> bool:
    """Whether two boxes are less than ``gap`` points apart in both directions."""
    return bool(
        min(one.x1, other.x1) - max(one.x0, other.x0) > -gap and min(one.y1, other.y1) - max(one.y0, other.y0) > -gap
    )


def _wrapped(page: Page, text: Text, room: float) -> bool:
    """Set the text smaller or in lines that are no longer than ``room`` points; whether it is another one."""
    before = text.get_text(), float(text.get_fontsize())
    across = abs(float(text.get_rotation()) % 180 - 90) < 1

    def length() -> float:
        box = page.box(text, lines=False)
        return float(box.height if across else box.width)

    if length() <= room or room <= 0:
        return False
    plain = " ".join(before[0].split())
    longest = max(map(len, before[0].splitlines()))
    last = before[1] <= LEAST_PT  # only then are words parted
    least = 4 if last else max(map(len, re.split(r"[ -]", plain)))
    for most in range(max(least, int(longest * room / length()) + 1), least - 1, -1):
        text.set_text("\n".join(textwrap.wrap(plain, most, break_long_words=last)))
        if length() <= room:
            break
    if length() > room and not last:
        text.set_text(before[0])
        text.set_fontsize(max(LEAST_PT, before[1] - 1))
    return (text.get_text(), text.get_fontsize()) != before


def _figure_titles_wrapped(page: Page) -> bool:
    found = False
    figures: list[Any] = [page.figure, *page.figure.subfigs]
    for figure in figures:
        box = figure.bbox.get_points() * 72 / page.figure.dpi
        width, height = box[1] - box[0]
        for name, room in (("_suptitle", width), ("_supxlabel", width), ("_supylabel", height)):
            title = getattr(figure, name, None)
            if title is not None and title.get_text():
                found |= _wrapped(page, title, float(room) - 4)
    return found


def _titles_wrapped(page: Page, axes: Any) -> bool:
    """The titles of a panel, up to the panels beside it: half of what is between them if it stands in the middle."""
    found = False
    own, beside = _points(page, axes), _panels_beside(page, axes, 0.0)
    half = 2 if axes.get_title() else 1
    right = min([page.width - 2, *(own.x1 + (box.x0 - own.x1 - 4) / half for box in beside if box.x0 >= own.x1 - 1)])
    left = max([2.0, *(own.x0 - (own.x0 - box.x1) / half for box in beside if box.x1 <= own.x0 + 1)])
    centre = (own.x0 + own.x1) / 2
    rooms = {"left": right - own.x0, "center": 2 * min(centre - left, right - centre), "right": own.x1 - left}
    for title, room in zip((axes._left_title, axes.title, axes._right_title), rooms.values(), strict=True):
        if title.get_text():
            found |= _wrapped(page, title, float(room))
    return found


def _legend_narrowed(page: Page, legend: Any) -> bool:
    """The names in a legend that is wider than the page: smaller, then in lines."""
    texts = legend.get_texts()
    longest = max((float(page.box(text).width) for text in texts), default=0.0)
    room = longest - (float(legend.get_window_extent(page.renderer).width) * 72 / page.figure.dpi - page.width + 4)
    if room >= longest or room <= 0:
        return False
    names, size = [text.get_text() for text in texts], max(float(text.get_fontsize()) for text in texts)
    if size > SMALL_PT:
        for text in texts:
            text.set_fontsize(max(SMALL_PT, size * room / longest))
        return True
    most = max(4, int(max(len(line) for name in names for line in name.splitlines()) * room / longest))
    for text, name in zip(texts, names, strict=True):
        text.set_text(_in_lines(name, most))
    return [text.get_text() for text in texts] != names


def _points(page: Page, axes: Any) -> Any:
    from matplotlib.transforms import Bbox

    return Bbox(axes.get_window_extent(page.renderer).get_points() * 72 / page.figure.dpi)


def _label_wrapped(page: Page, axes: Any) -> bool:
    """The labels of both axes, no longer than these, or than what the page leaves."""
    if not axes.axison:
        return False
    box = _points(page, axes)
    middle = (box.x0 + box.x1) / 2, (box.y0 + box.y1) / 2
    wide = max(box.width, 2 * min(middle[0], page.width - middle[0]) - 6 if not _panels_beside(page, axes) else 0.0)
    return _wrapped(page, axes.xaxis.label, wide) | _wrapped(page, axes.yaxis.label, max(box.height, 30.0))


def _panels_beside(page: Page, axes: Any, least: float = BAR_PT) -> list[Any]:
    """The boxes of the panels to the left and right that are wider than so many points."""
    own = _points(page, axes)
    boxes = [_points(page, other) for other in page.panels() if other is not axes]
    return [box for box in boxes if min(own.y1, box.y1) > max(own.y0, box.y0) and box.width > least]


def _names_shortened(page: Page, axes: Any) -> bool:
    """Names of ticks that would take more than their share of the page: smaller, in lines, the middle left out."""
    ticks = page.ticks(axes.yaxis)
    longest = max((float(page.box(label).width) for _, label in ticks), default=0.0)
    room = WIDEST_NAMES * page.width
    if longest <= room:
        return False
    names, size = [label.get_text() for _, label in ticks], float(ticks[0][1].get_fontsize())
    if size > SMALL_PT:
        for _, label in ticks:
            label.set_fontsize(max(SMALL_PT, size * room / longest))
        return True
    most = max(4, int(max(len(line) for name in names for line in name.splitlines()) * room / longest))
    lines = [_in_lines(name, most) for name in names]
    if sum(1 + text.count("\n") for text in lines) > MOST_LINES_OF_NAMES:
        lines = [_middle_out(name, most) for name in names]
    axes.yaxis.set_ticks([at for at, _ in ticks], lines)
    return lines != names


def _in_lines(name: str, most: int) -> str:
    """The name in lines of at most so many characters, parted behind its hyphens, underscores and blanks."""
    lines = [""]
    for word in re.findall(r"[^-_ ]*[-_ ]?", name.replace("\n", "")):
        for part in (word[at : at + most] for at in range(0, len(word), most)):
            if len(lines[-1]) + len(part.rstrip()) > most:
                lines.append("")
            lines[-1] += part
    return "\n".join(lines)


def _middle_out(name: str, most: int) -> str:
    """The name in at most so many characters."""
    head = (most - 1) // 3
    return name if len(name) <= most else f"{name[:head]}…{name[head + 1 - most :]}"


def _higher(page: Page) -> bool:
    """Give the figure, and each of its parts, the height that panels need for the names beside them, and for what
    stands below and above them."""
    if page.figure.get_layout_engine() is None:
        return False
    parts: list[Any] = list(page.figure.subfigs) or [page.figure]
    needs = [_needed(page, part) for part in parts]
    others = _beside(page, [page.figure]) if page.figure.subfigs else 0.0
    height = min(sum(needs) + others, max(TALLEST_IN * 72, page.height))
    shares = [part.bbox.height / page.figure.bbox.height * (page.height - others) for part in parts]
    lacking = [need > share + 2 for need, share in zip(needs, shares, strict=True)]
    if not any(lacking) or (height <= page.height + 2 and len(parts) == 1):
        return False
    if len(parts) > 1:
        grid = parts[0]._subplotspec.get_gridspec()
        ratios = [need / sum(needs) for need in needs]
        if height <= page.height + 2 and max(abs(a - b) for a, b in zip(ratios, _ratios(grid), strict=True)) < 0.01:
            return False
        grid.set_height_ratios(ratios)
    page.figure.set_size_inches(page.width / 72, max(height, page.height) / 72)
    return True


def _ratios(grid: Any) -> list[float]:
    found = [float(ratio) for ratio in grid.get_height_ratios()]
    return [ratio / sum(found) for ratio in found]


def _needed(page: Page, part: Any) -> float:
    """The height that a figure or a part of one needs, in points."""
    rows: dict[tuple[int, int], float] = {}
    for axes in part.findobj(_is_axes):
        spec = axes.get_subplotspec()
        if spec is None or not axes.get_visible():  # a bar of colours
            continue
        box, tight = _points(page, axes), axes.get_tightbbox(page.renderer, for_layout_only=True)
        around = 0.0 if tight is None else float(tight.height) * 72 / page.figure.dpi - float(box.height)
        labels = [label for _, label in page.ticks(axes.yaxis)]
        need = sum(float(page.box(label).height) + GAP_PT for label in labels) if _are_names(labels) else 0.0
        key = id(spec.get_gridspec()), spec.rowspan.start
        rows[key] = max(rows.get(key, 0.0), max(need, LEAST_PANEL_PT) + around + ROW_PT)
    return sum(rows.values()) + _beside(page, [part])


def _beside(page: Page, figures: Sequence[Any]) -> float:
    """How high the titles and legends of figures are that stand above and below their panels, in points."""
    found = [part for figure in figures for part in (*figure.legends, getattr(figure, "_suptitle", None)) if part]
    return sum(float(part.get_window_extent(page.renderer).height) * 72 / page.figure.dpi + 6 for part in found)


def _too_close(page: Page, axis: Any) -> bool:
    boxes = [page.box(label) for _, label in page.ticks(axis)]
    return any(_meet(one, other, _gap(axis)) for one, other in pairwise(boxes))


def _gap(axis: Any) -> float:
    return GAP_PT if axis.axis_name == "x" else 0.0


def _are_names(labels: Sequence[Text]) -> bool:
    """Whether most of the labels are names, none of which can be done without, and not quantities."""
    return sum(not _QUANTITY.fullmatch(label.get_text()) for label in labels) > len(labels) / 2


def _names_apart(page: Page, axis: Any) -> bool:
    """Names beside or below a panel that meet: upright, then smaller."""
    labels = [label for _, label in page.ticks(axis)]
    if not _are_names(labels) or not _too_close(page, axis):
        return False
    if axis.axis_name == "x" and all(float(label.get_rotation()) % 180 != 90 for label in labels):
        for label in labels:
            label.set(rotation=90, ha="center", va="top", rotation_mode="default")
        return True
    size = min(float(label.get_fontsize()) for label in labels)
    for label in labels:
        label.set_fontsize(max(LEAST_PT, size - 1))
    return size > LEAST_PT


def _ticks_apart(page: Page, axis: Any) -> bool:
    """Labels of ticks that meet: every second, third, …"""
    if not _too_close(page, axis):
        return False
    ticks = page.ticks(axis)
    boxes = [page.box(label) for _, label in ticks]
    for step in range(2, len(ticks) + 1):
        if not any(_meet(one, other, _gap(axis)) for one, other in pairwise(boxes[::step])):
            break
    _keep(axis, ticks[::step])
    return True


def _keep(axis: Any, ticks: Sequence[tuple[float, Text]]) -> None:
    """Leave an axis these ticks alone."""
    label = ticks[0][1]
    words: dict[str, Any] = {"fontsize": label.get_fontsize(), "rotation": label.get_rotation()}
    axis.set_ticks([at for at, _ in ticks], [label.get_text() for _, label in ticks], **words)
    axis.axes.minorticks_off()


def _apart(page: Page) -> bool:
    """Texts that still meet: those in panels smaller, then left out; so are labels of ticks at a panel's ends."""
    boxes = [(text, page.box(text)) for text in page.texts()]
    inside = page.inside()
    meeting = [(boxes[one][0], boxes[other][0]) for one, other in _meetings(boxes, -0.3)]
    beyond = [text for text, box in boxes if id(text) in inside and not _inside(box, page)]
    crowded = [inside[id(text)] for text in (*beyond, *(later for _, later in meeting)) if id(text) in inside]
    if _smaller(crowded):
        return True
    ticks = page.axis_of()
    gone = {id(text) for axes in set(crowded) for text in _hopeless(axes, meeting)}
    for one, other in meeting:
        if id(one) not in gone and id(other) not in gone:
            gone |= _left_out(page, one, other, inside, ticks)
    for text in beyond:
        text.set_visible(False)
    return bool(gone or beyond)


def _hopeless(axes: Any, meeting: Sequence[tuple[Text, Text]]) -> list[Text]:
    """All texts of a panel, which are left out, where many of them meet: some of them would be no help."""
    every = list(axes.texts)
    own = {text for pair in meeting for text in pair} & set(every)
    if len(own) <= MOST_LEFT_OUT * len(every):
        return []
    for text in every:
        text.set_visible(False)
    return every


def _smaller(panels: Sequence[Any]) -> bool:
    """Set the texts in these panels a point smaller; whether there was one that is not the smallest yet."""
    texts = {text for axes in panels for text in axes.texts if float(text.get_fontsize()) > LEAST_PT}
    for text in texts:
        text.set_fontsize(max(LEAST_PT, float(text.get_fontsize()) - 1))
    return bool(texts)


def _left_out(page: Page, one: Text, other: Text, inside: dict[int, Any], ticks: dict[int, Any]) -> set[int]:
    """Leave out the text of two that says less; its id, none where both must stay."""
    for text in (other, one):
        if id(text) in inside:
            text.set_visible(False)
            return {id(text)}
    for text in (other, one):
        if id(text) in ticks and len(kept := page.ticks(ticks[id(text)])) > 2:
            _keep(ticks[id(text)], [(at, label) for at, label in kept if label is not text])
            return {id(label) for _, label in kept}
    return set()
