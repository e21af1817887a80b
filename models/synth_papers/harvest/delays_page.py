"""Which of Harvest's conclusions survive other delays: a delay per circuit, and one that computation partly hides.

Section 3.1 takes one delay for every reconfiguration and says that delays may depend on the ports involved; section 6
ends with reconfiguration overlapped with computation. Neither is evaluated there. Here the workloads of Figures 5 and 9
are rated again; single points are records that the check has replayed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pandas as pd

from synth.arrays import FloatArray
from synth.reproduction.collect import Reproduction
from synth.reproduction.stored import Opening, Stored, numbers
from synth_models.harvest.instance import HarvestInstance
from synth_models.harvest.references.recursive_doubling import WHOLE, best_rings
from synth_papers.harvest import workloads as published
from synth_papers.harvest.delay_grids import CircuitGrid, circuit_grid, rate_with_kept
from synth_papers.harvest.heatmap_plot import GAIN, draw
from synth_papers.harvest.heatmaps import Grid, Rates, grid, ticks
from synth_papers.harvest.page import PRINTED, SHORT, SMALL, bytes_in_words
from synth_papers.harvest.workloads import GIB, KIB, MIB, Workload

SURVIVES = 0.9  # of the speed-up with one delay for every change
REDUCTION = 1e12  # bytes/s that a GPU adds up: an assumption of ours, about what its memory allows
DRAWN = ("bruck-allgather-r2-p2", "bruck-allgather-r4-p4", "binomial-broadcast-p2")  # of Figure 9
SPOTS = ((KIB, 2e-5), (MIB, 2e-5), (KIB, 1e-4))  # message, delay of a change of all circuits
BOUNDED = tuple((gpus, size) for size in (KIB, MIB) for gpus in (8, 16, 32, 64))  # a change of all circuits: 20 us
SMALL_ENOUGH = (  # workload, GPUs, message
    ("recursive-doubling-64-p1", 8, MIB),
    ("swing-64-p2", 8, MIB),
    ("bruck-allgather-r2-p2", 8, MIB),
    ("binomial-broadcast-p2", 8, MIB),
    ("binomial-broadcast-p2", 16, KIB),
    ("binomial-broadcast-p2", 16, MIB),
)
OVERLAPPED = ((MIB, 1e-5), (16 * MIB, 1e-5), (16 * MIB, 1e-4), (256 * MIB, 1e-4))

Both = tuple[Grid, CircuitGrid]


def reproduce(page: Reproduction) -> None:
    """Heatmaps and conclusions with a delay per circuit, the closed form against it, and overlap; ``--quick`` leaves
    out Figure 9's workloads and the records."""
    wanted = published.FIGURE_5 if page.quick else (*published.FIGURE_5, *published.FIGURE_9)
    rated = {one.name: rate_with_kept(one) for one in wanted}
    grids = {one.name: _both(rated[one.name], one, published.SIZES, published.DELAYS) for one in wanted}
    _conclusions(page, rated, grids)
    _workloads(page, wanted, grids)
    _figures(page, wanted, grids)
    _closed_form(page)
    if page.quick:
        page.skip("Figure 9 and the records of single points (--quick)")
    else:
        _spots(page)
        _against_bound(page)
        _all_topologies(page)
        _overlap(page)
    for text in _REMARKS:
        page.note(" ".join(text.split()))


def _both(rated: Rates, workload: Workload, sizes: FloatArray, delays: FloatArray) -> Both:
    static = published.static_indices(rated, workload.static)
    return grid(rated, sizes, delays, static), circuit_grid(rated, sizes, delays, static)


