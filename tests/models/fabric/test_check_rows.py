"""Items by row and time, as the check sorts them, against numpy's stable sort."""

from __future__ import annotations

import numpy as np
import pytest

from synth.kernels import mode
from synth_models.fabric.check.rows import rows_by

ROWS = 4


@pytest.mark.parametrize("way", ["plain", "compiled"])
def test_rows_are_in_order_of_time_and_ties_keep_theirs(way: str) -> None:
    """Up to 400 items, some of no row, with many ties; among these, items that are late come last."""
    drawn = np.random.default_rng(3)
    with mode(way):
        for count in (0, 1, 2, 3, 7, 8, 9, 40, 90, 400):
            key = drawn.integers(-1, ROWS, count).astype(np.int32)
            time = drawn.integers(0, 1 + count // 3, count)
            for late in (np.zeros(0, dtype=bool), drawn.random(count) < 0.5):
                last = late if len(late) else np.zeros(count, dtype=bool)
                kept = np.flatnonzero(key >= 0)
                expected = kept[np.lexsort((last[kept], time[kept], key[kept]))]
                start, order = rows_by(key, ROWS, time, late)
                assert order.tolist() == expected.tolist()
                assert start.tolist() == [int((key[kept] < row).sum()) for row in range(ROWS + 1)]
