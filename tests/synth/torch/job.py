"""What the ranks of a test's job do: ``python job.py CASE RANK RANKS STORE FOLDER``; a word on success."""

from __future__ import annotations

import logging
import os
import random
import signal
import statistics
import sys
import threading
import time
from datetime import timedelta

import pytest
import torch
import torch.distributed as dist

import synth.torch

ROOT = 1
TYPES = (torch.int64, torch.float32, torch.bfloat16)
SIZES = (1, 7, 1000, 4099, 30011)  # elements of a part
BOUND = {torch.int64: 0.0, torch.float32: 2.0**-22, torch.bfloat16: 2.0**-6}  # of the largest sum, a few roundings


def data(rank: int, count: int, kind: torch.dtype, salt: int = 0) -> torch.Tensor:
    made = torch.Generator().manual_seed(1000 * salt + rank)
    whole = torch.randint(-1000, 1000, (count,), generator=made)
    return whole if kind == torch.int64 else (whole / 1000).to(kind)


def same(found: torch.Tensor, wanted: torch.Tensor, summed: bool, where: object) -> None:
    """Bits, but for sums of floats, which may be rounded in another order."""
    if not summed or found.dtype == torch.int64:
        assert torch.equal(found, wanted.to(found.dtype)), where
    else:
        most = float((found.double() - wanted.double()).abs().max())
        assert most <= BOUND[found.dtype] * max(1.0, float(wanted.double().abs().max())), (where, most)


def total(values: list[torch.Tensor]) -> torch.Tensor:
    """The sum of all ranks' values, as torch's own group makes it from them in one go."""
    return torch.stack(values).double().sum(0) if values[0].is_floating_point() else torch.stack(values).sum(0)


def every(count: int, kind: torch.dtype, group=None, ranks: int | None = None, salt: int = 0) -> None:
    """All eight collectives of one size and type against their definition and, where it has one, gloo's result."""
    me, n = dist.get_rank(group), dist.get_world_size(group)
    mine = [data(r, count, kind, salt) for r in range(n)]  # what rank r has of one part
    where = (count, kind, me)
    root = ROOT if group is None else dist.distributed_c10d.get_global_rank(group, ROOT)
    it = mine[me].clone()
    dist.all_reduce(it, group=group)
    same(it, total(mine), True, ("allreduce", *where))
    it = mine[me].clone()
    dist.reduce(it, root, group=group)
    same(it, total(mine) if me == ROOT else mine[me], me == ROOT, ("reduce", *where))
    it = mine[me].clone()
    dist.broadcast(it, root, group=group)
    same(it, mine[ROOT], False, ("broadcast", *where))
    out = [torch.zeros_like(mine[0]) for _ in range(n)]
    dist.all_gather(out, mine[me], group=group)
    same(torch.cat(out), torch.cat(mine), False, ("allgather", *where))
    out = [torch.zeros_like(mine[0]) for _ in range(n)]
    dist.gather(mine[me], out if me == ROOT else None, root, group=group)
    if me == ROOT:
        same(torch.cat(out), torch.cat(mine), False, ("gather", *where))
    it = torch.zeros_like(mine[0])
    dist.scatter(it, [one.clone() for one in mine] if me == ROOT else None, root, group=group)
    same(it, mine[me], False, ("scatter", *where))
    given = [[data(n * r + k, count, kind, salt + 1) for k in range(n)] for r in range(n)]
    it = torch.zeros_like(mine[0])
    dist.reduce_scatter(it, given[me], group=group)
    same(it, total([given[r][me] for r in range(n)]), True, ("reduce_scatter", *where))
    it = torch.zeros(n * count, dtype=kind)
    dist.all_to_all_single(it, torch.cat(given[me]), group=group)
    same(it, torch.cat([given[r][me] for r in range(n)]), False, ("alltoall", *where))


def grid() -> None:
    for kind in TYPES:
        for count in SIZES:
            every(count, kind)


def small() -> None:
    for kind in TYPES:
        every(13, kind)
    every(4099, torch.float32)
    odd()
    groups()


