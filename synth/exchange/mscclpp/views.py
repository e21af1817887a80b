"""A plan for a person: a flat table of its operations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from synth.exchange.mscclpp.plan import ExecutionPlan, Span, each

if TYPE_CHECKING:
    import pandas as pd

COLUMNS = ["gpu", "tb", "step", "type", "channel_type", "channels", "src", "dst", "barrier", "semaphores"]


def table(plan: ExecutionPlan) -> pd.DataFrame:
    """A row an operation, columns :data:`COLUMNS`; places as ``gpu:buffer[first:end]`` in the plan's smallest units."""
    import pandas as pd

    rows = [
        (
            gpu, number, step, op.name, "" if op.channel_type == "none" else op.channel_type, _numbers(op.channels),
            _places(op.src), _places(op.dst), op.barrier if op.barrier >= 0 else "", _numbers(op.semaphores),
        )
        for gpu, of in enumerate(plan.gpus)
        for number, block in enumerate(of.blocks)
        for step, op in enumerate(each(block))
    ]  # fmt: skip
    return pd.DataFrame(rows, columns=COLUMNS)


def _numbers(values: Sequence[int]) -> str:
    return " ".join(map(str, values))


def _places(spans: Sequence[Span]) -> str:
    return " ".join(f"{span.rank}:{span.buffer}[{span.start}:{span.start + span.size}]" for span in spans)
