"""Solve and check in this process. The command line runs the same functions, each run in a process of its own."""

from __future__ import annotations

import hashlib
import math
import os
import platform
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import synth
from synth import making
from synth.clock import start_up_costs
from synth.errors import InputError, SizeLimitError, UnsupportedError
from synth.family import Family, defaults_for, function_of, get_family
from synth.instance import Instance, demand_one
from synth.method import SUBMITTED, Method, Outcome, Verdict, load
from synth.options import RELATIVE_GAP, RunOptions, as_text, asked, given_gap, given_limit, read_parameters
from synth.plugins import returned
from synth.plugins.method_file import method_of, of_function
from synth.records import record as records
from synth.records.contents import FORMAT
from synth.records.record import Record
from synth.records.verify import against_value, certify, compare, replay
from synth.solvers.catalogue import known_solvers, preload, require, solvers_for
from synth.solvers.solver import WORDS


def method_options(
    family: Family, method: Method, solver: str | None, given: Mapping[str, str]
) -> tuple[str | None, dict[str, Any]]:
    """The solver that will run and the method's parameters, typed and with defaults.

    Raises :class:`InputError` for a solver the method cannot use or that is not installed, and for bad parameters.
    """
    able = solvers_for(method.needs)
    if solver is not None and solver not in known_solvers():
        require(solver)
    if not able:
        solver = None
    elif solver is None:
        solver = able[0]
    elif solver not in able:
        kinds = " or ".join(f"{WORDS[need]} ({need})" for need in method.needs)
        why = f"{known_solvers()[solver].title} does not take {kinds}"
        raise InputError(
            f"method {method.name} of family {family.name} runs with {', '.join(able)}, not {solver}: {why}"
        )
    if solver is not None:
        require(solver)
    return solver, read_parameters(given, method.parameters, f"method {method.name}")


def make(family: str, /, **parameters: object) -> Instance:
    """An instance of a family from its keys, as ``synth make FAMILY key=value``; values may be typed.

    ``synth.make("xtree", network="equimesh", rows=4, cols=4)``. Raises :class:`InputError` listing every fault.
    """
    return making.make(get_family(family), parameters)


def solve(
    instance: Instance,
    method: str | Method | Callable[..., Any] | None = None,
    *,
    solver: str | None = None,
    time_limit: str | float | None = 60.0,
    gap: str | float = RELATIVE_GAP,
    threads: int = 1,
    seed: int = 0,
    options: Mapping[str, object] | None = None,
    results: str | Path | None = None,
) -> Record:
    """Solve ``instance`` in this process by one method: its name, ``package.module:function`` of a file beside the
    instance or in the current folder, a function or a :class:`Method` of your own, or (by default) the family's first
    default program.

    A function takes (instance, options) or the instance alone, and returns :class:`synth.Moves`, a solution, the rows
    of its table or an :class:`~synth.method.Outcome`.

    ``time_limit`` in seconds, or with its unit (``"5m"``); ``gap`` as a fraction, or ``"0.01%"``; ``options`` are the
    method's own parameters (``{"horizon": 5}``; texts as in ``key=value`` do as well). With ``results`` the record is
    also written below that folder. Raises :class:`InputError` for a wrong method, solver or parameter, and for what
    your own code raises or may not return, with its file and line; how else a run ends (infeasible, size limit) is in
    the record.
    """
    demand_one(instance)
    family = get_family(instance.family)
    if method is None:
        defaults = list(defaults_for(family, instance))
        method = ([name for name in defaults if family.methods[name].kind == "program"] or defaults)[0]
    chosen, function = _chosen(family, method, instance)
    given = {key: as_text(value) for key, value in (options or {}).items()}
    solver, parameters = method_options(family, chosen, solver, given)
    run = RunOptions(given_limit(time_limit), given_gap(gap), threads, seed, solver, parameters)
    lifted = None if function is None else function_of(family, chosen, function)
    record = execute(instance, chosen, run, lifted)
    if results is None:
        return record
    question = asked(chosen.parameters, parameters)
    path = records.record_path(Path(results), family.name, instance.name, chosen.name, solver, question)
    return records.write(record, path)


def _chosen(
    family: Family, method: str | Method | Callable[..., Any], instance: Instance
) -> tuple[Method, Callable[..., Any] | None]:
    """The method, and the function where it is one that is at hand. Raises :class:`InputError`."""
    if isinstance(method, Method):
        return method, None
    if isinstance(method, str):
        return method_of(family, method, instance), None
    return of_function(method), method


