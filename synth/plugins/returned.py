"""What a method of somebody else's hands back, as an outcome; and tables that Python makes, as solutions.

A method may return an :class:`~synth.method.Outcome`, :class:`~synth.schedule.moves.Moves`, a solution of its family,
or the rows of its table. Whatever else it returns is said in a sentence, and what its code raises with file and line of
that code.
"""

from __future__ import annotations

import csv
import inspect
import io
import math
import re
import sysconfig
import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from types import FrameType
from typing import TYPE_CHECKING, Any, get_args

from synth.errors import InputError, SizeLimitError, UnsupportedError, one_of
from synth.family import Family, get_family
from synth.method import Method, Outcome, Termination, load
from synth.plugins.entry_points import OUR_PACKAGES, in_words
from synth.schedule.moves import Moves, file_name
from synth.text.input_file import InputFile

if TYPE_CHECKING:
    from synth.instance import Instance
    from synth.options import RunOptions

MAY_RETURN = (
    "it may return synth.Moves, an Outcome, a solution of the family, or the rows of its table (dicts or a DataFrame)"
)


def from_table(instance: Instance, rows: Any, flows: Any = None) -> Any:
    """The solution of a table: the columns that ``synth show RECORD --csv`` prints.

    ``rows``: mappings from column to value, or a DataFrame; several numbers in a cell are a list or a text.
    ``flows``: likewise, the second table of family ``harvest`` (``--csv --flows``). Raises :class:`InputError` naming
    every faulty row, counted from 0, and :class:`UnsupportedError` for a family whose tables cannot be read.
    """
    family = get_family(instance.family)
    if not family.can("from_table"):
        raise UnsupportedError(f"family {family.name} reads no tables")
    if family.can("flow_table") is (flows is None):
        both = "needs two tables, rows and flows" if flows is None else "has one table and no flows"
        raise InputError(f"family {family.name} {both}")
    files = [_Table("rows", rows), *([] if flows is None else [_Table("flows", flows)])]
    try:
        return family.capability("from_table")(instance, *files)
    except InputError as error:
        raise InputError([replace(fault, path=_row(fault.path)) for fault in error.faults], error.source) from None


class _Table(InputFile):
    """Rows as the text of a table."""

    def __init__(self, name: str, rows: Any) -> None:
        super().__init__(name)
        records = rows.to_dict("records") if hasattr(rows, "to_dict") else rows
        if isinstance(records, (str, bytes, Mapping)) or not isinstance(records, Iterable):
            raise InputError(f"must be a list of rows, dicts from column to value, not {type(rows).__name__}", name)
        listed = list(records)
        odd = next((k for k, row in enumerate(listed) if not isinstance(row, Mapping)), None)
        if odd is not None:
            raise InputError(f"row {odd} is of type {type(listed[odd]).__name__}: must be a dict", name)
        written = io.StringIO()
        names = list(dict.fromkeys(str(key) for row in listed for key in row))
        table = csv.writer(written, lineterminator="\n")
        table.writerow(names)
        table.writerows([_cell(row.get(key)) for key in names] for row in listed)
        self.data = written.getvalue().encode("utf-8", "replace")


def _cell(value: Any) -> str:
    """A value as it stands in a table."""
    if hasattr(value, "item") and getattr(value, "shape", ()) == ():
        value = value.item()
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    if isinstance(value, bool):
        return str(int(value))
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() and abs(value) < 2**53 else repr(value)
    if isinstance(value, Iterable) and not isinstance(value, (str, bytes)):
        return " ".join(map(_cell, value))
    return " ".join(str(value).split())


def _row(path: str) -> str:
    """Where a fault is, in rows instead of lines: behind the header, which is line 1."""
    return re.sub(r"^line (\d+)", lambda found: f"row {int(found[1]) - 2}", path)


def outcome(method: Method, function: Callable[..., Any], instance: Instance, options: RunOptions) -> Outcome:
    """What the method's function makes of the instance. Raises, where the method is somebody else's,
    :class:`InputError` for what it may not return and for what its code raises; errors that say why there is no
    solution pass."""
    if method.origin is None and method.target.partition(".")[0] in OUR_PACKAGES:  # what ours raises is our fault
        made: Outcome = function(instance, options)
        return made
    arguments = _arguments(method, function, instance, options)
    try:
        returned = function(*arguments)
    except (UnsupportedError, SizeLimitError, MemoryError):
        raise
    except InputError as error:
        raise InputError(error.faults, f"method {method.name}, {place_of(error)}") from error
    except (Exception, SystemExit) as error:
        raise InputError(f"{place_of(error)}: {in_words(error)}", f"method {method.name}") from error
    return _outcome_of(method, instance, returned)


