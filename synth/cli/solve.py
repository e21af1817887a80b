"""``synth solve``: run methods on instance files."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import typer

from synth.cli.output import console, errors, number, percent, table

if TYPE_CHECKING:
    from synth.errors import Fault, InputError
    from synth.family import Family
    from synth.instance import Instance
    from synth.record import Record
    from synth.runner import Run
    from synth.standing import Standing

T = TypeVar("T")
EXIT_FAILED, EXIT_INPUT, EXIT_INFEASIBLE, EXIT_NO_SOLUTION, EXIT_INTERRUPTED = 1, 2, 3, 4, 130


def solve(
    paths: list[Path] = typer.Argument(..., metavar="INSTANCE…", help="Instance files or folders of them."),
    methods: list[str] = typer.Option(None, "-m", "--method", help="A method (repeatable). Default: the family's."),
    solver: str = typer.Option(None, "--solver", help="highs, cpsat, scip or gurobi; for methods that can use it."),
    time_limit: str = typer.Option("60s", "--time-limit", help="Per run: 90, 60s, 5m, 2h or none."),
    gap: float = typer.Option(1e-4, "--gap", min=0.0, help="Relative gap at which a solver may stop."),
    threads: int = typer.Option(1, "--threads", min=1, help="Threads of each run."),
    seed: int = typer.Option(0, "--seed", min=0, help="Seed of solvers and of every random choice."),
    options: list[str] = typer.Option(None, "-O", "--option", metavar="key=value", help="A method's own parameter."),
    results: Path = typer.Option(Path("results"), "--results", help="Folder for the records."),
    resume: bool = typer.Option(False, "--resume", help="Skip runs whose good record is there already."),
    retry: str = typer.Option(None, "--retry", help="With --resume: failed (out of memory, no result in time)."),
    jobs: int = typer.Option(None, "--jobs", "-j", min=1, help="Runs at once. Default: processors / threads."),
    memory: str = typer.Option(None, "--memory", help="Each run's memory limit, such as 4G or 500M. Default: none."),
    grace: str = typer.Option(
        "60s", "--grace", help="From a run's time limit to its end by force, for model and check."
    ),
    json_lines: bool = typer.Option(False, "--json", help="One record a line on standard output, nothing else there."),
) -> None:
    """Solve instance files; ends with a table of values, proven bounds and gaps."""
    from synth.cli.progress import Progress
    from synth.options import read_duration, read_megabytes
    from synth.record import dumps
    from synth.runner import WriteFailedError, cores, run_all

    memory_mb = None if memory is None else checked("--memory", read_megabytes, memory)
    grace_s = checked("--grace", read_duration, grace)
    if retry not in (None, "failed"):
        raise bad_option("--retry", "must be failed", retry)
    if retry and not resume:
        raise bad_option("--retry", "needs --resume", retry)
    runs = plan(paths, methods, solver, time_limit, gap, threads, seed, options or [], results)
    ended: dict[int, Record] = {}
    place = {id(run): i for i, run in enumerate(runs)}
    printed = reused = 0
    try:
        with Progress(len(runs), json_lines) as progress:
            several = jobs or max(1, cores() // threads)
            for run, record, was_there in run_all(
                runs, several, resume, retry == "failed", progress.start, memory_mb=memory_mb, grace_s=grace_s
            ):
                ended[place[id(run)]] = record
                reused += was_there
                progress.done(run, record)
                while json_lines and printed in ended:  # in the order asked for, each as soon as those before it
                    print(dumps(ended[printed].data, one_line=True), flush=True)
                    printed += 1
    except KeyboardInterrupt:
        errors.print("synth: interrupted; finished records are kept, --resume goes on from them", markup=False)
        raise typer.Exit(EXIT_INTERRUPTED) from None
    except WriteFailedError as error:
        errors.print(f"synth: {error}", style="red", markup=False)
        raise typer.Exit(EXIT_FAILED) from None
    done = [(runs[i], ended[i]) for i in sorted(ended)]
    contradictions = print_contradictions(done, results)
    if not json_lines:
        print_table(done, results)
        if reused:
            console.print(f"{reused} of {len(done)} runs were done before and skipped (--resume)")
    print_messages(done)
    code = EXIT_FAILED if contradictions else exit_code(done)
    if code:
        raise typer.Exit(code)


def bad_option(name: str, message: str, value: str) -> InputError:
    """The error for an option's wrong value."""
    from synth.errors import Fault, InputError

    return InputError([Fault(name, message, value, True)])


