"""What ``synth.torch`` runs: rounds of every size range, and their table."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path

import numpy as np

from synth.errors import InputError
from synth.exchange.record_export import transfers_of
from synth.exchange.rounds import Entry, Rounds, Table, in_rounds, joined, write, write_table
from synth.tuning.rows import Candidate, Row
from synth.tuning.runs import whole
from synth.tuning.table import ranges

FILE = Path(__file__).with_name("torch_costs.toml")


def write_rounds(rows: Sequence[Row], folder: Path, machine: str) -> tuple[list[Path], list[str]]:
    """Write the rounds of every row that has a schedule, the quickest with its calls, and the table; the
    files, and a sentence for each row that is left out or has many rounds. Raises :class:`InputError` where there is
    none, and ``OSError``."""
    entries, files, notes = [], list[Path](), []
    found = [row for row in rows if row.best is not None]
    for collective, some in groupby(found, key=lambda row: row.collective):
        for one in ranges(list(some)):
            made = _first(one.rows[0])
            if made is None:
                notes.append(f"{collective} {one.rows[0].instance_bytes:,} bytes: no schedule can be put in rounds")
                continue
            best, rounds = made
            path = folder / f"{collective}-{one.least_bytes}-{one.most_bytes}.rounds.json"
            write(rounds, path)
            files.append(path)
            sizes = one.least_bytes, one.most_bytes
            entries.append(Entry(collective, rounds.ranks, *sizes, path.name, best.method))
            notes.append(f"{path.name}: {rounds.rounds} rounds, {len(rounds.round)} messages, by {best.method}")
    if not entries:
        raise InputError("no schedule can be put in rounds for synth.torch")
    return [*files, write_table(Table(folder, machine, tuple(entries)))], notes


def _first(row: Row) -> tuple[Candidate, Rounds] | None:
    """The candidate that can be put in rounds and takes the least with its calls, None where none can."""
    assert row.best is not None
    found = []
    for one in row.offered or [row.best]:
        assert one.record is not None
        try:
            rounds = joined(in_rounds(transfers_of(whole(one.record))))
        except InputError:
            continue
        found.append((one.seconds + calls_s(rounds), one, rounds))
    return min(found, key=lambda each: each[0])[1:] if found else None


def calls_s(rounds: Rounds) -> float:
    """What the rounds and messages of the busiest rank cost beside the schedule, in seconds."""
    costs = tomllib.loads(FILE.read_text(encoding="utf-8"))
    messages = np.unique(np.stack([rounds.src, rounds.dst, rounds.round]), axis=1)
    sends = np.bincount(messages[0], minlength=1)
    return float(costs["round"] * rounds.rounds + costs["message"] * sends.max())
