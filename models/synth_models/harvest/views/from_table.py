"""A schedule from its two flat tables, as ``synth show --csv`` prints them, without and with ``--flows``."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from synth.arrays import IntArray
from synth.errors import Fault, InputError
from synth.text.csv import typed_rows, whole_cell
from synth.text.input_file import InputFile
from synth.text.untrusted import MOST
from synth_models.harvest.instance import HarvestInstance
from synth_models.harvest.solution import Schedule

LINKS = ("step", "src", "dst", "links")
FLOWS = ("step", "pair_src", "pair_dst", "src", "dst", "hops", "shares")
Flow = tuple[int, int, int, int, float]  # pair, hop, src, dst, share


def from_table(instance: HarvestInstance, file: InputFile, flows: InputFile) -> Schedule:
    """Return the schedule of a table of topologies and a table of flows. Raises :class:`InputError` with every faulty
    line; what the flows do is the check's."""
    topologies, of_step = _topologies(instance, file)
    by_step = _flows(instance, flows)
    rows = [row for step in range(len(instance.steps)) for row in by_step[step]]
    starts = np.cumsum([0, *(len(by_step[step]) for step in range(len(instance.steps)))]).astype(np.int64)
    pair, hop, src, dst = (np.array([row[k] for row in rows], dtype=np.int64) for k in range(4))
    share = np.array([row[-1] for row in rows], dtype=np.float64)
    return Schedule(topologies, of_step, starts, pair, hop, src, dst, share)


def _topologies(instance: HarvestInstance, file: InputFile) -> tuple[tuple[IntArray, ...], IntArray]:
    """The different topologies, and which each step has."""
    steps, gpu = len(instance.steps), whole_cell(instance.gpus - 1)
    readers = dict(zip(LINKS, (whole_cell(steps - 1), gpu, gpu, whole_cell(instance.ports, 1)), strict=True))
    links: dict[int, list[tuple[int, int, int]]] = defaultdict(list)
    for row in typed_rows(file, readers, LINKS, "link"):
        links[row["step"]].append((row["src"], row["dst"], row["links"]))
    if len(links) < steps:
        missing = next(step for step in range(steps) if step not in links)
        raise InputError(f"step {missing} has no links: the instance has steps 0..{steps - 1}", str(file))
    known: dict[tuple[tuple[int, int, int], ...], int] = {}
    of_step = [known.setdefault(tuple(sorted(links[step])), len(known)) for step in range(steps)]
    return tuple(np.array(rows, dtype=np.int64) for rows in known), np.array(of_step, dtype=np.int64)


def _flows(instance: HarvestInstance, file: InputFile) -> dict[int, list[Flow]]:
    """The rows of every step."""
    place = [{(u, v): i for i, (u, v) in enumerate(pairs.tolist())} for pairs in instance.pairs]

    def wrong(row: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
        if len(row.get("hops", ())) != len(row.get("shares", ())):
            yield "shares", "must be as many as hops"
        known = all(key in row for key in ("step", "pair_src", "pair_dst"))
        if known and (row["pair_src"], row["pair_dst"]) not in place[row["step"]]:
            yield "", f"step {row['step']} has no pair {row['pair_src']} to {row['pair_dst']}"

    gpu = whole_cell(instance.gpus - 1)
    cells = (whole_cell(len(instance.steps) - 1), gpu, gpu, gpu, gpu, _hops, _shares)
    readers: dict[str, Callable[[str], Any]] = {**dict(zip(FLOWS, cells, strict=True)), "flow": str}
    found: dict[int, list[Flow]] = defaultdict(list)
    for row in typed_rows(file, readers, FLOWS, "flow", wrong):
        number = place[row["step"]][row["pair_src"], row["pair_dst"]]
        ends = row["src"], row["dst"]
        parts = zip(row["hops"], row["shares"], strict=True)
        found[row["step"]] += [(number, hop, *ends, share) for hop, share in parts]
    if missing := [step for step in range(len(instance.steps)) if step not in found]:
        raise InputError([Fault("step", f"no flows of step {missing[0]}")], str(file))
    return found


def _hops(text: str) -> list[int]:
    read = whole_cell(MOST - 1)
    return [read(word) for word in text.split()]


def _shares(text: str) -> list[float]:
    shares = [float(word) for word in text.split()]
    if not all(0 < share <= 2 for share in shares):
        raise ValueError("must be shares above 0 and at most 1")
    return shares
