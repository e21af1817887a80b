"""OpTree's printed numbers beside ours: tables 1 to 3, figures 4 to 7, the worked example, and the errata.

Printed figures are facts from Dai, Chen, Huang, Zhang. Every count of ours comes from the family's methods, run through
the runner with a record each, so that the check has evaluated it.
"""

from __future__ import annotations

import math
import re
import statistics
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from functools import cached_property
from pathlib import Path

import pandas as pd
from matplotlib.figure import Figure

from synth.options import RunOptions
from synth.reproduction import printed
from synth.reproduction.collect import Reproduction
from synth.reproduction.printed import Printed
from synth.reproduction.stored import Opening, Stored, numbers
from synth.views.figure_style import legend_below, looks, plain_log
from synth_models.optree.check.replay import check_solution
from synth_models.optree.parts.one_stage import load_bound, published_wavelengths
from synth_models.optree.parts.radices import best_radices
from synth_models.optree.parts.stage_layout import ring_wavelengths
from synth_models.optree.programs.rwa.method import fewest
from synth_models.optree.references.first_fit import first_fit
from synth_models.optree.references.published_counts import best_depths, formula_steps, root_up
from synth_models.optree.solution import StepCount
from synth_papers.optree import beyond_the_ring, relay_map, schedules
from synth_papers.optree.schedules import ring

COUNTS = ("ring", "neighbor_exchange", "wrht", "one_stage", "formula", "stages")
METHODS = (*COUNTS, "relay", "bound")
NODES, WAVELENGTHS = (512, 1024, 2048, 4096), (4, 16, 64, 256)
RIVALS = {"wrht": "WRHT", "ring": "Ring", "neighbor_exchange": "NE"}
TIME_LIMIT = 20.0
PRINTED = printed.read(__file__)


def reproduce(page: Reproduction) -> None:
    """Everything of the paper that our models compute."""
    steps = Steps(page)
    _worked_example(page)
    _table_1(page, steps)
    _figure_4(page, steps)
    _reductions(page, steps, "Table 2", {f"N = {n}": (n, 64) for n in NODES})
    _reductions(page, steps, "Table 3", {f"w = {w}": (1024, w) for w in WAVELENGTHS})
    _errata(page, steps)
    _colouring(page)
    schedules.errata(page)
    _times(page, steps)
    if not page.quick:
        _small_rings(page)
        schedules.reproduce(page, steps, RIVALS)
    beyond_the_ring.reproduce(page)
    relay_map.reproduce(page)
    page.note(
        "`bound` is a proven lower bound on every algorithm in the paper's step model; `relay` is an explicit schedule "
        "of ours, replayed; `stages` is OpTree with the best whole radices. WRHT stands in the tables and figures by "
        "its printed count, which its own routing does not reach. `wrht` with `circuits` makes that routing as a "
        "schedule, and its table has what the check replays."
    )
    page.note(
        "The optical fat tree of section VI-A is no network of ours. The text names it in one sentence and gives no "
        "levels, ports, wavelengths or switches, nor says whether a light path may pass a switch. Any of these that we "
        "chose would be ours, and no number of the paper could be held against it."
    )
    page.note(
        "Time is `(d/B + a) * steps`, so the ratio of two methods does not depend on the item's size. The text's "
        "exception at 4096 nodes 'only above 16 MB' (section V-D) therefore cannot come from these formulas."
    )


def redrawn(folder: Path) -> Iterator[tuple[str, Figure]]:
    """The map, the formula by depth, and ring or torus."""
    yield from relay_map.redrawn(folder)
    yield "figure-4", _by_depth()
    yield "ring-or-torus", beyond_the_ring.draw(pd.read_csv(folder / "ring-or-torus.csv"))


def opening(found: Stored) -> Opening:
    """How `relay` stands to OpTree and to the bound."""
    one = found.table("Steps at N = 1024, w = 64").set_index("method")["ours"]
    rings = pd.concat([found.table(f"Table {number}: steps").set_index("") for number in (2, 3)])
    rings = rings.loc[~rings.duplicated()]
    saved = 100 * (1 - numbers(rings["relay"]) / numbers(rings["formula"]))
    least = int((rings["relay"] == rings["bound"]).sum())
    return Opening(
        (
            f"On a ring of 1,024 nodes with 64 wavelengths our schedule `relay` takes {one['relay']} steps where "
            f"OpTree's formula takes {one['formula']}. No schedule in the paper's step model takes fewer than "
            f"{one['bound']}.",
            f"On the {len(rings)} rings of Tables 2 and 3 `relay` takes {saved.min():.0f} to {saved.max():.0f} % fewer "
            f"steps than OpTree, and exactly the bound on {least} of them.",
            found.printed,
        ),
        "figure-6",
    )


