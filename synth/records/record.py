"""Records: what one run left on disk, written atomically and readable for ever."""

from __future__ import annotations

import hashlib
import io
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from synth.errors import InputError
from synth.family import Family, get_family
from synth.instance import Instance, from_bytes, read_bytes, read_json
from synth.method import load
from synth.options import asked
from synth.records import lock, packed
from synth.records.contents import demand_contents
from synth.records.optimality import exceeds, gap, is_refuted
from synth.solvers.catalogue import known_solvers
from synth.text.files import dumps, remove_leftovers, write_atomically
from synth.text.quantities import named, percent, shown
from synth.views.notebook_html import card

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

CERTIFICATE = "certificate/"  # before the names of a certificate's arrays in the solution file
REPEATED = ("error", "killed")  # terminations after which a resumed run is run again
DIED = (*REPEATED, "out_of_memory")  # terminations without a result
Grade = Literal["certified", "solver"]
Evidence = Literal["replayed", "counted"]
INLINE_LIMIT = 4000  # numbers of a solution that still stand in the JSON file itself


@dataclass(frozen=True, repr=False)
class Record:
    """One record: its data as stored (``models/formats/records.md``) and, once written or read, its path.

    ``packed`` is the solution, or for the kind ``bound`` the certificate, arrays included; the certificate that stands
    beside a solution is in ``data``, its arrays too. What follows from these is answered here and nowhere else.
    """

    data: Mapping[str, Any]
    packed: Mapping[str, Any] | None = None
    path: Path | None = None
    instance: Instance | None = field(default=None, compare=False)  # known where the run was made here
    made_here: bool = field(default=False, compare=False)  # its method was run by this command

    @property
    def value(self) -> float | None:
        """The verified objective value, or None when the run holds no point."""
        value = self.data["objective"]["value"]
        return None if value is None else float(value)

    @property
    def stated_bound(self) -> float | None:
        """The lower bound as the run states it, proven or not."""
        bound = self.data["bound"]
        return None if bound is None else float(bound)

    @property
    def bound(self) -> float | None:
        """The proven lower bound, or None. A bound that nobody proves is none, and neither is a solver's bound above
        the value of the schedule replayed in the same run, nor the 0 beside a refuted question, which says nothing."""
        if self.grade is None or self.bound_disproved or (self.infeasible_by and self.stated_bound == 0):
            return None
        return self.stated_bound

    @property
    def certificate(self) -> Mapping[str, Any] | None:
        """The data from which the family's check derives the bound again."""
        found = self.packed if self.data["kind"] == "bound" else self.data.get("certificate")
        return found if isinstance(found, Mapping) else None

    @property
    def grade(self) -> Grade | None:
        """What stands behind the stated bound. It follows from what the record holds, so it is right for records that
        were written before it was stored."""
        return grade_of(self.stated_bound, self.certificate, self.data["solver"])

    @property
    def proof(self) -> str:
        """The grade in a word for tables: ``certified``, the solver's name, or a dash."""
        return "–" if self.bound is None else self.words_of_grade.split(" ")[0]

    @property
    def words_of_grade(self) -> str:
        """The grade in words: ``certified``, ``HiGHS 1.13.1, seed 0``, or ``proven by nobody``."""
        if self.grade == "solver":
            return self._solver_words
        return self.grade or "proven by nobody"

    @property
    def _solver_words(self) -> str:
        name = str(self.data["solver"])
        title = known_solvers()[name].title if name in known_solvers() else name
        version = self.data.get("solver_version") or "of unknown version"
        return f"{title.split()[-1]} {version}, seed {self.data['options'].get('seed')}"

    @property
    def infeasible_by(self) -> str:
        """What proves that the question has no answer: ``certified`` (a certificate refutes it), the solver's name, or
        ``method``, whose word it is. Empty where the run did not end as infeasible."""
        if self.data["termination"] != "infeasible":
            return ""
        if is_refuted(self.data, self.stated_bound, self.certificate):
            return "certified"
        return str(self._solver_words.split(" ")[0]) if self.data["solver"] and self.question else "method"

    @property
    def words_of_end(self) -> str:
        """Why the run stopped, with what proves it: ``infeasible, certified``, ``optimal``, ``optimal within 2e-05``
        where a solver's tolerance leaves a gap, else the termination."""
        ended = str(self.data["termination"])
        if self.infeasible_by:
            return f"{ended}, {'by the method' if self.infeasible_by == 'method' else self.infeasible_by}"
        return f"optimal within {self.gap:.0e}" if ended == "optimal" and self.gap else ended

    @property
    def words_without_value(self) -> str:
        """Why there is no value: how the run ended, and the reason where the method does not apply or is too large."""
        ended, message = self.data["termination"], self.data["message"]
        return f"{ended}: {message}" if message and ended in ("unsupported", "size_limit") else self.words_of_end

    @property
    def evidence(self) -> Evidence | None:
        """Whether the value was replayed from a schedule or is a formula's count; None without a value."""
        if self.value is None:
            return None
        return "replayed" if self.data["verified"]["facts"].get("replayed", True) else "counted"

    @property
    def bound_disproved(self) -> bool:
        """Whether the run's own replayed value lies below its own solver's bound: the bound is false then."""
        return self.grade == "solver" and self.evidence == "replayed" and exceeds(self.stated_bound, self.value)

    @property
    def gap(self) -> float | None:
        """Relative gap between the record's own value and proven bound."""
        return gap(self.value, self.bound)

    @property
    def ok(self) -> bool:
        """Whether the check found no fault."""
        return bool(self.data["verified"]["ok"])

    @property
    def failed(self) -> bool:
        """Whether the check found faults or the run ended without a result."""
        return not self.ok or self.data["termination"] in DIED

    @property
    def empty(self) -> bool:
        """Whether it holds neither a value nor a proven bound."""
        return self.value is None and self.bound is None

    @property
    def fruitless(self) -> bool:
        """Whether there is no result: it failed, or its time ended before it found a solution."""
        return self.failed or (self.data["termination"] == "time_limit" and self.empty)

    def is_done(self, retry_failed: bool = False) -> bool:
        """Whether a resumed run takes it as it is: it passed its check and did not end by ``error`` or ``killed``; with
        ``retry_failed`` it must also have a result."""
        return self.ok and self.data["termination"] not in REPEATED and not (retry_failed and self.fruitless)

    @property
    def question(self) -> str:
        """What the run asked for instead of the best solution: ``horizon=12``; empty where it did not. Of a method that
        is not known here, such as one in a file, it is what the record says."""
        values = self.data["options"].get("method")
        try:
            parameters = self._family.method(self.data["method"]).parameters
        except InputError:
            return str(self.data.get("question") or "")
        return asked(parameters, values) if isinstance(values, Mapping) else ""

    @property
    def label(self) -> str:
        """Method, solver (where it differs in name) and question: ``ilp-highs``, ``ilp-highs-horizon=12``."""
        method, solver = self.data["method"], self.data["solver"]
        return "-".join(filter(None, [method, solver if solver != method else "", self.question]))

    @property
    def title(self) -> str:
        """The label for a person: ``ilp (highs)``, ``ilp (highs), horizon=12``."""
        method, solver = self.data["method"], self.data["solver"]
        title = f"{method} ({solver})" if solver and solver != method else str(method)
        return ", ".join(filter(None, [title, self.question]))

    @property
    def lender(self) -> str:
        """Who made the solution, where the method that ran took it from another: ``direct``; with those that made its
        parts: ``together of pull, ring``. Empty where it made all by itself, as records without the key say."""
        whole, *parts = self.data.get("made_by") or [self.data["method"]]
        if not parts:
            return "" if whole == self.data["method"] else str(whole)
        return f"{whole} of {', '.join(parts)}"

    @property
    def whose(self) -> str:
        """Whose result it is, for tables: who handed it in, or who made it, which is the method's title if it did."""
        return str((self.data.get("submitted") or {}).get("by", self.lender or self.title))

    @property
    def bounded_by(self) -> str:
        """Whose bound it is: who handed it in, or the method that ran, whoever lent it a schedule."""
        return str((self.data.get("submitted") or {}).get("by", self.title))

    @property
    def credit(self) -> str:
        """The same in a word, the method being named by its label."""
        return self.lender or self.label

    @property
    def words_of_check(self) -> str:
        """What the check said of it, for tables: ``yes``, ``counted`` (no schedule was replayed), ``FAILED``,
        ``bound FALSE`` (its value stands), or a dash where there was nothing to check."""
        if self.bound_disproved:
            return "bound FALSE"
        if not self.ok:
            return "FAILED"
        if self.value is None and "certificate" not in self.data["verified"]["facts"]:
            return "–"
        return "counted" if self.evidence == "counted" else "yes"

    @property
    def run_s(self) -> float:
        """Seconds of building and solving."""
        return float(self.data["seconds"]["build"] + self.data["seconds"]["solve"])

    def find_instance(self) -> Instance:
        """The instance it belongs to: the text in the record, or else its file, looked for from the working directory,
        then from every folder above the record; it must have the record's hash. Raises :class:`InputError` when there
        is none."""
        if self.instance is not None:
            return self.instance
        name, text = self.data["instance_file"], self.data.get("instance_text")
        source = str(self.path) if self.path else None
        if text is not None:
            instance = _instance(text.encode(errors="replace"), f"{source or 'record'}: instance_text")
            if instance.sha256 != self.data["instance_sha256"]:
                raise InputError("instance_text is not the instance of the run (its hash differs)", source)
            return instance
        if name is None:
            why = "the record's instance was never in a file: write it (instance.to_json()), read that and solve again"
            raise InputError(f"{why}, or pass the instance itself", source)
        there = [(path, read_bytes(path)) for path in self.instance_paths()]
        for path, text in there:
            if hashlib.sha256(text).hexdigest() == self.data["instance_sha256"]:
                return _instance(text, str(path), path)
        for path, text in there:
            from_bytes(text, str(path))  # raises what is wrong with it
        problem = "has changed since the run" if there else "is not found"
        raise InputError(f"the instance file {name} {problem}", source)

    def solution(self) -> Any:
        """The solution as the family's own type. Raises :class:`InputError` where none is held or it cannot be read."""
        source = str(self.path) if self.path else None
        if self.data["kind"] == "bound" or not self.packed:
            raise InputError(f"holds no solution ({self.data['termination']})", source)
        try:
            return load(self._family.unpack)(self.find_instance(), self.packed)
        except InputError:
            raise
        except Exception as error:  # what a file holds may break in any way
            raise InputError(f"the stored solution cannot be read: {error!r}", source) from None

    def table(self) -> pd.DataFrame:
        """The solution as one flat table with stable columns (``synth show --csv``). Raises :class:`InputError`."""
        frame: pd.DataFrame = load(self._family.table)(self.find_instance(), self.solution())
        return frame

    def describe(self) -> str:
        """The solution in words. Raises :class:`InputError`."""
        return str(load(self._family.describe)(self.find_instance(), self.solution()))

    def plot(self, title: str | None = None) -> Figure:
        """The solution drawn, a matplotlib figure. Raises :class:`InputError`."""
        if title is None:
            title = f"{self.data['instance']}, {self.title}: {named(self.value, self._family.objective.unit)}"
        figure: Figure = load(self._family.plot)(self.find_instance(), self.solution(), title)
        return figure

    @property
    def _family(self) -> Family:
        return get_family(self.data["family"])

    def __repr__(self) -> str:
        return f"<record: {', '.join(f'{name} {words}' for name, words in self._words.items())}>"

    def _repr_html_(self) -> str:
        return card(self._words)

    @property
    def _words(self) -> dict[str, str]:
        unit = self._family.objective.unit
        return {
            "instance": f"{self.data['family']} {self.data['instance']}",
            "method": f"{self.title} ({self.data['kind']}), {self.data['termination']}",
            self.data["objective"]["name"]: f"{named(self.value, unit)} ({self.words_of_check})",
            "bound": f"{shown(self.bound, unit)} ({self.proof}), gap {percent(self.gap)}",
            "seconds": shown(self.run_s, "s"),
        }

    def instance_paths(self) -> list[Path]:
        """The files its instance may be in: from the working directory, then from every folder above the record."""
        name = self.data["instance_file"]
        folders = [Path.cwd(), *(self.path.resolve().parents if self.path else ())]
        # os.path.isfile: a name that no file system takes is no file either
        return [] if name is None else [folder / name for folder in folders if os.path.isfile(folder / name)]

    def __getitem__(self, key: str) -> Any:
        return self.data[key]


