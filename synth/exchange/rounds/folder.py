"""The table of a folder: which file of rounds serves which collective, number of ranks and size."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path, PurePath
from typing import Any

from synth.errors import InputError
from synth.exchange.rounds.file import json_of, text_of
from synth.schedule.collective import NAMES
from synth.text import untrusted
from synth.text.files import dumps, write_atomically
from synth.text.input_file import InputFile

FORMAT = "synth-torch/1"
FILE = "torch.json"
MOST_BYTES = 2**62


@dataclass(frozen=True)
class Entry:
    """Rounds for calls of ``least`` to ``most`` bytes, counted as nccl-tests do: an allgather, reduce_scatter, gather,
    scatter or alltoall by all of a rank's larger buffer. ``method``: who made them."""

    collective: str
    ranks: int
    least: int
    most: int
    file: str
    method: str = ""


@dataclass(frozen=True)
class Table:
    """What a ``folder`` holds for a ``machine``, as its command named it."""

    folder: Path
    machine: str
    entries: tuple[Entry, ...]

    def ranks(self) -> list[int]:
        """The numbers of ranks that are served."""
        return sorted({entry.ranks for entry in self.entries})

    def find(self, collective: str, ranks: int, size: int) -> Entry | None:
        """The entry for a call of so many bytes, None where there is none."""
        for entry in self.entries:
            if (entry.collective, entry.ranks) == (collective, ranks) and entry.least <= size <= entry.most:
                return entry
        return None


def write_table(table: Table) -> Path:
    """Write the table beside its files. Raises ``OSError``."""
    data = {"format": FORMAT, "machine": table.machine, "table": [asdict(entry) for entry in table.entries]}
    path = table.folder / FILE
    write_atomically(path, (dumps(data) + "\n").encode())
    return path


def read_table(folder: Path) -> Table:
    """The table of a folder; its files are read when they are needed. Raises :class:`InputError`."""
    if not folder.is_dir():
        raise InputError("no such folder", str(folder))
    file = InputFile(folder / FILE)
    if not file.path.is_file():
        raise InputError(f"holds no {FILE}: synth tune … --for torch -o FOLDER writes it", str(folder))
    data = json_of(file, FORMAT)
    try:
        rows = untrusted.objects(data, "table")
        if not rows:
            raise ValueError("table has no rows")
        entries = tuple(_entry(row) for row in rows)
        machine = text_of(data, "machine")
    except ValueError as error:
        raise InputError(str(error), str(file)) from None
    return Table(folder, machine, entries)


def _entry(row: Any) -> Entry:
    name = row.get("file")
    if not isinstance(name, str) or name in ("", ".", "..") or PurePath(name).name != name or "\0" in name:
        raise ValueError("file is not the name of a file of this folder")
    found = Entry(
        untrusted.choice(row, "collective", *NAMES), untrusted.whole(row, "ranks", 1, 2**16),
        untrusted.whole(row, "least", 0, MOST_BYTES), untrusted.whole(row, "most", 0, MOST_BYTES), name,
        text_of(row, "method"),
    )  # fmt: skip
    if found.least > found.most:
        raise ValueError(f"least is {found.least}, more than most, {found.most}")
    return found
