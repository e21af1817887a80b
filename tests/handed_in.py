"""Published records as somebody else would hand them in: the instance in a file, the schedule as flat tables."""

from __future__ import annotations

from pathlib import Path

import synth
from synth.family import get_family
from synth.library.submission import Sender
from synth.method import load
from synth.records import record as records
from synth.records.record import Record
from synth.text.input_file import InputFile

ROOT = Path(__file__).resolve().parents[1]
PUBLISHED = ROOT / "results" / "published"
JANE = Sender("Jane Doe", "10.1145/3651890.3672249")


def published(case: str) -> Record:
    return records.read(PUBLISHED / f"{case}.json")


def in_a_file(record: Record, folder: Path) -> synth.Instance:
    """The record's instance as a file in a folder far from everything."""
    text = record.data.get("instance_text") or (ROOT / record["instance_file"]).read_text()
    path = folder / "instance.json"
    path.write_text(text)
    return synth.read(path)


def tables(record: Record, folder: Path) -> list[InputFile]:
    """What ``synth show --csv``, and with ``--flows``, prints."""
    family = get_family(record["family"])
    targets = [family.table, *(family.capabilities[name] for name in ("flow_table",) if family.can(name))]
    files = []
    for number, target in enumerate(targets):
        path = folder / f"table{number}.csv"
        load(target)(record.find_instance(), record.solution()).to_csv(path, index=False)
        files.append(InputFile(path))
    return files
