"""``synth check`` and ``synth show``: records after the run."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from synth.cli.options import Costing, Drawing, grouped
from synth.cli.output import command, console, errors
from synth.text.quantities import percent, shown

if TYPE_CHECKING:
    from synth.errors import InputError
    from synth.method import Verdict
    from synth.records.record import Record
    from synth.views.figure_style import FigureStyle

LONGEST = 200  # characters of one value of a certificate that are shown


def check(
    paths: list[Path] = typer.Argument(
        ..., metavar="RECORD…", help="Records, collections (records.jsonl), folders; MSCCL XML, MSCCL++ plans (JSON)."
    ),
    summary: bool = typer.Option(False, "--summary", help="Only what fails and the closing line."),
    collective: str = typer.Option(None, "--collective", help="What an algorithm must do, whatever its file says."),
    executor: str = typer.Option(
        None, "--executor", help="Whose limits an algorithm must keep: azure, msccl, mscclpp."
    ),
) -> None:
    """Compare all that records state with what can be computed again: replay their solutions from the instance files
    alone, verify their bounds' certificates. Says what could not be verified. Exit code 1 if a record states what is
    false.

    An algorithm (MSCCL XML, MSCCL++ plan), whoever made it, is replayed over all orders in which it may run: messages
    match, nothing waits for itself, no two accesses race, nothing is read unwritten, every output is complete."""
    from synth.errors import InputError
    from synth.exchange.file_kinds import is_algorithm
    from synth.records.folder import read_all

    algorithms = [path for path in paths if is_algorithm(path)]
    if algorithms:
        _check_algorithms(algorithms, collective, executor, summary, last=len(algorithms) == len(paths))
        paths = [path for path in paths if path not in algorithms]
    elif collective or executor:
        raise InputError("--collective and --executor go with an algorithm: MSCCL XML or an MSCCL++ plan")
    count: Counter[str] = Counter()
    for record in read_all(paths):
        _check_record(record, summary, count)
    console.print(_count_in_words(count))
    if count["failed"] or count["unreadable"]:
        raise typer.Exit(1 if count["failed"] else 2)


def _check_record(record: Record | InputError, summary: bool, count: Counter[str]) -> None:
    """Check one record, or say why it cannot be read, and add to ``count`` what the closing line says."""
    from synth.api import check as check_record
    from synth.errors import InputError

    try:
        if isinstance(record, InputError):
            raise record
        verdict = check_record(record)
    except InputError as error:
        count["unreadable"] += 1
        for line in str(error).splitlines():
            errors.print(f"synth: {line}")
        return
    if verdict.faults:
        count["failed"] += 1
        console.print(f"FAILED {record.path}")
        for fault in verdict.faults:
            console.print(f"  {fault}")
        return
    count["good"] += 1
    count[record.evidence or "no value"] += 1
    count["method"] += "method" in verdict.facts
    count[f"bound {record.grade or 'unproven'}" if record.stated_bound is not None else "no bound"] += 1
    if not summary:
        console.print(f"ok     {record.path}: {_checked(record, verdict)}")


def _check_algorithms(
    paths: list[Path], collective: str | None, executor: str | None, summary: bool, last: bool
) -> None:
    """Check algorithms; ends the command where one fails, or after the ``last`` file of it."""
    from synth.errors import InputError
    from synth.exchange.file_check import check_file

    failed = unreadable = 0
    for path in paths:
        try:
            found = check_file(path, collective, executor)
        except InputError as error:
            unreadable += 1
            for line in str(error).splitlines():
                errors.print(f"synth: {line}")
            continue
        failed += bool(found.faults)
        if found.faults:
            lines = str(InputError(found.faults)).splitlines()
            console.print(f"FAILED {path}: {found.summary}")
            lines += found.notes
            console.print(*(f"  {line}" for line in lines), sep="\n")
        elif not summary:
            console.print(f"ok     {path}: {found.summary}", *(f"  {note}" for note in found.notes), sep="\n")
    good = len(paths) - failed - unreadable
    hold = "1 algorithm holds" if good == 1 else f"{good} algorithms hold"
    words = f"{hold}: no deadlock, no race, every output complete in every order they may run in"
    words += f"; {failed} FAILED" if failed else ""
    words += f"; {unreadable} could not be read" if unreadable else ""
    console.print(f"{words}.")
    if failed or unreadable:
        raise typer.Exit(1 if failed else 2)
    if last:
        raise typer.Exit()


def _checked(record: Record, verdict: Verdict) -> str:
    """What the check found right, and behind it what it could not verify."""
    from synth.records.verify import RUNS_WORD

    said: list[str] = []
    unit = record["objective"]["unit"]
    if verdict.value is not None:
        said.append(f"{record['objective']['name']} {shown(verdict.value, unit)}, {record.evidence}")
    if record.grade == "certified" and record.bound is not None:
        said.append(f"bound {shown(record.bound, unit)} follows from its certificate")
    if "infeasible" in verdict.facts:
        said.append(f"that {record.question} has no answer follows from its certificate")
    if "method" in verdict.facts:
        said.append(f"method {record['method']} {verdict.facts['method']}")
    if not said:
        said.append(f"{record.words_of_end}, holds no solution to replay")
    rest = [text for text in verdict.unverified if text != RUNS_WORD]
    return "; ".join(said) + (f"; not verified: {'; '.join(rest)}" if rest else "")


def _count_in_words(count: Counter[str]) -> str:
    from synth.records.verify import RUNS_WORD

    bounds = f"{count['bound certified']} certified, {count['bound solver']} by a solver alone (not verified)"
    if count["bound unproven"]:
        bounds += f", {count['bound unproven']} without proof"
    values = f"{count['replayed']} values replayed, {count['counted']} counted"
    words = f"{count['good']} records hold: {values}; bounds: {bounds}"
    words += f"; {count['method']} of the methods run again" if count["method"] else ""
    for key, text in (("failed", "FAILED"), ("unreadable", "could not be read")):
        words += f"; {count[key]} {text}" if count[key] else ""
    return f"{words}. Not verified in any: {RUNS_WORD}."


def pack(
    folders: list[Path] = typer.Argument(..., metavar="FOLDER…", help="Folders of records."),
) -> None:
    """Put the records below a folder into one file (records.jsonl), their arrays beside it. They keep their addresses:
    check, show, study and --resume find them as before."""
    from synth.errors import InputError
    from synth.records.folder import pack as pack_records
    from synth.records.lock import LockedError

    for folder in folders:
        if not folder.is_dir():
            raise InputError("no such folder", str(folder))
        try:
            count = pack_records(folder)
        except LockedError as error:
            errors.lines(f"synth: {error}", style="red")
            raise typer.Exit(1) from None
        except OSError as error:
            errors.print(f"synth: {folder}: cannot be written: {error.strerror}", style="red")
            raise typer.Exit(1) from None
        console.print(f"{folder}: {count} records packed")


@dataclass(frozen=True)
class AsRun(Costing):
    """The form in which a schedule will run, and changes of what it runs on."""

    what_if: Annotated[
        list[str] | None, typer.Option(help="What each change of a step buys: nic=2x,compute=0.9x,overlap=full.")
    ] = None
    form: Annotated[
        str | None, typer.Option(help="Say how long it takes as it will run: msccl:azure, msccl, mscclpp, scheduled.")
    ] = None


@grouped
def show(
    path: Path = typer.Argument(..., metavar="RECORD", help="A record, or an algorithm (MSCCL XML, MSCCL++ plan)."),
    plot: Path = typer.Option(None, "--plot", help="Draw the solution into this file (.png, .svg, .pdf)."),
    drawn: Drawing = Drawing(),
    csv: bool = typer.Option(
        False, "--csv", help="Print the solution as one flat table; the family's page lists its columns."
    ),
    flows: bool = typer.Option(False, "--flows", help="With --csv: the flows over the links, where a family has any."),
    certificate: bool = typer.Option(False, "--certificate", help="Print the bound and its certificate as JSON."),
    asked: AsRun = AsRun(),
) -> None:
    """Show a record and its solution to a person."""
    from synth.errors import InputError
    from synth.exchange.file_kinds import is_plan
    from synth.family import get_family
    from synth.method import load
    from synth.records import record as records

    _matching(plot, csv, flows, drawn)
    style = drawn.figure_style
    if path.suffix.lower() == ".xml":
        _show_algorithm(path, plot, csv, style)
        return
    if is_plan(path):
        _show_plan(path, plot, csv)
        return
    record = records.read(path)
    family = get_family(record["family"])
    if asked.what_if:
        from synth.cli.what_if import tell

        tell(record, ",".join(asked.what_if))
        return
    if asked.form is not None:
        _print_form(record, asked.form, asked)
        return
    if certificate:
        _print_certificate(record)
        return
    if csv:
        if flows and not family.can("flow_table"):
            raise InputError(f"--flows: the table of family {family.name} holds everything; it has no flows beside it")
        table = family.capability("flow_table") if flows else load(family.table)
        table(record.find_instance(), record.solution()).to_csv(sys.stdout, index=False)
        return
    if plot is not None:
        _draw(record.plot, plot, style)
        return
    text = record.describe() if record["kind"] != "bound" and record.packed else None
    _print_summary(record)
    if text is not None:
        console.lines(text)
        words = f"the whole solution as one table: {command('show', path, '--csv')}; drawn: --plot FILE"
        console.print(words)


def _matching(plot: Path | None, csv: bool, flows: bool, drawn: Drawing) -> None:
    """Raises :class:`InputError` for options of `show` without the one that they go with."""
    from synth.errors import InputError

    if flows and not csv:
        raise InputError("--flows goes with --csv")
    if plot is None and (drawn.style or drawn.width):
        raise InputError("--style and --width go with --plot")


def _print_form(record: Record, form: str, costing: Costing) -> None:
    """Print the time of a record's schedule in a form, and how it is lowered for that."""
    from synth.exchange.block_costs import words_of
    from synth.exchange.forms import form_of, in_form
    from synth.exchange.program_files import LOADED

    costs = costing.model(record.find_instance(), form_of(form))
    found, unit = in_form(record, form, costs), record["objective"]["unit"]
    words = f"as {form}: {shown(found.seconds, unit)}, as scheduled {shown(record.value, unit)}"
    if found.program is not None:
        words += f"; {found.program.thread_blocks} thread blocks a gpu"
        words += f", {found.program.how}" if found.program.how else ""
    words += f" (as it is, it does not fit: {found.refused})" if found.refused else ""
    console.print(words)
    if form in LOADED:
        console.print(words_of(costs))


