"""One plan on tensors, in any process group: for notebooks and tests."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist

from synth.errors import InputError
from synth.exchange.rounds import Rounds, read
from synth.torch.execute import Parts, Scratch, execute
from synth.torch.layout import layout
from synth.torch.program import RankProgram, program_of


def read_plan(path: str | Path) -> Rounds:
    """The plan of a file ``….rounds.json``. Raises :class:`~synth.errors.InputError`."""
    return read(Path(path))


def allreduce(tensor: torch.Tensor, plan: Rounds, group: Any = None) -> torch.Tensor:
    """Sum ``tensor`` over the group's ranks, in place, and return it."""
    run(plan, [], [tensor], group)
    return tensor


def run(plan: Rounds, inputs: Sequence[torch.Tensor], outputs: Sequence[torch.Tensor], group: Any = None) -> None:
    """Run a plan and wait for it. ``inputs`` and ``outputs``: a tensor a part, all alike; of allreduce, broadcast and
    reduce the one output is both. Raises :class:`~synth.errors.InputError` for a plan of another number of ranks."""
    group = dist.group.WORLD if group is None else group
    if plan.ranks != group.size():
        raise InputError(f"the plan is for {plan.ranks} ranks, the group has {group.size()}")
    run_by(group, plan, program_of(plan, group.rank()), inputs, outputs, _raise, Scratch())


def run_by(
    group: Any, plan: Rounds, program: RankProgram, inputs: Sequence[torch.Tensor], outputs: Sequence[torch.Tensor],
    fail: Any, scratch: Scratch,
) -> None:  # fmt: skip
    """The same, by the sends and receives of ``group``, with memory that no other call uses meanwhile."""
    rank = group.rank()
    with torch.no_grad():
        where = layout(plan.collective, rank, plan.root, inputs, outputs)
        like = next(iter(where.known.values()))
        execute(program, Parts(where.known, where.elements, plan.units, like), group, fail, scratch)
        where.finish()


def _raise(peer: int, error: Exception) -> None:
    raise RuntimeError(f"synth.torch: rank {peer} of the group does not answer: {error}") from error