def _conclusions(page: Reproduction, rated: dict[str, Rates], grids: dict[str, Both]) -> None:
    rows: list[dict[str, object]] = []
    known = {one.name: one for one in published.ALL}

    def add(where: str, name: str, printed: float | str, pair: Both, read: Callable[[Grid], float], unit: str) -> None:
        one, circuit = (float(read(found)) for found in pair)
        verdict = "yes" if circuit >= SURVIVES * one else "weaker" if circuit > GAIN else "no"
        rows.append(
            {
                "conclusion": where,
                "workload": known[name].title,
                "printed": printed,
                "one delay": one,
                "per circuit": circuit,
                "unit": unit,
                "survives": verdict,
            }
        )

    def at(name: str, sizes: FloatArray, delays: FloatArray) -> Both:
        return _both(rated[name], known[name], sizes, delays)

    ranges: tuple[tuple[str, str, FloatArray, FloatArray, Callable[[Grid], float]], ...] = (
        ("over static, 1-256 KB, below 1 us", "over-static-small", SMALL, SHORT, lambda g: g.over_static.max()),
        ("over static, 1 GB, 10 us", "over-static-large", np.array([GIB]), np.array([1e-5]),
         lambda g: g.over_static.max()),
        ("over BvN, 1-256 KB, 100 us (mean)", "over-bvn-small", SMALL, np.array([1e-4]), lambda g: g.over_bvn.mean()),
        ("over BvN, 4 MB, 10-100 us (largest)", "over-bvn-4-mb", np.array([4 * MIB]), ticks(1e-5, 1e-4, 9),
         lambda g: g.over_bvn.max()),
    )  # fmt: skip
    for where, key, sizes, delays, read in ranges:
        for name, stated in PRINTED.within(key).items():
            add(where, name, stated.number, at(name, sizes, delays), read, "x")
    for name, pair in grids.items():
        add("over both (largest)", name, PRINTED["over-both"].paper, pair, lambda g: g.over_both.max(), "x")
    for name, pair in grids.items():
        words = "a regime between static and BvN (share of the heatmap)"
        add(words, name, "there is one", pair, lambda g: 100 * (g.over_both > GAIN).mean(), "%")
    for name in [name for name in grids if "broadcast" in name]:
        pair = at(name, SMALL, np.array([1e-4]))
        add("over BvN, 1-256 KB, 100 us (mean)", name, "–", pair, lambda g: g.over_bvn.mean(), "x")
    page.table("Which conclusions survive a delay per circuit", pd.DataFrame(rows), "conclusions")


def _workloads(page: Reproduction, wanted: Sequence[Workload], grids: dict[str, Both]) -> None:
    rows = []
    for one in wanted:
        alike, circuits = grids[one.name]
        gain = alike.best / circuits.best
        at = np.unravel_index(int(gain.argmax()), gain.shape)
        size, delay = float(circuits.sizes[at[0]]), float(circuits.delays[at[1]])
        all_of_them = published.GPUS * one.ports
        rows.append(
            {
                "workload": one.title,
                "faster than with one delay, up to": gain.max(),
                "there": f"{bytes_in_words(size)}, {delay * 1e6:.3g} us" if gain.max() > GAIN else "–",
                "circuits set up there": int(circuits.circuits[at]) if gain.max() > GAIN else "–",
                "in changes": int(circuits.changes[at]) if gain.max() > GAIN else "–",
                "of (all circuits)": all_of_them,
                "BvN is cheaper by, up to (x)": float((alike.bvn / circuits.bvn).max()),
            }
        )
    title = "The best schedules with a delay per circuit against those with one delay, a change of all costing the same"
    page.table(title, pd.DataFrame(rows))


def _figures(page: Reproduction, wanted: Sequence[Workload], grids: dict[str, Both]) -> None:
    for number, chosen in ((5, published.FIGURE_5), (9, published.FIGURE_9)):
        shown = [one for one in chosen if one in wanted and (number == 5 or one.name in DRAWN)]
        if not shown:
            continue
        panels = []
        for one in shown:
            alike, circuits = grids[one.name]
            panels.append(
                [
                    (f"{one.title}: over static", circuits.over_static),
                    ("over BvN", circuits.over_bvn),
                    ("over both", circuits.over_both),
                    ("over both, one delay", alike.over_both),
                ]
            )
        title = f"Delay per circuit; the axis is the delay of a change of all circuits (workloads of Figure {number})"
        caption = (
            f"Workloads of Figure {number} with a delay per circuit: speed-up of the best schedule over static, over "
            "BvN and over both, and the last with one delay for every change. The thick white line is 1.01."
        )
        page.figure(draw(panels, published.SIZES, published.DELAYS, title), f"figure-{number}-circuits", caption)


