"""SCCL's questions on a DGX-1: is there a plan of S steps, R rounds, C chunks, and do more chunks fit?

Two chunks a round over the links of 50 GB/s, one over those of 25: chunks of a block, for an alltoall of all that a
rank sends. Z3's seconds are those of SCCL's documentation and of its users' threads (rows of ``published`` in the
data); the second list there are cases to try, without printed seconds.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from synth.errors import InputError
from synth.records.record import Record
from synth.reproduction.collect import Reproduction
from synth.solvers.catalogue import known_solvers
from synth_models.fabric.instance import FabricInstance
from synth_papers.fabric.grid import made
from synth_papers.peers.runs import positive

RESULTS = "peers/sccl-dgx1.json"
BYTES = 322_560  # 8 ranks x 40320: every number of chunks asked for cuts blocks evenly, or nearly
LIMIT, QUICK_LIMIT = 90.0, 15.0
RANKS = 8  # an alltoall's chunks come by the eight
REFUTED = re.compile(r"(\d+) chunks")
PART = "sccl"
COLLECTIVES = {
    "Allgather": "allgather", "Allreduce": "allreduce", "Broadcast": "broadcast", "Gather": "gather",
    "Alltoall": "alltoall",
}  # fmt: skip
QUICK = ((2, 2, 1), (2, 3, 2), (2, 4, 3))


@dataclass(frozen=True)
class Case:
    """A question, and Z3's seconds and answer where they are printed."""

    collective: str
    steps: int
    rounds: int
    chunks: int
    printed: str
    z3_s: float | None = None
    quoted: bool = False  # in the list of what is published, not only in that of cases


def table(page: Reproduction) -> None:
    """Every row, the most chunks of its steps and rounds, and the proof that no more fit."""
    path = page.real_data(RESULTS, "SCCL's rows")
    if path is None:
        return
    rows, answered, maximal, settled = [], 0, 0, Counter[str]()
    found = cases(path)
    for case in found if not page.quick else [c for c in found if (c.steps, c.rounds, c.chunks) in QUICK][:3]:
        question = {"steps": str(case.steps), "rounds": str(case.rounds)}
        instance = made(machine="dgx1", collective=case.collective, bytes=str(BYTES))
        exact = _asked(page, instance, question | {"chunks": str(case.chunks)})
        most = _asked(page, instance, question)
        answer = _answer(exact)
        held = [r["verified"]["facts"].get("chunks", 0) for r in (exact, most)]
        impossible = _impossible(most)
        unit = RANKS if case.collective == "alltoall" else 1
        answered += (answer.startswith("plan") != case.printed.startswith("none")) and answer != "open"
        maximal += exact.value is not None and impossible == case.chunks + unit
        most_found, word = max(held), ""
        while most_found and impossible != most_found + unit:  # counting leaves it open: what does a solver say?
            word = _answer(_asked(page, instance, question | {"chunks": str(most_found + unit)}))
            if not word.startswith("plan"):
                break
            most_found, word = most_found + unit, ""
        settled["counted" if impossible == most_found + unit else word.split(" (")[0]] += 1
        rows.append(
            {
                "collective": case.collective,
                "S": case.steps,
                "R": case.rounds,
                "C": case.chunks,
                "SCCL": case.printed,
                "Z3 [s]": case.z3_s,
                "ours": answer,
                "ours [s]": round(exact.run_s, 2),
                "most chunks found": most_found or None,
                "certified impossible from": impossible,
                "one more": word,
                "most chunks [s]": round(most.run_s, 2),
            }
        )
    page.table("SCCL on a DGX-1: S steps, R rounds, C chunks", pd.DataFrame(rows), "sccl")
    page.note(
        f"SCCL: {answered} of {len(rows)} questions have the answer that is expected of them (a plan, or for (2, 4, 3) "
        f"none). In {maximal} C is proven the most for S and R. That no more chunks fit than the most found is "
        f"certified by counting in {settled['counted']} rows, a solver's word in {settled['none']}, open in "
        f"{settled['open']}. Rows without an entry under SCCL are cases to try, not quoted from it. Reduce-scatter, "
        "reduce and scatter are allgather, broadcast and gather backwards, as the machine's links come in equal "
        "opposite pairs."
    )
    _ring(page)


def _ring(page: Reproduction) -> None:
    """What a user asked: an allreduce on a ring of five, for which the search never ended."""
    instance = made(
        network="ring", nodes="5", bandwidth="1e9", latency="0", collective="allreduce", bytes=str(5 * 1024)
    )
    record = _asked(page, instance, {"chunks": "1"})
    page.note(f"Allreduce on a ring of 5 (msccl-tools#47, endless there), one chunk: {record['message']}; "
              f"{record.run_s:.2f} s.")  # fmt: skip


def cases(path: Path) -> list[Case]:
    """Published rows, then the cases that are not among them. Raises :class:`InputError` on another file."""
    try:
        found = list(_cases(json.loads(path.read_text())))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputError(f"is no list of SCCL's rows: {error}", str(path)) from None
    known = {(case.collective, case.steps, case.rounds, case.chunks) for case in found if case.quoted}
    others = [case for case in found if not case.quoted]
    fresh = [case for case in others if (case.collective, case.steps, case.rounds, case.chunks) not in known]
    return sorted([case for case in found if case.quoted] + fresh, key=lambda case: _ORDER.index(case.collective))


_ORDER = list(COLLECTIVES.values())


def _cases(data: Any) -> Iterator[Case]:
    for row in data["published"]:
        if {"S", "R", "C"} <= row.keys():
            seconds = positive(str(row["s"])) if "s" in row else None
            printed = "none" if row.get("result") == "unsat" else "plan"
            yield Case(COLLECTIVES[row["coll"]], *_numbers(row["S"], row["R"], row["C"]), printed, seconds, True)
    for names, rows in data["published_table_unconfirmed"].items():
        name = names.split("_")[0]  # the second of a pair is the first backwards
        for chunks, steps, rounds in rows:
            yield Case(COLLECTIVES[name], *_numbers(steps, rounds, chunks), "")


def _numbers(*values: Any) -> tuple[int, int, int]:
    if not all(isinstance(value, int) and 1 <= value <= 1000 for value in values):
        raise ValueError(f"{values} are no steps, rounds and chunks")
    steps, rounds, chunks = values
    return steps, rounds, chunks


def _asked(page: Reproduction, instance: FabricInstance, question: dict[str, str]) -> Record:
    kept = page.keep(instance, PART)
    [(_, record)] = page.solve([kept], {"steps": question}, time_limit=QUICK_LIMIT if page.quick else LIMIT, part=PART)
    return record


def _answer(record: Record) -> str:
    if record.value is not None:
        return "plan, replayed"
    if record["termination"] != "infeasible":
        return "open"
    if record.certificate is not None:
        return "none (counted, certified)"
    return f"none ({known_solvers()[record['solver']].title}'s word)"


def _impossible(record: Record) -> int | None:
    """The fewest chunks that the run refutes by counting, which the check derives again."""
    found = [int(REFUTED.search(text)[1]) for text in record["verified"]["facts"].get("refuted", ())]  # type: ignore[index]
    return min(found, default=None)
