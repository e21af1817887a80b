"""Solve the library's instances again: no value, bound or certificate gets worse.

``python tests/benchmarks/stored_values.py OUT.csv [--under 10] [--sample 60] …`` solves each row by the method that its
record names, with that record's options, and its bound likewise. With ``--race`` a value that comes out worse is sought
by the family's default methods as well, as ``synth solve`` runs them. A line is printed for every row that is worse,
that lost its certificate or that is better; all go into ``OUT.csv``, whose rows another run does not repeat. Times are
processor times of this process and its children; compilation that is not cached yet is in them.

A row is held to the best of ``library.csv`` and ``library-history.csv``. Neither forgets: who makes the library again
from poorer records leaves the better number in the history.
"""

from __future__ import annotations

import argparse
import csv
import random
import resource
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import synth
from synth.errors import InputError
from synth.family import defaults_for, get_family
from synth.instance import Instance
from synth.library import best_known
from synth.library.best_known import Before, Row
from synth.options import RELATIVE_GAP
from synth.records import record as records
from synth.records.record import Record

SAME = 1e-9  # relative; what differs by less is rounding
LIBRARY = Path(__file__).resolve().parents[2] / best_known.DEFAULT
COLUMNS = (
    "sha256", "instance", "by", "stored_value", "value", "value_s", "raced_value", "raced_by", "raced_s",
    "stored_bound", "bound", "bound_s", "stored_grade", "grade", "verdict", "message",
)  # fmt: skip
WORSE = ("value", "bound", "certificate", "error")  # verdicts that make the run fail


class Pin(NamedTuple):
    """What a row is held to; ``None`` where nothing is known."""

    value: float | None
    bound: float | None
    grade: str

    def worse(self, value: float | None) -> bool:
        """Whether a value is worse, or lacking."""
        return self.value is not None and (value is None or value > self.value * (1 + SAME))

    def weaker(self, bound: float | None) -> bool:
        """Whether a bound is weaker, or lacking."""
        return self.bound is not None and (bound is None or bound < self.bound * (1 - SAME))

    def better(self, value: float | None) -> bool:
        """Whether a value is better, or the first."""
        return value is not None and (self.value is None or value < self.value * (1 - SAME))

    def stronger(self, bound: float | None) -> bool:
        """Whether a bound is stronger, or the first."""
        return bound is not None and (self.bound is None or bound > self.bound * (1 + SAME))


def pins(rows: Iterable[Row], before: Iterable[Before]) -> dict[str, Pin]:
    """By hash, the least value and the greatest bound that the library has or had. A bound above a value that was
    replayed since is none."""
    found = {row.sha256: Pin(_number(row.value), _number(row.bound), row.grade) for row in rows}
    for one in sorted(before, key=lambda one: one.what, reverse=True):  # values first
        held, number = found.get(one.sha256), float(one.number)
        if held is not None and one.what == "value" and held.better(number):
            found[one.sha256] = held._replace(value=number)
        elif held is not None and one.what == "bound" and held.stronger(number) and not held.worse(number):
            found[one.sha256] = held._replace(bound=number)
    return found


def verdict(pin: Pin, value: float | None, bound: float | None, grade: str) -> str:
    """``value``, ``bound`` or ``certificate`` for what is worse than the pin, several joined by ``+``; else ``better``
    or ``same``."""
    lost = {
        "value": pin.worse(value),
        "bound": pin.weaker(bound),
        "certificate": pin.grade == "certified" and grade != "certified",
    }
    if any(lost.values()):
        return "+".join(word for word, is_lost in lost.items() if is_lost)
    return "better" if pin.better(value) or pin.stronger(bound) else "same"