def _instance(text: bytes, source: str, file: Path | None = None) -> Instance:
    """The instance of this text, read once for the records of a folder, which are many of one instance. Raises
    :class:`InputError`, which names ``source``."""
    try:
        return _read_once(text, file)
    except InputError:
        return from_bytes(text, source)


@lru_cache(maxsize=16)
def _read_once(text: bytes, file: Path | None) -> Instance:
    instance = from_bytes(text, "")
    instance._file = file
    return instance


def grade_of(bound: float | None, certificate: object, solver: str | None) -> Grade | None:
    """What stands behind a stated bound: its certificate, the solver's word, or nothing."""
    if bound is None:
        return None
    return "certified" if certificate is not None else "solver" if solver else None


def record_path(results: Path, family: str, instance: str, method: str, solver: str | None, question: str = "") -> Path:
    """``results/<family>/<instance>/<method>[-<solver>][-<question>].json``; see :func:`synth.options.asked`. For
    ``package.module:function`` it is ``package-module@function``, which no method of a family is called."""
    name = method.replace(".", "-").replace(":", "@")
    return results / family / instance / f"{'-'.join(filter(None, [name, solver, question]))}.json"


def write(record: Record, path: Path, *, compressed: bool = True) -> Record:
    """Write the record, arrays beside it if they are large (not ``compressed``: sooner, several times as many bytes).
    Either the old record or the new one is on disk at any moment; a failed write (full disk, kill) leaves the old
    one and no partial file of its own making. Others that write records of this folder, or pack them, wait meanwhile.
    Raises ``OSError``."""
    beside, is_new = path, False
    arrays = split_arrays(record)
    large = sum(array.size for array in arrays.values()) > INLINE_LIMIT
    data = plain_data(record, {} if large else arrays)
    blob = b""
    if large:
        buffer = io.BytesIO()
        (np.savez_compressed if compressed else np.savez)(buffer, **arrays)
        blob = buffer.getvalue()
        # the name carries the content's hash, so a kill between the two writes cannot pair old and new
        data["solution_file"] = f"{path.stem}.{hashlib.sha256(blob).hexdigest()[:12]}.npz"
    with lock.writing(path, data["family"], data["instance"]):
        path.parent.mkdir(parents=True, exist_ok=True)
        remove_leftovers(path)
        try:
            if large:
                beside = path.with_name(data["solution_file"])
                is_new = not beside.exists()
                write_atomically(beside, blob)
            write_atomically(path, (dumps(data) + "\n").encode())
        except BaseException:
            if is_new:
                beside.unlink(missing_ok=True)
            raise
        packed.remove_arrays(path, but=data["solution_file"])
    if "certificate" in record.data:
        data["certificate"] = record["certificate"]
    return Record(data, record.packed, path, made_here=record.made_here)


