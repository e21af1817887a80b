"""The moves of a schedule as CSV, for programs of a user's own: a row a move, written as a stream."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from synth.errors import InputError
from synth.exchange.transfers import Transfers

COLUMNS = (
    "start_s", "end_s", "piece", "part", "offset", "bytes", "src", "dst", "adds", "start_tick", "end_tick",
    "ticks_per_s",
)  # fmt: skip
ROWS = 100_000  # written at a time


def write(transfers: Transfers, path: Path) -> None:
    """Columns ``start_s,end_s,piece,part,offset,bytes,src,dst,adds,start_tick,end_tick,ticks_per_s``.

    Piece is ``bytes`` bytes from ``offset`` on of part ``part``, ranks are places in the process group
    (:class:`Transfers` says what parts are). The seconds are rounded to floats; the last three columns state the same
    times exactly, in whole ticks (timesteps where a family has no clock), empty where the times are no whole numbers.
    Raises :class:`InputError` where the file cannot be written."""
    import pandas as pd

    t, exact = transfers, transfers.exact
    try:
        with path.open("w", encoding="utf-8", newline="") as file:
            file.write(",".join(COLUMNS) + "\n")
            for first in range(0, len(t.piece), ROWS):
                rows = slice(first, first + ROWS)
                piece = t.piece[rows]
                values = (
                    t.start_s[rows], t.end_s[rows], piece, t.piece_part[piece], t.piece_offset[piece],
                    t.piece_bytes[piece], t.src[rows], t.dst[rows], t.adds[rows].astype(np.int8),
                    *((None,) * 3 if exact is None else (exact.start[rows], exact.end[rows], exact.per_s)),
                )  # fmt: skip
                frame = pd.DataFrame(dict(zip(COLUMNS, values, strict=True)))
                frame.to_csv(file, header=False, index=False)
    except OSError as error:
        raise InputError(f"cannot be written: {error.strerror}", str(path)) from None
