"""A solver's solution of an exported model, brought back: the record's method goes on with it as if it had solved."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

from synth.errors import InputError, SizeLimitError, UnsupportedError
from synth.exchange.record_export import program_of
from synth.exchange.solver_solutions import read
from synth.family import function_of, get_family
from synth.library.submission import Sender, of_solution
from synth.records.record import Record
from synth.solvers import model_file
from synth.text.input_file import InputFile


def record_of(
    record: Record, file: InputFile, sender: Sender, *, number: int = 1, solver: str | None = None,
    parameters: Mapping[str, str] | None = None, method_name: str | None = None,
) -> tuple[Record, str]:  # fmt: skip
    """The submitted record of a solution of the ``number``-th model of a record's program, and in words what it is.
    ``solver``, ``parameters`` and ``method_name`` as they were for the export.

    Raises :class:`InputError` where the file holds no point of that model, and :class:`RefusedError` where the check
    finds a fault in what the method makes of it.
    """
    point = read(file)
    program = program_of(record, solver, parameters, method_name)
    with model_file.answered_by(point.values, number) as wish:
        try:
            outcome = function_of(get_family(program.instance.family), program.method)(
                program.instance, program.options
            )
        except (UnsupportedError, SizeLimitError) as error:
            raise InputError(str(error), str(file)) from None
        except InputError as error:
            raise InputError(error.faults, str(file)) from None
    if outcome.solution is None:
        raise InputError(f"the method makes no solution of it ({outcome.message or outcome.termination})", str(file))
    digest = hashlib.sha256(file.data).hexdigest()
    words = f"model {number} of {record.label}" + (f": {wish.question}" if wish.question else "")
    made = of_solution(program.instance, outcome.solution, sender, str(file), digest, words[:300])
    return made, f"{len(point.values)} values by {point.form}, {words}"
