"""Hand-ins: a schedule, or a bound with its certificate, that came from outside, checked and made a record.

A submitted record is of kind and method ``submitted``; its key ``submitted`` says who handed in which file. All else is
as in a record of ours: the value is the check's, a bound stands on its certificate.
"""

from __future__ import annotations

import hashlib
import re
import sys
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from synth import api
from synth.errors import Fault, InputError
from synth.family import get_family
from synth.instance import Instance, parse_json
from synth.method import Outcome
from synth.records import record as records
from synth.records.contents import DOI, FORMAT, MOST_NAME, Contents
from synth.records.contradictions import alarm_words, disproof_words, standing
from synth.records.optimality import exceeds, meets
from synth.records.record import Record
from synth.text.input_file import InputFile
from synth.text.quantities import shown
from synth.text.untrusted import is_finite, not_finite
from synth.text.visible import visible

MOST_SLUG = 40  # characters of a name in the record's address


class RefusedError(Exception):
    """What was handed in is not what it says; the message is the first fault, with its place."""


@dataclass(frozen=True)
class Sender:
    """Who hands in: a name, and where it is published."""

    by: str
    doi: str | None = None

    def __post_init__(self) -> None:
        """Raise :class:`InputError` for a name or DOI that no record takes."""
        faults = []
        if not (0 < len(self.by) <= MOST_NAME and self.by.isprintable() and self.by.strip() == self.by):
            faults.append(Fault("--by", f"must be a name of 1 to {MOST_NAME} printable characters", self.by, True))
        if self.doi is not None and not re.fullmatch(DOI, self.doi):
            faults.append(Fault("--doi", "must be a DOI such as 10.1145/3651890.3672249", self.doi, True))
        if faults:
            raise InputError(faults)

    @property
    def slug(self) -> str:
        """The name in plain small letters, for addresses."""
        plain = unicodedata.normalize("NFKD", self.by).encode("ascii", "ignore").decode().lower()
        return re.sub(r"[^a-z0-9]+", "-", plain).strip("-")[:MOST_SLUG] or "somebody"

    def statement(self, file: str, digest: str, program: str | None = None) -> dict[str, Any]:
        """The record's key ``submitted``."""
        said = {"by": self.by, "doi": self.doi, "file": file, "file_sha256": digest, "program": program}
        return {key: value for key, value in said.items() if value is not None}


def schedule(instance: Instance, files: Iterable[InputFile], sender: Sender) -> Record:
    """The record of a flat table (of two where the family has flows). Raises :class:`InputError` with the faulty lines
    of a table that cannot be read, and :class:`RefusedError`."""
    family, given = get_family(instance.family), list(files)
    wanted = 2 if family.can("flow_table") else 1
    if not family.can("from_table"):
        raise InputError(f"family {family.name} reads no tables")
    if len(given) != wanted:
        words = "needs both tables: --schedule (show --csv) and --flows (show --csv --flows)"
        raise InputError(f"family {family.name} {words if wanted == 2 else 'has one table: leave --flows out'}")
    solution = family.capability("from_table")(instance, *given)
    digest = hashlib.sha256(b"".join(file.data for file in given)).hexdigest()
    return of_solution(instance, solution, sender, str(given[0]), digest)


def of_solution(
    instance: Instance, solution: Any, sender: Sender, file: str, digest: str, program: str | None = None
) -> Record:
    """The record of a solution that was read from a file. Raises :class:`RefusedError`."""
    try:
        record = api.hand_in(
            instance,
            Outcome("finished", solution),
            sender.statement(_plain_name(file), digest, program),
            f"{sender.slug}-{digest[:8]}",
        )
    except Exception as error:  # what a file says may break anything
        raise RefusedError(f"{file}: the schedule cannot be replayed: {error!r}") from error
    return _demand_sound(record, file)


def algorithm(instance: Instance, path: Path, sender: Sender) -> Record:
    """The record of an algorithm of MSCCL (XML) or a plan of MSCCL++ on an instance. Raises :class:`InputError` and
    :class:`RefusedError`."""
    from synth.exchange import imported_algorithm
    from synth.exchange.file_check import check_file

    if imported_algorithm.METHOD not in get_family(instance.family).methods:
        raise InputError(f"family {instance.family} takes no algorithms of executors")
    found = check_file(path)
    if found.faults:
        raise RefusedError(f"{path}: {found.faults[0]}")
    if (done := imported_algorithm.collective_of(path)) != getattr(instance, "collective", None):
        raise RefusedError(f"{path}: does {done}, the instance asks for {getattr(instance, 'collective', None)}")
    made = imported_algorithm.run(path, instance)
    if made.value is None:
        raise RefusedError(f"{path}: no schedule of {instance.name}: {made['message']}")
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    return of_solution(instance, made.solution(), sender, str(path), digest)


def bound(instance: Instance, path: Path, sender: Sender) -> Record:
    """The record of a bound: of a JSON file with ``bound`` and ``certificate``, or of a record that has both. Raises
    :class:`InputError` and :class:`RefusedError`."""
    stated, certificate, digest = _certificate(instance, path)
    try:
        record = api.hand_in(
            instance,
            Outcome("finished", None, float(stated), _words(instance, certificate), certificate),
            sender.statement(_plain_name(str(path)), digest),
            f"{sender.slug}-{digest[:8]}",
        )
    except Exception as error:
        raise RefusedError(f"{path}: the bound cannot be verified: {error!r}") from error
    return _demand_sound(record, str(path))