def _outcome_of(method: Method, instance: Instance, returned: Any) -> Outcome:
    """What a method returned, as an outcome. Raises :class:`InputError` where it is none."""
    family = get_family(instance.family)
    try:
        if not isinstance(returned, Outcome):
            solution = _solution(family, instance, returned)
            if solution is None:
                raise InputError(f"returned {_of_type(returned)}: {MAY_RETURN}")
            return Outcome("finished", solution)
        _demand_fields(returned)
        if returned.solution is not None:
            returned.solution = _solution(family, instance, returned.solution)
        return returned
    except InputError as error:
        raise InputError(error.faults, ", ".join(filter(None, (f"method {method.name}", error.source)))) from error


def _solution(family: Family, instance: Instance, thing: Any) -> Any:
    """The solution that a method means; None for nothing. Raises :class:`InputError`."""
    if thing is None:
        return None
    if isinstance(thing, Moves):
        if thing.instance.sha256 != instance.sha256:
            raise InputError(f"returned moves for the instance {thing.instance.name}, not for {instance.name}")
        return thing.schedule()
    if _is_table(thing):
        return from_table(instance, thing)
    try:
        return load(family.unpack)(instance, load(family.pack)(thing))
    except Exception as error:  # a type that the family does not know may fail anywhere
        why = f" ({error})" if isinstance(error, ValueError) else ""
        raise InputError(
            f"returned {_of_type(thing)}, which is no solution of {family.name}{why}: {MAY_RETURN}"
        ) from error


def _is_table(thing: Any) -> bool:
    """Whether it is rows: mappings, or a DataFrame."""
    rows = isinstance(thing, Sequence) and not isinstance(thing, (str, bytes)) and len(thing) > 0
    return hasattr(thing, "to_dict") or (rows and all(isinstance(row, Mapping) for row in thing))


def _demand_fields(outcome: Outcome) -> None:
    """Raises :class:`InputError` for an outcome that no run can have."""
    known = get_args(Termination)
    if outcome.termination not in known:
        words = one_of(outcome.termination, known)
        raise InputError(f"returned an Outcome whose termination is {outcome.termination!r}: {words}")
    bound = outcome.bound
    if bound is not None and (isinstance(bound, bool) or not hasattr(bound, "__float__")):
        raise InputError(f"returned an Outcome whose bound is {_of_type(bound)}: must be a number or None")
    if outcome.message is not None and not isinstance(outcome.message, str):
        raise InputError(f"returned an Outcome whose message is {_of_type(outcome.message)}: must be a text or None")


def _of_type(thing: Any) -> str:
    return "None" if thing is None else f"something of type {type(thing).__name__}"


def called(method: Method, function: Callable[..., Any], instance: Instance, options: RunOptions) -> Any:
    """What the function returns, as it stands: for whoever hands it on to :func:`outcome`."""
    return function(*_arguments(method, function, instance, options))


def _arguments(
    method: Method, function: Callable[..., Any], instance: Instance, options: RunOptions
) -> tuple[Any, ...]:
    """Instance and options, or the instance alone where the function takes no more."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # some that are built in have none
        return instance, options
    for arguments in ((instance, options), (instance,)):
        try:
            signature.bind(*arguments)
        except TypeError:
            continue
        return arguments
    raise InputError(f"takes {signature}: must take (instance, options) or (instance)", f"method {method.name}")


def place_of(error: BaseException) -> str:
    """Where in somebody else's code an exception arose, or passed on its way out of ours: ``rings.py, line 12, in
    rings``."""
    frames = [(frame, line) for frame, line in traceback.walk_tb(error.__traceback__) if not _is_ours(frame)]
    library = tuple(sysconfig.get_paths()[name] for name in ("stdlib", "purelib", "platlib"))
    theirs = [each for each in frames if not each[0].f_code.co_filename.startswith((*library, "<frozen"))]
    if not (theirs or frames):
        return "in its call"
    frame, line = (theirs or frames)[-1]
    code = frame.f_code
    return f"{file_name(code.co_filename)}, line {line}, in {code.co_name}"


def _is_ours(frame: FrameType) -> bool:
    return str(frame.f_globals.get("__name__")).partition(".")[0] in OUR_PACKAGES