def checked(name: str, read: Callable[[str], T], text: str) -> T:
    """An option's value as read. Raises :class:`InputError` in words."""
    try:
        return read(text)
    except ValueError as error:
        raise bad_option(name, str(error), text) from None


def plan(
    paths: list[Path], methods: list[str] | None, solver: str | None, time_limit: str, gap: float, threads: int,
    seed: int, options: list[str], results: Path,
) -> list[Run]:  # fmt: skip
    """All runs, or one InputError that lists everything wrong with files, methods, solvers and options."""
    from synth.api import method_options
    from synth.errors import Fault, InputError
    from synth.family import get_family
    from synth.instance import read
    from synth.options import RunOptions, read_duration, split_pairs
    from synth.runner import Run, expand_paths

    faults: list[Fault] = []
    limit: float | None = None
    if time_limit != "none":
        try:
            limit = read_duration(time_limit)
        except ValueError as error:
            faults.append(Fault("--time-limit", str(error), time_limit, True))
    given = split_pairs(options, "-O")
    instances: list[Instance] = []
    for path in expand_paths(paths):
        try:
            instances.append(read(path))
        except InputError as error:
            faults += [Fault("", line) for line in str(error).splitlines()]
    faults += _name_clashes(instances)
    runs: list[Run] = []
    seen: set[str] = set()
    for instance in instances:
        family = get_family(instance.family)
        names = list(dict.fromkeys(methods or _defaults(family, instance, solver)))
        usable = {
            parameter.name for name in names if name in family.methods for parameter in family.methods[name].parameters
        }
        for name in names:
            try:
                method = family.method(name)
                # with several methods an option or a solver goes to those that know it
                known = {parameter.name for parameter in method.parameters}
                mine = {key: value for key, value in given.items() if key in known or key not in usable}
                fits = solver is None or solver in method.solvers or len(names) == 1
                chosen, parameters = method_options(family, method, solver if fits else None, mine)
            except InputError as error:
                if str(error) not in seen:
                    faults.append(Fault("", str(error)))
                seen.add(str(error))
                continue
            runs.append(Run(instance, method, RunOptions(limit, gap, threads, seed, chosen, parameters), results))
    if solver is not None and not faults and not any(run.options.solver == solver for run in runs):
        from synth.solvers.catalogue import require

        require(solver)
        faults.append(Fault("", f"none of the methods can use solver {solver}"))
    if faults:
        raise InputError(faults)
    return runs


def _defaults(family: Family, instance: Instance, solver: str | None) -> list[str]:
    """The family's default methods; if none of them can use the solver asked for, a program that can takes the place of
    the default ones."""
    from synth.family import defaults_for

    names = list(defaults_for(family, instance))
    able = [name for name, method in family.methods.items() if solver in method.solvers]
    if solver is None or not able or set(able) & set(names):
        return names
    return [name for name in names if family.methods[name].kind != "program"] + able[:1]


def _name_clashes(instances: Sequence[Instance]) -> list[Fault]:
    from synth.errors import Fault

    files = defaultdict(list)
    for instance in instances:
        files[instance.family, instance.name].append(str(instance.file))
    return [
        Fault(
            "", f"two instances are both named {name} ({' and '.join(where)}); their records would overwrite each other"
        )
        for (_, name), where in files.items()
        if len(where) > 1
    ]


COLUMNS = ("instance", "method", "value", "bound", "gap", "proof", "seconds", "verified", "ended")


