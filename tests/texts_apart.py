"""Whether a figure's texts are whole and apart, by their boxes as it is drawn."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import combinations
from typing import TYPE_CHECKING, Any

import pytest

from synth.views import figure_style

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from matplotlib.text import Text

SLACK_PT = 0.5  # by which boxes of text may meet, or pass the page's edge


@contextmanager
def every_figure_checked() -> Iterator[None]:
    """In here every figure that is laid out to be written has no text that is cut and none on another."""
    before = figure_style.laid_out

    @contextmanager
    def checked(figure: Figure, dpi: float) -> Iterator[None]:
        with before(figure, dpi):
            assert collisions(figure) == []
            yield

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(figure_style, "laid_out", checked)
        yield


def collisions(figure: Figure) -> list[str]:
    """Texts of a figure as it is drawn that the page cuts, and pairs of texts one on the other, from their boxes alone;
    half a point is let pass."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    if not hasattr(figure.canvas, "get_renderer"):
        FigureCanvasAgg(figure)
    figure.draw_without_rendering()
    renderer: Any = figure.canvas.get_renderer()  # type: ignore[attr-defined]
    points = 72 / figure.dpi
    width, height = figure.get_size_inches() * 72
    seen = [(text.get_text(), text.get_window_extent(renderer).extents * points) for text in _drawn(figure)]
    cut = [f"{text!r} is cut" for text, (x0, y0, x1, y1) in seen if min(x0, y0, width - x1, height - y1) < -SLACK_PT]
    met = [
        f"{one!r} on {other!r}"
        for (one, a), (other, b) in combinations(seen, 2)
        if min(a[2], b[2]) - max(a[0], b[0]) > SLACK_PT and min(a[3], b[3]) - max(a[1], b[1]) > SLACK_PT
    ]
    return cut + met


def _drawn(figure: Figure) -> list[Text]:
    """All texts that are drawn: of ticks those in view, nothing of a hidden panel."""
    from matplotlib.axes import Axes
    from matplotlib.text import Text

    axes = [one for one in figure.findobj(Axes) if isinstance(one, Axes)]
    hidden = {text for one in axes if not one.get_visible() for text in one.findobj(Text)}
    for one in axes:
        for axis in (one.xaxis, one.yaxis):
            labels = {text for tick in (*axis.majorTicks, *axis.minorTicks) for text in (tick.label1, tick.label2)}
            shown = axis._update_ticks() if one.axison and axis.get_visible() else []  # type: ignore[attr-defined]
            hidden |= labels - {text for tick in shown for text in (tick.label1, tick.label2)}
            hidden |= set() if one.axison else {axis.label, axis.get_offset_text()}
    every = [text for text in figure.findobj(Text) if isinstance(text, Text) and text not in hidden]
    return [text for text in every if text.get_visible() and text.get_text().strip()]