class Steps:
    """Verified steps by method, nodes and wavelengths, solved when first asked for."""

    def __init__(self, page: Reproduction) -> None:
        self.page = page
        self.known: dict[tuple[str, int, int], float | None] = {}

    def __call__(self, method: str, nodes: int, wavelengths: int) -> int | None:
        """Steps (``bound``: the proven bound); None in the short form for schedules beyond 1024 nodes."""
        key = (method, nodes, wavelengths)
        if key not in self.known:
            found = None
            if method in COUNTS or not self.page.quick or (nodes <= 1024 and wavelengths >= 64):
                made, _ = self.page.placed(ring(nodes, wavelengths), "tables")
                [(_, record)] = self.page.solve([made], [method], time_limit=TIME_LIMIT)
                found = record.bound if method == "bound" else record.value
            self.known[key] = found
        value = self.known[key]
        return None if value is None else round(value)

    @cached_property
    def second_wrht(self) -> int:
        """WRHT's second variant at N = 1024, w = 16, evaluated by the check."""
        verdict = check_solution(ring(1024, 16), StepCount("wrht", (2,)))
        assert verdict.value is not None
        return round(verdict.value)


def reduction(ours: float | None, theirs: float | None) -> float | None:
    """By how many per cent ``ours`` is below ``theirs``; None if either is missing."""
    return None if ours is None or theirs is None else 100 * (1 - ours / theirs)


def ceiling_depth(nodes: int) -> tuple[float, int]:
    """Lemma 3's real-valued depth, and that depth rounded up."""
    log = Decimal(nodes).ln()  # 28 digits: the ceiling is not left to the rounding of floats
    depth = (log + (log * (log - 2)).sqrt()) / 2
    return float(depth), math.ceil(depth)


def _worked_example(page: Reproduction) -> None:
    stated = PRINTED.within("worked-example")
    for name, radices in {"one-stage": (16,), "two-stages": (4, 4), "three-stages": (2, 3, 3)}.items():
        verdict = check_solution(ring(16, 2), StepCount("stages", radices))
        assert verdict.value is not None, verdict.faults
        page.compare(stated[name], verdict.value, _three_stages() if name == "three-stages" else "")
    [(_, exact)] = page.solve([page.shipped("optree", "ring-16-w2")], ["time_expanded"], time_limit=TIME_LIMIT)
    words = f"`time_expanded`, {exact['termination']}: bound {exact.bound:g}; relays at every node are allowed"
    page.compare(stated["fewest"], exact.value, words)


def _three_stages() -> str:
    return (
        f"their stage 1 has a wavelength for each of 8 places; places can share: {ring_wavelengths(2, 9)} for the 9 "
        "places that groups of 3 x 3 have"
    )


def _table_1(page: Reproduction, steps: Steps) -> None:
    stated = PRINTED.within("table-1")
    for method, one in stated.items():
        page.compare(one, steps(method, 1024, 64))
    value, least, remark = schedules.wrht_steps(1024, 64)
    page.beside(stated["wrht"], "wrht, its routing replayed", value, remark)
    page.beside(stated["wrht"], "wrht, its routing at least", least, "in whatever order")
    rows = []
    for method in METHODS:
        count = steps(method, 1024, 64)
        seconds = None if method == "bound" or count is None else count * ring(1024, 64).step_seconds * 1000
        rows.append((method, stated[method].paper if method in stated else None, count, seconds))
    page.table("Steps at N = 1024, w = 64", pd.DataFrame(rows, columns=["method", "paper", "ours", "ms (4 MiB items)"]))


