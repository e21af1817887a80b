"""A schedule from its flat table, as ``synth show --csv`` prints it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from synth.schedule import Schedule
from synth.text.csv import choice_cell, typed_rows, whole_cell
from synth.text.input_file import InputFile
from synth.text.untrusted import MOST
from synth_models.xtree.instance import XTreeInstance

PHASE = "collective phase"


def from_table(instance: XTreeInstance, file: InputFile) -> Schedule:
    """Return the transfers in the order of the file; ``src`` and ``dst`` may be left out. Raises :class:`InputError`
    with every faulty line; what the transfers do is the check's."""
    network, reduces = instance.topology, instance.task.reduces

    def wrong(row: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
        if "link" in row:
            tail, head = network.src[row["link"]], network.dst[row["link"]]
            odd = [key for key, end in (("src", tail), ("dst", head)) if key in row and row[key] != end]
            if odd:
                yield odd[0] if len(odd) == 1 else "link", f"link {row['link']} joins {tail} to {head}"

    columns = {
        "step": whole_cell(MOST - 1, 1),
        "src": whole_cell(network.nodes - 1),
        "dst": whole_cell(network.nodes - 1),
        "link": whole_cell(network.links - 1),
        "origin": whole_cell(network.nodes - 1),
        "chunk": whole_cell(instance.chunks - 1),
    } | ({PHASE: choice_cell("reduce_scatter", "allgather")} if reduces else {})
    needed = ("step", "link", "origin", "chunk", *((PHASE,) if reduces else ()))
    rows = typed_rows(file, columns, needed, "transfer", wrong)
    step, link, origin, chunk = (np.array([row[key] for row in rows], dtype=np.int64) for key in needed[:4])
    adds = np.array([row[PHASE] == "reduce_scatter" for row in rows]) if reduces else False
    return Schedule.of(step, link, origin * instance.chunks + chunk, adds)