def _rows(done: Sequence[tuple[Run, Record]], results: Path) -> list[Sequence[str]]:
    from synth.record import gap

    found = _standings(done, results)
    rows: list[Sequence[str]] = []
    for run, record in done:
        best = found[run.instance.family, run.instance.sha256]
        bound = best.bound
        solver = run.options.solver
        method = run.method.name + (f" ({solver})" if solver and solver != run.method.name else "")
        something = record.value is not None or "certificate" in record["verified"]["facts"]
        done_how = "counted" if record.evidence == "counted" else "yes"
        verified = "FAILED" if not record.ok else done_how if something else "–"
        ended = record["termination"]
        value = number(record.value) if record.value is not None else ended
        if run.method.kind == "bound" and record.bound is not None:
            value = f"(bound {number(record.bound)})"
        elif record.bound_disproved:
            verified = "bound FALSE"
        seconds = f"{record['seconds']['build'] + record['seconds']['solve']:.2f}"
        shown_gap = percent(gap(record.value, bound))
        rows.append((run.instance.name, method, value, number(bound), shown_gap, best.proof, seconds, verified, ended))
    return rows


def print_table(done: Sequence[tuple[Run, Record]], results: Path) -> None:
    """Value, best proven bound and what proves it, gap, seconds and end of each run."""
    rows = _rows(done, results)
    right = ("value", "bound", "gap", "seconds")
    console.print(table(*COLUMNS, rows=rows, right=right))


def print_contradictions(done: Sequence[tuple[Run, Record]], results: Path) -> int:
    """Schedules below certified bounds (alarms) and below solvers' bounds, on standard error; how many there are."""
    found = _standings(done, results)
    texts = [text for standing in found.values() for text in standing.messages()]
    for text in texts:
        errors.print(f"synth: {text}", style="red", markup=False)
    return len(texts)


def write_table(done: Sequence[tuple[Run, Record]], results: Path, path: Path) -> None:
    """The columns of the table with plain numbers, as a CSV file; empty cells where there is nothing."""
    import csv

    from synth.record import gap

    found = _standings(done, results)
    with path.open("w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(("instance", "method", "solver", *COLUMNS[2:]))
        for run, record in done:
            best = found[run.instance.family, run.instance.sha256]
            seconds = record["seconds"]["build"] + record["seconds"]["solve"]
            writer.writerow((
                run.instance.name, run.method.name, run.options.solver, record.value, best.bound,
                gap(record.value, best.bound), best.proof if best.best else None, seconds, record.ok,
                record["termination"],
            ))  # fmt: skip


def _standings(done: Sequence[tuple[Run, Record]], results: Path) -> Mapping[tuple[str, str], Standing]:
    """What is proven per instance (family and hash of its file), by these runs and earlier records of the same file."""
    from synth import record as records
    from synth.errors import InputError
    from synth.standing import by_instance, standing

    held = {run.path.resolve(): record for run, record in done}
    for folder in {run.path.parent.resolve() for run, _ in done}:
        for path in sorted(folder.glob("*.json")):
            if path not in held:
                try:
                    held[path] = records.read(path)
                except InputError:
                    continue
    groups = by_instance(held.values())
    keys = {(run.instance.family, run.instance.sha256) for run, _ in done}
    return {key: standing(groups.get(key, ())) for key in keys}


def print_messages(done: Sequence[tuple[Run, Record]]) -> None:
    """What a person must know and the table does not say, on standard error."""
    from synth.runner import FAILED

    for run, record in done:
        where = f"{run.instance.name}, {run.method.name}"
        if (
            record["termination"] in (*FAILED, "size_limit", "unsupported", "infeasible", "time_limit")
            and record["message"]
        ):
            if len(done) > 4 and record["termination"] in ("unsupported", "time_limit"):
                continue  # the table's last column says it; the records have the words
            errors.print(f"{where}: {record['termination']}: {record['message']}", markup=False)
        for fault in record["verified"]["faults"]:
            errors.print(f"{where}: check failed: {fault}", style="red", markup=False)


def exit_code(done: Sequence[tuple[Run, Record]]) -> int:
    """The command's exit code for these runs (see the README)."""
    from synth.runner import FAILED

    if any(record["termination"] in FAILED or not record.ok for _, record in done):
        return EXIT_FAILED
    if all(record["termination"] in ("size_limit", "unsupported") for _, record in done):
        return EXIT_INPUT
    if any(record["termination"] == "infeasible" for _, record in done):
        return EXIT_INFEASIBLE
    problems = {(run.instance.family, run.instance.sha256) for run, _ in done}
    solved = {
        (run.instance.family, run.instance.sha256)
        for run, record in done
        if record.value is not None or run.method.kind == "bound"
    }
    return EXIT_NO_SOLUTION if problems - solved else 0
