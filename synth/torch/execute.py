"""A rank's rounds on tensors, by the sends and receives of a process group."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import zip_longest
from typing import Any, NamedTuple

import torch

from synth.torch.program import Range, RankProgram, Round, Take

Fail = Callable[[int, Exception], None]
TAG = 0x53594E  # of our messages, where tags are told apart
MOST_KEPT = 2**26  # bytes of memory between calls
ALIGNED = 64  # bytes at which a message begins


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


class Scratch:
    """Memory for messages that calls, one after the other, use again, up to :data:`MOST_KEPT` bytes."""

    def __init__(self) -> None:
        self.held = torch.empty(0, dtype=torch.uint8)
        self.used = self.wanted = 0

    def begin(self) -> None:
        """For the next call: all is free, and as much as the last one wanted is there."""
        if len(self.held) < self.wanted <= MOST_KEPT:
            self.held = torch.empty(self.wanted, dtype=torch.uint8)
        self.used = self.wanted = 0

    def get(self, count: int, like: torch.Tensor) -> torch.Tensor:
        """A flat tensor of so many elements, of the type and on the device of another."""
        size = count * like.element_size()
        begun, self.wanted = self.used, self.wanted + size + -size % ALIGNED
        if like.device.type != "cpu" or begun + size > len(self.held):
            return torch.empty(count, dtype=like.dtype, device=like.device)
        self.used = begun + size + -size % ALIGNED
        return self.held[begun : begun + size].view(like.dtype)


def execute(program: RankProgram, parts: Parts, group: Any, fail: Fail, scratch: Scratch) -> None:
    """Run all rounds. ``group`` sends and receives; ``fail`` is told the peer of what failed, and raises.

    On a processor the receives of a round are posted a round early, so that no sender waits for one, and a send is
    waited for where what it sends is written next, or at the end."""
    under_way = _UnderWay(parts, group, fail, scratch)
    rounds, early = program.rounds, parts.like.device.type == "cpu"
    arrivals: deque[list[_Arrival]] = deque()
    for one, after in zip_longest(rounds, rounds[1:]):
        if early:
            if not arrivals:
                arrivals.append(under_way.receive(one))
            if after is not None:
                arrivals.append(under_way.receive(after))
            under_way.send(one)
        else:
            with _together(group, parts.like):
                arrivals.append(under_way.receive(one))
                under_way.send(one)
        under_way.take(one, arrivals.popleft())
    under_way.left(range(len(under_way.sent)))


class _Arrival(NamedTuple):
    """A message that is awaited, and what then goes where: into, what, whether it adds."""

    peer: int
    work: Any
    puts: list[tuple[torch.Tensor, torch.Tensor, bool]]


class _UnderWay:
    """The messages of a call."""

    def __init__(self, parts: Parts, group: Any, fail: Fail, scratch: Scratch) -> None:
        self.parts, self.group, self.fail, self.scratch = parts, group, fail, scratch
        scratch.begin()
        self.sent: list[tuple[int, Any, torch.Tensor] | None] = []  # in the program's numbers, None: has left

    def receive(self, one: Round) -> list[_Arrival]:
        """Post a round's receives."""
        self.left(one.before_takes)
        return [self._receive(take) for take in one.takes]

    def _receive(self, take: Take) -> _Arrival:
        views, like = [self.parts.view(taken.range) for taken in take.ranges], self.parts.like
        if take.direct:
            buffer, puts = views[0], []
        else:
            sizes = [view.numel() for view in views]
            buffer = self.scratch.get(sum(sizes), like)
            puts = list(zip(views, buffer.split(sizes), [taken.adds for taken in take.ranges], strict=True))
        return _Arrival(take.peer, self._post(self.group.recv, buffer, take.peer), puts)

    def send(self, one: Round) -> None:
        """Post a round's sends."""
        for peer, ranges in one.sends:
            views = [self.parts.view(what) for what in ranges]
            buffer = views[0] if len(views) == 1 else self._packed(views)
            self.sent.append((peer, self._post(self.group.send, buffer, peer), buffer))

    def _packed(self, views: list[torch.Tensor]) -> torch.Tensor:
        return torch.cat(views, out=self.scratch.get(sum(view.numel() for view in views), self.parts.like))

    def take(self, one: Round, arrivals: list[_Arrival]) -> None:
        """Wait for a round's messages and put them into their places."""
        for arrival in arrivals:
            self._wait(arrival.peer, arrival.work)
        self.left(one.before_sums)
        for arrival in arrivals:
            for into, what, adds in arrival.puts:
                if adds:
                    into.add_(what)
                else:
                    into.copy_(what)

    def left(self, numbers: Iterable[int]) -> None:
        """Wait until these sends have left."""
        for number in numbers:
            if (send := self.sent[number]) is not None:
                self.sent[number] = None
                self._wait(*send[:2])

    def _post(self, begin: Callable[[list[torch.Tensor], int, int], Any], buffer: torch.Tensor, peer: int) -> Any:
        if not buffer.numel():
            return None
        try:
            return begin([buffer], peer, TAG)
        except RuntimeError as error:
            self.fail(peer, error)

    def _wait(self, peer: int, work: Any) -> None:
        if work is not None:
            try:
                work.wait()
            except RuntimeError as error:
                self.fail(peer, error)


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
