"""Several methods on one instance, side by side."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from synth.api import execute, solve
from synth.execution.runs import Request, Run, expand
from synth.execution.settled import Settled
from synth.instance import Instance, demand_one
from synth.method import Method
from synth.options import RELATIVE_GAP, as_text, given_gap, given_limit
from synth.records import record as records
from synth.records.contradictions import Standing, standing
from synth.records.optimality import gap as gap_between
from synth.records.record import Record
from synth.tables.frame import COLUMNS, Frame, maker_of, numbers

AnyMethod = str | Method | Callable[..., Any]  # a name, or one of your own
TELLING = ("value", "bound", "gap", "proof")
OTHERS = ("kind", "solver", "evidence", "termination", "message")


def compare(
    instance: Instance,
    methods: AnyMethod | Sequence[AnyMethod] | None = None,
    *,
    solver: str | None = None,
    time_limit: str | float | None = 60.0,
    gap: str | float = RELATIVE_GAP,
    threads: int = 1,
    seed: int = 0,
    options: Mapping[str, object] | None = None,
    results: str | Path | None = None,
) -> Frame:
    """Solve ``instance`` by each of these methods, by default by all that ``synth solve`` runs, and put the outcomes
    side by side.

    All else is as for :func:`synth.solve`, whose errors it raises. A row a method, its name in the index; the columns
    are those of ``synth.tables.frame.COLUMNS`` (``gap`` is to the best bound of all rows), and ``kind``, ``solver``,
    ``evidence`` (the value is that of a replayed schedule, or counted), ``termination`` and ``message``, all as in
    records. Numbers are plain; they are shown with units.
    """
    demand_one(instance)
    methods = _listed(methods)
    if methods is not None and not all(isinstance(method, str) for method in methods):
        found = [
            solve(
                instance, method, solver=solver, time_limit=time_limit, gap=gap, threads=threads, seed=seed,
                options=options, results=results,
            )
            for method in methods
        ]  # fmt: skip
        return frame_of(found)
    request = Request(
        None if methods is None else [str(name) for name in methods],
        [] if solver is None else [solver],
        [seed],
        [given_limit(time_limit)],
        given_gap(gap),
        threads,
        {key: as_text(value) for key, value in (options or {}).items()},
    )
    runs = [] if methods is not None and not methods else expand([instance], request, Path(results or "results")).runs()
    return _raced(runs, results is not None, race=methods is None and not (solver or options))


def _listed(methods: AnyMethod | Sequence[AnyMethod] | None) -> Sequence[AnyMethod] | None:
    return [methods] if isinstance(methods, str | Method) or callable(methods) else methods


def _raced(runs: Sequence[Run], keep: bool, race: bool) -> Frame:
    """The outcomes of these runs in this process, with ``keep`` written too; of a ``race`` those that it leaves out are
    not run."""
    settled, found = Settled(), []
    for run in runs:
        if race and settled.needless(run):
            continue
        record = execute(run.instance, run.method, run.options)
        found.append(records.write(record, run.path) if keep else record)
        settled.add(run, record)
    spared = ", ".join(run.method.name for run in settled.spared)
    return frame_of(found, f"not run, for a schedule met the bound: {spared}" if spared else "")


def frame_of(found: Sequence[Record], note: str = "") -> Frame:
    """A row a record of one instance, in their order."""
    judged = standing(found)
    rows = [_row(record, judged) for record in found]
    index = pd.Index([record["method"] for record in found], name="method", dtype=object)
    columns = [*COLUMNS, *OTHERS]
    lent = [record for record in found if record.lender]
    ended = [record for record in found if record.value is None and record["kind"] != "bound"]
    telling = [*TELLING, *["made_by"] * bool(lent), *["termination"] * bool(ended)]
    frame = Frame.of(rows, columns=columns, index=index, telling=telling, note=note)
    return frame.astype({"certified": bool})


def _row(record: Record, judged: Standing) -> dict[str, object]:
    left = gap_between(record.value, judged.bound)
    return {
        **numbers(record.value, record.bound, record["objective"]["unit"]),
        "gap": math.nan if left is None else left,
        "certified": record.bound is not None and record.grade == "certified",
        "proof": record.proof if record.bound is not None else None,
        "seconds": record.run_s,
        "made_by": maker_of(record),
        "kind": record["kind"],
        "solver": record["solver"],
        "evidence": record.evidence,
        "termination": record["termination"],
        "message": record["message"],
    }