def odd() -> None:
    """Tensors that are not contiguous, other operations, asynchronous handles, other roots."""
    me, n = dist.get_rank(), dist.get_world_size()
    grid = torch.arange(12, dtype=torch.float32).reshape(3, 4) * (me + 1)
    turned = grid.t()
    dist.all_reduce(turned)
    assert torch.equal(grid, torch.arange(12, dtype=torch.float32).reshape(3, 4) * (n * (n + 1) // 2))
    most = torch.tensor([float(me)])
    dist.all_reduce(most, op=dist.ReduceOp.MAX)
    assert most.item() == n - 1
    several = [torch.full((50,), float(me + k)) for k in range(10)]
    for work in [dist.all_reduce(one, async_op=True) for one in several]:
        work.wait()
    assert [float(one[0]) for one in several] == [n * (n - 1) / 2 + n * k for k in range(10)]
    one = torch.tensor([me])
    dist.broadcast(one, 0)
    assert one.item() == 0
    outs = torch.zeros(n * 5)
    dist._all_gather_base(outs, torch.full((5,), float(me)))
    assert torch.equal(outs, torch.arange(n).float().repeat_interleave(5))
    shard = torch.zeros(5)
    dist._reduce_scatter_base(shard, torch.arange(n).float().repeat_interleave(5))
    assert torch.equal(shard, torch.full((5,), float(me * n)))
    dist.barrier()


def groups() -> None:
    """Two groups at once, one of them with fewer ranks in another order, for which there is no plan."""
    me, n = dist.get_rank(), dist.get_world_size()
    second, third = dist.new_group(list(range(n))), dist.new_group([n - 1, 0])
    a, b = torch.full((3000,), float(me)), torch.full((2000,), me + 1)
    both = [dist.all_reduce(a, async_op=True), dist.all_reduce(b, group=second, async_op=True)]
    if me in (0, n - 1):
        c = torch.ones(5)
        dist.all_reduce(c, group=third)
        assert c[0].item() == 2
    for work in both:
        work.wait()
    assert (a[0].item(), b[0].item()) == (n * (n - 1) / 2, n * (n + 1) // 2)


def many() -> None:
    draw = random.Random(7)
    for k in range(200):
        every(draw.randint(1, 3000), draw.choice(TYPES), salt=k)


def train(sharded: bool, group=None) -> list[float]:
    """Twenty steps of a small net on each rank's own data; the mean losses of all ranks."""
    torch.manual_seed(3)
    net = torch.nn.Sequential(torch.nn.Linear(8, 33), torch.nn.Tanh(), torch.nn.Linear(33, 1))
    n, me = dist.get_world_size(), dist.get_rank()
    made = torch.Generator().manual_seed(me)
    x = torch.randn(16, 8, generator=made)
    y = x.sum(1, keepdim=True)
    return _sharded(net, x, y, n, me, group) if sharded else _ddp(net, x, y, n, group)


def _ddp(net, x, y, n, group) -> list[float]:
    wrapped = torch.nn.parallel.DistributedDataParallel(net, process_group=group)
    steps = torch.optim.SGD(wrapped.parameters(), lr=0.05)
    losses = []
    for _ in range(20):
        steps.zero_grad()
        loss = torch.nn.functional.mse_loss(wrapped(x), y)
        loss.backward()
        steps.step()
        losses.append(_mean(loss, n))
    return losses


def _sharded(net, x, y, n, me, group) -> list[float]:
    """As FSDP: parameters in shards, gathered before the step, gradients scattered after it."""
    flat = torch.nn.utils.parameters_to_vector(net.parameters()).detach()
    flat = torch.nn.functional.pad(flat, (0, -len(flat) % n))
    shard = flat.chunk(n)[me].clone()
    losses = []
    for _ in range(20):
        pieces = [torch.zeros_like(shard) for _ in range(n)]
        dist.all_gather(pieces, shard, group=group)
        used = sum(p.numel() for p in net.parameters())
        torch.nn.utils.vector_to_parameters(torch.cat(pieces)[:used], net.parameters())
        net.zero_grad()
        loss = torch.nn.functional.mse_loss(net(x), y)
        loss.backward()
        slope = torch.cat([p.grad.reshape(-1) for p in net.parameters()])
        slope = torch.nn.functional.pad(slope, (0, len(flat) - len(slope)))
        mine = torch.zeros_like(shard)
        if group is None:
            dist.reduce_scatter(mine, [one.clone() for one in slope.chunk(n)])
        else:  # gloo has none
            dist.all_reduce(slope, group=group)
            mine = slope.chunk(n)[me].clone()
        shard = shard - 0.05 * mine / n
        losses.append(_mean(loss, n))
    return losses


def _mean(loss: torch.Tensor, n: int) -> float:
    told = loss.detach().clone().double()
    dist.all_reduce(told)
    return told.item() / n


def training() -> None:
    """The same losses as over gloo: the two sum in orders of their own, so within a few roundings of float32."""
    gloo = dist.new_group(backend="gloo")
    for sharded in (False, True):
        ours, theirs = train(sharded), train(sharded, gloo)
        assert ours[-1] < 0.7 * ours[0]
        worst = max(abs(a - b) / b for a, b in zip(ours, theirs, strict=True))
        print("sharded" if sharded else "ddp", "losses differ by", worst)
        assert worst <= 20 * 2.0**-22


def killed() -> None:
    dist.barrier()
    if dist.get_rank() == 2:
        threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGKILL)).start()
    with pytest.raises(RuntimeError, match="rank 2"):
        _for_seconds(30)


def _for_seconds(seconds: float) -> None:
    begun = time.monotonic()
    while time.monotonic() < begun + seconds:
        every(30000, torch.float32)


def overhead() -> None:
    """An allreduce of 1 MiB by a plan beside gloo's own, in turns: medians in seconds, and their ratio."""
    gloo, it = dist.new_group(backend="gloo"), torch.ones(2**18)
    took: dict[bool, list[float]] = {True: [], False: []}
    for turn in range(210):
        for ours in (True, False):
            dist.barrier(group=gloo)
            begun = time.perf_counter()
            dist.all_reduce(it, group=None if ours else gloo)
            took[ours] += [time.perf_counter() - begun] * (turn >= 10)
            it.fill_(1.0)
    ours, theirs = statistics.median(took[True]), statistics.median(took[False])
    times = f"plan {ours * 1e3:.3f} ms, gloo {theirs * 1e3:.3f} ms"
    print(f"1 MiB among {dist.get_world_size()}: {times}, ratio {ours / theirs:.2f}")


if __name__ == "__main__":
    case, rank, ranks, store, folder = sys.argv[1:]
    torch.set_num_threads(1)
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    synth.torch.use(folder, inner="gloo")
    dist.init_process_group(
        "synth", init_method=f"file://{store}", rank=int(rank), world_size=int(ranks), timeout=timedelta(seconds=30)
    )
    globals()[case]()
    print(f"{case} is right", flush=True)
    os._exit(0)
