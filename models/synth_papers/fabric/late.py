"""One rank joins an allreduce late: the page ``late``, beside StragglAR's printed rounds and times.

Devraj, Ding, Kumar, Kleinberg, Singh: "Efficient AllReduce with Stragglers", 2025 (arXiv 2505.23523), with the rounds
of its simulation at https://github.com/arjundevraj/stragglar (63ae36b).
"""

from __future__ import annotations

import pandas as pd
from matplotlib.figure import Figure

from synth.records.record import Record
from synth.reproduction.collect import Reproduction
from synth.text.quantities import percent, shown
from synth.views.figure_style import legend_below
from synth_models.fabric.instance import FabricInstance
from synth_papers.fabric.grid import made
from synth_papers.fabric.not_knowing import price

PRINTED = {
    4: 4, 6: 7, 8: 9, 12: 15, 16: 18, 24: 27, 32: 35, 48: 57, 64: 68, 96: 108, 128: 133, 192: 208, 256: 262,
}  # fmt: skip
LATE_S = 0.01
RATE, LATENCY_S, SIZE = 450 * 2**30, 3e-6, 2**30
MOST_BEST = 64  # ranks up to which all numbers of pieces are tried
LIMIT_S = 600.0


def reproduce(page: Reproduction) -> None:
    """Solve every size with StragglAR's number of pieces and with any; the rounds, the times, the bounds."""
    rows = [_row(page, n, rounds) for n, rounds in list(PRINTED.items())[: 3 if page.quick else None]]
    table = pd.DataFrame(rows)
    page.figure(_drawn(table), "late", "Time from when the late rank is ready, over the number of ranks.")
    page.table("Rounds, and times from when the late rank is ready", _in_words(table))
    page.note(
        "StragglAR's setting: any to any, 450 GiB/s a rank, 3 us, 1 GiB, n - 1 pieces; all others have "
        "reduce-scattered before. Here the late rank is ready after 10 ms, and by then has got what the others have "
        "added up, which takes no round of its own there either. Its times are its formula's: rounds times (3 us + a "
        "piece)."
    )
    page.note(
        "Rounds are counted in our schedules: in one, a rank sends at most one piece and receives at most one, and "
        "sends on what came in an earlier one. Least: the late rank gives its last piece in round n - 1 at the "
        "earliest; it has two holders then, and each further round at most doubles them."
    )
    page.note(f"Beyond {MOST_BEST} ranks n - 1 pieces alone are scheduled. Every value is replayed.")
    page.opens(f"{_answer(table)} {price(page)}")


def _row(page: Reproduction, n: int, printed: int) -> dict[str, float]:
    """What is known of n ranks."""
    instance = page.keep(
        made(network="star", nodes=str(n), bandwidth="450GiB/s", latency="1.5us", collective="allreduce", bytes="1GiB",
             late=f"{n - 1}:10ms"), "",
    )  # fmt: skip
    ((_, same),) = page.solve([instance], {"late_rank": {"chunks": "1"}}, time_limit=LIMIT_S)
    methods = ["late_rank", "bound"] if n <= MOST_BEST else ["bound"]
    found = {record["method"]: record for _, record in page.solve([instance], methods, time_limit=LIMIT_S)}
    bound, best = found["bound"].bound, found.get("late_rank", same).value
    assert bound is not None
    assert best is not None
    assert same.value is not None
    return {
        "ranks": n, "printed": printed, "least": n - 2 + (n - 1).bit_length(), "rounds": rounds_of(instance, same),
        "printed_s": printed * (LATENCY_S + SIZE / RATE / (n - 1)), "same_s": same.value - LATE_S,
        "best_s": best - LATE_S if n <= MOST_BEST else float("nan"), "bound_s": bound - LATE_S,
    }  # fmt: skip


def rounds_of(instance: FabricInstance, record: Record) -> int:
    """In how many rounds the transfers of a record go that start when the late rank is ready or later: each in the
    first in which its sender does not send, its receiver does not receive, and what it sends came before."""
    rows = record.table().sort_values("start_s", kind="stable")
    sent: dict[object, int] = {}
    received: dict[object, int] = {}
    came: dict[tuple[object, object], int] = {}
    for row in rows[rows["start_s"] >= LATE_S].itertuples():
        at = 1 + max(sent.get(row.src, 0), received.get(row.dst, 0), came.get((row.piece, row.src), 0))
        sent[row.src] = received[row.dst] = came[row.piece, row.dst] = at
    return max(came.values())


def _answer(rows: pd.DataFrame) -> str:
    fewer, least = rows[rows["rounds"] < rows["printed"]], rows[rows["rounds"] == rows["least"]]
    told = ", ".join(f"{row.ranks} ({row.rounds} for {row.printed})" for row in fewer.itertuples())
    near = rows[(rows["ranks"] >= 8) & rows["best_s"].notna()]
    gaps = 1 - near["bound_s"] / near["best_s"]
    fewest = f"The least number of rounds is taken for {len(least)} of {len(rows)} numbers of ranks"
    return (
        f"{fewest}. Fewer than printed are those of {told or 'none'} ranks. With any number of pieces the allreduce "
        f"ends at most {percent(float(gaps.max()))} above a certified bound from 8 to {int(near['ranks'].max())} ranks."
    )


def _in_words(rows: pd.DataFrame) -> pd.DataFrame:
    said = {name: [shown(value, "s") for value in rows[column]] for name, column in
            {"StragglAR's time": "printed_s", "ours, as many pieces": "same_s"}.items()}  # fmt: skip
    best = ["–" if pd.isna(value) else shown(value, "s") for value in rows["best_s"]]
    least = rows["best_s"].fillna(rows["same_s"])
    return pd.DataFrame(
        {
            "ranks": rows["ranks"], "StragglAR's rounds": rows["printed"], "least": rows["least"],
            "ours": rows["rounds"], **said,
            "ours, any number": best, "bound": [shown(value, "s") for value in rows["bound_s"]],
            "gap": [percent(float(value)) for value in 1 - rows["bound_s"] / least],
        }
    )  # fmt: skip


def _drawn(rows: pd.DataFrame) -> Figure:
    figure = Figure(figsize=(7.5, 3.2), layout="constrained")
    axes = figure.subplots()
    for column, label, mark in (("printed_s", "StragglAR, printed", "s"), ("same_s", "ours, as many pieces", "o"),
                                ("best_s", "ours, any number", "^"), ("bound_s", "bound", "_")):  # fmt: skip
        axes.plot(rows["ranks"], rows[column] * 1e3, mark, label=label)
    axes.set_xscale("log", base=2)
    axes.set(xlabel="ranks", ylabel="ms")
    legend_below(figure, axes.get_legend_handles_labels()[0])
    return figure
