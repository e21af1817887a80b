"""No text of a figure is cut or stands on another, at one column, at two and on a screen."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure
from texts_apart import collisions

from synth.reproduction.growth import Growth
from synth.study import figures
from synth.tuning.table import figure as tuned_figure
from synth.views.figure_style import FigureStyle, drawing, fit, laid_out
from synth.views.nodes import node_look

LONG = (
    "hierarchical_two_level_pipelined",
    "column_generation-highs 1800s",
    "recursive_doubling_closed_form",
    "forest-highs",
    "throughput_optimal_symmetric seed3",
)
STYLES = [FigureStyle("paper", 3.5), FigureStyle("paper", 7.0), FigureStyle("screen", 3.5), FigureStyle()]


def runs(instances: int, methods: int) -> pd.DataFrame:
    """Gaps and times of methods with long names on instances with long names, by a rule."""
    return pd.DataFrame([
        {
            "family": "xtree", "instance": f"equimesh-8x8-c4-allreduce-message-bytes-{2 ** (10 + i)}", "seed": 0,
            "status": "ok", "value": 2.0 + n, "evidence": "replayed" if n else "counted", "solved": True,
            "total_s": 1.0 + n * i, "gap": (7 * i + 3 * n) % 11 / 23, "ratio_to_best": 1 + (n + i) % 3 / 2,
            "label": LONG[n % 5] + str(n // 5 or ""), "group": LONG[n % 5] + str(n // 5 or ""),
            "series": "allreduce on dgx-h100-x2-with-a-long-name", "size_bytes": 2.0 ** (10 + i), "best_bound": 1.0,
        }
        for i in range(instances) for n in range(methods)
    ])  # fmt: skip


def tuned() -> Figure:
    rows = [
        {"collective": name, "bytes": 2**power, "busbw_bytes_per_s": 2**power / 1e-3, "form_s": 1e-3,
         "scheduled_s": 0.9e-3, "bound_s": 0.5e-3, "ring_s": 2e-3, "double_tree_s": 3e-3}
        for name in ("allreduce", "reduce_scatter") for power in range(10, 31, 2)
    ]  # fmt: skip
    return tuned_figure(pd.DataFrame(rows), "dgx-h100-x8: what is quickest in MSCCL XML on the azure executor, by size")


def growth() -> Figure:
    rows = [
        {"line": f"a method with a long name {n}", "nodes": nodes, "seconds": 0.5 + nodes ** (1 + n / 4) / 1e4,
         "memory, MB": 180 + nodes * (n + 1) / 10}
        for n in range(6) for nodes in (64, 256, 1024, 4096)
    ]  # fmt: skip
    return Growth(pd.DataFrame(rows), "line", "nodes", 256).draw()


def machine(side: int) -> Figure:
    """Names on a grid, a bar beside it, and titles that are too long for both."""
    figure = Figure(figsize=(15, 7), layout="constrained")
    figure.suptitle("a title of the whole figure that is far too long for one line of a column of a paper")
    axes = figure.subplots()
    place = np.stack(np.unravel_index(np.arange(side * side), (side, side)), axis=1).astype(float)
    image = axes.scatter(*place.T, c=place[:, 0])
    look = node_look(place, 5.0)
    for node, at in enumerate(place):
        if (how := look.name(node, f"{node}/gpu")) is not None:
            axes.text(*at, f"{node}/gpu", **how)
    axes.axis("off")
    axes.set_title(f"{side * side} ranks, 12 switches (squares), 512 links, some of them more than twice as slow")
    figure.colorbar(image, ax=axes, label="share of the whole time in which a link is in use, over all of the steps")
    return figure


def drawn(name: str, *size: int) -> Callable[[], Any]:
    return lambda: figures.draw(name, runs(*size), [])


MADE: dict[str, Callable[[], Any]] = {
    "gaps of 5 methods": drawn("gaps", 12, 5),
    "gaps of 12 methods": drawn("gaps", 16, 12),
    "profile": drawn("profile", 6, 9),
    "bandwidth": drawn("bandwidth", 20, 5),
    "bandwidth with a map": drawn("bandwidth", 20, 9),
    "tuned": tuned,
    "growth": growth,
    "6 x 6": lambda: machine(6),
    "8 x 8": lambda: machine(8),
}
SOON = ("gaps of 5 methods", "6 x 6")


@pytest.mark.parametrize(
    ("name", "style"),
    [
        pytest.param(name, style, id=f"{name}, {style.name} {style.width_in}",
                     marks=() if name in SOON and style is STYLES[0] else pytest.mark.long)
        for name in MADE for style in STYLES
    ],
)  # fmt: skip
def test_no_text_is_cut_or_stands_on_another(name: str, style: FigureStyle) -> None:
    with drawing(style):
        figure = MADE[name]()
        fit(figure, style)
        with laid_out(figure, 150):
            assert collisions(figure) == []
    width = figure.get_figwidth()
    assert style.width_in is None or width == pytest.approx(style.width_in)


def test_what_the_check_finds() -> None:
    """A text on another, a text beyond the page, and neither where they are apart."""
    figure = Figure(figsize=(3, 2))
    one = figure.text(0.5, 0.5, "one")
    other = figure.text(0.52, 0.5, "other")
    assert collisions(figure) == ["'one' on 'other'"]
    other.set_y(0.8)
    assert collisions(figure) == []
    one.set_x(0.95)
    assert collisions(figure) == ["'one' is cut"]


def test_no_name_of_a_method_is_left_out() -> None:
    """All five below the panel, whole; the numbers in the cells, too."""
    with drawing(STYLES[0]):
        figure = figures.draw("gaps", runs(12, 5), [])
        assert figure is not None
        fit(figure, STYLES[0])
        with laid_out(figure, 300):
            [axes] = figure.axes
            names = [label.get_text() for label in axes.get_xticklabels()]
    assert sorted(name.removesuffix(" (counted)") for name in names) == sorted(LONG)
    assert sum(text.get_visible() for text in axes.texts) == 60
    assert [label.get_text().replace("\n", "").rpartition("-")[2] for label in axes.get_yticklabels()] == [
        str(2**power) for power in range(10, 22)
    ]


@pytest.mark.parametrize("times", [1, pytest.param(4, marks=pytest.mark.long)])
def test_the_longest_names_stand_in_a_legend_within_the_page(times: int) -> None:
    """Of own methods, which have their file's name too: smaller, then in lines, with no letter less."""
    names = [f"my_methods:{'throughput_optimal_symmetric_reduction_trees' * times}_{n}" for n in range(5)]
    table = runs(3, 5).assign(label=np.tile(names, 3), group=np.tile(names, 3))
    style = FigureStyle("paper", 3.5)
    with drawing(style):
        figure = figures.draw("bandwidth", table, [])
        assert figure is not None
        fit(figure, style)
        with laid_out(figure, 300):
            assert collisions(figure) == []
            [legend] = figure.legends
            assert {text.get_text().replace("\n", "") for text in legend.get_texts()} == {*names, "bound"}


