"""From a record to a file in one of the formats."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, NamedTuple

from synth.api import method_options
from synth.errors import Fault, InputError, LimitError, SizeLimitError, UnsupportedError
from synth.exchange import counts, executors, in_place, msccl_xml, mscclpp, padded, validity
from synth.exchange.algorithm import Algorithm
from synth.exchange.file_check import HELD
from synth.exchange.formats import FORMATS, Format
from synth.exchange.lowering import Wish, in_chunks, limits_of, lower, with_idle
from synth.exchange.lowering.equal_chunks import MOST_TRIED
from synth.exchange.mscclpp.versions import NEWEST, Version, unknown_to, version_of
from synth.exchange.transfers import Transfers
from synth.family import Capability, function_of, get_family
from synth.instance import Instance
from synth.method import Method, load
from synth.options import RunOptions, as_text
from synth.plugins.method_file import as_module, method_of
from synth.records.record import Record
from synth.records.verify import replay
from synth.solvers import model_file
from synth.solvers.model_file import Form
from synth.text.quantities import count

PLAIN = Wish()
USED = {"algorithm": [one.name for one in fields(Wish)], "plan": ["in_place", "chunks", "instances"]}
FEWER = "fewer steps: --chunks N rounds pieces to N chunks a part; or solve with larger pieces (solve -O chunks=N)"


def format_of(name: str | None, path: Path) -> Format:
    """The format of that name, or by the file's suffix. Raises :class:`InputError` naming the known ones."""
    known = ", ".join(FORMATS)
    if name is None:
        fitting = [one for one in FORMATS.values() if path.suffix.lower() == one.suffix]
        if len(fitting) != 1:
            raise InputError([Fault("--format", f"say which: one of {known}")])
        return fitting[0]
    if name not in FORMATS:
        raise InputError([Fault("--format", f"must be one of {known}", name, True)])
    return FORMATS[name]


def transfers_of(record: Record) -> Transfers:
    """The record's schedule as moves from rank to rank. Raises :class:`InputError` where it holds none, and for
    families and solutions that are no collective among ranks."""
    return _transfers_of(record, "export")


def moves_of(record: Record) -> Transfers:
    """The same, also of what no executor knows: demands, and families that state no more than who sends to whom."""
    try:
        return _transfers_of(record, "export")
    except InputError:
        if not get_family(record["family"]).can("demands"):
            raise
        return _transfers_of(record, "demands")


def _transfers_of(record: Record, what: Capability) -> Transfers:
    family = get_family(record["family"])
    source = str(record.path) if record.path else None
    if not family.can(what):
        raise InputError(f"schedules of family {family.name} are no collective that an executor runs", source)
    if record["kind"] == "bound" or not record.packed:
        raise InputError(f"holds no schedule ({record['method']} ended: {record['termination']})", source)
    instance, solution = record.find_instance(), record.solution()
    verdict = replay(family, instance, solution)  # what the record says of itself is a claim
    if verdict.faults:
        more = f" (and {len(verdict.faults) - 1} more faults)" if len(verdict.faults) > 1 else ""
        raise InputError(f"its schedule is none: {verdict.faults[0]}{more}", source)
    made: Transfers = family.capability(what)(instance, solution)
    return made


def write_schedule(
    transfers: Transfers, form: Format, path: Path, executor: str | None = None, wish: Wish = PLAIN,
    checks: bool = True, both: bool = False,
) -> list[str]:  # fmt: skip
    """Write the moves in a format of schedules for an executor (default: the format's first), as wished where the
    format leaves a choice, and with ``both`` also for calls in place, in the same file or one beside it; returns what
    is worth knowing, in words.

    Raises :class:`InputError` for an executor that does not read the format, where a limit cannot be kept, where what
    would be written does not pass the check of its format, and where the file cannot be written.
    """
    if transfers.begins is not None:
        words = "no file here says how an executor runs them; `synth run` does, `synth show RECORD --csv` lists them"
        raise InputError(f"blocks with several holders or wanters: {words}")
    name = _executor_of(transfers, form, executor, wish)
    write = load(form.target)
    try:
        match form.of:
            case "algorithm":
                assert name is not None
                return _fitting(
                    transfers, wish, lambda asked: _write_algorithm(transfers, path, write, name, asked, checks, both)
                )
            case "plan":
                version = version_of(name or "") or NEWEST
                return _fitting(
                    transfers, wish, lambda asked: _write_plan(transfers, path, write, asked, both, version)
                )
            case "traces":
                return _write_traces(transfers, path, write, checks)
        write(transfers, path)
    except OSError as error:
        raise InputError(f"cannot be written: {error.strerror}", str(error.filename or path)) from None
    return []