def again(
    row: Row, folder: Path, pin: Pin, keep: Path | None = None, race: bool = False, patience: float = 1.0
) -> dict[str, Any]:
    """Solve a row again, within its time limit times ``patience``: the cells of its line. What is better is written
    below ``keep``. Raises :class:`InputError` where the record, its instance or its options cannot be read."""
    line: dict[str, Any] = {"sha256": row.sha256, "instance": row.instance, "by": row.by}
    line |= {"stored_value": pin.value, "stored_bound": pin.bound, "stored_grade": pin.grade}
    instance = best_known.instance_of(row, folder)
    stored = records.read(folder / row.record)
    own, line["value_s"] = _timed(instance, stored, patience=patience)
    line |= {"value": _replayed(own), "message": own["message"]}
    best = own
    if race and pin.worse(line["value"]):
        others = [_timed(instance, stored, name, patience) for name in _others(instance)]
        best = min((own, *(made for made, _ in others)), key=lambda made: _replayed(made) or float("inf"))
        line |= {"raced_value": _replayed(best), "raced_by": best.whose, "raced_s": sum(spent for _, spent in others)}
    value = _replayed(best)
    if keep and pin.better(value):
        _keep(best, stored, keep / row.record)
    bound, grade = None, ""
    if row.bound:
        proven, line["bound_s"], before = own, 0.0, records.read(folder / row.bound_record)
        if row.bound_record != row.record:
            proven, line["bound_s"] = _timed(instance, before, patience=patience)
        bound, grade = (proven.bound, proven.grade or "") if proven.ok else (None, "")
        line |= {"bound": bound, "grade": grade}
        if keep and pin.stronger(bound):
            _keep(proven, before, keep / row.bound_record)
    return line | {"verdict": verdict(pin, value, bound, grade)}


def _others(instance: Instance) -> list[str]:
    """What ``synth solve`` runs by default, but bounds."""
    family = get_family(instance.family)
    return [name for name in defaults_for(family, instance) if family.methods[name].kind != "bound"]


def _timed(
    instance: Instance, stored: Record, method: str | None = None, patience: float = 1.0
) -> tuple[Record, float]:
    """A run with a record's options, or by another method with its own and the usual gap, and its processor time."""
    options = stored["options"]
    given = {} if method else {key: one for key, one in options["method"].items() if one is not None}
    limit, began = options["time_limit_s"], _processor_s()
    made = synth.solve(
        instance,
        method or stored["method"],
        solver=None if method else stored["solver"],
        time_limit=None if limit is None else limit * patience,
        gap=RELATIVE_GAP if method else options["relative_gap"],
        threads=options["threads"],
        seed=options["seed"],
        options=given,
    )
    return made, _processor_s() - began


def _replayed(made: Record) -> float | None:
    return made.value if made.ok and made.evidence == "replayed" else None


def _processor_s() -> float:
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


def _keep(made: Record, stored: Record, place: Path) -> None:
    """Write a record into the folder of results that the ``place`` of the stored one lies in, with its instance."""
    where = {key: stored.data[key] for key in ("instance_file", "instance_text") if key in stored.data}
    names = (made["family"], made["instance"], made["method"], made["solver"], made.question)
    records.write(replace(made, data={**made.data, **where}), records.record_path(place.parents[2], *names))


def _number(text: str) -> float | None:
    return float(text) if text else None


def chosen(rows: Sequence[Row], seconds: Mapping[str, float], given: argparse.Namespace) -> list[Row]:
    """Rows with a value, the quickest first: all that take less than ``--under``, of the others a sample."""
    known = [row for row in rows if row.family == given.family and row.value and row.by.startswith(given.only)]
    known.sort(key=lambda row: (seconds[row.sha256], row.sha256))
    quick = [row for row in known if seconds[row.sha256] < given.under]
    slow = known[len(quick) :]
    picked = set(random.Random(given.seed).sample([row.sha256 for row in slow], min(given.sample, len(slow))))
    part, parts = map(int, given.part.split("/"))
    return [*quick, *(row for row in slow if row.sha256 in picked)][part - 1 :: parts]


def _seconds(rows: Iterable[Row], folder: Path) -> dict[str, float]:
    """What the runs behind each row took, without start-up and the check."""
    places = {place for row in rows for place in (row.record, row.bound_record) if place}
    took = {
        place: one["seconds"]["build"] + one["seconds"]["solve"]
        for one in best_known.statements(folder)
        if one.path is not None and (place := one.path.relative_to(folder).as_posix()) in places
    }
    return {row.sha256: sum(took.get(place, 0.0) for place in {row.record, row.bound_record}) for row in rows}


def lines_of(file: Path) -> dict[str, dict[str, str]]:
    """The rows of an earlier run, by hash."""
    with suppress(FileNotFoundError), file.open(newline="") as stream:
        return {line["sha256"]: line for line in csv.DictReader(stream)}
    return {}


