"""The formats that records are exported to: data; what writes them is imported when it is needed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from synth.family import Target

What = Literal["transfers", "algorithm", "model"]


@dataclass(frozen=True)
class Format:
    """One format. ``of``: what it is written of: the schedule's transfers, the algorithm that an executor runs, or the
    program's model. ``target``: the function ``(what it is of, path)``, None for models, which solvers' modules write.
    ``executors``: who runs it, the first by default."""

    name: str
    suffix: str
    summary: str
    of: What
    target: Target | None = None
    executors: tuple[str, ...] = ()


FORMATS = {
    one.name: one
    for one in (
        Format("csv", ".csv", "a row a move from rank to rank", "transfers", "synth.exchange.transfers_csv:write"),
        Format("mps", ".mps", "a program's model, as solvers read it", "model"),
        Format("lp", ".lp", "a program's model, as people read it", "model"),
        Format("cpsat", ".pbtxt", "a CP-SAT model: its protocol buffer in text", "model"),
    )
}