@pytest.mark.parametrize(
    "kind", ["profile", *(pytest.param(one, marks=pytest.mark.long) for one in ("gaps", "bandwidth"))]
)
def test_two_families_stand_below_one_another_in_one_column(kind: str) -> None:
    table = pd.concat([runs(4, 4), runs(3, 5).assign(family="fabric")])
    with drawing(STYLES[0]):
        figure = figures.draw(kind, table, [])
        assert figure is not None
        fit(figure, STYLES[0])
        with laid_out(figure, 150):
            assert collisions(figure) == []
    assert figure.get_figwidth() == pytest.approx(3.5)


@pytest.mark.long
def test_every_row_of_a_map_has_its_name_where_panels_are_many() -> None:
    """Nine methods on four collectives in one column: the six with lines, none without its name beside it."""
    names = np.tile([f"a method {n}" for n in range(9)], 3)
    table = pd.concat([runs(3, 9).assign(series=f"collective {n}", label=names, group=names) for n in range(4)])
    with drawing(STYLES[0]):
        figure = figures.draw("bandwidth", table, [])
        assert figure is not None
        fit(figure, STYLES[0])
        with laid_out(figure, 150):
            assert collisions(figure) == []
            maps = [axes for axes in figure.axes if axes.get_title(loc="left").startswith("share")]
            named = [[label.get_text() for label in axes.get_yticklabels()] for axes in maps]
    assert [len(names) for names in named] == [6, 6, 6, 6]
    assert set(named[0]) == {text.get_text() for text in figure.legends[0].get_texts()} - {"bound"}
