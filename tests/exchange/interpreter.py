"""The meaning of MSCCL XML, as slowly and plainly as possible: an oracle that shares no code with `synth.exchange`.

It walks through every state that any interleaving of the thread blocks can reach (a state is how far each thread block
is), looks in each for two steps that could run at once and touch the same chunk, and runs some interleavings on bags of
names. Steps take effect at once; a message waits in its channel until it is received.

:func:`outcomes` runs *all* interleavings on real cells: a step first loads what it reads, then stores what it writes,
and anything may happen in between. Memory that nobody has written holds rubbish.
"""

from __future__ import annotations

import random
import xml.etree.ElementTree as ET
from collections import Counter
from typing import Any

READS_SOURCE = {"s", "cpy", "re", "rrc", "rrs", "rrcs"}
WRITES = {"r", "cpy", "re", "rrc", "rcs", "rrcs"}
SENDS, RECEIVES = {"s", "rcs", "rrs", "rrcs"}, {"r", "rrc", "rcs", "rrs", "rrcs"}


class Broken(Exception):
    """Not even the words make sense."""


class Machine:
    """All ranks; memory in place or not."""

    def __init__(self, text: str) -> None:
        root = ET.fromstring(text)
        self.coll = root.get("coll").replace("_", "")
        self.n, loop = int(root.get("ngpus")), int(root.get("nchunksperloop"))
        self.shared = root.get("inplace") == "1"
        self.c = loop // self.n if self.coll in ("allgather", "reducescatter", "alltoall") else loop
        self.root = int(root.get("root", 0))
        self.gpus = {int(gpu.get("id")): gpu for gpu in root}
        self.tbs: list[dict[str, Any]] = []
        for rank in sorted(self.gpus):
            for tb in sorted(self.gpus[rank], key=lambda tb: int(tb.get("id"))):
                numbers = {key: int(tb.get(key)) for key in ("id", "send", "recv", "chan")}
                self.tbs.append(numbers | {"rank": rank, "steps": [dict(step.items()) for step in tb]})
        self.place = {(tb["rank"], tb["id"]): k for k, tb in enumerate(self.tbs)}
        self._sense()

    def sizes(self, rank: int) -> dict[str, int]:
        """Chunks that the buffers really have."""
        one, all_ = self.c, self.c * self.n
        at_root = rank == self.root
        given, result = {
            "allgather": (one, all_), "reducescatter": (all_, one), "alltoall": (all_, all_),
            "gather": (one, all_ if at_root else 0), "scatter": (all_ if at_root else 0, one),
        }.get(self.coll, (one, one))  # fmt: skip
        return {"i": given, "o": result, "s": int(self.gpus[rank].get("s_chunks"))}

    def where(self, rank: int, buffer: str, offset: int) -> tuple[Any, ...]:
        """The memory that a chunk is: a pointer and what is added to it.

        In place is what an executor takes for it (msccl_lifecycle.cc): sendbuff = recvbuff + rank * count for allgather
        and gather, recvbuff = sendbuff + rank * count for reduce_scatter and scatter, else sendbuff = recvbuff.
        """
        sendbuff, recvbuff = 0, 1000
        here = self.coll not in ("gather", "scatter") or rank == self.root  # elsewhere there is one buffer only
        if self.shared and here:
            recvbuff = sendbuff
            if self.coll in ("allgather", "gather"):
                sendbuff = recvbuff + rank * self.c
            if self.coll in ("reducescatter", "scatter"):
                recvbuff = sendbuff + rank * self.c
        return rank, {"i": sendbuff, "o": recvbuff, "s": 2000}[buffer] + offset

    def touched(self, tb: dict[str, Any], step: dict[str, str], side: str) -> list[Any]:
        first, count = int(step[side + "off"]), int(step["cnt"])
        return [self.where(tb["rank"], step[side + "buf"], first + k) for k in range(count)]

    def reads(self, tb: dict[str, Any], step: dict[str, str]) -> list[Any]:
        found = self.touched(tb, step, "src") if step["type"] in READS_SOURCE else []
        return found + (self.touched(tb, step, "dst") if step["type"] == "re" else [])

    def writes(self, tb: dict[str, Any], step: dict[str, str]) -> list[Any]:
        return self.touched(tb, step, "dst") if step["type"] in WRITES else []

    def idle(self, tb: dict[str, Any], step: dict[str, str]) -> bool:
        """Whether a step stores into memory what it has loaded there."""
        return step["type"] == "cpy" and self.touched(tb, step, "src") == self.touched(tb, step, "dst")

    def changes(self, tb: dict[str, Any], step: dict[str, str]) -> list[Any]:
        return [] if self.idle(tb, step) else self.writes(tb, step)

    def _sense(self) -> None:
        ends = set()
        for tb in self.tbs:
            for word in ("send", "recv"):
                if tb[word] == tb["rank"] or not -1 <= tb[word] < self.n:
                    raise Broken("peer")
                if tb[word] >= 0:
                    end = word, tb["rank"], tb[word], tb["chan"]
                    if end in ends:
                        raise Broken("two thread blocks at one end")
                    ends.add(end)
            for step in tb["steps"]:
                kind = step["type"]
                if (kind in SENDS and tb["send"] < 0) or (kind in RECEIVES and tb["recv"] < 0):
                    raise Broken("no peer")
                if kind != "nop" and int(step["cnt"]) < 1:
                    raise Broken("count")
                for side, used in (("src", kind in READS_SOURCE), ("dst", kind in WRITES)):
                    declared = int(self.gpus[tb["rank"]].get(step[side + "buf"] + "_chunks"))
                    size = min(declared, self.sizes(tb["rank"])[step[side + "buf"]])
                    first = int(step[side + "off"])
                    if used and (first < 0 or first + int(step["cnt"]) > size):
                        raise Broken("outside")
                if kind in READS_SOURCE & WRITES:
                    src, dst = self.touched(tb, step, "src"), self.touched(tb, step, "dst")
                    if src != dst and set(src) & set(dst):
                        raise Broken("overlap")
                named = int(step["depid"]), int(step["deps"])
                if named == (-1, -1):
                    continue
                other = self.place.get((tb["rank"], named[0]))
                if other is None or not 0 <= named[1] < len(self.tbs[other]["steps"]):
                    raise Broken("dependence")
                target = self.tbs[other]["steps"][named[1]]
                if target["hasdep"] != "1" or target["type"] == "nop":
                    raise Broken("no signal")

    def enabled(self, at: tuple[int, ...]) -> list[int]:
        """The thread blocks whose next step can run."""
        sent: Counter[Any] = Counter()
        for tb, done in zip(self.tbs, at, strict=True):
            for step in tb["steps"][:done]:
                if step["type"] in SENDS:
                    sent[tb["rank"], tb["send"], tb["chan"]] += 1
                if step["type"] in RECEIVES:
                    sent[tb["recv"], tb["rank"], tb["chan"]] -= 1
        found = []
        for k, tb in enumerate(self.tbs):
            if at[k] == len(tb["steps"]):
                continue
            step = tb["steps"][at[k]]
            if step["depid"] != "-1" and at[self.place[tb["rank"], int(step["depid"])]] <= int(step["deps"]):
                continue
            if step["type"] in RECEIVES and not sent[tb["recv"], tb["rank"], tb["chan"]]:
                continue
            found.append(k)
        return found

    def explore(self, most: int = 20000) -> set[str]:
        """What can go wrong in some state: `race`, `deadlock`, `unreceived`."""
        start = (0,) * len(self.tbs)
        seen, stack, wrong = {start}, [start], set()
        while stack:
            at = stack.pop()
            ready = self.enabled(at)
            for x in ready:
                for y in ready:
                    if x < y and self._conflict(x, y, at):
                        wrong.add("race")
            for k in ready:
                after = (*at[:k], at[k] + 1, *at[k + 1 :])
                if after not in seen:
                    seen.add(after)
                    stack.append(after)
            if not ready and any(done < len(tb["steps"]) for tb, done in zip(self.tbs, at, strict=True)):
                wrong.add("deadlock")
            assert len(seen) < most, "too large for the oracle"
        return wrong

    def _conflict(self, x: int, y: int, at: tuple[int, ...]) -> bool:
        one, other = ((self.tbs[k], self.tbs[k]["steps"][at[k]]) for k in (x, y))
        reads, writes = set(self.reads(*one)), set(self.changes(*one))
        return bool(writes & {*self.reads(*other), *self.changes(*other)} or reads & set(self.changes(*other)))

    def run(self, seed: int) -> set[str]:
        """One interleaving at random, and what is wrong with it: `unwritten`, `count`, `unreceived`, `result`."""
        chance = random.Random(seed)
        memory: dict[Any, Counter[Any]] = {}
        for rank in range(self.n):
            if self.coll in ("broadcast", "scatter") and rank != self.root:
                continue
            for k in range(self.sizes(rank)["i"]):
                memory[self.where(rank, "i", k)] = Counter([(rank, k)])
        channels: dict[Any, list[Any]] = {}
        at, wrong = (0,) * len(self.tbs), set()
        while ready := self.enabled(at):
            k = chance.choice(ready)
            tb, step = self.tbs[k], self.tbs[k]["steps"][at[k]]
            at = (*at[:k], at[k] + 1, *at[k + 1 :])
            if step["type"] == "nop" or self.idle(tb, step):
                continue
            parts = []
            if step["type"] in RECEIVES:
                came = channels[tb["recv"], tb["rank"], tb["chan"]].pop(0)
                if len(came) != int(step["cnt"]):
                    return wrong | {"count"}
                parts.append(came)
            for side in ("src", "dst"):
                if (side == "src" and step["type"] in READS_SOURCE) or (side == "dst" and step["type"] == "re"):
                    cells = self.touched(tb, step, side)
                    if any(cell not in memory for cell in cells):
                        return wrong | {"unwritten"}
                    parts.append([memory[cell] for cell in cells])
            value = [sum(bags, Counter()) for bags in zip(*parts, strict=True)]
            for cell, bag in zip(self.writes(tb, step), value, strict=False):
                memory[cell] = bag
            if step["type"] in SENDS:
                channels.setdefault((tb["rank"], tb["send"], tb["chan"]), []).append(value)
        if any(channels.values()):
            wrong.add("unreceived")
        if any(memory.get(cell) != Counter(bag) for cell, bag in self.wanted()):
            wrong.add("result")
        return wrong

    def wanted(self) -> list[tuple[Any, list[Any]]]:
        n, c, found = self.n, self.c, []
        for r in range(n):
            if self.coll in ("reduce", "gather") and r != self.root:
                continue
            for k in range(self.sizes(r)["o"]):
                bag = {
                    "allgather": [(k // c, k % c)],
                    "gather": [(k // c, k % c)],
                    "alltoall": [(k // c, r * c + k % c)],
                    "reducescatter": [(q, r * c + k) for q in range(n)],
                    "allreduce": [(q, k) for q in range(n)],
                    "reduce": [(q, k) for q in range(n)],
                    "broadcast": [(self.root, k)],
                    "scatter": [(self.root, r * c + k)],
                }[self.coll]
                found.append((self.where(r, "o", k), bag))
        return found


class TooMany(Exception):
    """More states than the oracle walks through."""


class Interleavings:
    """All runs of a machine on real cells. ``wrong``: `race` (a load, or what is left in the end, differs from run to
    run), `deadlock`, `count`, `rubbish` (something is made of a cell that nobody has written), `unreceived`, `result`;
    `same`: a step stores what another has left there, so that runs may be alike although it races."""

    def __init__(self, machine: Machine, most: int) -> None:
        self.m, self.wrong = machine, set[str]()
        self.loads: dict[tuple[int, int], set[Any]] = {}
        self.ends: set[Any] = set()
        self._walk(most)
        if any(len(seen) > 1 for seen in self.loads.values()) or len(self.ends) > 1:
            self.wrong.add("race")

    def _walk(self, most: int) -> None:
        """A state: of every thread block how far it is and what it has loaded, the cells, the channels."""
        m = self.m
        cells: dict[Any, Any] = {}
        for rank in range(m.n):
            for buffer, size in m.sizes(rank).items():
                for k in range(size):
                    cells.setdefault(m.where(rank, buffer, k), (("rubbish", rank, buffer, k),))
            if m.coll not in ("broadcast", "scatter") or rank == m.root:
                for k in range(m.sizes(rank)["i"]):
                    cells[m.where(rank, "i", k)] = ((rank, k),)
        start = (((0, None),) * len(m.tbs), tuple(sorted(cells.items())), ())
        seen, stack = {start}, [start]
        while stack:
            after = list(self._next(*stack.pop()))
            for state in after:
                if state not in seen:
                    seen.add(state)
                    stack.append(state)
            if len(seen) > most:
                raise TooMany

    def _next(self, tbs: Any, cells: Any, channels: Any) -> Any:
        m, memory, queue = self.m, dict(cells), dict(channels)
        ready = set(m.enabled(tuple(done for done, _ in tbs)))
        moved = False
        for k, (done, loaded) in enumerate(tbs):
            if loaded is None and k not in ready:
                continue
            moved = True
            tb, step = m.tbs[k], m.tbs[k]["steps"][done]
            here, there = (tb["recv"], tb["rank"], tb["chan"]), (tb["rank"], tb["send"], tb["chan"])
            if loaded is None:
                left, parts = dict(queue), []
                if step["type"] in RECEIVES:
                    parts.append(left[here][0])
                    left[here] = left[here][1:]
                for side in ("src", "dst"):
                    if (side == "src" and step["type"] in READS_SOURCE) or (side == "dst" and step["type"] == "re"):
                        parts.append(tuple(memory[cell] for cell in m.touched(tb, step, side)))
                if step["type"] == "nop":
                    parts = []
                if parts and any(len(part) != int(step["cnt"]) for part in parts):
                    self.wrong.add("count")
                    return
                self.loads.setdefault((k, done), set()).add(tuple(parts))
                value = tuple(tuple(sorted(sum(bags, ()), key=str)) for bags in zip(*parts, strict=True))
                if not m.idle(tb, step) and any(one[0] == "rubbish" for bag in value for one in bag):
                    self.wrong.add("rubbish")
                yield (*tbs[:k], (done, value), *tbs[k + 1 :]), cells, _kept(left)
                continue
            stored = dict(zip(m.writes(tb, step), loaded, strict=False))
            if not m.idle(tb, step) and any(memory[cell] == value for cell, value in stored.items()):
                self.wrong.add("same")
            after = tuple(sorted({**memory, **stored}.items()))
            sent = dict(queue)
            if step["type"] in SENDS:
                sent[there] = (*sent.get(there, ()), loaded)
            yield (*tbs[:k], (done + 1, None), *tbs[k + 1 :]), after, _kept(sent)
        if not moved:
            self._ended(tbs, memory, queue)

    def _ended(self, tbs: Any, memory: Any, queue: Any) -> None:
        m = self.m
        if any(done < len(tb["steps"]) for (done, _), tb in zip(tbs, m.tbs, strict=True)):
            self.wrong.add("deadlock")
            return
        self.ends.add(tuple(sorted(memory.items())))
        if queue:
            self.wrong.add("unreceived")
        if any(Counter(memory[cell]) != Counter(bag) for cell, bag in m.wanted()):
            self.wrong.add("result")


def _kept(queue: dict[Any, Any]) -> Any:
    return tuple(sorted((key, value) for key, value in queue.items() if value))


def outcomes(text: str, most: int = 40000) -> set[str]:
    """What goes wrong in some interleaving. Raises :class:`TooMany`, and :class:`Broken` where words make no sense."""
    return Interleavings(Machine(text), most).wrong


def wrong(text: str, runs: int = 4) -> set[str]:
    """Everything that the oracle finds wrong with a file; empty for a valid one."""
    try:
        machine = Machine(text)
    except Broken as error:
        return {f"broken: {error}"}
    found = machine.explore()
    for seed in range(runs):
        found |= machine.run(seed)
    return found
