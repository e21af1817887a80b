"""Put runs of pytest-benchmark into the page of benchmarks: ``python tests/benchmarks/report.py PAGE.md [RUN.json …]``.

A run takes the place of the section of its file of benchmarks. The page's answer and picture are made again from its
tables. Ratios are against the slowest case of the same group in the same run; seconds are this machine's and noisy.
"""

from __future__ import annotations

import json
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, NullLocator

CAPTION = "The same work done in different ways: how many times as fast the quickest is as the slowest (log axis)."
HEAD = "| group | case | seconds (mean) | seconds (median) | times faster than the slowest of its group | facts |"
PICTURE = "pictures/benchmarks.png"
SAME_WORK = (  # of the other groups each case has another input, or is a part of another
    "EquiMesh 8x8 C=4, one restart",
    "torus 32x32 C=1",
    "mesh 32x32 C=1",
    "closed form, 1024 GPUs",
    "heatmap of 32 x 32, 64 GPUs, recursive_doubling",
    "heatmap of 32 x 32, 64 GPUs, alltoall_direct",
    "512 ranks with replay",
    "ring of 16, 2 chunks",
)


def section(run: dict) -> tuple[str, str]:
    """The name of a run's file of benchmarks, and its table."""
    groups = defaultdict(list)
    for case in run["benchmarks"]:
        groups[case["group"]].append(case)
    cpu = run["machine_info"].get("cpu", {})
    [file] = {case["fullname"].split("::")[0] for case in run["benchmarks"]}
    lines = [
        f"Command: `pytest {file} --benchmark-only --benchmark-json=RUN.json`. Machine: "
        f"{cpu.get('brand_raw', 'unknown CPU')}, {cpu.get('count', '?')} cores; {run['datetime'][:10]}.",
        "",
        HEAD,
        "|---|---|---:|---:|---:|---|",
    ]
    for group, cases in groups.items():
        slowest = max(case["stats"]["median"] for case in cases)
        for case in cases:
            mean, median = case["stats"]["mean"], case["stats"]["median"]
            facts = ", ".join(f"{key} {value}" for key, value in case["extra_info"].items())
            lines.append(f"| {group} | {case['name']} | {mean:.3g} | {median:.3g} | {slowest / median:.3g} | {facts} |")
    return Path(file).stem, "\n".join(lines)


def sections(page: str) -> dict[str, str]:
    """The sections of a page by their headings."""
    parts = (part.partition("\n") for part in page.split("\n## ")[1:])
    return {name: text.strip() for name, _, text in parts}


def rows(page: str) -> Iterator[tuple[str, str, float]]:
    """Group, case, and how many times as fast as the slowest of its group, of every row."""
    for line in page.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) == 6 and cells[0] != "group" and not cells[0].startswith("---"):
            yield cells[0], cells[1], float(cells[4])


def gains(page: str) -> dict[str, tuple[float, str]]:
    """Of each group of the same work the largest ratio and whose it is, the largest last."""
    found = defaultdict(list)
    for group, case, ratio in rows(page):
        found[group].append((ratio, case))
    return dict(sorted(((group, max(found[group])) for group in SAME_WORK if group in found), key=lambda gain: gain[1]))


def laid_out(tables: dict[str, str]) -> str:
    """The page of these sections."""
    text = "".join(f"\n## {name}\n\n{table}\n" for name, table in tables.items())
    found = gains(text)
    most, case = max(found.values())
    least = min(ratio for ratio, _ in found.values())
    return f"""\
# Benchmarks

In {len(found)} comparisons of ways to do the same work, the quickest is {least:g} to {most:g} times as fast as the
slowest. The most is that of `{case}`. Read ratios, not seconds: those are of one machine beside other work. Groups
that are not in the picture show how one way grows with its input.

![{CAPTION}]({PICTURE})

{CAPTION}

Made by `python tests/benchmarks/report.py results/published/benchmarks.md RUN.json` from the run of each command below.
{text}"""


def drawn(page: str) -> Figure:
    """A bar a group, as long as the largest ratio in it."""
    found = gains(page)
    figure = Figure(figsize=(8, 0.9 + 0.27 * len(found)), layout="constrained")
    axes = figure.subplots()
    bars = axes.barh(list(found), [ratio for ratio, _ in found.values()], color="#1f6fb4")
    axes.bar_label(bars, [f"{ratio:g}×" for ratio, _ in found.values()], padding=3, fontsize=8)
    axes.set_xscale("log")
    axes.set_xlim(1, 3 * max(ratio for ratio, _ in found.values()))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda ratio, _: f"{ratio:g}×"))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.tick_params(axis="y", labelsize=8)
    axes.set_xlabel("quickest over slowest")
    return figure


def main(file: Path, runs: list[str]) -> None:
    """Put the runs into the page, and make its answer and picture again."""
    tables = sections(file.read_text()) if file.exists() else {}
    tables |= dict(section(json.loads(Path(run).read_text())) for run in runs)
    page = laid_out(tables)
    file.write_text(page)
    (file.parent / PICTURE).parent.mkdir(exist_ok=True)
    drawn(page).savefig(file.parent / PICTURE, dpi=110, bbox_inches="tight")


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
