"""Circuits from their flat table, as ``synth show --csv`` prints it."""

from __future__ import annotations

import numpy as np

from synth.text.csv import typed_rows, whole_cell
from synth.text.input_file import InputFile
from synth.text.untrusted import MOST
from synth_models.optree.instance import OpTreeInstance
from synth_models.optree.solution import COLUMNS, Circuits


def from_table(instance: OpTreeInstance, file: InputFile) -> Circuits:
    """Return the circuits in the order of the file. Raises :class:`InputError` with every faulty line; what the
    circuits do is the check's."""
    node = whole_cell(instance.nodes - 1)
    direction, wavelength = whole_cell(2 * len(instance.dimensions) - 1), whole_cell(instance.wavelengths - 1)
    readers = dict(zip(COLUMNS, (whole_cell(MOST - 1, 1), node, node, direction, wavelength, node), strict=True))
    rows = typed_rows(file, readers, COLUMNS, "circuit")
    return Circuits.of(*(np.array([row[name] for row in rows], dtype=np.int64) for name in COLUMNS))