def execute(
    instance: Instance,
    method: Method,
    options: RunOptions,
    run: Callable[[Any, RunOptions], Outcome] | None = None,
) -> Record:
    """Run one method on one instance, check what it returns and make the record (not yet written). The clock of the
    options starts here: they may have been made long before, with those of many runs. ``run``: instead of the
    method's own function, where what it returns is there already."""
    family = get_family(instance.family)
    with start_up_costs.uncounted():
        function = function_of(family, method) if run is None else run
        preload(method.needs, options.solver)
    compiled, not_counted = start_up_costs.seconds, start_up_costs.not_counted()
    options = options.started_now()
    started = time.monotonic()
    outcome = Outcome("time_limit", message="stopped at the time limit")
    try:
        with options.in_time():
            outcome = returned.outcome(method, function, instance, options)
    except UnsupportedError as error:
        outcome = Outcome("unsupported", message=str(error))
    except SizeLimitError as error:
        outcome = Outcome("size_limit", message=str(error))
    except MemoryError:
        outcome = Outcome("out_of_memory", message="the method ran out of memory")
    ended = time.monotonic()
    wall = max(0.0, ended - started - (start_up_costs.not_counted() - not_counted))
    outcome.take_over(options.held)
    outcome.build_s = min(outcome.build_s, wall)  # a method's own clock knows nothing of compilation
    outcome.solve_s = min(outcome.solve_s or wall, wall - outcome.build_s)
    check_started = time.monotonic() - start_up_costs.not_counted()
    verdict, held = _verify(family, instance, method, options, outcome)
    check_s = max(0.0, time.monotonic() - start_up_costs.not_counted() - check_started)
    data = _record_data(instance, method, options, outcome, verdict, check_s, held)
    data["seconds"]["compile"] = round(start_up_costs.seconds - compiled, 6)
    packed = outcome.certificate if method.kind == "bound" else None
    if outcome.solution is not None:
        packed = load(family.pack)(outcome.solution)
    return Record(
        data | {"progress": _progress(options, outcome, verdict, ended)}, packed, instance=instance, made_here=True
    )


def hand_in(instance: Instance, outcome: Outcome, statement: Mapping[str, Any], place: str) -> Record:
    """The record of what came from outside, a solution or a bound with its certificate, checked, not yet written. Its
    key ``submitted`` is the ``statement``; ``place`` tells it from others of the instance."""
    family, method = get_family(instance.family), Method(SUBMITTED, "submitted", "handed in from outside", "")
    options = RunOptions(None).started_now()
    started = time.monotonic()
    verdict, held = _verify(family, instance, method, options, outcome)
    data = _record_data(instance, method, options, outcome, verdict, time.monotonic() - started, held)
    data |= {"submitted": dict(statement), "question": place, "progress": None, **_text_of(instance)}
    packed = None if outcome.solution is None else load(family.pack)(outcome.solution)
    return Record(data, packed, instance=instance)


def _verify(
    family: Family, instance: Instance, method: Method, options: RunOptions, outcome: Outcome
) -> tuple[Verdict, float | None]:
    """The verdict on what a method returned, and the value that stands: a bound's faults take no value away, unless it
    is a mere count below a bound."""
    verdict = replay(family, instance, outcome.solution)
    held = verdict.value if verdict.ok else None
    grade = records.grade_of(outcome.bound, outcome.certificate, options.solver)
    certified = certify(family, instance, outcome.bound, outcome.certificate)
    if grade == "certified" and not certified:
        verdict.facts["certificate"] = "verified"
    contradiction = against_value(outcome.bound, grade, verdict)
    if contradiction and grade and not verdict.facts.get("replayed", True):
        held = None
    verdict.faults += certified + contradiction
    if method.kind == "bound" and outcome.bound is not None and grade is None:
        verdict.faults.append(f"the method states the bound {outcome.bound:g} without a certificate")
    return verdict, held