def spent(line: Mapping[str, str]) -> float:
    """Processor time of a row's own methods, without those that were asked because it was worse."""
    return float(line["value_s"] or 0) + float(line["bound_s"] or 0)


def report(done: Mapping[str, Mapping[str, str]], other: Mapping[str, Mapping[str, str]]) -> Iterator[str]:
    """What a run found; against another, for the rows that both have."""
    counts: dict[str, int] = {}
    for line in done.values():
        counts[line["verdict"]] = counts.get(line["verdict"], 0) + 1
    yield f"{len(done)} rows: " + ", ".join(f"{count} {word}" for word, count in sorted(counts.items()))
    yield f"processor time of their own methods: {sum(map(spent, done.values())):.1f} s"
    failed = {sha256 for lines in (done, other) for sha256, line in lines.items() if line["verdict"] == "error"}
    both = (done.keys() & other.keys()) - failed
    if both:
        here, there = (sum(spent(lines[sha256]) for sha256 in both) for lines in (done, other))
        yield f"of {len(both)} rows that both have: {here:.1f} s, there {there:.1f} s"


def _once_more(before: Mapping[str, str], given: argparse.Namespace) -> bool:
    """Whether a row that an earlier run solved is solved again."""
    worse = any(word in WORSE for word in before["verdict"].split("+"))
    return worse and (given.patience > 1 or bool(given.race and "value" in before["verdict"] and not before["raced_s"]))


def words(line: Mapping[str, Any]) -> str:
    """A row that is not the same, for a person."""
    found = f"{line['verdict']}: {line['instance']} ({line['by']}): "
    if line["verdict"] != "error":
        found += f"value {line['stored_value']} -> {line['value']}, bound {line['stored_bound']} -> {line.get('bound')}"
    if line.get("raced_value"):
        found += f", {line['raced_value']} by {line['raced_by']} of the default methods"
    return f"{found}; {line['message'] or ''}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run, print and return 1 if anything got worse."""
    asked = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    asked.add_argument("out", type=Path, help="CSV of a line a row; rows that it has are not solved again")
    asked.add_argument("--library", type=Path, default=LIBRARY)
    asked.add_argument("--family", default="fabric")
    asked.add_argument("--under", type=float, default=10.0, help="all rows whose records took less, in seconds")
    asked.add_argument("--sample", type=int, default=0, help="so many of the others, drawn by --seed")
    asked.add_argument("--seed", type=int, default=0)
    asked.add_argument("--only", default="", help="rows whose 'by' begins so")
    asked.add_argument("--part", default="1/1", help="K/N: every N-th row from the K-th on")
    asked.add_argument("--race", action="store_true", help="worse values also by all default methods")
    patience = "stored time limits times this, on a machine with other work; above 1 worse rows are solved again"
    asked.add_argument("--patience", type=float, default=1.0, help=patience)
    asked.add_argument("--against", type=Path, help="CSV of the same run with other code: compare processor times")
    asked.add_argument("--keep", type=Path, help="write better records below this folder")
    given = asked.parse_args(arguments)
    folder = given.library.resolve().parent
    rows = best_known.read(given.library)
    held = pins(rows, best_known.read_history(folder))
    done = lines_of(given.out)
    picked = chosen(rows, _seconds(rows, folder), given)
    with given.out.open("a", newline="") as stream:
        writer = csv.DictWriter(stream, COLUMNS, lineterminator="\n")
        if not done:
            writer.writeheader()
        for row in picked:
            before = done.get(row.sha256)
            if before and not _once_more(before, given):
                continue
            try:
                line = again(row, folder, held[row.sha256], given.keep, given.race, given.patience)
            except InputError as error:
                line = {
                    "verdict": "error",
                    "sha256": row.sha256,
                    "instance": row.instance,
                    "by": row.by,
                    "message": str(error),
                }
            writer.writerow(line)
            stream.flush()
            if line["verdict"] != "same":
                print(words(line), flush=True)
    mine = {row.sha256 for row in picked}
    done = {sha256: line for sha256, line in lines_of(given.out).items() if sha256 in mine}
    print(*report(done, lines_of(given.against) if given.against else {}), sep="\n")
    return int(any(word in WORSE for line in done.values() for word in line["verdict"].split("+")))


if __name__ == "__main__":
    sys.exit(main())
