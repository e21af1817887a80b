"""What is to be run, from a file of any kind that holds a schedule or an algorithm."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from synth.errors import Fault, InputError, one_of
from synth.exchange import transfers_csv
from synth.ranks.from_transfers import pieces_of, program_of
from synth.ranks.program import WORD, Program
from synth.ranks.words import Names, TransferNames
from synth.schedule.collective import NAMES, ROOTED
from synth.text.quantities import named, shown


@dataclass(frozen=True)
class Stated:
    """What a file does not say of itself and the command does: the ``collective`` and the ``root``."""

    collective: str | None = None
    root: int | None = None

    def demand_known(self) -> None:
        """Raises :class:`InputError` for a collective that there is not, and for a root of one that has none."""
        if self.collective is not None and self.collective not in NAMES:
            raise InputError([Fault("--collective", one_of(self.collective, NAMES), self.collective, True)])
        if self.root is not None and self.collective is not None and self.collective not in ROOTED:
            raise InputError([Fault("--root", f"{self.collective} has no root", self.root, True)])


@dataclass(frozen=True)
class Task:
    """A program, the names of what is in it, and how long it takes by its model (``model_s`` seconds, None where it has
    no clock; ``model`` in words). ``whole``: bytes of the collective as the file has it, ``size``: as it is run."""

    program: Program
    names: Names
    whole: int
    size: int
    model_s: float | None = None
    model: str = ""


def read(path: Path, stated: Stated, limit: int | None, default_limit: int) -> Task:
    """The file's schedule as a task of at most ``limit`` bytes (``default_limit`` where none is asked for): pieces are
    scaled down alike, to a word each at least. Raises :class:`InputError`."""
    stated.demand_known()
    if path.suffix.lower() == ".csv":
        if stated.collective is None:
            raise InputError("a table does not say of which collective it is: name it with --collective", str(path))
        transfers, pieces = transfers_csv.read(path, stated.collective, stated.root)
        names = TransferNames(transfers, pieces)
        return _of_transfers(names, str(path), limit, default_limit, float(transfers.end_s.max()))
    return _of_record(path, stated, limit, default_limit)


def _of_record(path: Path, stated: Stated, limit: int | None, default_limit: int) -> Task:
    from synth.exchange.record_export import moves_of
    from synth.records import record as records

    if stated.collective is not None or stated.root is not None:
        words = "--collective and --root go with a table or an algorithm; a record says this itself"
        raise InputError(words, str(path))
    record = records.read(path)
    value, unit = record.value, record["objective"]["unit"]
    names, model_s = TransferNames(moves_of(record)), value if unit == "s" else None
    task = _of_transfers(names, str(path), limit, default_limit, model_s)
    return task if unit == "s" or value is None else Task(**{**vars(task), "model": named(value, unit)})


def _of_transfers(
    names: TransferNames, source: str, limit: int | None, default_limit: int, model_s: float | None
) -> Task:
    t = names.transfers
    shares = t.parts if t.demand is not None else 1 if t.parts == 1 else t.ranks
    whole = int(t.sizes.sum()) * shares // t.parts
    scale = min(1.0, (default_limit if limit is None else limit) / whole)
    try:
        least = max(1, len(pieces_of(t).part) * shares // t.parts) * WORD
        if limit is not None and least > limit:
            words = f"{limit} bytes are too few for {least // WORD:,} pieces of at least {WORD} bytes: {least:,}"
            raise InputError([Fault("--bytes", words)])
        program = program_of(t, scale)
    except InputError as error:
        raise InputError(error.faults, source) from None
    model = "" if model_s is None else shown(model_s, "s")
    return Task(program, names, whole, min(whole, round(whole * scale)), model_s, model)
