"""The command ``synth``."""

from __future__ import annotations

import errno
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from io import TextIOWrapper
from typing import Any

import typer
from typer.core import TyperGroup

from synth import execution
from synth.cli import (
    batch,
    bounds,
    catalogue,
    cite,
    drill,
    evaluate,
    explain,
    export,
    fit,
    inspect,
    library,
    machine_import,
    make,
    place,
    plan,
    reproduce,
    reshard,
    solve,
    study,
    submit,
    tour,
    tune,
)
from synth.cli import run as running
from synth.errors import InputError, abridged
from synth.text.visible import visible

_USAGE_ERROR: Any = typer.BadParameter.__base__  # of click, or of the copy of it that typer brings


@contextmanager
def _typed_in_view() -> Iterator[None]:
    """Usage errors raised in here show what was typed as all else is shown: in one line that no terminal obeys. The
    help that stands in for an error where nothing was typed is ours."""
    try:
        yield
    except _USAGE_ERROR as error:
        if type(error).__name__ != "NoArgsIsHelpError":
            error.message = visible(str(error.message))
        raise


class _Commands(TyperGroup):
    """All commands."""

    def make_context(self, *given: Any, **more: Any) -> Any:
        """Read the command's own options."""
        with _typed_in_view():
            return super().make_context(*given, **more)

    def invoke(self, ctx: Any) -> Any:
        """Read the options of the command named, and run it."""
        with _typed_in_view():
            return super().invoke(ctx)


app = typer.Typer(
    name="synth",
    cls=_Commands,
    help="Synthesise collective-communication schedules by mathematical programming, with proven gaps.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # plain help: no boxes, options in two columns that fit into 80
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("families")(catalogue.families)
app.command("solvers")(catalogue.solvers)
app.command("instances")(catalogue.instances)
app.command("schema")(catalogue.schema)
app.command("make", cls=make.WithKeys)(make.make)
app.command("import", cls=machine_import.WithFormats)(machine_import.import_)
app.command("fit")(fit.fit)
app.command("evaluate")(evaluate.evaluate)
app.command("tour")(tour.tour)
app.command("solve")(solve.solve)
app.command("check")(inspect.check)
app.command("show")(inspect.show)
app.command("cite")(cite.cite)
app.command("pack")(inspect.pack)
app.command("export")(export.export)
app.command("run")(running.run)
app.command("submit")(submit.submit)
app.command("library")(library.library)
app.command("plan")(plan.plan)
app.command("place")(place.place)
app.command("reshard")(reshard.reshard)
app.command("tune")(tune.tune)
app.command("bounds")(bounds.bounds)
app.command("explain")(explain.explain)
app.command("drill")(drill.drill)
app.command("study")(study.study)
app.command("reproduce")(reproduce.reproduce)
app.add_typer(batch.app, name="batch")


def _version(wanted: bool) -> None:
    if wanted:
        import synth

        typer.echo(f"synth {synth.__version__}")
        raise typer.Exit()


@app.callback()
def _main(
    version: bool = typer.Option(False, "--version", callback=_version, is_eager=True, help="Print the version."),
) -> None:
    pass


def _terminated(*_: Any) -> None:
    raise KeyboardInterrupt


def _from_interrupt(error: BaseException | None) -> bool:
    """Whether an interrupt is among the causes of the error."""
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__cause__ or error.__context__
    return error is not None


def run() -> None:
    """Entry point: bad input ends with one message per fault and exit code 2, never with a traceback. So does a path
    that the system refuses (a name too long, a folder where a file should be, no permission)."""
    for number in (signal.SIGTERM, getattr(signal, "SIGHUP", signal.SIGTERM)):
        signal.signal(number, _terminated)
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # numpy's import then starts no thread: guards can be forked
    execution.may_fork = True
    if isinstance(sys.stdout, TextIOWrapper):  # where it cannot hold a letter, that is no traceback
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        _command()
    except InputError as error:
        for line in str(error).splitlines():
            print(visible(f"synth: {line}"), file=sys.stderr)
        if error.hint is not None:
            print(visible(error.hint), file=sys.stderr)
        sys.exit(2)
    except BrokenPipeError:  # the reader (head, less) went away: no error
        _write_no_more()
        sys.exit(0)
    except OSError as error:
        if (told := _of_system(error)) is None:
            raise
        print(visible(f"synth: {told}"), file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        sys.exit(130)
    except SystemError as error:  # raised instead where the signal came while compiled code was entered or left
        if not _from_interrupt(error):
            raise
        sys.exit(130)
    except SystemExit as error:
        if isinstance(error.__context__, BrokenPipeError):  # typer's own answer to it
            _write_no_more()
            sys.exit(0)
        raise
    finally:
        _speak_of_plugins()


def _command() -> None:
    """Runs the command. All it printed is out when it ends, so that what became of the output is known here."""
    try:
        app()
    finally:
        sys.stdout.flush()


def _of_system(error: OSError) -> str | None:
    """What the system refused, in words; None where that is neither a path nor the output."""
    if error.filename is not None:
        return f"{abridged(str(error.filename))}: {error.strerror}"
    if error.errno != errno.ENOSPC:
        return None
    _write_no_more()
    return f"the output: {error.strerror}"


def _write_no_more() -> None:
    """Nothing takes the output any more: what is left of it goes nowhere when Python ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _speak_of_plugins() -> None:
    """A line for each entry point of another distribution that was left out, if any was looked at."""
    plugins = sys.modules.get("synth.plugins.entry_points")
    if plugins is not None and "_SYNTH_COMPLETE" not in os.environ:
        for words in plugins.complaints():
            print(visible(f"synth: {words}"), file=sys.stderr)
