"""The back-end ``synth`` of ``torch.distributed``: a process group that runs plans by the inner one's messages."""

from __future__ import annotations

import inspect
import logging
import os
from collections.abc import Callable, Sequence
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch._C._distributed_c10d import ProcessGroup

from synth.errors import InputError
from synth.torch.chosen import Plans
from synth.torch.execute import Scratch
from synth.torch.functions import run_by
from synth.torch.works import Thread

NAME = "synth"
LOG = logging.getLogger("synth.torch")
LEFT = 2.0  # seconds that a rank gives others to say who failed first
INNER = {"gloo": "ProcessGroupGloo", "nccl": "ProcessGroupNCCL", "xccl": "ProcessGroupXCCL"}
_asked: dict[str, Any] = {"folders": (), "inner": None, "machine": None}


def use(*folders: str | Path, inner: str | None = None, machine: str | None = None) -> None:
    """Say what groups of the back-end run from now on: ``folders`` of ``synth tune … --for torch`` (none: those of
    the environment's ``SYNTH_TORCH``, joined by ``:``), the ``inner`` back-end (``gloo``, ``nccl`` or ``xccl``; default
    ``nccl`` where there is CUDA or ROCm, else ``gloo``) and, to be sure, the ``machine`` of the folders. Raises
    :class:`~synth.errors.InputError`."""
    if inner is not None and inner not in INNER:
        raise InputError(f"inner must be one of {', '.join(INNER)}, not {inner!r}")
    Plans([Path(one) for one in folders], machine)
    _asked.update(folders=tuple(map(Path, folders)), inner=inner, machine=machine)


def register() -> None:
    """Make the name known to torch, once."""
    if hasattr(dist.Backend, NAME.upper()):
        return
    known = inspect.signature(dist.Backend.register_backend).parameters
    more = {"devices": ["cpu", "cuda", "xpu"]} if "devices" in known else {}
    dist.Backend.register_backend(NAME, _make, **more)


def _make(store: Any, rank: int, size: int, timeout: timedelta) -> SynthGroup:
    first = not dist.is_initialized()
    folders = _asked["folders"] or [Path(one) for one in os.environ.get("SYNTH_TORCH", "").split(":") if one]
    if not folders:
        raise InputError("synth.torch: say synth.torch.use(FOLDER), or SYNTH_TORCH=FOLDER, before init_process_group")
    plans = Plans(folders, _asked["machine"])
    if first:
        plans.demand_ranks(size)
    _demand_same(store, rank, plans.digest(), timeout)
    kind = _asked["inner"] or ("nccl" if torch.cuda.is_available() else "gloo")
    made = getattr(dist, INNER[kind], None)
    if made is None:
        raise InputError(f"synth.torch: this PyTorch has no {kind}")
    if kind == "gloo":
        inner = made(store, rank, size, timeout=timeout)
    else:
        options = made.Options()
        options._timeout = timeout
        inner = made(store, rank, size, options)
    return SynthGroup(inner, store, plans, rank, size, timeout)


def _demand_same(store: Any, rank: int, digest: str, timeout: timedelta) -> None:
    """Raises :class:`InputError` where this rank's folders are not those of rank 0."""
    if rank == 0:
        store.set("synth/digest", digest)
    store.wait(["synth/digest"], timeout)
    if store.get("synth/digest").decode() != digest:
        raise InputError(f"synth.torch: rank {rank} has other plans than rank 0: give all the same folder")


