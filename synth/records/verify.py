"""What a record states, compared with what can be computed again from its instance, its solution and its certificate.

A run's own statements and a stored record's go through the same functions. What cannot be computed again (a solver's
bound, why a run stopped, times, versions) is listed as not verified, never passed over in silence.
"""

from __future__ import annotations

import hashlib
import json
import math
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, get_args

import synth
from synth.arrays import SAME
from synth.family import Family, get_family
from synth.instance import Instance
from synth.method import SUBMITTED, Method, Termination, Verdict, load
from synth.records.contents import KEYS
from synth.records.optimality import exceeds, gap
from synth.records.record import Grade, Record
from synth.records.repetition import repeat
from synth.solvers.catalogue import known_solvers, solvers_for
from synth.text.files import dumps
from synth.text.untrusted import equal, is_finite

NEVER_HOLDS = ("unsupported", "killed", "out_of_memory")  # terminations after which there is nothing to hold
OPTIONS = {"time_limit_s", "relative_gap", "threads", "seed", "method"}
THE_RUNS_WORD = frozenset(  # keys beside a record's own that nobody can compute again
    ("bound_proof", "host", "created", "toolkit_version", "solver_version", "peak_memory_mb", "stderr", "kernels",
     "method_origin", "solver_origin", "question", "submitted")
)  # fmt: skip
RUNS_WORD = "options, times, progress, versions, host, date and messages are as the run stated them"


def replay(family: Family, instance: Instance, solution: Any) -> Verdict:
    """The family's verdict on a solution (None: there is none), its facts saying whether it was replayed."""
    if solution is None:
        return Verdict(None, {"replayed": False})
    verdict: Verdict = load(family.check)(instance, solution)
    verdict.facts = {"replayed": True, **verdict.facts}
    return verdict


def certify(
    family: Family, instance: Instance, bound: float | None, certificate: Mapping[str, Any] | None
) -> list[str]:
    """The faults of a bound's certificate; none without bound or certificate. Whatever the data, no exception."""
    if bound is None or certificate is None:
        return []
    if not math.isfinite(bound):
        return [f"the bound {bound:g} is not finite"]
    try:
        return list(load(family.check_bound)(instance, bound, certificate))
    except Exception as error:  # a certificate out of a file may hold anything
        return [f"the bound's certificate cannot be read: {error!r}"]


def against_value(bound: float | None, grade: Grade | None, verdict: Verdict) -> list[str]:
    """The fault of a bound above the value: a schedule that was replayed disproves a bound that no certificate proves,
    never the other way round; a count below a proven bound is disproved itself."""
    if not exceeds(bound, verdict.value):
        return []
    replayed = verdict.facts.get("replayed", True)
    text = f"the bound {bound:g} exceeds the {'replayed' if replayed else 'counted'} value {verdict.value:g}"
    if not replayed:
        return [text + ", which no schedule can have" if grade else text]
    return [text + (": ALARM, its certificate is valid too" if grade == "certified" else ": the schedule disproves it")]


def compare(record: Record, instance: Instance) -> Verdict:
    """The verdict on everything the record states; ``instance`` has the record's hash. Never raises on what is stored:
    an exception becomes a fault."""
    if record["family"] != instance.family:
        fault = f"the record is of family {record['family']!r}, its instance of {instance.family!r}"
        return Verdict(None, {"replayed": False}, [fault])
    try:
        return _Comparison(record, instance, get_family(instance.family)).verdict()
    except Exception as error:
        return Verdict(None, {"replayed": False}, [f"the record cannot be compared: {error!r}"])


class _Watched(Mapping[str, Any]):
    """A certificate that remembers which of its keys were read."""

    def __init__(self, held: Mapping[str, Any]) -> None:
        self.held, self.read = held, set[str]()

    def __getitem__(self, key: str) -> Any:
        self.read.add(key)
        return self.held[key]

    def __contains__(self, key: object) -> bool:
        return key in self.held

    def __iter__(self) -> Iterator[str]:
        return iter(self.held)

    def __len__(self) -> int:
        return len(self.held)


