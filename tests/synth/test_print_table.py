"""The table that a paper prints, and names for print: by numbers computed by hand."""

from __future__ import annotations

import re
from collections.abc import Sequence

import pandas as pd
import pytest

from synth.study import print_table
from synth.study.names import faults_of, label_of, named
from synth.study.print_table import WIDTH_PT, as_latex


def row(label: str, size: int, seconds: float, method: str = "", **more: object) -> dict[str, object]:
    return {
        "family": "fabric", "instance": f"mine-{size}B", "series": "allgather on mine", "size_bytes": float(size),
        "status": "ok", "value": seconds, "best_bound": 1e-6, "unit": "s", "evidence": "replayed",
        "method": method or label, "label": label, "group": label, **more,
    }  # fmt: skip


def cells(text: str) -> list[list[str]]:
    """A strict reader: one tabular, braces balanced, as many cells in every line as the table has columns."""
    assert text.replace(r"\{", "").count("{") == text.replace(r"\}", "").count("}")
    assert text.count(r"\begin{tabular}") == text.count(r"\end{tabular}") == 1
    assert [text.count(rule) for rule in (r"\toprule", r"\bottomrule")] == [1, 1]
    columns = re.search(r"begin\{tabular\}\{@\{\}(l?r+)@\{\}\}", text)
    assert columns
    found = []
    for line in text.splitlines():
        if line.endswith(r"\\"):
            parts = re.split(r"(?<!\\)&", line.removesuffix(r"\\"))
            spans = sum(int(span) - 1 for span in re.findall(r"multicolumn\{(\d+)\}", line))
            assert len(parts) + spans == len(columns[1]), line
            found.append([part.strip() for part in parts])
    return found


def test_sizes_by_methods_with_bandwidth_bound_and_gap() -> None:
    """1,000 B in 2 us are 0.5 GB/s, the bound's 1 us are 1 GB/s, the gap is one half; ring is published, pull is ours;
    a thousand times the bytes in the same time are a thousand times the bandwidth."""
    rows = [
        row(name, size, seconds) for name, seconds in (("ring", 4e-6), ("pull", 2e-6)) for size in (1000, 1_000_000)
    ]
    text = as_latex(pd.DataFrame(rows))
    head, names, *lines, note = cells(text)
    assert r"bandwidth [GB/s]" in head[1]
    assert names == ["size", r"pull$^{\star}$", r"ring$^{\dagger}$", "bound", r"[\%]"]
    assert lines == [
        ["1000~B", r"\textbf{0.500}", "0.250", "1", "50.0"],
        ["977~KiB", r"\textbf{500}", "250", "1,000", "50.0"],
    ]
    assert "published" in note[0]
    assert "ours" in note[0]


def test_without_sizes_the_values_of_instances_stand() -> None:
    """In milliseconds, a count in italics that is not the best, nothing where a method has no value."""
    rows = [row("ring", 1, 2e-3, series=""), row("pull", 1, 4e-3, series=""),
            row("plan", 1, 1e-3, series="", evidence="counted"), row("ring", 2, 3e-3, series="")]  # fmt: skip
    head, names, first, second, _ = cells(as_latex(pd.DataFrame(rows)))
    assert "[ms]" in head[1]
    assert [name.partition("$")[0] for name in names] == ["instance", "plan", "pull", "ring", "bound", r"[\%]"]
    assert first == ["mine-1B", r"\textit{1}", "4", r"\textbf{2}", "0.00100", "100.0"] or first[1:4] == [
        r"\textit{1}", "4", r"\textbf{2}",
    ]  # fmt: skip
    assert second[1:4] == ["--", "--", r"\textbf{3}"]


def test_the_best_of_every_row_has_a_column() -> None:
    """Nine methods that are good at both sizes, and one that is best at one of them and has no value at the other."""
    rows = [row(f"m{n}", size, (2 + n) * 1e-6) for n in range(9) for size in (1000, 2000)]
    _, names, first, second, note = cells(as_latex(pd.DataFrame([*rows, row("rare", 2000, 1e-6)])))
    assert [name.partition("{")[2].partition("$")[0].rpartition("{")[2] for name in names[1:-2]][-1] == "rare"
    assert (first[-3], second[-3], second[-1]) == ("--", r"\textbf{2}", "0.0")
    assert "4 further methods ran" in note[0]


@pytest.mark.parametrize("count", [1, 5, 9])
@pytest.mark.parametrize("length", [4, 40])
def test_it_is_one_column_wide_whatever_is_in_it(count: int, length: int) -> None:
    """By the widths of Computer Modern; beyond five methods the best are set, and the note says how many ran."""
    names = [f"{'method_' * 6}"[: length - 1] + str(number) for number in range(count)]
    times = [(power, 1.2345e-6 + 2**power / 1.1e11) for power in range(10, 31)]
    rows = [row(name, 2**power, (number + 1) * time, "ring") for number, name in enumerate(names)
            for power, time in times]  # fmt: skip
    text = as_latex(pd.DataFrame(rows))
    lines = cells(text)
    width = re.search(r"p\{(\d+)pt\}", text)
    assert width
    assert int(width[1]) <= WIDTH_PT
    assert len(lines[1]) == min(count, 5) + 3
    assert ("4 further methods ran" in lines[-1][0]) == (count == 9)
    widest = [max(len(line[place]) for line in lines[2:-1]) for place in range(1, len(lines[1]))]
    assert int(width[1]) > sum(widest) * 2.5  # of the digits alone, at 7 points


def test_tex_reads_no_name_as_a_command() -> None:
    rows = [row("50%_$of{it}\\", size, 2e-6, "ring") for size in (1024, 2048)]
    assert r"50\%\_\$of\{it\}\textbackslash{}" in as_latex(pd.DataFrame(rows))
    assert as_latex(pd.DataFrame(rows).assign(status="failed")) == ""


def test_every_column_is_defined() -> None:
    assert {"size", "bound", "gap"} <= print_table.COLUMNS.keys()


def test_names_for_print_stand_in_place_of_labels_and_instances() -> None:
    table = pd.DataFrame([row("forest-highs", 1024, 2e-6, "forest"), row("ring", 2048, 1e-6)])
    assert list(named(table.assign(label="pull 20s"), {"pull": "Ours"})["label"]) == ["Ours 20s"] * 2
    assert label_of("pull-highs 20s", {"pull": "A", "pull-highs": "B"}) == "B 20s"
    assert label_of("pullover", {"pull": "A"}) == "pullover"
    shown = named(table, {"forest-highs": "Ours", "mine-2048B": "2 KiB"})
    assert list(shown["label"]) == list(shown["group"]) == ["Ours", "ring"]
    assert list(shown["instance"]) == ["mine-1024B", "2 KiB"]
    assert list(table["label"]) == ["forest-highs", "ring"]


@pytest.mark.parametrize(
    ("labels", "words"),
    [
        ({"forest-highs": "Ours"}, []),
        ({"forrest": "Ours"}, ["has this name; did you mean forest? one of mine, forest, ring"]),
        ({"ring": " "}, ["1 to 60 characters"]),
        ({"ring": "$x$"}, ["without $"]),
        ({"ring": "forest"}, ["is the name of another"]),
        ({"ring": "A", "mine": "A"}, ["2 have this name"]),
    ],
)
def test_faults_of_names(labels: dict[str, str], words: Sequence[str]) -> None:
    found = [str(fault) for fault in faults_of(labels, ["mine"], ["ring", "forest"])]
    assert len(found) == len(words)
    assert all(word in text for word, text in zip(words, found, strict=True))