def _closed_form(page: Reproduction) -> None:
    """Recursive doubling on one port: the closed form, best over rings, against topologies that keep circuits."""
    rows = []
    for gpus in (8, 16, 32, 64):
        workload = published.FIGURE_5[0]
        rated = rate_with_kept(workload, gpus)
        found = circuit_grid(rated, published.SIZES, published.DELAYS, [0])
        stages = gpus.bit_length() - 1
        rings = np.array(
            [
                [best_rings(stages, WHOLE, size / published.BANDWIDTH, published.ALPHA, published.DELTA, delay)[0]
                 for delay in published.DELAYS]
                for size in published.SIZES
            ]
        )  # fmt: skip
        lost = rings / found.best
        at = np.unravel_index(int(lost.argmax()), lost.shape)
        rows.append(
            {
                "GPUs": gpus,
                "closed form slower by, up to (%)": 100 * (float(lost.max()) - 1),
                "there": f"{bytes_in_words(float(found.sizes[at[0]]))}, {found.delays[at[1]] * 1e6:.3g} us for all",
                "points where it is (%)": 100 * float((lost > 1 + 1e-9).mean()),
                "circuits set up there": int(found.circuits[at]),
            }
        )
    page.table("Observation 4 with a delay per circuit: recursive doubling, both halves, one port", pd.DataFrame(rows))


def _spots(page: Reproduction) -> None:
    """Points of the recursive doubling heatmap as records: a delay per circuit, and a table by ports with one step."""
    rows = []
    workload = published.FIGURE_5[0]
    rated = rate_with_kept(workload)
    for size, whole in SPOTS:
        plain = workload.instance(size, 0.0)
        name = f"{workload.name}-{bytes_in_words(size)}-{whole * 1e9 / published.GPUS:.4g}ns-a-circuit"
        spot = plain.model_copy(update={"name": name, "delay_per_circuit": whole / published.GPUS})
        found = circuit_grid(rated, np.array([size]), np.array([whole]), [0])
        methods = ["recursive_doubling_closed_form", "candidates", "bound", "bvn"]
        for _, record in page.solve([page.keep(spot, "points")], methods, part="points"):
            value = float(record["bound"] if record.value is None else record.value)
            facts = record["verified"]["facts"]
            expected = {"candidates": found.best[0, 0], "bvn": found.bvn[0, 0]}.get(str(record["method"]))
            if expected is not None and abs(value - expected) > 1e-9 * expected:
                raise RuntimeError(f"{name} {record['method']}: heatmap {expected}, record {value}")
            rows.append((name, record["method"], value * 1e6, facts.get("circuits_set_up", "–")))
    columns = ["point", "method", "checked record (us)", "circuits set up"]
    page.table(
        "Points with a delay per circuit as checked records (`bound`: its bound)", pd.DataFrame(rows, columns=columns)
    )


def _against_bound(page: Reproduction) -> None:
    """Recursive doubling with a delay per circuit on 8 to 64 GPUs: the best schedule found beside the bound."""
    rows, workload, whole = [], published.FIGURE_5[0], SPOTS[0][1]
    for gpus, size in BOUNDED:
        name = (
            f"{workload.name.replace('-64-', f'-{gpus}-')}-{bytes_in_words(size)}-{whole * 1e9 / gpus:.4g}ns-a-circuit"
        )
        plain = workload.instance(size, 0.0, gpus)
        spot = plain.model_copy(update={"name": name, "delay_per_circuit": whole / gpus})
        found = {
            str(record["method"]): record
            for _, record in page.solve([page.keep(spot, "points")], ["candidates", "bound"], part="points")
        }
        value, bound = found["candidates"].value, found["bound"].bound
        assert value is not None
        assert bound is not None
        rows.append(
            {
                "GPUs": gpus,
                "message": bytes_in_words(size),
                "best schedule found (us)": value * 1e6,
                "circuits set up": found["candidates"]["verified"]["facts"]["circuits_set_up"],
                "certified bound (us)": bound * 1e6,
                "gap (%)": f"{100 * max(0.0, 1 - bound / value):.2f}",
            }
        )
    page.table(
        "Recursive doubling with a delay per circuit against its bound, 20 us for all circuits", pd.DataFrame(rows)
    )