@dataclass
class _Comparison:
    """One record under comparison. ``faults`` and ``unverified`` fill as the parts are looked at."""

    record: Record
    instance: Instance
    family: Family
    faults: list[str] = field(default_factory=list)
    unverified: list[str] = field(default_factory=list)

    def verdict(self) -> Verdict:
        found = self._replayed()
        certificate = None if self.record.certificate is None else _Watched(self.record.certificate)
        certified = certify(self.family, self.instance, self.record.stated_bound, certificate)
        if self.record.certificate is not None and self.record.stated_bound is not None and not certified:
            found.facts["certificate"] = "verified"
            unread = sorted(set(certificate or ()) - (certificate.read if certificate else set()))
            self.unverified += [f"certificate {key}: the check does not read it" for key in unread]
        if self.record["kind"] == "bound":
            self.faults += certified
            self._value(found)
        else:
            self._value(found)
            self.faults += certified
        self._names()
        self._method(found)
        self._bound(found)
        self._run()
        self._termination(found)
        self._verified(found)
        self._progress()
        self.unverified.append(RUNS_WORD)
        return Verdict(found.value, found.facts, list(dict.fromkeys(self.faults)), self.unverified)

    def _exact(self, what: str, stated: Any) -> None:
        """A stated value or bound is a double: nothing is lost in reading it."""
        if stated is not None and not (is_finite(stated) and float(stated) == stated):
            self.faults.append(f"the record states the {what} {stated!r}, which is no finite double")

    def _states(self, what: str, stated: Any, right: Any) -> None:
        if stated != right or isinstance(stated, bool) != isinstance(right, bool):
            self.faults.append(f"the record states the {what} {stated!r}, it is {right!r}")

    def _replayed(self) -> Verdict:
        nothing = Verdict(None, {"replayed": False})
        if self.record["kind"] == "bound" or self.record.packed is None:
            return nothing
        try:
            solution = load(self.family.unpack)(self.instance, self.record.packed)
            found = replay(self.family, self.instance, solution)
        except Exception as error:
            self.faults.append(f"the stored solution cannot be read: {error!r}")
            return nothing
        self.faults += found.faults
        self.unverified += found.unverified
        try:
            unread = set(self.record.packed) - set(load(self.family.pack)(solution))
            self.unverified += [f"solution {key}: the check does not read it" for key in sorted(unread)]
        except Exception as error:
            self.faults.append(f"the stored solution cannot be packed again: {error!r}")
        return found

    def _value(self, found: Verdict) -> None:
        stated = self.record.value
        self._exact("value", self.record["objective"]["value"])
        if self.record["kind"] == "bound" or self.record.packed is None:
            if stated is not None:
                self.faults.append(f"the record states the value {stated:g} but holds no solution")
        elif found.ok and not self.faults:
            if stated is None and found.value is not None and self.record.ok:
                self.faults.append(f"the record states no value, the replay gives {found.value}")
            elif stated is not None and not equal(stated, found.value):
                self.faults.append(f"the record states the value {stated}, the replay gives {found.value}")
        for faulty in self._objective():
            self.faults.append(faulty)

    def _objective(self) -> Iterator[str]:
        stated = self.record["objective"]
        for key in ("name", "unit"):
            if stated[key] != (right := getattr(self.family.objective, key)):
                yield f"the record states the objective's {key} {stated[key]!r}, it is {right!r}"
        for key in sorted(set(stated) - {"name", "unit", "sense", "value"}):
            self.unverified.append(f"objective {key}")

    def _names(self) -> None:
        self._states("instance", self.record["instance"], self.instance.name)
        text = self.record.data.get("instance_text")
        if text is not None and hashlib.sha256(text.encode()).hexdigest() != self.instance.sha256:
            self.faults.append("instance_text is not the instance of the run (its hash differs)")
        name, solver = self.record["method"], self.record["solver"]
        method = self.family.methods.get(name)
        said = self.record.data.get("submitted") is not None
        if len({name == SUBMITTED, self.record["kind"] == "submitted", said}) > 1:
            self.faults.append("the record is handed in, or it is not: method, kind and submitted say so together")
        version = self.record.data.get("solver_version")
        if (version is None) != (solver is None) or not isinstance(version, str | None):
            self.faults.append(f"the record states the solver version {version!r} of solver {solver!r}")
        if method is not None:
            self._states("kind", self.record["kind"], method.kind)
            self._solver(method, solver)
            parameters = {parameter.name for parameter in method.parameters}
            given = self.record["options"].get("method", {})
            for key in sorted(set(given) - parameters if isinstance(given, Mapping) else ()):
                self.unverified.append(f"option {key}: method {name} does not know it")
        for key in sorted(set(self.record.data) - KEYS - THE_RUNS_WORD):
            self.unverified.append(f"key {key}: unknown")

    def _method(self, found: Verdict) -> None:
        """Whether the solution is the named method's and its makers are those named. That a method of the same version
        gives another value, or names others, is a fault; of another version, or where it cannot be run again, the name
        stays the record's word."""
        if self.faults:
            return
        again, name = repeat(self.record, self.instance), self.record["method"]
        made_by = self.record.data.get("made_by")
        if again.answer == "same":
            found.facts["method"] = again.words
        elif again.answer == "other" and self._is_of_this_version(name):
            self.faults.append(f"the record states the method {name!r}: {again.words}")
        elif again.answer == "other makers" and self._is_of_this_version(name):
            makers = ", ".join(made_by or ())
            self.faults.append(f"the record states that its solution is made by {makers}: {again.words}")
        else:
            self.unverified.append(f"method {name}: {again.words}")
        if made_by not in (None, [name]) and again.answer != "same":
            self.unverified.append(f"made_by {', '.join(made_by)}: the record's word")

    def _is_of_this_version(self, name: str) -> bool:
        """Whether the method that ran is the one that is here, of the same release."""
        same = self.record.data.get("method_origin") == self.family.method(name).origin
        return same and self.record.data.get("toolkit_version") == synth.__version__

    def _solver(self, method: Method, solver: str | None) -> None:
        able = solvers_for(method.needs)
        if solver is None and able:
            self.faults.append(f"the record states no solver, method {method.name} runs with {_list(able)}")
        elif solver is not None and solver not in known_solvers() and "solver_origin" in self.record.data:
            self.unverified.append(f"solver {solver}: not installed here")
        elif solver is not None and solver not in able:
            right = _list(able) or "none"
            self.faults.append(f"the record states the solver {solver!r}, method {method.name} runs with {right}")

    def _run(self) -> None:
        """Numbers of the run that cannot be computed again, but can be impossible."""
        options, seconds = self.record["options"], self.record["seconds"]
        for key, value in seconds.items():
            if not _number(value, 0.0):
                self.faults.append(f"the record states {value!r} seconds ({key})")
        for key, least, kinds in (("threads", 1, int), ("seed", 0, int), ("relative_gap", 0, (int, float))):
            value = options.get(key, least)
            if not _number(value, least) or not isinstance(value, kinds):
                self.faults.append(f"the record states the option {key} {value!r}")
        limit = options.get("time_limit_s")
        if limit is not None and not (_number(limit, 0.0) and limit > 0):
            self.faults.append(f"the record states the option time_limit_s {limit!r}")
        if not isinstance(options.get("method", {}), Mapping):
            self.faults.append(f"the record states the method's options {options['method']!r}")
        for key in sorted(set(options) - OPTIONS):
            self.unverified.append(f"option {key}: unknown")

    def _bound(self, found: Verdict) -> None:
        record, bound, grade = self.record, self.record.stated_bound, self.record.grade
        self._exact("bound", record["bound"])
        if "bound_grade" in record.data and record["bound_grade"] != grade:
            self.faults.append(f"the record states the bound's grade {record['bound_grade']!r}, it is {grade!r}")
        if bound is None:
            if record.certificate is not None:
                self.faults.append("the record holds a certificate but states no bound")
            if record.data.get("bound_proof") is not None:
                self.faults.append("the record states what proves the bound, but no bound")
            return
        if record.data.get("bound_proof") is not None and not isinstance(record["bound_proof"], str):
            self.faults.append("bound_proof is no text")
        elif record.data.get("bound_proof") is not None:
            self._bound_words(found)
        if grade is None and record["kind"] == "bound":
            self.faults.append(f"the record states the bound {bound:g} but holds no certificate")
        proves = grade != "certified" or found.facts.get("certificate") == "verified"
        self.faults += against_value(bound, grade if proves else None, found)
        if grade == "solver":
            self.unverified.append(f"bound {bound:.12g} by {record.words_of_grade}")
        elif grade is None:
            self.unverified.append(f"bound {bound:.12g}, {record.words_of_grade}")

    def _bound_words(self, found: Verdict) -> None:
        """The words on a bound are right if the family derives the same from the certificate, else only stated."""
        stated, certificate = self.record["bound_proof"], self.record.certificate
        derived = None
        if found.facts.get("certificate") == "verified" and self.family.can("bound_words"):
            try:
                derived = self.family.capability("bound_words")(self.instance, certificate)
            except Exception as error:
                derived = f"cannot be put into words: {error!r}"
        if stated != derived:
            words = "" if derived is None else f"; its certificate says {derived!r}"
            self.unverified.append(f"bound_proof {stated!r}{words}")

    def _termination(self, found: Verdict) -> None:
        record, ended = self.record, self.record["termination"]
        if ended not in get_args(Termination):
            self.faults.append(f"unknown termination {ended!r}")
            return
        holds = record["kind"] != "bound" and record.packed is not None
        why = f"termination {ended}, as the run stated it"
        if ended == "optimal":
            self._optimal(found)
            return
        if ended == "infeasible":
            self._infeasible(found, holds)
            return
        if ended == "finished" and not holds and record.bound is None:
            self.faults.append("the record states finished, but holds neither a solution nor a proven bound")
        elif ended in NEVER_HOLDS and (holds or record.value is not None or record.stated_bound is not None):
            self.faults.append(f"the record states {ended}, but holds a result")
        if not (ended == "finished" and (holds or record.grade == "certified")):
            self.unverified.append(why)

    def _optimal(self, found: Verdict) -> None:
        """A value that its bound proves the best, within the gap that the run was asked for."""
        record = self.record
        left, allowed = gap(found.value, record.bound), record["options"].get("relative_gap", 0.0)
        if left is None:
            self.faults.append("the record states optimal, but not both a value and a proven bound that it reaches")
        elif not _number(allowed, 0.0) or left > allowed + SAME:
            self.faults.append(f"the record states optimal, but its gap is {left:.3g}, the run's was {allowed!r}")
        if record.grade != "certified":
            self.unverified.append(f"termination optimal: by {record.words_of_grade}")

    def _infeasible(self, found: Verdict, holds: bool) -> None:
        """A question without an answer: verified where a certificate refutes it, else somebody's word."""
        record = self.record
        if holds or record.value is not None:
            self.faults.append("the record states infeasible, but holds a solution")
        if record["kind"] == "bound" and record.stated_bound is not None:
            self.faults.append("the record states infeasible, but a bound for the whole problem")
        reason = next((text for text in (record["message"], record.data.get("bound_proof")) if text), None)
        if reason is None:
            self.faults.append("the record states infeasible, but not by what")
        if record.infeasible_by == "certified" and found.facts.get("certificate") == "verified":
            found.facts["infeasible"] = "verified"
        else:
            self.unverified.append(f"termination infeasible: {reason}")

    def _verified(self, found: Verdict) -> None:
        verified, stored = self.record["verified"], self.record["verified"]["facts"]
        self.faults += [f"at the run: {fault}" for fault in verified["faults"]]
        if verified["ok"] == bool(verified["faults"]):
            self.faults.append(f"the record states verified: {verified['ok']}, with {len(verified['faults'])} faults")
        right = None if self.record.value is None else "replayed" if found.facts.get("replayed", True) else "counted"
        if self.record.evidence != right:
            self.faults.append(f"the record states a value that was {self.record.evidence}, it is {right}")
        if "certificate" in stored and "certificate" not in found.facts:
            self.faults.append("the record states a certificate that was verified, there is none that can be")
        facts = json.loads(dumps(found.facts, one_line=True))
        for path, fault in _differences(stored, facts, "fact"):
            if fault:
                self.faults.append(f"{path}: {fault}")
            elif path != "fact certificate":
                self.unverified.append(f"{path}: the check does not compute it")

    def _progress(self) -> None:
        """The last row says what the run ended with; rows come in order of time and get better."""
        rows = self.record.data.get("progress")
        if rows is None:
            return
        if not isinstance(rows, list) or not all(_is_row(row) for row in rows):
            self.faults.append("progress is no list of rows [seconds, value or null, bound or null]")
        elif rows:
            self._rows(rows)

    def _rows(self, rows: list[list[Any]]) -> None:
        times, values, bounds = zip(*rows, strict=True)
        columns = ("time", times, 1.0), ("value", values, -1.0), ("bound", bounds, 1.0)
        for what, column, sign in columns:
            known = [sign * number for number in column if number is not None]
            if any(after < before for before, after in pairwise(known)):
                self.faults.append(f"progress: the {what} gets worse")
        held = ("value", self.record.value, values[-1]), ("bound", self.record.stated_bound, bounds[-1])
        for what, stated, last in held:
            if stated is not None and (last is None or not equal(stated, last, SAME)):
                self.faults.append(f"progress ends with the {what} {last}, the record states {stated}")
            elif stated is None and last is not None:
                self.unverified.append(f"progress: the {what} {last}, which the run did not keep")