def _print_certificate(record: Record) -> None:
    """Print what `synth submit --bound` reads. Raises :class:`InputError` where there is none."""
    from synth.errors import InputError
    from synth.text.files import dumps

    if record.stated_bound is None or record.certificate is None:
        raise InputError("holds no bound with a certificate", str(record.path))
    held = {"instance_sha256": record["instance_sha256"], "bound": record["bound"]}
    typer.echo(dumps({**held, "certificate": dict(record.certificate)}))


def _draw(figure: Callable[[], Any], path: Path, style: FigureStyle) -> None:
    from matplotlib import rc_context

    from synth.errors import InputError
    from synth.views.figure_style import SUFFIXES, drawing, save

    if path.suffix.lower() not in SUFFIXES:
        raise InputError("--plot takes a file ending in .png, .svg or .pdf", str(path))
    try:
        with drawing(style), rc_context({"text.parse_math": False}):  # a name may hold a dollar sign
            save(figure(), path)
    except OSError as error:
        raise InputError(f"cannot be written: {error.strerror}", str(path)) from None
    console.print(f"{path} written")


def _show_algorithm(path: Path, drawing: Path | None, csv: bool, style: FigureStyle) -> None:
    """An algorithm as a table of its steps, as a picture, or in words with what is wrong with it."""
    from synth.errors import InputError
    from synth.exchange import msccl_xml, validity
    from synth.exchange.file_check import describe
    from synth.exchange.views import plot, table

    read = msccl_xml.read(path)
    verdict = validity.check(read.algorithm)
    if csv:
        table(read.algorithm, verdict.level).to_csv(sys.stdout, index=False)
        return
    if drawing is not None:
        if not len(verdict.level):
            raise InputError(verdict.faults, str(path))
        title = f"{path.name}: {read.algorithm.collective}"
        _draw(lambda: plot(read.algorithm, verdict.level, title), drawing, style)
        return
    console.print(f"{path}: {describe(read, verdict)}")
    for line in str(InputError(verdict.faults)).splitlines() if verdict.faults else ():
        console.print(f"  fault: {line}")
    words = f"its steps as one table: {command('show', path, '--csv')}; drawn: --plot FILE"
    console.print(words)