def _words(instance: Instance, certificate: Mapping[str, Any]) -> str | None:
    """What the certificate says, in the family's words; None where it has none, or the certificate is broken."""
    family = get_family(instance.family)
    if not family.can("bound_words"):
        return None
    try:
        words: str | None = family.capability("bound_words")(instance, certificate)
    except Exception:  # the check says what is wrong with it
        return None
    return words


def _certificate(instance: Instance, path: Path) -> tuple[float, Mapping[str, Any], str]:
    """The bound, its certificate, and the hash of the file. Raises :class:`InputError`."""
    if not path.is_file():
        held = records.read(path)
        digest = hashlib.sha256(repr((held["instance_sha256"], held.stated_bound)).encode()).hexdigest()
        raw: Any = {"instance_sha256": held["instance_sha256"], "bound": held["bound"], "certificate": held.certificate}
    else:
        data = InputFile(path).data
        raw, digest = parse_json(data, str(path)), hashlib.sha256(data).hexdigest()
        if isinstance(raw, dict) and raw.get("format") == FORMAT:
            held = records.read(path)
            raw = {**held.data, "certificate": held.certificate}
    if not isinstance(raw, dict):
        raise InputError("must be one JSON object with bound and certificate", str(path))
    faults = [Fault(place, "must be a finite number") for place in not_finite(raw)]
    if not is_finite(raw.get("bound")) or abs(raw["bound"]) > sys.float_info.max:
        faults.append(Fault("bound", "must be a finite number", raw.get("bound"), "bound" in raw))
    if not isinstance(raw.get("certificate"), Mapping) or not raw["certificate"]:
        faults.append(Fault("certificate", "must be an object: models/formats says what each kind holds"))
    if raw.get("instance_sha256", instance.sha256) != instance.sha256:
        words = f"is of another instance than {instance.name}"
        faults.append(Fault("instance_sha256", words, raw["instance_sha256"], True))
    if faults:
        raise InputError(faults, str(path))
    return raw["bound"], {key: _as_array(value) for key, value in raw["certificate"].items()}, digest


def _as_array(value: Any) -> Any:
    """A long list of numbers as an array, so that it is stored as one."""
    if not isinstance(value, list) or len(value) == 0:
        return value
    try:
        array = np.asarray(value)
    except (ValueError, OverflowError):
        return value
    return array if array.dtype.kind in "if" and array.size > records.INLINE_LIMIT else value


def _plain_name(file: str) -> str:
    """A file's name without its folders, fit for a record."""
    return visible(Path(file).name)[:MOST_NAME]


def _demand_sound(record: Record, file: str) -> Record:
    """The record, if the check found no fault and it can be stored. Raises :class:`RefusedError`."""
    faults = record["verified"]["faults"]
    if faults:
        more = f" (and {len(faults) - 1} more)" if len(faults) > 1 else ""
        raise RefusedError(f"{file}: {faults[0]}{more}")
    Contents.model_validate(records.plain_data(record, {}))
    return record


def compared(record: Record, others: Iterable[Record], where: str = "known") -> list[str]:
    """What the record is beside others of its instance, which are ``where``, in words. Raises :class:`RefusedError`
    where it contradicts what a certificate or a replayed schedule proves."""
    others = [one for one in others if one["instance_sha256"] == record["instance_sha256"] and one.ok]
    judged = standing([*others, record])
    for value, bounded in judged.alarms:
        if record in (value, bounded):
            raise RefusedError(alarm_words(value, bounded))
    said = [disproof_words(bounded, value) for bounded, value in judged.disproved if value is record]
    bounds = [one for one in others if not exceeds(one.bound, judged.bound)]
    return [*_value_beside(record, others, where), *_bound_beside(record, bounds, where), *said]


def _value_beside(record: Record, others: list[Record], where: str) -> list[str]:
    if record.value is None:
        return []
    values = [one for one in others if one.value is not None and one.evidence == "replayed"]
    best = min(values, key=lambda one: one.value or 0.0, default=None)
    unit = record["objective"]["unit"]
    return [_beside(record.value, best, None if best is None else best.value, unit, f"value {where}", lower=True)]


def _bound_beside(record: Record, others: list[Record], where: str) -> list[str]:
    if record.bound is None:
        return []
    best = max((one for one in others if one.bound is not None), key=lambda one: one.bound or 0.0, default=None)
    unit = record["objective"]["unit"]
    return [_beside(record.bound, best, None if best is None else best.bound, unit, f"bound {where}", lower=False)]


def _beside(mine: float, best: Record | None, known: float | None, unit: str, what: str, lower: bool) -> str:
    if best is None or known is None:
        return f"the first {what} of this instance: {shown(mine, unit)}"
    whose = f"{shown(known, unit)} of {best.whose if lower else best.bounded_by}"
    if meets(mine, known) or meets(known, mine):
        return f"equals the best {what}, {whose}"
    if (mine < known) == lower:
        return f"BETTER than the best {what}, {whose}: {shown(mine, unit)}"
    return f"worse than the best {what}, {whose}: {shown(mine, unit)}"
