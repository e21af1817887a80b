"""The files by which libraries choose among their own algorithms, and the table of what that costs: one library's
(``synth tune --for nccl|ompi|ucc``), or every library's beside what was tuned for an executor."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd

from synth.errors import InputError
from synth.exchange.selection import FORMATS, chosen, selection_format
from synth.exchange.selection.choice import KNOWN, SizeChoice, choices, demand_known, rules, solved
from synth.exchange.selection.library_times import Told
from synth.exchange.selection.nccl_choice import Nccl
from synth.exchange.selection.rules import Rule
from synth.instance import Instance
from synth.records.optimality import gap
from synth.records.record import Record
from synth.text.files import write_atomically
from synth.text.quantities import percent, shown
from synth.text.visible import in_cell
from synth.tuning.question import Question
from synth.tuning.runs import kept, taken_over

EVERY = "libraries.csv"

HEAD = ("collective", "size", "by", "told", "time", "algbw", "bound", "gap", "others")
MOST_REPLAYED = 64  # ranks up to which the algorithms of libraries that were not asked for are replayed


def found_for(
    library: str, make: Callable[[str, int], Instance], names: Sequence[str], sizes: Sequence[int], gpu: str | None
) -> tuple[list[SizeChoice], list[Rule]]:
    """A library's choices for these collectives, and its rows for all others. Raises as :func:`choices`."""
    for name in names:
        demand_known(library, name)
    model = Nccl.of(make, solved, gpu) if library == "nccl" else None
    found = [one for name in names for one in choices(library, make, name, sizes, model=model)]
    return found, [] if model is None else model.beside(names)


def write(
    library: str, found: Sequence[SizeChoice], beside: Sequence[Rule], folder: Path, title: str
) -> tuple[pd.DataFrame, list[Path]]:
    """Write the library's files, read back and compared with the choices, and the table as CSV and Markdown; the table,
    and the files. Raises :class:`InputError` and ``OSError``."""
    paths = _write_files(library, found, beside, folder)
    form, table = selection_format(library), frame(found)
    for file, content in (
        (folder / "table.csv", table.to_csv(index=False)),
        (folder / "table.md", markdown(found, f"{title}: {form.summary}", form.how.format(file=paths[0].name))),
    ):
        write_atomically(file, content.encode())
    return table, [*paths, folder / "table.csv", folder / "table.md"]


def write_every(question: Question) -> list[Path]:
    """Write a file for every library that has algorithms for one of the collectives, and one table of all, from the
    records that tuning has left; the files; of more than :data:`MOST_REPLAYED` ranks NCCL's alone. Raises ``OSError``.
    """
    files, tables = [], []
    first = question.make(question.collectives[0], question.sizes[0])
    few = len(getattr(first, "members", ())) <= MOST_REPLAYED
    for library in (one for one in FORMATS if one == "nccl" or few):
        found, beside = _recorded(question, library)
        if found:
            files += _write_files(library, found, beside, question.folder)
            tables.append(frame(found).assign(library=library))
    if tables:
        files.append(question.folder / EVERY)
        write_atomically(files[-1], pd.concat(tables, ignore_index=True).to_csv(index=False).encode())
    return files


def _write_files(library: str, found: Sequence[SizeChoice], beside: Sequence[Rule], folder: Path) -> list[Path]:
    """Write the library's file in each of its forms, read back and compared with the choices."""
    form = selection_format(library)
    own, paths = [*rules(library, found), *beside], []
    for suffix, write_text, read_text in form.forms:
        text = write_text(own)
        again = read_text(text)
        for one in found:
            rule = chosen(again, one.collective, one.bytes, one.ranks, one.nodes or 1)
            assert rule is not None, one
            assert rule.algorithm == one.algorithm, one
            assert one.parameters.items() <= rule.parameters.items(), one
        paths.append(folder / f"{library}{suffix}")
        write_atomically(paths[-1], text.encode())
    return paths


def _recorded(question: Question, library: str) -> tuple[list[SizeChoice], list[Rule]]:
    """The library's choices for the collectives, and its rows for all others; none where it has no algorithm that runs
    here."""
    again = replace(question, resume=True)

    def make(collective: str, size: int) -> Instance:
        return kept(question.make(collective, size), question.folder / "instances")

    def run(instance: Instance, method: str) -> Record | None:
        return taken_over(again, instance, method, {})

    names = [name for name in question.collectives if name in KNOWN[library]]
    try:
        model = Nccl.of(make, run) if library == "nccl" and names else None
        found = [one for name in names for one in choices(library, make, name, question.sizes, run, model)]
    except InputError:
        return [], []
    return found, [] if model is None else model.beside(names)


def frame(found: Sequence[SizeChoice]) -> pd.DataFrame:
    """A row a size: the library's word, what it is told with it, seconds, algbw in bytes/s, the bound in seconds,
    ``gap`` = (library_s - bound_s) / library_s or 0 where they meet, every algorithm's seconds as ``<word>_s``."""
    return pd.DataFrame([_row(one) for one in found])


def _row(one: SizeChoice) -> dict[str, Any]:
    seconds = one.seconds[one.algorithm]
    return {
        "collective": one.collective,
        "ranks": one.ranks,
        "nodes": one.nodes,
        "bytes": one.bytes,
        "algorithm": one.algorithm,
        "told": told(one.parameters),
        "library_s": seconds,
        "algbw_bytes_per_s": one.bytes / seconds if seconds else None,
        "bound_s": one.bound,
        "gap": gap(seconds, one.bound),
        **{f"{word}_s": value for word, value in one.seconds.items()},
    }


def told(parameters: Told) -> str:
    """What a library is told beside the algorithm, in words; what leaves a number to it is not said."""
    words = [
        f"{name} {shown(int(value), 'bytes') if name == 'segment' else value}"
        for name, value in parameters.items()
        if value != 0
    ]
    return ", ".join(words)


def cells(found: Sequence[SizeChoice]) -> list[list[str]]:
    """The rows for a person, in the order of :data:`HEAD`."""
    rows = []
    for one in found:
        row = _row(one)
        others = {word: value for word, value in one.seconds.items() if word != one.algorithm}
        beside = ", ".join(f"{word} {shown(value, 's')}" for word, value in others.items())
        rows.append(
            [one.collective, shown(one.bytes, "bytes"), one.algorithm, row["told"], shown(row["library_s"], "s"),
             shown(row["algbw_bytes_per_s"], "bytes/s"), shown(one.bound, "s"), percent(row["gap"]), beside]
        )  # fmt: skip
    return rows


def markdown(found: Sequence[SizeChoice], title: str, how: str) -> str:
    """The table as a page, with how the file is used."""
    lines = [f"# {in_cell(title)}", "", f"`{how}`", "", f"| {' | '.join(HEAD)} |", f"|{' --- |' * len(HEAD)}"]
    lines += [f"| {' | '.join(map(in_cell, row))} |" for row in cells(found)]
    words = (
        "Times: Open MPI's and UCC's algorithms in the order of the ranks, replayed on the machine; NCCL's by its own "
        "cost model on the machine's rates. The gap is what the restriction to them costs at most."
    )
    return "\n".join([*lines, "", words, ""])
