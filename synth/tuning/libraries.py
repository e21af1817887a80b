"""The files by which libraries choose among their own algorithms, for the sizes that are tuned, and what it costs that
only those are there."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd

from synth.errors import InputError
from synth.exchange.selection import FORMATS
from synth.exchange.selection.choice import COUNTERPARTS, SizeChoice, choices, rules
from synth.instance import Instance
from synth.records.record import Record
from synth.text.files import write_atomically
from synth.tuning.search import Question, kept, recorded

TABLE = "libraries.csv"


def write(question: Question) -> list[Path]:
    """Write a file for every library that has algorithms for one of the collectives, and the table of what they take,
    from the records that tuning has left; the files. Raises ``OSError``."""
    files, table = [], []
    for name, form in FORMATS.items():
        found = [one for collective in question.collectives for one in _choices(question, name, collective)]
        if not found:
            continue
        files.append(question.folder / f"{name}{form.suffix}")
        write_atomically(files[-1], form.write(rules(name, found)).encode())
        table += list(_rows(name, found))
    if table:
        files.append(question.folder / TABLE)
        write_atomically(files[-1], pd.DataFrame(table).to_csv(index=False).encode())
    return files


def _choices(question: Question, library: str, collective: str) -> list[SizeChoice]:
    """The library's choices for a collective; none where it has no algorithm that runs here."""
    again = replace(question, resume=True)

    def make(collective: str, size: int) -> Instance:
        return kept(question.make(collective, size), question.folder / "instances")

    def run(instance: Instance, method: str) -> Record:
        return recorded(again, instance, method, {})

    if collective not in COUNTERPARTS[library]:
        return []
    try:
        return choices(library, make, collective, question.sizes, run)
    except InputError:
        return []


def _rows(library: str, found: Sequence[SizeChoice]) -> Iterator[dict[str, Any]]:
    """A row a size: what the library's algorithm takes as its counterpart is scheduled, the bound, and the quotient."""
    for one in found:
        yield {
            "library": library,
            "collective": one.collective,
            "ranks": one.ranks,
            "nodes": one.nodes,
            "bytes": one.bytes,
            "algorithm": one.algorithm,
            "method": one.methods[one.algorithm],
            "scheduled_s": one.seconds[one.algorithm],
            "bound_s": one.bound,
            "over_bound": one.restriction,
        }
