"""What ``ready`` and ``late`` of ``synth make fabric`` mean: a moment for all ranks, a table, or the late ones."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from synth.errors import Fault, InputError, abridged
from synth.network.links_table import MOST_NODES
from synth.text import amounts
from synth.text.csv import typed_rows
from synth.text.input_file import InputFile
from synth_models.fabric.problem.node_words import nodes_meant
from synth_models.fabric.problem.place_faults import Places
from synth_models.fabric.problem.ready import MOST_READY

T = TypeVar("T")

Rows = list[list[float]]


def moment(text: str) -> float:
    """Seconds from 0 to a day. Raises ``ValueError``."""
    found = amounts.real(text.strip(), "time")
    if not 0 <= found <= MOST_READY:
        raise ValueError(f"must be 0 to {MOST_READY:.0f} s (a day)")
    return found


def number_or_file(value: Any) -> Any:
    """A moment for all ranks, or the file of a table."""
    if isinstance(value, str) and (value.endswith(".csv") or "/" in value):
        return InputFile(value)
    if isinstance(value, bool):
        raise ValueError("must be a time or the path of a file")
    if isinstance(value, str) and re.match(r"\s*[-+.\d]", value) is None:
        raise ValueError("must be a time such as 300us, or a CSV file with the columns rank,ready")
    return moment(str(value)) if isinstance(value, (int, float, str)) else value


def ready_rows(file: InputFile, places: Places | None = None) -> tuple[Rows, list[int]]:
    """Rows (rank, seconds) of a CSV file ``rank,ready``, and the line of each. Raises :class:`InputError`."""

    seen: set[int] = set()

    def rank(text: str) -> int:
        try:
            found = nodes_meant(text.strip(), "rank", None if places is None else places.names)
        except InputError as error:
            raise ValueError("; ".join(fault.message for fault in error.faults)) from None
        if len(found) != 1 and places is not None:
            raise ValueError("must be one node, by number or name")
        words = None if places is None else places.fault(found[0])
        if words:
            raise ValueError(words)
        if found and found[0] in seen:
            raise ValueError("stands twice")
        seen.update(found)
        return (found or [0])[0]

    rows = typed_rows(file, {"rank": rank, "ready": moment}, ("rank", "ready"), "row", line_key="line", most=MOST_NODES)
    return [[row["rank"], row["ready"]] for row in rows], [row["line"] for row in rows]


def whoever(text: str | None) -> float | None:
    """How late one rank is, whoever it is: ``any:300us`` in seconds; None for what says who. Raises ``ValueError``."""
    word, colon, when = (text or "").strip().partition(":")
    return moment(when) if word.strip() == "any" and colon and "," not in when else None


def late_key(text: str, places: Places | None = None) -> None:
    """Raises :class:`InputError` for a key ``late`` that is neither ``any:TIME`` nor RANK:TIME."""
    try:
        if whoever(text) is None:
            late_rows(text, places)
    except ValueError as error:
        raise InputError([Fault("late", str(error), text, True)]) from None


def late_cell(text: str, places: Places | None) -> Rows:
    """The same in a cell of a table. Raises ``ValueError``."""
    try:
        return late_rows(text, places)
    except InputError as error:
        raise ValueError("; ".join(fault.message for fault in error.faults)) from None


def late_rows(text: str, places: Places | None = None) -> Rows:
    """``3:300us,8-15:1ms`` as rows (rank, seconds). Raises :class:`InputError` naming all that is wrong."""
    faults: list[Fault] = []
    rows: dict[int, float] = {}
    for part in map(str.strip, text.split(",")):
        ranks, when = _told(faults, part, _halves, part, places) or (None, None)
        if ranks is None or when is None:
            continue
        seconds, found = _told(faults, part, moment, when), _told(faults, part, _meant, ranks, places) or []
        if twice := [rank for rank in found if rank in rows]:
            faults.append(Fault("late", f"names rank {twice[0]} twice, not {abridged(part)}", part, True))
        rows |= dict.fromkeys(found, seconds or 0.0)
        if len(rows) > MOST_NODES:
            faults.append(Fault("late", f"names more than {MOST_NODES:,} ranks", part, True))
            break
    if faults:
        raise InputError(faults)
    return [[rank, seconds] for rank, seconds in rows.items()]


def _told(faults: list[Fault], part: str, read: Callable[..., T], *given: Any) -> T | None:
    """What ``read`` makes of it; None where it is wrong, and ``faults`` get why."""
    try:
        return read(*given)
    except InputError as error:
        faults += error.faults
    except ValueError as error:
        faults.append(Fault("late", f"{error}, not {abridged(part)}", part, True))
    return None


def _halves(part: str, places: Places | None) -> tuple[str, str]:
    """The ranks and the time of one RANK:TIME, as texts. Raises ``ValueError``."""
    ranks, colon, when = part.rpartition(":")
    if not colon or not ranks:
        raise ValueError("must be RANK:TIME such as 3:300us or 8-15:1ms")
    if ranks.strip() == "any" and "any" not in ((places and places.names) or ()):
        raise ValueError("any stands alone, as a key: one rank is late, whoever it is")
    return ranks, when


def _meant(ranks: str, places: Places | None) -> list[int]:
    """Ranks by number or name. Raises ``ValueError`` and :class:`InputError`."""
    found = nodes_meant(ranks, "late", None if places is None else places.names)
    if places is not None and len(found) <= MOST_NODES:
        places.checked(found)
    return found


def put_together(keys: Any, places: Places | None, members: Sequence[int], raw: dict[str, Any]) -> list[int]:
    """Put ``ready`` or ``scenarios`` of the instance into ``raw``; the line of each row that comes from a file. Raises
    :class:`InputError`."""
    late_s = whoever(keys.late)
    if late_s is not None:
        raw["scenarios"] = [[[rank, late_s]] for rank in members]
        raw |= {} if keys.ready is None else {"ready": [[rank, 0.0] for rank in members]}
        return []
    lines: list[int] = []
    rows: Rows = []
    if isinstance(keys.ready, InputFile):
        rows, lines = ready_rows(keys.ready, places)
    elif keys.ready is not None:
        rows = [[rank, keys.ready] for rank in members]
    late = [] if keys.late is None else late_rows(keys.late, places)
    own = {rank for rank, _ in late}
    kept = [i for i, (rank, _) in enumerate(rows) if rank not in own]
    raw["ready"] = [rows[i] for i in kept] + late
    return [lines[i] for i in kept] if lines else []


def named(fault: Fault, keys: Any, lines: Sequence[int]) -> Fault:
    """A fault of the instance's ``ready`` as one of the key or of the line that its row comes from."""
    if fault.path == "scenarios":
        return replace(fault, path="late")
    found = re.fullmatch(r"ready\[(?P<row>\d+)\](?:\[(?P<column>[01])\])?", fault.path)
    if found is None:
        return fault
    row, column = int(found["row"]), found["column"]
    if row >= len(lines):
        return replace(fault, path="late" if keys.late is not None else "ready")
    where = f"{keys.ready}, line {lines[row]}"
    return replace(fault, path=where + ("" if column is None else f", {('rank', 'ready')[int(column)]}"))