def _executor_of(transfers: Transfers, form: Format, executor: str | None, wish: Wish) -> str | None:
    """The executor that is written for, if the format has any. Raises :class:`InputError` for what the format or the
    executor cannot say."""
    name = executor or (form.executors[0] if form.executors else None)
    if form.of == "plan":
        version_of(name or "")  # a fault, where it is not known
    if name is not None and name not in form.executors:
        readers = f"read by {', '.join(form.executors)}" if form.executors else "for no executor in particular"
        raise InputError([Fault("--executor", f"{form.name} is {readers}", name, True)])
    if unused := [one.name for one in fields(Wish) if getattr(wish, one.name) != getattr(PLAIN, one.name)
                  and one.name not in USED.get(form.of, ())]:  # fmt: skip
        raise InputError([Fault(f"--{name.replace('_', '-')}", f"has no meaning for {form.name}") for name in unused])
    _demand_sayable(transfers, form)
    return name


def _demand_sayable(transfers: Transfers, form: Format) -> None:
    """Raises :class:`InputError` for what a format cannot say."""
    if transfers.summed and form.of in ("transfers", "traces"):
        words = f"{form.name} cannot say it, the flat table does: synth show RECORD --csv"
        raise InputError(f"{transfers.summed}: {words}")


def _fitting(transfers: Transfers, wish: Wish, attempt: Callable[[Wish], list[str]]) -> list[str]:
    """What an attempt at writing returns. Where the pieces ask for more chunks than the executor takes and no number is
    wished, they are rounded to the largest power of two that it takes, and that is said. Raises :class:`InputError`."""
    try:
        return attempt(wish)
    except LimitError as error:
        error.hint = FEWER
        if wish.chunks is not None:
            raise
        refused = error
    asked = (in_chunks(transfers, None)[0] if transfers.demand is None else padded.padded(transfers)).part_bytes
    for chunks in (1 << power for power in reversed(range(min(asked - 1, MOST_TRIED).bit_length()))):
        try:
            notes = attempt(replace(wish, chunks=chunks))
        except LimitError:
            continue
        words = str(refused).splitlines()[0]
        slower = "rounded it can take far longer than the schedule"
        return [f"as the pieces ask, {count(asked)} chunks a part, it is too large: {words}", *notes, slower]
    raise refused


