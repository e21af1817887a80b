"""What one plan costs that does not know which rank is late: a table of the page ``late``."""

from __future__ import annotations

from typing import NamedTuple

import pandas as pd

from synth.records.record import Record
from synth.reproduction.collect import Reproduction
from synth.text.quantities import percent, shown
from synth_models.fabric.instance import FabricInstance
from synth_papers.fabric.grid import made

RANKS = (8, 16)
LATE = ("300us", "1ms", "2ms", "3ms", "10ms")
KNOWING = ("bound", "direct", "ring", "late_rank")
LIMIT_S = 600.0  # as on the rest of the page, whose records are the same
ROUNDED = 1e-15  # of a value, by which a certified bound in 64 bits may lie below it
KEYS = {"bandwidth": "450GiB/s", "latency": "1.5us", "collective": "allreduce", "bytes": "1GiB"}


def price(page: Reproduction) -> str:
    """The table of :data:`RANKS` and :data:`LATE`, and what it says."""
    cases = [(n, late) for n in RANKS for late in LATE][: 2 if page.quick else None]
    found = [_row(page, n, late) for n, late in cases]
    page.table("One plan, whoever is late", _in_words(pd.DataFrame(found)))
    page.note(
        "One plan: its routes, what every transfer carries and the order on every link are fixed, and each transfer "
        "starts as soon as it can. It ends when the worst of all ranks is late. One that is less late makes no plan "
        "later, so a row holds for all lateness up to its own. Its bound: what a link carries first waits for some "
        "rank, so for each link some scenario has it begin as late."
    )
    n, late, plan, plan_bound, knowing, knowing_bound = max(found, key=lambda row: row.plan_s / row.knowing_bound_s)
    gap = max(1 - row.plan_bound_s / row.plan_s for row in found)
    proven = "which is optimal" if gap < ROUNDED else f"at most {percent(gap)} above its bound"
    return (
        f"One plan that does not know which of {' or '.join(map(str, RANKS))} ranks is late ends as if all waited, "
        f"{proven}. The worst that this costs against knowing is "
        f"{percent(plan_bound / knowing - 1)} to {percent(plan / knowing_bound - 1)} ({n} ranks, {late})."
    )


class Row(NamedTuple):
    """Ranks, how late one of them is, and seconds: of the best plan that does not know who, of the best schedule that
    does, and bounds of both."""

    ranks: int
    late: str
    plan_s: float
    plan_bound_s: float
    knowing_s: float
    knowing_bound_s: float


def _row(page: Reproduction, n: int, late: str) -> Row:
    one, known = (
        page.keep(made(network="star", nodes=str(n), **KEYS, late=f"{who}:{late}"), "") for who in ("any", n - 1)
    )
    return Row(n, late, *_best(page, one, ("bound", "direct")), *_best(page, known, KNOWING))


def _best(page: Reproduction, instance: FabricInstance, methods: tuple[str, ...]) -> tuple[float, float]:
    """The least value and the greatest bound [s]."""
    records: list[Record] = [record for _, record in page.solve([instance], methods, time_limit=LIMIT_S)]
    values = [record.value for record in records if record.value is not None]
    return min(values), max(record.bound for record in records if record.bound is not None)


def _in_words(rows: pd.DataFrame) -> pd.DataFrame:
    seconds = {
        "knowing who": "knowing_s",
        "bound": "knowing_bound_s",
        "one plan": "plan_s",
        "its bound": "plan_bound_s",
    }
    said = {title: [shown(value, "s") for value in rows[column]] for title, column in seconds.items()}
    least, most = rows["plan_bound_s"] - rows["knowing_s"], rows["plan_s"] - rows["knowing_bound_s"]
    return pd.DataFrame(
        {
            "ranks": rows["ranks"], "late by": rows["late"], **said,
            "costs": [f"{shown(max(0.0, a), 's')} to {shown(b, 's')}" for a, b in zip(least, most, strict=True)],
            "of knowing": [
                f"{percent(max(0.0, a))} to {percent(b)}"
                for a, b in zip(least / rows["knowing_s"], most / rows["knowing_bound_s"], strict=True)
            ],
        }
    )  # fmt: skip
