"""A thread block in the making: its operations, with a ``nop`` wherever its threads must meet."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from synth.exchange.mscclpp.plan import MAX_CHANNEL_PER_OPERATION


@dataclass
class Block:
    """A thread block in the making: operations, its channels and remote buffers by their numbers on the GPU, and what
    its threads have done since they last met."""

    ops: list[dict[str, Any]] = field(default_factory=list)
    channels: dict[str, list[int]] = field(default_factory=lambda: {"memory": [], "port": [], "switch": []})
    buffers: dict[str, list[int]] = field(default_factory=lambda: {"memory": [], "port": []})
    inside: int = 0  # operations of its loops
    waited: bool = False
    touched: list[tuple[str, int, int, bool]] = field(default_factory=list)

    def meet(self) -> None:
        self.ops.append({"name": "nop"})
        self.waited, self.touched = False, []

    def barrier(self, number: int, parties: int) -> None:
        """All threads of so many thread blocks meet."""
        self.ops.append({"name": "barrier", "barrier_id": number, "num_threadblocks": parties})
        self.waited, self.touched = False, []

    def access(self, op: dict[str, Any], spans: Sequence[tuple[str, int, int, bool]]) -> None:
        """An operation on local ``spans`` (buffer, first, size, written), behind a ``nop`` where it needs one."""
        if self.waited or self.clashes(spans):
            self.meet()
        self.ops.append(op)
        self.touched += spans

    def clashes(self, spans: Sequence[tuple[str, int, int, bool]]) -> bool:
        """Whether one of the spans shares a chunk with one touched since the threads met, and either is written."""
        for other, low, count, writes in spans:
            for buffer, first, size, written in self.touched:
                if first < low + count and low < first + size and buffer == other and (written or writes):
                    return True
        return False

    def loop(self, first: int, pace: int, chunks: int) -> None:
        """Do the operations from ``first`` on in a loop, ``pace`` bytes of each of so many chunks in a pass, before
        which its threads meet."""
        body = [{"name": "nop"}, *self.ops[first:]]
        context = {"unit_size": pace * chunks, "num_chunks": chunks}
        self.ops[first:] = [{"name": "pipeline", "iter_context": context, "ops": body}]
        self.inside += len(body)

    @property
    def operations(self) -> int:
        """How many there are, those of loops too."""
        return len(self.ops) + self.inside

    def copy(self, source: tuple[str, int], to: tuple[str, int], size: int) -> None:
        """So many chunks from one place (buffer, first chunk) to another of the same GPU."""
        ends = {"src_buff": source, "dst_buff": to}
        op = {key: [{"type": buffer, "index": first, "size": size}] for key, (buffer, first) in ends.items()}
        self.access({"name": "copy", **op}, [(*source, size, False), (*to, size, True)])

    def signals(self, name: str, ids: Sequence[tuple[str, int]]) -> None:
        """Signals or waits over channels (type, number in the block), as few operations as there can be."""
        if not ids:
            return
        gives = name.endswith("signal")
        if gives and self.touched:
            self.meet()
        for kind in ("memory", "port"):
            left = [i for k, i in ids if k == kind]
            while left:
                now: list[int] = []
                for i in list(left):
                    if i not in now and len(now) < MAX_CHANNEL_PER_OPERATION:
                        now.append(i)
                        left.remove(i)
                self.ops.append({"name": name, "channel_ids": now, "channel_type": kind})
        self.waited |= not gives
