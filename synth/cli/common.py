"""What the commands that run things share: exit codes, options in words, and the two ways a set of runs ends early."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import typer

from synth.cli.output import errors

if TYPE_CHECKING:
    from synth.errors import InputError
    from synth.execution.runs import Run

T = TypeVar("T")
EXIT_FAILED, EXIT_INPUT, EXIT_INFEASIBLE, EXIT_NO_SOLUTION, EXIT_INTERRUPTED = 1, 2, 3, 4, 130


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


def demand_folder(option: str, *folders: Path) -> None:
    """Before anything runs: raises :class:`InputError` where files cannot be written into one of the folders, made
    where it is missing. Nothing is left there."""
    for folder in dict.fromkeys(folders):
        missing = [place for place in (folder, *folder.parents) if not os.path.lexists(place)]
        try:
            folder.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=folder) as probe:
                probe.write(b"synth")
        except OSError as error:
            there = next((place for place in (folder, *folder.parents) if os.path.lexists(place)), Path())
            words = f"cannot be written: {error.strerror}"
            if not there.is_dir():
                words = f"{there} is no folder"
            elif isinstance(error, PermissionError):
                words = f"no permission to write in {there}"
            raise bad_option(option, words, str(folder)) from None
        finally:
            for place in missing:
                with suppress(OSError):
                    place.rmdir()


def demand_records(option: str, runs: Iterable[Run]) -> None:
    """Before anything runs: raises :class:`InputError` where the record of a run cannot be written."""
    demand_folder(option, *dict.fromkeys(run.path.parent for run in runs))


def retries_failed(retry: str | None, resume: bool) -> bool:
    """What ``--retry`` says. Raises :class:`InputError` in words."""
    if retry not in (None, "failed"):
        raise bad_option("--retry", "must be failed", retry)
    if retry and not resume:
        raise bad_option("--retry", "needs --resume", retry)
    return retry == "failed"


@contextmanager
def ending_early(again: str = "--resume") -> Iterator[None]:
    """Runs go on in here: an interruption and a disk that is full end the command with one line. ``again`` is what goes
    on from the records that are finished."""
    from synth.execution.pool import WriteFailedError

    try:
        yield
    except KeyboardInterrupt:
        errors.print(f"synth: interrupted; finished records are kept, {again} goes on from them")
        raise typer.Exit(EXIT_INTERRUPTED) from None
    except WriteFailedError as error:
        errors.print(f"synth: {error}", style="red")
        raise typer.Exit(EXIT_FAILED) from None
