"""A study's figures and its table for a paper, by numbers computed by hand."""

from __future__ import annotations

import pandas as pd
import pytest
from figures_apart import can_be_told_apart

from synth.reproduction.growth import Growth
from synth.study import figures, latex
from synth.tuning.table import figure as tuned_figure


@pytest.mark.long(after=1)
@pytest.mark.parametrize("methods", [2, 6, 9])
def test_bandwidth_is_two_panels_that_can_be_told_apart(methods: int) -> None:
    """Bandwidth in GB/s and the share of the bound, computed here by hand; sizes in words; no hash in a title."""
    rows = [
        {
            "family": "fabric", "instance": f"mine-{2 ** (power - 10)}KiB", "series": "allgather on links #ab12",
            "size_bytes": 2.0**power, "status": "ok", "value": 2.0**power / (5e9 / (1 + number)),
            "best_bound": 2.0**power / 1e10, "label": f"m{number}",
        }
        for power in (10, 15, 20) for number in range(methods)
    ]  # fmt: skip
    figure = figures.draw("bandwidth", pd.DataFrame(rows), [])
    assert figure is not None
    left, right = figure.axes
    can_be_told_apart(figure)
    assert "ab12" not in left.get_title(loc="left")
    assert left.get_title(loc="left") == "mine"
    assert [text.get_text() for text in left.get_xticklabels()] == ["1 KiB", "32 KiB", "1 MiB"]
    first = next(line for line in left.get_lines() if line.get_label() == "_child0")
    assert first.get_ydata() == pytest.approx([5, 5, 5])  # GB/s
    if methods <= 6:
        assert right.get_lines()[0].get_ydata() == pytest.approx([0.5, 0.5, 0.5])
    else:  # a map with every method and a number in each cell
        assert len(right.texts) == 3 * methods
        assert right.texts[0].get_text() == "50"


def test_a_profile_has_at_most_six_lines() -> None:
    rows = [
        {
            "family": "xtree", "instance": instance, "seed": 0, "status": "ok", "value": 2.0 + number % 3,
            "evidence": "replayed", "solved": True, "total_s": 1.0 + number, "ratio_to_best": 1 + number % 3 / 2,
            "label": f"m{number}", "group": f"m{number}",
        }
        for instance in "abc" for number in range(8)
    ]  # fmt: skip
    figure = figures.draw("profile", pd.DataFrame(rows), [])
    assert figure is not None
    can_be_told_apart(figure)
    assert "2 more in table.csv" in figure.axes[0].get_title(loc="left")


def test_the_summary_as_latex_has_no_character_that_tex_reads() -> None:
    rows = pd.DataFrame([{"family": "f", "label": "a_b%&#$~^{}\\", "kind": "program", "runs": 1200, "seeds": 1,
                          "mean_gap": 0.0123, "ratio_to_best": 1.25, "time_s": 0.5}])  # fmt: skip
    text = latex.as_latex(rows)
    assert r"\toprule" in text
    assert r"a\_b\%\&\#\$\textasciitilde{}\textasciicircum{}\{\}\textbackslash{} & program & 1,200 & 1.23 \%" in text
    assert "seeds" not in text
    head, row = (line for line in text.splitlines() if line.endswith(r"\\"))
    columns = text.split("begin{tabular}{")[1].split("}")[0]
    assert head.count(" & ") == len(columns) - 1
    assert row.replace(r"\&", "").count("&") == len(columns) - 1


def test_growth_has_lines_that_can_be_told_apart() -> None:
    rows = [
        {"line": f"method {number}", "nodes": nodes, "seconds": 0.5 + nodes ** (1 + number / 4) / 1e4,
         "memory, MB": 180 + nodes * (number + 1) / 10}
        for number in range(6) for nodes in (64, 256, 1024, 4096, 16384)
    ]  # fmt: skip
    can_be_told_apart(Growth(pd.DataFrame(rows), "line", "nodes", 256).draw())


def test_what_tune_draws_is_two_panels_that_can_be_told_apart() -> None:
    """Four lines and the bound over seven sizes: busbw in GB/s and the share of the bound, by hand."""
    rows = [
        {"collective": "allreduce", "bytes": 2**power, "busbw_bytes_per_s": 2**power / 1e-3, "form_s": 1e-3,
         "scheduled_s": 0.9e-3, "bound_s": 0.5e-3, "ring_s": 2e-3, "double_tree_s": 3e-3}
        for power in range(10, 31, 3)
    ]  # fmt: skip
    figure = tuned_figure(pd.DataFrame(rows), "dgx1")
    can_be_told_apart(figure)
    left, right = figure.axes
    assert next(text.get_text() for text in right.get_xticklabels()) == "1 KiB"
    assert right.get_lines()[0].get_ydata() == pytest.approx([0.5] * 7)
    assert left.get_lines()[0].get_ydata()[0] == pytest.approx(2**10 / 1e-3 / 1e9)
