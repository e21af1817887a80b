"""A solution's frames as plain data for the page's script."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from synth.arrays import BoolArray, FloatArray, IntArray
from synth.text.quantities import shown
from synth.views.frames import Frames

MOST_MOVES = 4000  # of one animation: of more a sample, and the page says so
MOST_LINKS = 8000  # that are drawn where nothing moves on them
_BYTES = re.compile(r"(?<![\w.])(\d[\d.]*(?:e[+-]?\d+)?)(?: of (\d[\d.]*(?:e[+-]?\d+)?))? bytes\b")


def sampled(found: Frames, most: int) -> Frames:
    """The frames with at most about ``most`` moves: all those of some items, evenly chosen, where items are many, else
    some of each step, of which every step keeps its first."""
    moves = len(found.step)
    if moves <= most:
        return found
    items, stride = np.unique(found.item), -(-moves // most)
    if len(items) >= 2 * stride:
        keep = np.isin(found.item, items[::stride])
        while keep.sum() > most and len(items) > stride:
            stride += 1
            keep = np.isin(found.item, items[::stride])
    else:
        counts = np.bincount(found.step, minlength=1)
        place = np.empty(moves, dtype=np.int64)
        place[np.argsort(found.step, kind="stable")] = np.arange(moves) - np.repeat(np.cumsum(counts) - counts, counts)
        keep = place % stride == 0
    return _kept(found, keep, found.whole or moves)


def _kept(found: Frames, keep: BoolArray, whole: int) -> Frames:
    """The frames with these moves alone; items that none of them has are left out."""
    used, item = np.unique(found.item[keep], return_inverse=True)
    named = used[used >= 0]
    place = np.full(int(named.max(initial=-1)) + 1, -1, dtype=np.int64)
    place[named] = np.arange(len(named))
    held = found.held[np.isin(found.held[:, 0], named)]
    links = found.links
    if len(links) > MOST_LINKS:
        ends = np.stack([found.src[keep], found.dst[keep]], axis=1)
        links = np.unique(ends, axis=0)
    return replace(
        found,
        **{name: getattr(found, name)[keep] for name in ("step", "src", "dst")},
        **({name: getattr(found, name)[keep] for name in ("begin", "end")} if len(found.begin) else {}),
        item=np.where(used < 0, -1, place[used])[item.reshape(-1)],
        items=[found.items[number] for number in named.tolist()],
        held=np.stack([place[held[:, 0]], held[:, 1]], axis=1),
        links=links,
        whole=whole,
    )


def as_data(found: Frames) -> dict[str, Any]:
    """Frames as plain data for the page's script, a sample of at most ``MOST_MOVES`` moves, in whole steps."""
    found = sampled(found, MOST_MOVES)
    steps = int(found.step.max(initial=0))
    kept = int((np.cumsum(np.bincount(found.step, minlength=1)[1:]) <= MOST_MOVES).sum())
    keep = found.step <= kept
    low = found.positions.min(axis=0)
    span = max(float((found.positions.max(axis=0) - low).max()), 1e-9)
    places = [[round(float(x), 4), round(1 - float(y), 4)] for x, y in (found.positions - low) / span]
    sized = any(readable(text) != text for text in found.items)
    moves = _by_step(found.step[keep], kept, (found.src[keep], found.dst[keep], found.item[keep]))
    timed = len(found.begin) > 0
    spans = _by_step(found.step[keep], kept, (found.begin[keep], found.end[keep])) if timed else []
    return {
        "places": places,
        "names": list(found.names),
        "links": found.links.tolist(),
        "moves": moves,
        "items": [readable(text) for text in found.items],
        "groups": found.groups.tolist(),
        "exact": ["" if "e+" in text else text for text in found.items] if sized else [],
        "held": found.held.tolist(),
        "titles": [readable(text) for text in found.titles],
        "steps": steps,
        "sample": f"{keep.sum():,} of {found.whole:,}" if found.whole > len(found.step) else "",
        "moments": _digits(found.moments[:kept]),
        "spans": spans,
        "boxes": [found.boxes[found.boxes[:, 0] == box, 1].tolist() for box in np.unique(found.boxes[:, 0])],
        "aspect": min(1.0, max(0.25, max(y for _, y in places) - min(y for _, y in places))),
    }


def _by_step(step: IntArray, kept: int, columns: Sequence[FloatArray | IntArray]) -> list[list[list[float]]]:
    """The rows of each step; seconds with seven digits."""
    rows: list[list[list[float]]] = [[] for _ in range(kept)]
    plain = [_digits(column) if column.dtype.kind == "f" else column.tolist() for column in columns]
    for number, *row in zip(step.tolist(), *plain, strict=True):
        rows[number - 1].append(row)
    return rows


def _digits(values: FloatArray | IntArray) -> list[float]:
    """Seven digits of each: more than a picture shows."""
    return [float(f"{value:.7g}") for value in values.tolist()]


def readable(text: str) -> str:
    """A text of frames with its sizes as a person reads them: 8388608 bytes as 8.00 MiB."""
    return _BYTES.sub(lambda m: " of ".join(shown(float(part), "bytes") for part in m.groups() if part), text)