def _show_plan(path: Path, drawing: Path | None, csv: bool) -> None:
    """A plan of MSCCL++ as a table of its operations, or in words with what is wrong with it."""
    from synth.errors import InputError
    from synth.exchange.mscclpp.file_report import judge
    from synth.exchange.mscclpp.reader import read
    from synth.exchange.mscclpp.views import table

    if drawing is not None:
        raise InputError("--plot draws records and MSCCL XML; a plan is shown in words, or as a table with --csv")
    if csv:
        table(read(path)).to_csv(sys.stdout, index=False)
        return
    summary, faults, notes = judge(path)
    console.print(f"{path}: {summary}")
    for line in str(InputError(faults)).splitlines() if faults else ():
        console.print(f"  fault: {line}")
    for note in notes:
        console.print(f"  note: {note}")
    console.print(f"its operations as one table: {command('show', path, '--csv')}")


def _print_summary(record: Record) -> None:
    """What the record states: the run, its value and bound, what proves them, and how long it took."""
    lines = [*_of_run(record), *_of_proof(record), *_of_end(record)]
    console.print(*lines, sep="\n")


def _of_run(record: Record) -> list[str]:
    objective, unit = record["objective"], record["objective"]["unit"]
    bound, left, words = _proven(record)
    solver = f" with {record['solver']} {record['solver_version']}" if record["solver"] else ""
    return [
        f"{record['family']} instance {record['instance']}, method {record['method']} ({record['kind']}){solver}"
        + (f"; made by {record.lender}" if record.lender else ""),
        f"ended: {record.words_of_end}" + (f" ({record['message']})" if record["message"] else ""),
        f"{objective['name']}: {shown(record.value, unit)}, proven bound {shown(bound, unit)}, "
        f"gap {percent(left)}" + (f" ({words})" if words else ""),
    ]