def _reductions(page: Reproduction, steps: Steps, table: str, sizes: Mapping[str, tuple[int, int]]) -> None:
    """Table 2 or 3; ``sizes`` are the nodes and wavelengths of its columns, by the columns' heads."""
    counts = [[head, *[steps(m, n, w) for m in METHODS]] for head, (n, w) in sizes.items()]
    page.table(f"{table}: steps", pd.DataFrame(counts, columns=["", *METHODS], dtype=object))
    rows = []
    for rival, title in RIVALS.items():
        below = {
            method: [reduction(steps(method, n, w), steps(rival, n, w)) for n, w in sizes.values()]
            for method in ("formula", "stages", "relay")
        }
        *entries, average, deviation = PRINTED.within(f"{table.lower().replace(' ', '-')}.{rival}").values()
        for one, value, (n, w) in zip(entries, below["formula"], sizes.values(), strict=True):
            page.compare(one, value, one.remark or (_lemma_3(n, w) if one.erratum == "Lemma 3" else ""))
        known = [value for value in below["formula"] if value is not None]
        page.compare(average, statistics.mean(known))
        page.compare(deviation, statistics.pstdev(known), _deviation_kind(entries, deviation))
        rows += [(title, method, *values) for method, values in below.items()]
        rows.append((title, "*OpTree, printed*", *(one.paper for one in entries)))
    words = f"{table}: reduction in per cent, for OpTree's formula, its best whole radices and ours"
    page.table(words, pd.DataFrame(rows, columns=["against", "method", *sizes]))


def _lemma_3(nodes: int, wavelengths: int) -> str:
    """What the depth that Lemma 3 rounds up to takes."""
    depth = ceiling_depth(nodes)[1]
    return f"theirs is depth {depth} with {formula_steps(nodes, wavelengths, depth)} steps, as in {{erratum}}"


def _deviation_kind(entries: Sequence[Printed], printed: Printed) -> str:
    """Which standard deviation of their own four entries is the printed one."""
    numbers = [one.number for one in entries]
    whole, sample = statistics.pstdev(numbers), statistics.stdev(numbers)
    kind = "population" if abs(whole - printed.exact) < abs(sample - printed.exact) else "sample"
    return f"theirs is the {kind} deviation of their entries ({whole if kind == 'population' else sample:.2f})"


def _figure_4(page: Reproduction, steps: Steps) -> None:
    rows = []
    for n in NODES:
        count, depths = best_depths(n, 64)
        radices = ", ".join(map(str, best_radices(n, 64) or ()))
        real, up = ceiling_depth(n)
        stated = PRINTED[f"figure-4.{n}"]
        nearest = min(depths, key=lambda depth: abs(depth - stated.exact))
        page.compare(stated, nearest, f"{count} steps at depth {', '.join(map(str, depths))}")
        rows.append((n, f"{real:.3f}", up, ", ".join(map(str, depths)), count, radices, steps("stages", n, 64)))
    columns = ["N", "Lemma 3", "rounded up", "best depths", "steps", "best whole radices", "their steps"]
    page.table("Best depths, w = 64", pd.DataFrame(rows, columns=columns))
    page.figure(_by_depth(), "figure-4", "OpTree's step formula by depth, w = 64 (the paper's figure 4).")


def _by_depth() -> Figure:
    """A line a number of nodes: steps at depths 1 to 9 over those at depth 1."""
    figure = Figure(figsize=(8, 4.5), layout="constrained")
    axes = figure.subplots()
    for n, look in zip(NODES, looks(list(map(str, NODES))).values(), strict=True):
        counts = [formula_steps(n, 64, k) for k in range(1, 10)]
        axes.plot(range(1, 10), [c / counts[0] for c in counts], label=f"N = {n}", **look)
    axes.set(yscale="log", xlabel="depth k", ylabel="steps, relative to depth 1")
    plain_log(axes.yaxis)
    legend_below(figure, axes.get_legend_handles_labels()[0], columns=4)
    return figure


