"""Where a call's tensors are the parts of a collective, and what is copied back when it ends."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch

Tensors = Sequence[torch.Tensor]


class Layout(NamedTuple):
    """Flat tensors by part, of ``elements`` each; ``finish`` puts results where the caller wants them."""

    known: dict[int, torch.Tensor]
    elements: int
    finish: Callable[[], None]


def layout(collective: str, rank: int, root: int | None, inputs: Tensors, outputs: Tensors) -> Layout:
    """The layout of a call: of ``allreduce``, ``broadcast`` and ``reduce`` the one tensor is both; else a tensor a part
    on each side (none where a rank has none). Inputs are left as they are."""
    ranks = max(len(inputs), len(outputs))
    match collective:
        case "allreduce" | "broadcast":
            return _whole(outputs[0], outputs[0])
        case "reduce":
            return _whole(outputs[0].clone(), outputs[0] if rank == root else None)
        case "allgather":
            return _into(dict(enumerate(outputs)), {rank: inputs[0]})
        case "gather":
            return _into(dict(enumerate(outputs)), {rank: inputs[0]})
        case "scatter":
            return _into({rank: outputs[0]}, dict(enumerate(inputs)))
        case "reduce_scatter":
            return _summed(rank, inputs, outputs[0])
    assert collective == "alltoall"
    ours = {rank * ranks + k: one for k, one in enumerate(inputs)}
    return _into({k * ranks + rank: one for k, one in enumerate(outputs)}, ours)


def _whole(held: torch.Tensor, into: torch.Tensor | None) -> Layout:
    flat = held.contiguous().view(-1)

    def finish() -> None:
        if into is not None and (flat.data_ptr() != into.data_ptr() or not into.is_contiguous()):
            into.copy_(flat.view(into.shape))

    return Layout({0: flat}, flat.numel(), finish)


def _into(outputs: dict[int, torch.Tensor], inputs: dict[int, torch.Tensor]) -> Layout:
    known = {part: one.contiguous().view(-1) for part, one in inputs.items()}
    apart: list[tuple[torch.Tensor, torch.Tensor]] = []
    for part, one in outputs.items():
        if one.is_contiguous():
            flat = one.view(-1)
        else:
            flat = torch.empty(one.numel(), dtype=one.dtype, device=one.device)
            apart.append((one, flat))
        if part in known and known[part].data_ptr() != flat.data_ptr():
            flat.copy_(known[part])
        known[part] = flat
    count = next(iter(known.values())).numel()

    def finish() -> None:
        for one, flat in apart:
            one.copy_(flat.view(one.shape))

    return Layout(known, count, finish)


def _summed(rank: int, inputs: Tensors, output: torch.Tensor) -> Layout:
    known = {part: one.clone(memory_format=torch.contiguous_format).view(-1) for part, one in enumerate(inputs)}

    def finish() -> None:
        output.copy_(known[rank].view(output.shape))

    return Layout(known, known[rank].numel(), finish)
