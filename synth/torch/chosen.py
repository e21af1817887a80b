"""Which plan a call runs: the folders' tables, read once, and the digest by which ranks tell whether theirs agree."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

from synth.errors import InputError
from synth.exchange.rounds import Entry, Rounds, Table, read, read_table
from synth.torch.program import RankProgram, program_of


class Plans:
    """The plans of some folders."""

    def __init__(self, folders: Sequence[Path], machine: str | None = None) -> None:
        """Raises :class:`InputError` for folders that hold no table, or one of another ``machine``."""
        self.tables = [read_table(folder) for folder in folders]
        for table in self.tables:
            if machine is not None and table.machine != machine:
                raise InputError(f"is tuned for {table.machine!r}, not for {machine!r}", str(table.folder))
        self._read: dict[tuple[Path, str], Rounds] = {}
        self._programs: dict[tuple[Path, str, int], RankProgram] = {}

    def demand_ranks(self, ranks: int) -> None:
        """Raises :class:`InputError` where no folder serves so many ranks."""
        served = sorted({number for table in self.tables for number in table.ranks()})
        if self.tables and ranks not in served:
            folders = ", ".join(str(table.folder) for table in self.tables)
            raise InputError(f"is for {', '.join(map(str, served))} ranks, this job has {ranks}", folders)

    def find(self, collective: str, ranks: int, size: int) -> tuple[Table, Entry] | None:
        """The entry for a call, None where there is none."""
        for table in self.tables:
            if (entry := table.find(collective, ranks, size)) is not None:
                return table, entry
        return None

    def plan(self, table: Table, entry: Entry, rank: int) -> tuple[Rounds, RankProgram]:
        """The plan of an entry and a rank's part. Raises :class:`InputError` where the file is not what the table says
        or is not right."""
        key = table.folder, entry.file
        if key not in self._read:
            rounds = read(table.folder / entry.file)
            if (rounds.collective, rounds.ranks) != (entry.collective, entry.ranks):
                words = f"is {rounds.collective} among {rounds.ranks}, the table says {entry.collective}, {entry.ranks}"
                raise InputError(words, str(table.folder / entry.file))
            self._read[key] = rounds
        if (*key, rank) not in self._programs:
            self._programs[*key, rank] = program_of(self._read[key], rank)
        return self._read[key], self._programs[*key, rank]

    def digest(self) -> str:
        """Of all tables and files, in order."""
        found = hashlib.sha256()
        for table in self.tables:
            for entry in table.entries:
                try:
                    data = (table.folder / entry.file).read_bytes()
                except OSError as error:
                    raise InputError(f"cannot be read: {error.strerror}", str(table.folder / entry.file)) from None
                found.update(repr((entry, len(data))).encode() + data)
        return found.hexdigest()