def _differences(stored: Any, found: Any, path: str) -> Iterator[tuple[str, str]]:
    """Where stored facts differ from those found: path and fault, the fault empty where nothing was found."""
    if isinstance(stored, Mapping) and isinstance(found, Mapping):
        for key, value in stored.items():
            if key in found:
                yield from _differences(value, found[key], f"{path} {key}")
            else:
                yield f"{path} {key}", ""
    elif isinstance(stored, list) and isinstance(found, list) and len(stored) == len(found):
        for index, (left, right) in enumerate(zip(stored, found, strict=True)):
            yield from _differences(left, right, f"{path}[{index}]")
    elif isinstance(stored, bool) != isinstance(found, bool) or not equal(stored, found, SAME):
        yield path, f"the record states {stored!r}, the check finds {found!r}"


def _number(value: Any, least: float) -> bool:
    """Whether it is a number that a double can hold, and not below the least."""
    return is_finite(value) and abs(value) <= sys.float_info.max and bool(value >= least)


def _is_row(row: Any) -> bool:
    return (
        isinstance(row, list)
        and len(row) == 3
        and _number(row[0], 0.0)
        and all(one is None or _number(one, -math.inf) for one in row[1:])
    )


def _list(names: tuple[str, ...]) -> str:
    return ", ".join(names)
