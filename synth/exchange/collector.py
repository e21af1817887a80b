"""Python's collector of cycles, while many objects are made that are in none."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

COLLECTED = (200_000, 20, 100)  # objects, and rounds, between looks for cycles


@contextmanager
def collecting_seldom() -> Iterator[None]:
    """Let Python look for cycles among objects seldom: plans are a million objects without any, and looking through
    them again and again takes as long as making them."""
    before = gc.get_threshold()
    gc.set_threshold(*max(COLLECTED, before))
    try:
        yield
    finally:
        gc.set_threshold(*before)
