"""Messages from their flat table, as ``synth show --csv`` prints it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from synth.errors import Fault, InputError
from synth.text.csv import typed_rows, whole_cell
from synth.text.input_file import InputFile
from synth_models.bine.instance import MAX_RANKS, BineInstance
from synth_models.bine.solution import MAX_BLOCKS, MAX_ROUNDS, Messages

MOST_LAYOUT = 2**26  # block numbers of all jobs together
_RUN = re.compile(r"([0-9]{1,15})(?:-([0-9]{1,15}))?")
Run = tuple[int, int]  # first and last block


def from_table(instance: BineInstance, file: InputFile) -> Messages:
    """Return the messages, blocks in the order of their numbers; in a round what is added comes before what is copied.
    Raises :class:`InputError` with every faulty line; what the messages do is the check's."""
    ranks = [len(groups) for groups in instance.allocations]
    several = len(ranks) > 1

    def wrong(row: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
        job = row.get("job", 0)
        for key in ("src", "dst"):
            if row.get(key, 0) >= ranks[job]:
                yield key, f"the job has ranks 0..{ranks[job] - 1}"
        if "copied" not in row and "added" not in row:
            yield "", "carries no block: copied and added are empty"
        for key in ("copied", "added"):
            most = _blocks(instance, ranks[job], row["parts"]) if "parts" in row else MAX_BLOCKS
            if any(last >= most for _, last in row.get(key, ())):
                yield key, "names a block that there is not"

    rank = whole_cell(MAX_RANKS - 1)
    readers: dict[str, Callable[[str], Any]] = {"job": whole_cell(len(ranks) - 1)} if several else {}
    readers |= {"round": whole_cell(MAX_ROUNDS - 1), "src": rank, "dst": rank, "bytes": str, "copied": _runs}
    readers |= {"added": _runs, "parts": whole_cell(MAX_BLOCKS, 1)}
    needed = [key for key in readers if key not in ("bytes", "copied", "added")]
    rows = typed_rows(file, readers, needed, "message", wrong, line_key="line")
    shares = _shares(instance, file, rows, ranks)
    sizes = [instance.blocks(count) * shares for count in ranks]
    if sum(sizes) > MOST_LAYOUT:
        raise InputError(f"{sum(sizes)} blocks are more than the {MOST_LAYOUT} that are read", str(file))
    table = np.array(sorted(_pieces(rows), key=lambda piece: piece[:3]), dtype=np.int64)
    job, step, copies, src, dst, first, last = table.T
    return Messages(
        round=step, src=src, dst=dst, first=first, count=last - first + 1, adds=copies == 0,
        layout=np.concatenate([np.arange(size, dtype=np.int64) for size in sizes]), shares=shares,
        job=job, starts=np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64),
    )  # fmt: skip


def _pieces(rows: list[dict[str, Any]]) -> Iterator[tuple[int, ...]]:
    """Job, round, whether it is copied, ends, first and last block of every run."""
    for row in rows:
        for copies, key in enumerate(("added", "copied")):
            for first, last in row.get(key, ()):
                yield row.get("job", 0), row["round"], copies, row["src"], row["dst"], first, last


def _runs(text: str) -> list[Run]:
    """``3 5-7`` as (3, 3) and (5, 7)."""
    found = []
    for word in text.split():
        match = _RUN.fullmatch(word)
        if match is None:
            raise ValueError("must be numbers of blocks and runs of them: 3 5-7")
        low, high = match.groups()
        if int(high or low) < int(low):
            raise ValueError(f"{word} ends before it begins")
        found.append((int(low), int(high or low)))
    return found


def _blocks(instance: BineInstance, ranks: int, parts: int) -> int:
    """Blocks of a job whose vector is cut into so many parts."""
    return parts * ranks if instance.collective == "alltoall" else parts


def _shares(instance: BineInstance, file: InputFile, rows: list[dict[str, Any]], ranks: list[int]) -> int:
    """The shares that the column ``parts`` says. Raises :class:`InputError` where it says none, or several."""
    found: int | None = None
    for row in rows:
        count = ranks[row.get("job", 0)]
        whole = count if instance.collective == "alltoall" else instance.blocks(count)
        shares, rest = divmod(row["parts"], whole)
        if rest or not 1 <= shares <= MAX_RANKS or shares != (found or shares):
            right = f"must be {found * whole}" if found else f"must be {whole}, or a multiple of it, in all rows"
            raise InputError([Fault(f"line {row['line']}, parts", right, row["parts"], True)], str(file))
        found = shares
    return found or 1