class SynthGroup(ProcessGroup):  # type: ignore[misc]
    """A group of the back-end ``synth``. Its methods are those of torch's own groups, with their arguments."""

    def __init__(self, inner: Any, store: Any, plans: Plans, rank: int, size: int, timeout: timedelta) -> None:
        super().__init__(rank, size)
        self.inner, self.store, self.plans, self.timeout = inner, store, plans, timeout
        self.thread, self.scratch = Thread("synth.torch"), Scratch()
        self.told: set[tuple[str, str]] = set()

    def getBackendName(self) -> str:
        """``synth``."""
        return NAME

    def __getattr__(self, name: str) -> Any:
        if name == "inner":
            raise AttributeError(name)
        return getattr(self.inner, name)

    # what has plans

    def allreduce(self, tensors: Sequence[torch.Tensor], opts: Any = None) -> Any:
        sums = opts is None or opts.reduceOp == dist.ReduceOp.SUM
        other = partial(self.inner.allreduce, tensors, *([] if opts is None else [opts]))
        return self._way("allreduce", [], tensors, tensors, other, suits=sums and len(tensors) == 1)

    def broadcast(self, tensors: Sequence[torch.Tensor], opts: Any) -> Any:
        other = partial(self.inner.broadcast, tensors, opts)
        return self._way("broadcast", [], tensors, tensors, other, opts.rootRank, len(tensors) == 1)

    def reduce(self, tensors: Sequence[torch.Tensor], opts: Any) -> Any:
        other = partial(self.inner.reduce, tensors, opts)
        sums = opts.reduceOp == dist.ReduceOp.SUM and len(tensors) == 1
        return self._way("reduce", [], tensors, tensors, other, opts.rootRank, sums)

    def allgather(self, outputs: Any, inputs: Sequence[torch.Tensor], *opts: Any) -> Any:
        other = partial(self.inner.allgather, outputs, inputs, *opts)
        return self._way("allgather", inputs, outputs[0], outputs, other, suits=len(inputs) == 1)

    def gather(self, outputs: Any, inputs: Sequence[torch.Tensor], opts: Any) -> Any:
        other = partial(self.inner.gather, outputs, inputs, opts)
        into = outputs[0] if outputs else []
        return self._way("gather", inputs, into, outputs, other, opts.rootRank, len(inputs) == 1)

    def scatter(self, outputs: Sequence[torch.Tensor], inputs: Any, opts: Any) -> Any:
        other = partial(self.inner.scatter, outputs, inputs, opts)
        given = inputs[0] if inputs else []
        return self._way("scatter", given, outputs, outputs, other, opts.rootRank, len(outputs) == 1)

    def reduce_scatter(self, outputs: Sequence[torch.Tensor], inputs: Any, opts: Any = None) -> Any:
        sums = opts is None or opts.reduceOp == dist.ReduceOp.SUM
        other = partial(self.inner.reduce_scatter, outputs, inputs, *([] if opts is None else [opts]))
        return self._way("reduce_scatter", inputs[0], outputs, outputs, other, suits=sums and len(outputs) == 1)

    def alltoall(self, outputs: Sequence[torch.Tensor], inputs: Sequence[torch.Tensor], *opts: Any) -> Any:
        other = partial(self.inner.alltoall, outputs, inputs, *opts)
        return self._way("alltoall", inputs, outputs, outputs, other)

    def alltoall_base(self, output: torch.Tensor, input: torch.Tensor, splits: Any, of: Any, *opts: Any) -> Any:
        other = partial(self.inner.alltoall_base, output, input, splits, of, *opts)
        even = not splits and not of and self._shares(output, input)
        given, into = (self._cut(one) if even else [] for one in (input, output))
        return self._way("alltoall", given, into, [output], other, suits=even)

    def _allgather_base(self, output: torch.Tensor, input: torch.Tensor, *opts: Any) -> Any:
        other = partial(self.inner._allgather_base, output, input, *opts)
        even = self._shares(output) and output.numel() == input.numel() * self.size()
        return self._way("allgather", [input], self._cut(output) if even else [], [output], other, suits=even)

    def _reduce_scatter_base(self, output: torch.Tensor, input: torch.Tensor, opts: Any = None) -> Any:
        other = partial(self.inner._reduce_scatter_base, output, input, *([] if opts is None else [opts]))
        even = self._shares(input) and input.numel() == output.numel() * self.size()
        even = even and (opts is None or opts.reduceOp == dist.ReduceOp.SUM)
        return self._way("reduce_scatter", self._cut(input) if even else [], [output], [output], other, suits=even)

    # what has none

    def barrier(self, *args: Any, **kwargs: Any) -> Any:
        self._tell("barrier", "the inner back-end")
        return self.inner.barrier(*args, **kwargs)

    def send(self, tensors: Sequence[torch.Tensor], peer: int, tag: int = 0) -> Any:
        return self.inner.send(tensors, peer, tag)

    def recv(self, tensors: Sequence[torch.Tensor], peer: int, tag: int = 0) -> Any:
        return self.inner.recv(tensors, peer, tag)

    def recv_anysource(self, tensors: Sequence[torch.Tensor], tag: int = 0) -> Any:
        return self.inner.recv_anysource(tensors, tag)

    def _shares(self, *tensors: torch.Tensor) -> bool:
        """Whether tensors are contiguous shares of all ranks."""
        return all(one.is_contiguous() and one.numel() % self.size() == 0 for one in tensors)

    def _cut(self, one: torch.Tensor) -> list[torch.Tensor]:
        return list(one.view(-1).chunk(self.size())) if one.numel() else [one.view(-1)] * self.size()

    def _way(
        self, collective: str, inputs: Any, outputs: Any, result: Any, other: Callable[[], Any],
        root: int | None = None, suits: bool = True,
    ) -> Any:  # fmt: skip
        """Run the plan of the call if there is one, else what the inner back-end does."""
        tensors = [*inputs, *outputs]
        suits = suits and bool(tensors) and _alike(tensors) and tensors[0].numel() > 0
        found = None
        if suits:
            shares = 1 if collective in ("allreduce", "broadcast", "reduce") else self.size()
            found = self.plans.find(collective, self.size(), tensors[0].numel() * tensors[0].element_size() * shares)
        if found is not None:
            plan, program = self.plans.plan(*found, self.rank())
            if root is None or plan.root == root:
                self._tell(collective, found[1].file)
                do = partial(run_by, self.inner, plan, program, inputs, outputs, self._fail, self.scratch)
                return self._run(do, result, tensors[0])
        self._tell(collective, "the inner back-end")
        return other()

    def _run(self, do: Callable[[], None], result: Any, like: torch.Tensor) -> Any:
        if like.device.type == "cpu":
            return self.thread.begin(do, result)
        do()  # the messages of a device are only put into its stream
        return _Done(result, like.device)

    def _tell(self, collective: str, way: str) -> None:
        if (collective, way) not in self.told:
            self.told.add((collective, way))
            LOG.info("rank %d of %d: %s by %s", self.rank(), self.size(), collective, way)

    def _fail(self, peer: int, error: Exception) -> None:
        """Raise with the name of the rank that was the first to be missed, which others may have said."""
        name = f"rank {peer}"
        try:
            if self.store.add("synth/failed", 1) == 1:
                self.store.set("synth/first", name)
            self.store.wait(["synth/first"], timedelta(seconds=LEFT))
            name = self.store.get("synth/first").decode()
        except RuntimeError:
            name = f"{name}, or rank 0, whose store is gone" if peer else name
        raise RuntimeError(f"synth.torch: {name} of the group does not answer ({error})") from error


class _Done(dist.Work if hasattr(dist, "Work") else object):  # type: ignore[misc]
    """Messages in a device's stream: whoever waits makes its own stream wait."""

    def __init__(self, result: Any, device: torch.device) -> None:
        super().__init__()
        self.held, self.module = result, getattr(torch, device.type)
        self.event = self.module.current_stream(device).record_event()

    def wait(self, timeout: timedelta | None = None) -> bool:
        self.module.current_stream().wait_event(self.event)
        return True

    def is_completed(self) -> bool:
        return bool(self.event.query())

    def result(self) -> Any:
        return self.held

    def get_future(self) -> Any:
        future: torch.futures.Future[Any] = torch.futures.Future()
        self.wait()
        future.set_result(self.held)
        return future


def _alike(tensors: Sequence[torch.Tensor]) -> bool:
    """Whether all are dense and of one kind, size and device."""
    first = tensors[0]
    if first.layout != torch.strided or first.dtype == torch.bool:
        return False
    return all((t.dtype, t.numel(), t.device) == (first.dtype, first.numel(), first.device) for t in tensors)