def _errata(page: Reproduction, steps: Steps) -> None:
    one, misprint = steps("one_stage", 1024, 64), PRINTED["table-1.one_stage"]
    page.erratum(
        misprint.erratum,
        f"{misprint.text} at N = 1024, w = 64.",
        f"{one} steps.",
        f"ceil(ceil(1024^2 / 8) / 64) = {one}.",
    )
    real, up = ceiling_depth(1024)
    eight, seven = formula_steps(2048, 64, 8), formula_steps(2048, 64, 7)
    wrht = steps("wrht", 2048, 64)
    ties = {n: best_depths(n, 64) for n in (512, 1024, 4096)}
    page.erratum(
        "Lemma 3",
        "the depth with the fewest steps is k*, rounded up in (2); below (2) the bracket is called integer rounding.",
        "Their numbers round up, and rounding up is not always best.",
        f"N = 1024: k* = {real:.2f}, printed as {up}. N = 2048: k* = {ceiling_depth(2048)[0]:.2f}, rounded up "
        f"{ceiling_depth(2048)[1]}: {eight} steps, {reduction(eight, wrht):.2f} % below WRHT (printed "
        f"{PRINTED['table-2.wrht.2048'].text}); depth 7 has {seven} steps, {reduction(seven, wrht):.2f} %. "
        + " ".join(f"N = {n}: depth {', '.join(map(str, d))} with {c} steps." for n, (c, d) in ties.items()),
    )
    column = {rival: PRINTED[f"table-3.{rival}.256"] for rival in RIVALS}
    at_128, at_256 = steps("formula", 1024, 128), steps("formula", 1024, 256)
    page.erratum(
        "Table 3, column 256",
        f"{column['ring'].text} below Ring, {column['neighbor_exchange'].text} below NE at w = 256.",
        "The column is w = 128 (section V-E says so of figure 7 d).",
        f"w = 128: {at_128} steps, {reduction(at_128, 1023):.2f} % and {reduction(at_128, 512):.2f} %; "
        f"{reduction(at_128, steps('wrht', 1024, 128)):.2f} % below WRHT ({steps('wrht', 1024, 128)} steps; printed "
        f"{column['wrht'].text}). w = 256: {at_256} steps, {reduction(at_256, 1023):.2f} % and "
        f"{reduction(at_256, 512):.2f} %.",
    )
    ours, first = steps("formula", 1024, 16), steps("wrht", 1024, 16)
    others = [f"{w}: {steps('wrht', 1024, w)}" for w in (4, 64)]
    page.erratum(
        "Table 3, WRHT at w = 16",
        f"{PRINTED['table-3.wrht.16'].text}.",
        "The second WRHT count; all other entries use the first.",
        f"second count {steps.second_wrht} steps: {reduction(ours, steps.second_wrht):.2f} %; first count {first} "
        f"steps: {reduction(ours, first):.2f} %. First counts behind the other entries, by w: {', '.join(others)}.",
    )
    literal = [(n, w, k, algorithm_1(n, w, k), formula_steps(n, w, k)) for n, w, k in ((16, 2, 2), (1024, 64, 7))]
    page.erratum(
        "Algorithm 1, lines 9 and 10",
        "the wavelengths of a later stage are those of a ring, ceil(m^2/8), divided by 4w and multiplied by N/m twice.",
        "The proof of Theorem 1 has ceil(m^2/(4w)) times N/m once.",
        " ".join(
            f"N = {n}, w = {w}, k = {k}: Algorithm 1 as printed gives {got} steps, Theorem 1 {want}."
            for n, w, k, got, want in literal
        ),
    )


def errata(page: Reproduction) -> None:
    """The errata that counting shows, alone."""
    _errata(page, Steps(page))


def lemma_1(page: Reproduction) -> None:
    """Lemma 1's alone, by colourings up to 8 places, which takes a second."""
    short = Reproduction(page.folder, True, page.instances, page.data)
    _colouring(short)
    page.errata += short.errata


