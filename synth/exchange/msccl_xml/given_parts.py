"""What is to arrive of an all-to-all of given parts: attribute ``wanted`` of a gpu, which executors do not look at."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from synth.arrays import IntArray
from synth.errors import Fault

MOST_TEXT = 2**18  # characters of it that are read


def given_parts(
    gpus: Sequence[tuple[int, int | None, str | None]], collective: str, chunks: int
) -> tuple[IntArray | None, list[Fault]]:
    """How many chunks of every part are to arrive, shape (ranks * ranks,), None where no gpu says any; and what is
    wrong. ``gpus``: the line and number of each, and what it says: the chunks that it gets from gpu 0, 1, …"""
    ranks = len(gpus)
    if all(text is None for _, _, text in gpus):
        return None, []
    found = np.zeros((ranks, ranks), dtype=np.int64)  # by who sends, who receives
    for rank, (line, number, text) in enumerate(gpus):
        words = (text or "")[:MOST_TEXT].split()
        values = [value for value in map(whole, words) if value is not None and 0 <= value <= chunks]
        if collective != "alltoall" or not len(words) == len(values) == ranks:
            message = f"wanted must be {ranks} whole numbers in 0..{chunks}, of an alltoall on every gpu"
            return None, [Fault(f"line {line}, gpu {number}", message)]
        found[:, rank] = values
    return found.reshape(-1), []


def whole(text: str) -> int | None:
    """The whole number that is written there in plain digits, None for anything else."""
    digits = text[1:] if text.startswith("-") else text
    return int(text) if digits.isascii() and digits.isdigit() and len(digits) <= 19 else None