def _all_topologies(page: Reproduction) -> None:
    """Small workloads with a delay per circuit: `misocp` beside the candidates and the bound."""
    rows, whole = [], SPOTS[0][1]
    for name, gpus, size in SMALL_ENOUGH:
        workload = next(one for one in published.ALL if one.name == name)
        words = f"{name.replace('-64-', '-')}-{gpus}-gpus-{bytes_in_words(size)}-20us-for-all-circuits"
        plain = workload.instance(size, 0.0, gpus)
        spot = plain.model_copy(update={"name": words, "delay_per_circuit": whole / gpus / workload.ports})
        methods = ["candidates", "bound", "misocp"]
        runs = page.solve([page.keep(spot, "points")], methods, part="points")
        found = {str(record["method"]): record for _, record in runs}
        listed, value = (_microseconds(found[method].value) for method in ("candidates", "misocp"))
        least, bound = (_microseconds(found[method].bound) for method in ("bound", "misocp"))
        rows.append(
            {
                "workload": workload.title,
                "GPUs": gpus,
                "message": bytes_in_words(size),
                "candidates (us)": listed,
                "misocp (us)": value,
                "bound (us)": least,
                "misocp's bound (us)": bound,
                "gap before (%)": f"{100 * max(0.0, 1 - least / listed):.2f}",
                "gap (%)": f"{100 * max(0.0, 1 - max(least, bound) / min(listed, value)):.2f}",
            }
        )
    page.table("All topologies: `misocp` within a minute, 20 us for all circuits", pd.DataFrame(rows))


def _microseconds(seconds: float | None) -> float:
    assert seconds is not None
    return 1e6 * seconds