def algorithm_1(nodes: int, wavelengths: int, depth: int) -> int:
    """The steps that Algorithm 1 computes, exactly as printed, with ``m = N^(1/k)`` the real number: ``N/m`` and
    ``m^2/8`` are rounded up where it rounds, in whole numbers."""
    groups = root_up(nodes ** (depth - 1), depth)
    needed = -(-root_up(nodes**2, depth) // 8) * groups
    return -(-needed // wavelengths) + (depth - 1) * -(-needed // (4 * wavelengths)) * groups


def _colouring(page: Reproduction) -> None:
    """One stage's wavelengths (Lemma 1): load bound, exact, references, printed."""
    rows, wrong = [], []
    largest = 8 if page.quick else 16
    for m in range(2, largest + 1):
        row: list[object] = [m]
        for shape in ("ring", "segment"):
            outcome = fewest(m, shape, m, RunOptions(time_limit_s=120.0, solver="cpsat"))
            exact = outcome.solution.wavelengths if outcome.solution else None
            printed = published_wavelengths(m, shape)
            greedy = (first_fit(m, shape, longest_first).wavelengths for longest_first in (False, True))
            row += [load_bound(m, shape), exact, *greedy, printed]
            if exact not in (None, printed):  # None: out of time, which shows nothing
                wrong.append(f"{m}: {exact} ({shape})")
        rows.append(row)
    heads = ["load bound", "exact", "first fit", "longest first"]
    columns = ["m", *[f"ring: {h}" for h in heads], "ceil(m²/8)", *[f"line: {h}" for h in heads], "floor(m²/4)"]
    page.table("Wavelengths of one all-to-all stage (Lemma 1); exact by CP-SAT", pd.DataFrame(rows, columns=columns))
    page.erratum(
        "Lemma 1",
        "the fewest wavelengths of an all-to-all on a ring of N nodes are ceil(N^2/8).",
        "ceil(floor(N^2/4)/2): one less for every odd N (proof in `synth_models.optree.parts.stage_layout`).",
        f"exact colourings for m = 2..{largest} that differ from the printed formula: {', '.join(wrong)}. "
        "floor(N^2/4) on a line holds throughout.",
    )
    if page.quick:
        page.skip(
            "wavelengths of one stage beyond m = 8; schedules beyond 1024 nodes or below 64 wavelengths (--quick)"
        )


def _times(page: Reproduction, steps: Steps) -> None:
    """Figures 5, 6 and 7: time of every method over the bound's, which is the same at every item size."""
    by_nodes = [(n, 64) for n in NODES]
    by_waves = [(1024, w) for w in WAVELENGTHS]
    for name, sizes, what in (
        ("figure-5", [(1024, 64)], "at every item size"),
        ("figure-6", by_nodes, "by nodes"),
        ("figure-7", by_waves, "by wavelengths"),
    ):
        page.figure(
            _ratios(sizes, steps),
            name,
            f"Time {what} over the bound's (the paper's {name.replace('-', ' ')}): it is `(d/B + a) * steps`, so an "
            "item's size changes no ratio. Nothing is below 1×.",
        )


def _ratios(sizes: Sequence[tuple[int, int]], steps: Steps) -> Figure:
    """A panel per (nodes, wavelengths): a bar per method, its ratio to the bound and its steps beside it."""
    figure = Figure(figsize=(max(7.5, 3.7 * len(sizes)), 3.2), layout="constrained")
    methods = [method for method in METHODS if method not in ("one_stage", "bound")]
    for axes, (n, w) in zip(figure.subplots(1, len(sizes), squeeze=False, sharey=True)[0], sizes, strict=True):
        bound = steps("bound", n, w)
        counts = {method: count for method in methods if (count := steps(method, n, w)) is not None}
        base = bound or min(counts.values())
        places = [methods.index(method) for method in counts]
        axes.barh(places, [count / base for count in counts.values()], color="#1f6fb4", height=0.6)
        for place, count in zip(places, counts.values(), strict=True):
            axes.text(count / base * 1.08, place, f"{count / base:.3g}× ({count:,} steps)", va="center", fontsize=8)
        axes.axvline(1.0, color="black", linestyle="--", linewidth=1)
        axes.set(xscale="log", title=f"N = {n}, w = {w}", xlabel="time over the bound's", xlim=(0.8, 6000))
        plain_log(axes.xaxis, "×")
        axes.set_yticks(range(len(methods)), methods)
        axes.grid(axis="y", visible=False)
        axes.set_ylim(len(methods) - 0.5, -0.5)
    return figure


def _small_rings(page: Reproduction) -> None:
    """The rings on which the time-expanded program is exact: steps of every method and the best bound."""
    rows: dict[str, dict[str, float | None]] = {}
    for instance, record in page.study("optree-published"):
        row = rows.setdefault(instance.name, {})
        row["bound"] = max(row.get("bound") or 0.0, record.bound or 0.0)
        if record["kind"] != "bound":
            row[record["method"]] = record.value
    ordered = sorted(rows, key=lambda name: [int(part) for part in re.findall(r"\d+", name)])
    columns = ["formula", "optree", "relay", "time_expanded", "bound"]
    table = pd.DataFrame(
        [(name, *(rows[name].get(c) for c in columns)) for name in ordered], columns=["ring", *columns]
    )
    page.table("Small rings: steps", table)
