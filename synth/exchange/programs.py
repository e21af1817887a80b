"""What an executor runs, an algorithm or a plan, and its time on an instance's machine."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from synth.errors import InputError, UnsupportedError
from synth.exchange import mscclpp
from synth.exchange.algorithm import Algorithm
from synth.exchange.block_costs import CostModel
from synth.exchange.copies import protocols_for
from synth.exchange.counts import even
from synth.exchange.moves_from_algorithm import passes_of, raised
from synth.exchange.mscclpp.plan import Gpu
from synth.exchange.mscclpp.schedule import Replayed
from synth.exchange.transfers import Raised, Transfers
from synth.family import get_family
from synth.instance import Instance

MOST_PASSES = 512  # of a program at a size that it was not made for


@dataclass(frozen=True)
class Program:
    """What runs: an ``algorithm`` (form ``msccl…``) or a ``plan`` as JSON has it, made with ``how``, a word or two, for
    calls with two buffers; ``again`` makes the same for calls with one, and raises :class:`InputError`."""

    form: str
    how: str
    spread: int = 1  # over so many channels (of a plan: at least so many thread blocks)
    algorithm: Algorithm | None = None
    plan: Any = None
    replay: Replayed | None = None  # of the plan
    again: Callable[[], Any] | None = None
    costs: CostModel | None = None  # of thread blocks and steps, None for an ideal executor

    def seconds(self, instance: Instance) -> float:
        """The time on an instance, which may differ from the one it was made for in its bytes. Raises
        :class:`InputError` where its chunks would have no bytes there."""
        return in_seconds(instance, self.moves, costs=self.costs)

    def by_protocol(self, part_bytes: int) -> list[Program]:
        """The same by every protocol that the costs tell apart and that may be quickest for parts of so many bytes."""
        if self.algorithm is None or self.costs is None:
            return [self]
        names = protocols_for(self.costs.protocols, part_bytes / self.algorithm.chunks)
        return [self._with_protocol(self.algorithm, name) for name in names]

    def _with_protocol(self, one: Algorithm, name: str) -> Program:
        words = [word for word in self.how.split(", ") if word and not word.startswith("protocol ")]
        how = ", ".join([*words, *([f"protocol {name}"] if name != "Simple" else [])])
        again = self.again

        def in_place() -> Any:
            assert again is not None
            return replace(again(), protocol=name)

        made = replace(one, protocol=name)
        return replace(self, algorithm=made, how=how, again=None if again is None else in_place)

    @property
    def moves(self) -> Algorithm | Callable[[int], Raised | Transfers]:
        """What runs on parts of so many bytes."""
        return self.algorithm or self._raised

    def waiting_for_data_alone(self, size: int) -> Transfers:
        """What runs on parts of so many bytes, as moves that wait for what they carry, not for their thread blocks."""
        if self.algorithm is None:
            return self._raised(size).transfers
        return raised(self.algorithm, size, passes_of(self.algorithm, size), checked=True).transfers

    @property
    def meets(self) -> bool:
        """Whether thread blocks of a plan meet at barriers."""
        return any(op.name == "barrier" for gpu in self._gpus for block in gpu.blocks for op in block)

    @property
    def _gpus(self) -> Sequence[Gpu]:
        return () if self.replay is None else self.replay.plan.gpus

    def _raised(self, size: int) -> Raised:
        assert self.replay is not None
        if (passes := self.replay.passes(size)) > MOST_PASSES:
            raise InputError(
                f"its loop would go round {passes:,} times on parts of {size:,} bytes, each time on little"
            )
        return mscclpp.raised_of(self.replay, size)

    @property
    def chunks(self) -> int:
        """Chunks of a part."""
        if self.algorithm is not None:
            return self.algorithm.chunks
        assert self.replay is not None
        return self.replay.replay.goal.each // self.replay.plan.units

    @property
    def collective(self) -> str:
        """The collective that it does."""
        if self.algorithm is not None:
            return self.algorithm.collective
        assert self.replay is not None
        return self.replay.replay.goal.collective

    def even(self, part_bytes: int) -> bool:
        """Whether it serves parts of so many bytes and all sizes of whole 8 KiB a rank
        (:mod:`synth.exchange.counts`)."""
        return even(self.algorithm is None, self.collective, self.ranks, part_bytes, self.chunks)

    @property
    def ranks(self) -> int:
        """Number of ranks."""
        return len(self.plan["gpus"]) if self.algorithm is None else self.algorithm.ranks

    @property
    def thread_blocks(self) -> int:
        """The most thread blocks of a rank."""
        if self.algorithm is not None:
            return most_blocks(self.algorithm)
        return max(len(gpu["threadblocks"]) for gpu in self.plan["gpus"])


def most_blocks(algorithm: Algorithm) -> int:
    """The most thread blocks of a rank."""
    return int(np.bincount(algorithm.tb_rank, minlength=1).max(initial=0))


def in_seconds(
    instance: Instance,
    moves: Algorithm | Callable[[int], Raised | Transfers],
    service: str = "planned",
    costs: CostModel | None = None,
) -> float:
    """The time of what an executor runs on the instance's machine: an algorithm, or the moves that a plan makes of
    parts of so many bytes; ``service``: how links serve moves alone, of :data:`SERVICES` or ``planned``; ``costs``: of
    its thread blocks and steps, None for an ideal executor. Raises :class:`InputError`."""
    family = get_family(instance.family)
    if not family.can("timing"):
        raise InputError(f"schedules of family {family.name} are no collective that an executor runs")
    try:
        found: float = family.capability("timing")(instance, moves, service, *(() if costs is None else (costs,)))
    except UnsupportedError as error:
        raise InputError(str(error)) from None
    return found