def overlapped(plain: HarvestInstance) -> HarvestInstance:
    """Recursive doubling whose reductions are known: before every step that follows one of the reduce-scatter half its
    bytes have to be added up, and the fabric can change meanwhile."""
    steps = [step.model_dump(mode="json", exclude_none=True) for step in plain.steps]
    for before, step in zip(plain.steps[: len(steps) // 2], steps[1:], strict=False):
        step["overlap"] = before.bytes / REDUCTION
    return plain.model_copy(update={"name": f"{plain.name}-overlap", "steps": steps})


def _overlap(page: Reproduction) -> None:
    rows = []
    workload = published.FIGURE_5[0]
    for size, delay in OVERLAPPED:
        plain = workload.instance(size, delay)
        plain = plain.model_copy(update={"name": f"{workload.name}-{bytes_in_words(size)}-{delay * 1e6:.0f}us"})
        values: dict[tuple[bool, str], float] = {}
        facts: dict[bool, dict[str, object]] = {}
        for hidden, instance in ((False, plain), (True, overlapped(plain))):
            methods = ["static_ring", "bvn", "recursive_doubling_closed_form", "candidates", "bound"]
            for _, record in page.solve([page.keep(instance, "points")], methods, part="points"):
                method = str(record["method"])
                values[hidden, method] = 1e6 * float(record["bound"] if method == "bound" else str(record.value))
                if method == "candidates":
                    facts[hidden] = record["verified"]["facts"]
        best = {hidden: values[hidden, "candidates"] for hidden in (False, True)}
        rows.append(
            {
                "message, delay": f"{bytes_in_words(size)}, {delay * 1e6:.0f} us",
                "best (us)": best[False],
                "with overlap": best[True],
                "bound": values[True, "bound"],
                "closed form": values[True, "recursive_doubling_closed_form"],
                "changes": f"{facts[False]['reconfigurations']}, {facts[True]['reconfigurations']}",
                "hidden (us)": float(str(facts[True]["hidden_s"])) * 1e6,
                "BvN (us)": f"{values[False, 'bvn']:.4g}, {values[True, 'bvn']:.4g}",
                "over both": min(values[False, "static_ring"], values[False, "bvn"]) / best[False],
                "over both, overlap": min(values[True, "static_ring"], values[True, "bvn"]) / best[True],
            }
        )
    page.table("Reconfiguration hidden behind the reductions of the reduce-scatter half, 64 GPUs", pd.DataFrame(rows))


def opening(found: Stored) -> Opening:
    """Which conclusions survive, and what a delay per circuit allows."""
    stated = found.table("Which conclusions survive a delay per circuit")["survives"]
    faster = found.table("The best schedules with a delay per circuit").set_index("workload")
    gains = numbers(faster["faster than with one delay, up to"])
    closed = found.table("Observation 4 with a delay per circuit").iloc[-1]
    return Opening(
        (
            f"{int((stated == 'yes').sum())} of {len(stated)} conclusions survive where every circuit that is set up "
            f"costs its own delay; {int((stated == 'weaker').sum())} are weaker.",
            f"The best schedules are then up to {gains.max():.2f} times as fast as with one delay for every change "
            f"({gains.idxmax()}).",
            "The closed form of recursive doubling, which is best with one delay, is up to "
            f"{float(closed['closed form slower by, up to (%)']):.0f} % slower than the best schedule found on "
            f"{closed['GPUs']} GPUs.",
        ),
        "figure-5-circuits",
    )


_REMARKS = (
    """A delay per circuit: a change takes (circuits set up) / (GPUs * ports) of the delay on the axis, so that a
    change of everything costs what it did. A circuit is set up when the link was not there before (parallel links
    one by one); one that only ends costs nothing. Both columns are over one set of candidates: the published ones
    and topologies that keep circuits (`synth_models/harvest/parts/kept_topologies.py`). Therefore "one delay" may
    be faster than on the page of the paper. The binary broadcast gains 2.77 over both, where the published candidates
    give 1.15, as the whole tree fits into two ports. A conclusion survives ("yes") when at least 90 % of its number
    is left; "weaker" is what is still above 1.01.""",
    """Recursive doubling, Swing and the direct all-to-all exchange whole permutations in every step, so BvN and
    static cost what they did. A broadcast tree has few pairs in its first steps, so BvN sets up few circuits and
    what Harvest wins over it at long delays shrinks.""",
    """Observation 4 (one ring per interval, that of an end) does not carry over. On 8 GPUs with 300 ns a circuit
    and 100,000 bytes the reduce-scatter takes 6.45 us where the best rings take 6.5 us. That is the least over all
    sequences of all 40,320 permutations (`tests/models/harvest/test_delays.py`). After the ring every second link
    jumps, and two hops lead four GPUs further. On 4 GPUs nothing was found to beat the rings.""",
    """The bound of recursive doubling counts the fewest circuits in which any two topologies must differ that serve
    their steps in so many hops. Where its gap is 0.00 the schedule is optimal over all topologies. Where patterns are
    no powers of one permutation, or GPUs have more ports, it counts one circuit a change. There it does not know what
    the topologies on both sides have in common.""",
    """Overlap: the bytes received in a step of the reduce-scatter half of recursive doubling are added up before the
    next step, at 1 TB/s (an assumption). That much of a reconfiguration is hidden. The allgather
    half has nothing to compute. The closed form and `misocp` take overlap (before a given step, a reconfiguration
    still costs the same whatever it changes); `dp_k` has the delays within its table.""",
    """Figure 8 is left out: Swing on a torus has next to nothing between static and BvN, whatever a circuit
    costs.""",
)