def split_arrays(record: Record) -> dict[str, Any]:
    """The arrays of its solution and of its certificate, under the names they have in a solution file."""
    parts = ("", record.packed), (CERTIFICATE, record.data.get("certificate"))
    return {
        prefix + key: packed.narrow(value)
        for prefix, values in parts
        if isinstance(values, Mapping)
        for key, value in values.items()
        if isinstance(value, np.ndarray)
    }


def plain_data(record: Record, inline: Mapping[str, Any]) -> dict[str, Any]:
    """The record's JSON object. Of the arrays only those in ``inline`` stand in it."""
    data = {**record.data, "solution_file": None}
    parts = ("", "solution", record.packed), (CERTIFICATE, "certificate", record.data.get("certificate"))
    for prefix, key, values in parts:
        if isinstance(values, Mapping):
            kept = {k: v for k, v in values.items() if not isinstance(v, np.ndarray)}
            data[key] = kept | {k: inline[prefix + k].tolist() for k in values if prefix + k in inline}
    return data


def read(path: str | Path) -> Record:
    """The record at this address and its arrays: a file, or packed in a collection above it (see
    :mod:`synth.records.packed`). Raises :class:`InputError` when there is no (complete) record."""
    path = packed.plain(Path(path))
    while True:
        before = packed.state(path)
        try:
            found = None if path.is_file() else packed.holding(path)
            if found is None:
                if path.is_dir():
                    raise InputError("is a folder: name a record in it", str(path))
                return _record(read_json(path)[0], path, path)
            held, place = found
            return _record(held.data(place), path, held.file, place + "/")
        except InputError:
            if packed.state(path) == before:  # else it was written again or packed between two looks
                raise


