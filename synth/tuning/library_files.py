"""The files by which libraries choose among their own algorithms, and the table of what that costs: one library's
(``synth tune --for nccl|ompi|ucc``), or every library's beside what was tuned for an executor."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd

from synth.errors import InputError
from synth.exchange.selection import FORMATS, chosen, selection_format
from synth.exchange.selection.choice import COUNTERPARTS, SizeChoice, choices, rules
from synth.instance import Instance
from synth.records.optimality import gap
from synth.records.record import Record
from synth.text.files import write_atomically
from synth.text.quantities import percent, shown
from synth.text.visible import in_cell
from synth.tuning.runs import kept, taken_over
from synth.tuning.search import Question

EVERY = "libraries.csv"

HEAD = ("collective", "size", "by", "as", "time", "algbw", "bound", "gap", "others")


def write(library: str, found: Sequence[SizeChoice], folder: Path, title: str) -> tuple[pd.DataFrame, list[Path]]:
    """Write the library's file, read back and compared with the choices, and the table as CSV and Markdown; the table,
    and the files. Raises :class:`InputError` and ``OSError``."""
    path = _write_file(library, found, folder)
    form, table = selection_format(library), frame(found)
    for file, content in (
        (folder / "table.csv", table.to_csv(index=False)),
        (folder / "table.md", markdown(found, f"{title}: {form.summary}", form.how.format(file=path.name))),
    ):
        write_atomically(file, content.encode())
    return table, [path, folder / "table.csv", folder / "table.md"]


def write_every(question: Question) -> list[Path]:
    """Write a file for every library that has algorithms for one of the collectives, and one table of all, from the
    records that tuning has left; the files. Raises ``OSError``."""
    files, tables = [], []
    for library in FORMATS:
        found = [one for collective in question.collectives for one in _recorded(question, library, collective)]
        if found:
            files.append(_write_file(library, found, question.folder))
            tables.append(frame(found).assign(library=library))
    if tables:
        files.append(question.folder / EVERY)
        write_atomically(files[-1], pd.concat(tables, ignore_index=True).to_csv(index=False).encode())
    return files


def _write_file(library: str, found: Sequence[SizeChoice], folder: Path) -> Path:
    """Write the library's file, read back and compared with the choices."""
    form = selection_format(library)
    text = form.write(rules(library, found))
    again = form.read(text)
    for one in found:
        rule = chosen(again, one.collective, one.bytes, one.ranks, one.nodes)
        assert rule is not None, one
        assert rule.algorithm == one.algorithm, one
    path = folder / f"{library}{form.suffix}"
    write_atomically(path, text.encode())
    return path


def _recorded(question: Question, library: str, collective: str) -> list[SizeChoice]:
    """The library's choices for a collective; none where it has no algorithm that runs here."""
    again = replace(question, resume=True)

    def make(collective: str, size: int) -> Instance:
        return kept(question.make(collective, size), question.folder / "instances")

    def run(instance: Instance, method: str) -> Record | None:
        return taken_over(again, instance, method, {})

    if collective not in COUNTERPARTS[library]:
        return []
    try:
        return choices(library, make, collective, question.sizes, run)
    except InputError:
        return []


def frame(found: Sequence[SizeChoice]) -> pd.DataFrame:
    """A row a size: the library's word, the method of the same algorithm, seconds, algbw in bytes/s, the bound in
    seconds, ``gap`` = (library_s - bound_s) / library_s or 0 where they meet, every algorithm's seconds as
    ``<word>_s``."""
    return pd.DataFrame([_row(one) for one in found])


def _row(one: SizeChoice) -> dict[str, Any]:
    seconds = one.seconds[one.algorithm]
    return {
        "collective": one.collective,
        "ranks": one.ranks,
        "nodes": one.nodes,
        "bytes": one.bytes,
        "algorithm": one.algorithm,
        "method": one.methods[one.algorithm],
        "library_s": seconds,
        "algbw_bytes_per_s": one.bytes / seconds if seconds else None,
        "bound_s": one.bound,
        "gap": gap(seconds, one.bound),
        **{f"{word}_s": value for word, value in one.seconds.items()},
    }


def cells(found: Sequence[SizeChoice]) -> list[list[str]]:
    """The rows for a person, in the order of :data:`HEAD`."""
    rows = []
    for one in found:
        row = _row(one)
        others = {word: value for word, value in one.seconds.items() if word != one.algorithm}
        beside = ", ".join(f"{word} {shown(value, 's')}" for word, value in others.items())
        rows.append(
            [one.collective, shown(one.bytes, "bytes"), one.algorithm, row["method"], shown(row["library_s"], "s"),
             shown(row["algbw_bytes_per_s"], "bytes/s"), shown(one.bound, "s"), percent(row["gap"]), beside]
        )  # fmt: skip
    return rows


def markdown(found: Sequence[SizeChoice], title: str, how: str) -> str:
    """The table as a page, with how the file is used."""
    lines = [f"# {in_cell(title)}", "", f"`{how}`", "", f"| {' | '.join(HEAD)} |", f"|{' --- |' * len(HEAD)}"]
    lines += [f"| {' | '.join(map(in_cell, row))} |" for row in cells(found)]
    words = (
        "Times are replays of the same algorithms here, each with its best number of chunks, rings by the best cycles: "
        "a library's own are no quicker. The gap is what the restriction to them costs at most."
    )
    return "\n".join([*lines, "", words, ""])