def _record_data(
    instance: Instance,
    method: Method,
    options: RunOptions,
    outcome: Outcome,
    verdict: Verdict,
    check_s: float,
    held: float | None = None,
) -> dict[str, Any]:
    family = get_family(instance.family)
    beside = outcome.bound is not None and outcome.certificate is not None and method.kind != "bound"
    return {
        "format": FORMAT,
        "family": family.name,
        "instance": instance.name,
        **_where(instance),
        "instance_sha256": instance.sha256,
        "method": method.name,
        "kind": method.kind,
        **_of_others(method, options),
        "solver": options.solver,
        "solver_version": known_solvers()[options.solver].version if options.solver else None,
        "options": options.as_record(),
        "termination": outcome.termination,
        "stopped_by": "clock" if options.clock.cut or outcome.termination == "time_limit" else None,
        "objective": {
            "name": family.objective.name,
            "unit": family.objective.unit,
            "sense": "minimise",
            "value": held,
        },
        "bound": outcome.bound,
        "bound_grade": records.grade_of(outcome.bound, outcome.certificate, options.solver),
        "bound_proof": outcome.bound_proof if outcome.bound is not None else None,
        "certificate": outcome.certificate if beside else None,
        "progress": [],
        "verified": {"ok": verdict.ok, "facts": verdict.facts, "faults": verdict.faults},
        "seconds": {"build": round(outcome.build_s, 6), "solve": round(outcome.solve_s, 6), "check": round(check_s, 6)},
        "solution": None,
        "solution_file": None,
        "message": outcome.message,
        "made_by": None if held is None else list(outcome.made_by or (method.name,)),
        "kernels": "compiled" if start_up_costs.used else "plain",
        "toolkit_version": synth.__version__,
        "host": f"{platform.system()} {platform.machine()}, {os.cpu_count()} CPUs, Python {platform.python_version()}",
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def _of_others(method: Method, options: RunOptions) -> dict[str, str]:
    """What a record says of a method or solver of others: where it comes from, and, as nobody else knows the parameters
    of a method in a file, what it was asked."""
    solver = known_solvers()[options.solver].origin if options.solver else None
    question = asked(method.parameters, options.method) if method.folder is not None else None
    said = {"method_origin": method.origin, "solver_origin": solver, "question": question}
    return {key: words for key, words in said.items() if words}


def _progress(options: RunOptions, outcome: Outcome, verdict: Verdict, ended: float) -> list[list[float | None]]:
    """Rows of seconds, incumbent, bound; the last is what the run ended with, none says better than that (a solver's
    log may, by its rounding). A fault found leaves no rows."""
    if not verdict.ok:
        return []
    least = -math.inf if verdict.value is None else verdict.value
    most = math.inf if outcome.bound is None else outcome.bound
    rows = options.progress.rows
    rows[:] = [(at, None if v is None else max(v, least), None if b is None else min(b, most)) for at, v, b in rows]
    options.progress.note(verdict.value, outcome.bound, at=ended - options.progress.started)
    return [list(row) for row in rows]


def failure(instance: Instance, method: Method, options: RunOptions, termination: Any, message: str) -> Record:
    """The record of a run that left none itself (crashed, killed at the limit)."""
    outcome = Outcome(termination, message=message)
    return Record(_record_data(instance, method, options, outcome, Verdict(None, {"replayed": False}), 0.0))


def _where(instance: Instance) -> dict[str, str | None]:
    """How a record names its instance: the file relative to the working directory, with forward slashes; of a file
    elsewhere its name, with its text beside it. No record names a folder of this machine."""
    file = instance.file
    if file is None:
        return {"instance_file": None}
    with suppress(ValueError):
        return {"instance_file": file.resolve().relative_to(Path.cwd().resolve()).as_posix()}
    return {"instance_file": file.name, **_text_of(instance)}


def _text_of(instance: Instance) -> dict[str, str]:
    """The text of an instance's file, so that a record can be checked wherever it is taken; none where it has
    changed."""
    with suppress(OSError, UnicodeDecodeError):
        content = instance.file.read_bytes() if instance.file is not None else instance.to_json().encode()
        if hashlib.sha256(content).hexdigest() == instance.sha256:
            return {"instance_text": content.decode()}
    return {}


def check(record: Record | str | Path, instance: Instance | None = None) -> Verdict:
    """Compare everything a record states with what can be computed again from the instance, its solution (replayed) and
    its bound's certificate; see :mod:`synth.records.verify`. ``unverified`` lists what cannot.

    Raises :class:`InputError` when the record or its instance cannot be read; what is wrong in them is a fault.
    """
    if not isinstance(record, Record):
        record = records.read(record)
    if instance is None:
        instance = record.find_instance()
    demand_one(instance)
    if instance.sha256 != record["instance_sha256"]:
        return Verdict(None, {"replayed": False}, ["the record belongs to another instance (its hash differs)"])
    return compare(record, instance)