def _record(data: Any, path: Path, file: Path, prefix: str = "") -> Record:
    """The record of this data. Its ``file`` is the one beside which its arrays are, their names beginning with
    ``prefix``."""
    source = str(file / prefix) if prefix else str(path)
    demand_contents(data, source)
    solution = data["solution"]
    if data["solution_file"] is not None:
        arrays, proving = _arrays(str(data["solution_file"]), file, prefix, source)
        if arrays:
            solution = dict(solution or {}) | arrays
        if proving:
            data["certificate"] = dict(data.get("certificate") or {}) | proving
    return Record(data, solution, path)


def stated(data: dict[str, Any], path: Path, file: Path) -> Record:
    """A record as its ``file`` states it, without the arrays that lie beside. Raises :class:`InputError`."""
    demand_contents(data, str(file))
    return Record(data, data["solution"], path)


def _arrays(name: str, file: Path, prefix: str, source: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """The arrays of a solution and those of a certificate, in the file of this name beside ``file``."""
    if Path(name).name != name:
        raise InputError(f"solution_file = {name!r}: must be a plain file name", source)
    try:
        arrays = packed.read_arrays(file.with_name(name), prefix)
    except Exception as error:  # numpy and zipfile raise a dozen kinds on damaged files
        raise InputError(f"solution file {name} cannot be read: {error}", source) from None
    proving = {key.removeprefix(CERTIFICATE): arrays.pop(key) for key in list(arrays) if key.startswith(CERTIFICATE)}
    return arrays, proving