def _write_algorithm(
    transfers: Transfers, path: Path, write: Callable[..., None], executor: str, wish: Wish, checks: bool, both: bool
) -> list[str]:
    algorithm, notes = algorithm_of(transfers, executor, wish, checks)
    one = replace(wish, in_place=True, chunks=algorithm.chunks // wish.cuts if transfers.demand else wish.chunks)

    def put(made: Algorithm, there: Path) -> None:
        write(made, there, executor)

    def again() -> Algorithm:
        return algorithm_of(transfers, executor, one, checks)[0]

    notes += _calls(transfers, executor, algorithm.chunks, NEWEST, wish.cuts)
    if not both:
        put(algorithm, path)
        return notes
    return [*notes, in_place.written(algorithm, executor, again, path, put).told]


def _write_plan(
    transfers: Transfers, path: Path, write: Callable[..., None], wish: Wish, both: bool, version: Version
) -> list[str]:
    if transfers.demand is None:
        whole, notes = in_chunks(transfers, wish.chunks)
    else:
        whole, notes = padded.padded(transfers, wish.chunks, wish.instances), []

    def planned(one: bool) -> mscclpp.Planned:
        found = mscclpp.planned(whole, in_place=one, instances=wish.instances)
        if transfers.demand is not None:
            size = padded.chunk_bytes(transfers, whole.part_bytes, wish.instances) * whole.part_bytes * whole.ranks
            found.plan.update(min_message_size=size, max_message_size=size + (not version.registers))
        return found

    made = planned(wish.in_place)
    if missing := unknown_to(version, made.plan):
        raise InputError(f"needs {missing}, which MSCCL++ {version.name} does not know")
    notes += [*made.notes, *_calls(transfers, "mscclpp", whole.part_bytes * wish.instances, version, wish.instances)]
    if not both:
        write(made.plan, path)
        return notes

    def again() -> Any:
        return planned(True).plan

    return [*notes, in_place.written(made.plan, "mscclpp", again, path, write).told]


def _calls(transfers: Transfers, executor: str, chunks: int, version: Version, instances: int) -> list[str]:
    """Which calls a file serves, and how one comes that serves more."""
    planned = executor == "mscclpp"
    if transfers.demand is not None:
        return [padded.told(transfers, chunks // instances, instances)]
    said = counts.told(executor, transfers.collective, chunks, version)
    if counts.even(planned, transfers.collective, transfers.ranks, transfers.part_bytes, chunks):
        return [said]
    others = counts.even_chunks(transfers, planned)
    return [f"{said}; --chunks {others[0]} for all sizes of whole 8 KiB a rank" if others else said]


def algorithm_of(
    transfers: Transfers, executor: str, wish: Wish = PLAIN, checks: bool = True
) -> tuple[Algorithm, list[str]]:
    """The algorithm that makes these moves on an executor, and what is worth knowing, in words. It has passed the check
    that other people's algorithms have to pass, and holds the executor's limits, unless ``checks`` is off.

    Raises :class:`LimitError` where a limit cannot be kept.
    """
    if wish.protocol not in msccl_xml.PROTOCOLS:
        raise InputError([Fault("--protocol", f"must be one of {', '.join(msccl_xml.PROTOCOLS)}", wish.protocol, True)])
    algorithm, notes = _lowered(transfers, executor, wish)
    if checks:
        held = _demand_valid(algorithm, executor)
        if held > HELD and wish.fuse:
            whole, others = algorithm_of(transfers, executor, replace(wish, fuse=False))
            words = f"fused, a connection would have to hold {held} sends at once, NCCL's hold {HELD}: not fused"
            return whole, [words, *others]
    if transfers.summed:
        notes.append(f"{transfers.summed}: ranks add instead, {executor} knows no sums in switches")
    notes.append(
        f"for {executor}: {count(algorithm.steps)} steps in {count(len(algorithm.tb_rank))} thread blocks, chunks a "
        f"part: {algorithm.chunks}" + ("" if checks else "; not checked")
    )
    return algorithm, notes


def _lowered(transfers: Transfers, executor: str, wish: Wish) -> tuple[Algorithm, list[str]]:
    """The algorithm; of a demand one all-to-all of given parts, for calls of its size alone."""
    limits = limits_of(executors.executor(executor))
    if transfers.demand is None:
        return lower(transfers, limits, wish)
    moves = padded.padded(transfers, wish.chunks, wish.cuts)
    algorithm, notes = lower(moves, limits, replace(wish, chunks=moves.part_bytes))
    size = padded.chunk_bytes(transfers, moves.part_bytes, wish.cuts) * moves.part_bytes * moves.ranks
    return replace(with_idle(algorithm), least_bytes=size, most_bytes=size), notes


def _demand_valid(algorithm: Algorithm, executor: str) -> int:
    """How many sends a connection must hold. Raises :class:`InputError` with every fault."""
    beyond = executors.faults(executor, algorithm)
    if beyond:
        raise LimitError(beyond)
    try:
        verdict = validity.check(algorithm)
    except InputError as error:
        raise InputError([*error.faults, Fault("", "--no-check writes it unchecked")]) from None
    if verdict.faults:
        raise InputError(verdict.faults)
    return int(verdict.facts["sends_to_hold"])


def _write_traces(transfers: Transfers, path: Path, write: Callable[..., list[Path]], checks: bool) -> list[str]:
    """Traces below a prefix, read back and replayed, and how a simulator finds them."""
    from synth.exchange import chakra

    prefix = path.with_suffix("") if path.suffix == ".et" else path
    paths = write(transfers, prefix)
    if checks:
        faults = chakra.faults(chakra.read(prefix))
        if faults:
            for one in paths:
                one.unlink()
            raise InputError(faults)
    system, workload, *_ = chakra.write_example(transfers, prefix)
    lines = " ".join(chakra.system_lines(transfers.collective, prefix.name).split())
    return [
        f"{len(paths)} files, {paths[0].name} to {paths[-1].name}; for ASTRA-sim {system.name} ({lines}) "
        f"and a workload of this one collective, {workload.name} …"
    ]


def write_model(
    record: Record, form: Form, path: Path, *, number: int = 1, solver: str | None = None,
    parameters: Mapping[str, str] | None = None, method_name: str | None = None,
) -> list[str]:  # fmt: skip
    """Write the ``number``-th model that the record's method hands to a solver, with the record's options but for
    ``solver`` and ``parameters`` (as texts); returns what is worth knowing, in words. A method in a file has to be
    named (``method_name``). Raises :class:`InputError` for methods that are no program, and as
    :func:`synth.solvers.model_file.instead_of_solving` does."""
    program = program_of(record, solver, parameters, method_name)
    source, method = str(record.path) if record.path else None, program.method
    with model_file.instead_of_solving(path, form, number) as wish:
        try:
            outcome = function_of(get_family(program.instance.family), method)(program.instance, program.options)
        except (UnsupportedError, SizeLimitError) as error:
            raise InputError(str(error), source) from None
        if outcome.termination in ("unsupported", "size_limit"):
            raise InputError(outcome.message or outcome.termination, source)
    said = f"model {number} of {record.label} on {program.instance.name}"
    said += f": {wish.question}" if wish.question else ""
    _remark(path, form, said)
    notes = [
        said,
        f"its solution comes back with --nth {number} and the same options: synth import RECORD --solution FILE",
    ]
    changed = method.folder is not None and record.data.get("method_origin") != method.origin
    return [*notes, *([f"the file of method {method.name} has changed since the run"] if changed else [])]


def _remark(path: Path, form: Form, words: str) -> None:
    """Put a remark before a model."""
    mark = {"mps": "*", "lp": "\\", "cpsat": "#"}[form]
    path.write_text(f"{mark} {words}\n{path.read_text(encoding='utf-8')}", encoding="utf-8")


class Program(NamedTuple):
    """A record's method, ready to run again."""

    instance: Instance
    method: Method
    options: RunOptions


def program_of(
    record: Record, solver: str | None, parameters: Mapping[str, str] | None, method_name: str | None
) -> Program:
    """The record's program with its options, but for ``solver`` and ``parameters``. Raises :class:`InputError` for a
    method that is none."""
    family = get_family(record["family"])
    source = str(record.path) if record.path else None
    instance = record.find_instance()
    method = _method_of(record, instance, method_name)
    if method.kind != "program" and not method.needs:
        raise InputError(f"{method.name} is a {method.kind}, no program: it has no model", source)
    kept, known = record["options"], {parameter.name for parameter in method.parameters}
    given = {key: as_text(value) for key, value in kept.get("method", {}).items() if value is not None and key in known}
    solver, values = method_options(family, method, solver or record["solver"], given | dict(parameters or {}))
    options = RunOptions(kept["time_limit_s"], kept["relative_gap"], kept["threads"], kept["seed"], solver, values)
    return Program(instance, method, options)


def _method_of(record: Record, instance: Instance, name: str | None) -> Method:
    """The record's method. One in a file is looked for only if it is named: a record starts no code. Raises
    :class:`InputError`."""
    stated = str(record["method"])
    if name is not None and as_module(name) != stated:
        raise InputError([Fault("--method", f"the record is of method {stated}", name, True)])
    if name is None and ":" in stated:
        words = f"method {stated} is in a file, which no record starts: name it with -m {stated}"
        raise InputError(words, str(record.path) if record.path else None)
    return method_of(get_family(record["family"]), stated, instance)
