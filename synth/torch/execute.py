"""A rank's rounds on tensors, by the sends and receives of a process group."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch

from synth.torch.program import Range, RankProgram, Taken

Fail = Callable[[int, Exception], None]
TAG = 0x53594E  # of our messages, where tags are told apart


class Parts:
    """The parts of the data at a rank, each flat, of ``count`` elements; those that only pass by are made when they
    come. ``units``: of the rounds, in a part."""

    def __init__(self, known: dict[int, torch.Tensor], count: int, units: int, like: torch.Tensor) -> None:
        self.known, self.count, self.units, self.like = known, count, units, like

    def view(self, what: Range) -> torch.Tensor:
        """The elements of a range."""
        if what.part not in self.known:
            self.known[what.part] = torch.empty(self.count, dtype=self.like.dtype, device=self.like.device)
        low, high = self.bounds(what)
        return self.known[what.part][low:high]

    def bounds(self, what: Range) -> tuple[int, int]:
        """First element and end of a range: rounded down, so that ranges that join still do."""
        return what.low * self.count // self.units, what.high * self.count // self.units


def execute(program: RankProgram, parts: Parts, group: Any, fail: Fail) -> None:
    """Run all rounds. ``group`` sends and receives; ``fail`` is told the peer of what failed, and raises."""
    for one in program.rounds:
        works: list[tuple[int, Any]] = []
        with _together(group, parts.like):
            arrived = [each for peer, takes in one.takes for each in _receive(parts, peer, takes, group, works, fail)]
            sent = [_send(parts, peer, ranges, group, works, fail) for peer, ranges in one.sends]
        for peer, work in works:
            try:
                work.wait()
            except RuntimeError as error:
                fail(peer, error)
        del sent  # kept until all has left
        for into, what, adds in arrived:
            if adds:
                into.add_(what)
            else:
                into.copy_(what)


Arrived = tuple[torch.Tensor, torch.Tensor, bool]  # where to, what, whether it adds


def _receive(
    parts: Parts, peer: int, takes: Sequence[Taken], group: Any, works: list[tuple[int, Any]], fail: Fail
) -> list[Arrived]:
    """Post the receive of what a peer sends in a round; what is to be put into its place when it is there."""
    views = [parts.view(take.range) for take in takes]
    sizes = [view.numel() for view in views]
    if not sum(sizes):
        return []
    direct = len(takes) == 1 and takes[0].direct
    buffer = views[0] if direct else torch.empty(sum(sizes), dtype=parts.like.dtype, device=parts.like.device)
    _post(works, peer, lambda: group.recv([buffer], peer, TAG), fail)
    return [] if direct else list(zip(views, buffer.split(sizes), [take.adds for take in takes], strict=True))


def _send(
    parts: Parts, peer: int, ranges: Sequence[Range], group: Any, works: list[tuple[int, Any]], fail: Fail
) -> torch.Tensor:
    """Post the send of what a peer gets in a round, which is returned."""
    views = [parts.view(what) for what in ranges]
    buffer = views[0] if len(views) == 1 else torch.cat(views)
    if buffer.numel():
        _post(works, peer, lambda: group.send([buffer], peer, TAG), fail)
    return buffer


def _post(works: list[tuple[int, Any]], peer: int, begin: Callable[[], Any], fail: Fail) -> None:
    try:
        work = begin()
    except RuntimeError as error:
        fail(peer, error)
    else:
        if work is not None:
            works.append((peer, work))


@contextmanager
def _together(group: Any, like: torch.Tensor) -> Iterator[None]:
    """Sends and receives of a device as one batch, as its library asks; on a processor each is on its own already."""
    if like.device.type == "cpu" or not hasattr(group, "_start_coalescing"):
        yield
        return
    try:
        group._start_coalescing(like.device)
        ended: Callable[[], Any] = lambda: group._end_coalescing(like.device).wait()  # noqa: E731
    except TypeError:  # torch 1.x
        group._start_coalescing()
        ended = lambda: group._end_coalescing([])  # noqa: E731
    yield
    ended()
