"""``synth tune --for nccl|ompi|ucc``: the file by which a library chooses among its own algorithms, and the table of
what that costs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from synth.exchange.selection import chosen, selection_format
from synth.exchange.selection.choice import SizeChoice, rules
from synth.text.files import write_atomically
from synth.text.quantities import percent, shown

HEAD = ("collective", "size", "by", "as", "time", "algbw", "bound", "gap", "others")


def write(library: str, found: Sequence[SizeChoice], folder: Path, title: str) -> tuple[pd.DataFrame, list[Path]]:
    """Write the library's file, read back and compared with the choices, and the table as CSV and Markdown; the table,
    and the files. Raises :class:`InputError` and ``OSError``."""
    form = selection_format(library)
    made = rules(library, found)
    text = form.write(made)
    again = form.read(text)
    for one in found:
        rule = chosen(again, one.collective, one.bytes, one.ranks, one.nodes)
        assert rule is not None, one
        assert rule.algorithm == one.algorithm, one
    table = frame(found)
    path = folder / f"{library}{form.suffix}"
    for file, content in (
        (path, text),
        (folder / "table.csv", table.to_csv(index=False)),
        (folder / "table.md", markdown(found, f"{title}: {form.summary}", form.how.format(file=path.name))),
    ):
        write_atomically(file, content.encode())
    return table, [path, folder / "table.csv", folder / "table.md"]


def frame(found: Sequence[SizeChoice]) -> pd.DataFrame:
    """A row a size: the library's word, the method of the same algorithm, seconds, algbw in bytes/s, the bound in
    seconds, ``gap`` = (library_s - bound_s) / library_s, and every algorithm's seconds as ``<word>_s``."""
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
        "gap": (seconds - one.bound) / seconds if one.bound is not None and seconds else None,
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
    lines = [f"# {title}", "", f"`{how}`", "", f"| {' | '.join(HEAD)} |", f"|{' --- |' * len(HEAD)}"]
    lines += [f"| {' | '.join(row)} |" for row in cells(found)]
    words = (
        "Times are replays of the same algorithms here, each with its best number of chunks, rings by the best cycles: "
        "a library's own are no quicker. The gap is what the restriction to them costs at most."
    )
    return "\n".join([*lines, "", words, ""])
