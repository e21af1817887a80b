"""What nccl-tests measured on known machines, beside what the costs of thread blocks predict.

``python -m synth_papers.fabric.measured_busbw`` prints the table, misses marked.
"""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

from synth import api
from synth.exchange.block_costs import costs_for
from synth.exchange.forms import Lowered
from synth.exchange.record_export import transfers_of
from synth.family import get_family
from synth.instance import Instance
from synth.instance import read as read_instance
from synth.making import make
from synth.text.files import write_atomically

FILE = Path(__file__).with_name("measured_busbw.toml")
FEW = {"ring": (1, 100), "nvls": (None,)}  # transfers a rank: NCCL's own rings have a chunk a rank, or a few
FORM = {"ring": "msccl:azure", "nvls": "mscclpp"}


def logs() -> list[dict[str, Any]]:
    """All logs of the file."""
    return list(tomllib.loads(FILE.read_text(encoding="utf-8"))["log"])


def instance_of(log: dict[str, Any], folder: Path) -> Instance:
    """The allreduce that was measured, in a file of the folder."""
    made = make(get_family("fabric"), {**log["machine"], "collective": "allreduce", "bytes": str(log["bytes"])})
    path = folder / f"{made.name}.json"
    write_atomically(path, made.to_json().encode())
    return read_instance(path)


def predicted(log: dict[str, Any], folder: Path) -> float:
    """The busbw in bytes/s that the quickest program of the method has."""
    instance, method = instance_of(log, folder), log["method"]
    ranks = len(instance.members)  # type: ignore[attr-defined]
    best = float("inf")
    for few in FEW[method]:
        options = {} if few is None else {"transfers": str(few * ranks)}
        record = api.solve(instance, method, time_limit=20, options=options, results=folder)
        costs = costs_for(instance, FORM[method])
        tried = Lowered(transfers_of(record), FORM[method], costs=costs, instance=instance)
        best = min([best, *(program.seconds(instance) for program in tried.programs())])
    return 2 * (ranks - 1) / ranks * float(log["bytes"]) / best


def table(folder: Path) -> list[tuple[str, float, float]]:
    """Source, measured and predicted busbw of every log."""
    return [(log["source"], log["busbw"], predicted(log, folder)) for log in logs()]


if __name__ == "__main__":
    from tempfile import TemporaryDirectory

    with TemporaryDirectory() as name:
        for source, measured, found in table(Path(name)):
            off = found / measured - 1
            miss = " MISS" if abs(off) > 0.25 else ""
            print(f"{source}: measured {measured / 1e9:.1f} GB/s, predicted {found / 1e9:.1f}, {off:+.0%}{miss}")