def _proven(record: Record) -> tuple[float | None, float | None, str]:
    """The best bound of the record and of those beside it, the gap to it, and what proves it, if need be where."""
    from synth.records.contradictions import standing
    from synth.records.folder import beside
    from synth.records.optimality import gap

    best = record if record.bound is not None else None
    if record.path is not None:
        near = [one for one in beside(record.path.parent) if one["instance_sha256"] == record["instance_sha256"]]
        found = standing([record, *near]).best
        if found is not None and (best is None or (found.bound or 0.0) > (best.bound or 0.0)):
            best = found
    if best is None:
        return None, None, ""
    there = "" if best is record or best.path == record.path else f", {best.path}"
    return best.bound, gap(record.value, best.bound), f"{best.words_of_grade}{there}"


def _of_proof(record: Record) -> list[str]:
    lines: list[str] = []
    if record.stated_bound is not None and record.bound is None:
        why = "disproved by the value" if record.bound_disproved else record.words_of_grade
        lines.append(f"stated bound {shown(record.stated_bound, record['objective']['unit'])}: {why}")
    if record.data.get("bound_proof"):
        lines.append(f"bound by: {record['bound_proof']}")
    if record.certificate:
        lines.append("certificate: " + ", ".join(f"{k} {_short(v)}" for k, v in record.certificate.items()))
    facts = record["verified"]["facts"]
    if record.value is not None or not record.ok:
        lines.append(
            f"verified: {'yes' if record.ok else 'FAILED'}; "
            + ", ".join(f"{k} {_fact(k, v)}" for k, v in facts.items())
        )
    return lines + [f"  fault: {fault}" for fault in record["verified"]["faults"]]


def _of_end(record: Record) -> list[str]:
    took = {name: value for name, value in record["seconds"].items() if value or name != "compile"}
    lines = ["seconds: " + ", ".join(f"{name} {value:.3g}" for name, value in took.items())]
    if record.data.get("stopped_by") == "clock":
        lines.append("stopped by the clock: another run, or another machine, may find something else")
    return lines


def _fact(name: str, value: object) -> str:
    """A fact as a person reads it: rounded, with the unit that its name ends in."""
    if not isinstance(value, float):
        return str(value)
    units = {"_bytes_per_s": "bytes/s", "_s": "s", "_bytes": "bytes"}
    unit = next((unit for end, unit in units.items() if name.endswith(end)), None)
    return f"{value:.6g}" if unit is None else shown(value, unit)


def _short(value: object) -> str:
    text = " ".join(str(value).split())
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}…"
