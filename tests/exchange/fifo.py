"""Chakra traces on links that serve first come, first served, from the statement; nothing of ours but the messages.

A node is issued when what it depends on has ended. A send joins the queue of the link from its rank to the other; a
link carries one message at a time, ``bytes / bandwidth`` long, which arrives ``latency`` after that; then send and
receive end. A compute node takes 1 ns. Nodes that can be issued at the same moment are, in any order: here a random one
(ASTRA-sim's is that of a hash table).
"""

from __future__ import annotations

import heapq
from collections import defaultdict, deque
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from synth.exchange.chakra.messages import read_messages

COMP, SEND = 4, 5
COMPUTE_S = 1e-9


def finished(prefix: Path, ranks: int, bandwidth: float, latency: float, seeds: Iterable[int]) -> list[float]:
    """When the last node has ended, in seconds, in the order of each seed. Raises ``AssertionError`` where some never
    are issued."""
    trace = _Trace(prefix, ranks)
    return [_Simulation(trace, bandwidth, latency, seed).run() for seed in seeds]


class _Trace:
    def __init__(self, prefix: Path, ranks: int) -> None:
        self.nodes: dict[tuple[int, int], Any] = {}
        self.waits: dict[tuple[int, int], int] = {}
        self.users: dict[tuple[int, int], list[tuple[int, int]]] = defaultdict(list)
        for rank in range(ranks):
            path = prefix.with_name(f"{prefix.name}.{rank}.et")
            with path.open("rb") as stream:
                for node in list(read_messages(stream, path.stat().st_size))[1:]:
                    values = {one.name: getattr(one, str(one.WhichOneof("value"))) for one in node.attr}
                    self.nodes[rank, node.id] = (node.type, values)
                    self.waits[rank, node.id] = len(set(node.data_deps))
                    for other in set(node.data_deps):
                        self.users[rank, other].append((rank, node.id))


class _Simulation:
    def __init__(self, trace: _Trace, bandwidth: float, latency: float, seed: int) -> None:
        self.bandwidth, self.latency, self.rng = bandwidth, latency, np.random.default_rng(seed)
        self.nodes, self.waits, self.users = trace.nodes, dict(trace.waits), trace.users
        self.queue: dict[tuple[int, int], deque[Any]] = defaultdict(deque)
        self.busy: set[tuple[int, int]] = set()
        self.arrived: dict[tuple[int, int, int], int] = defaultdict(int)
        self.receives: dict[tuple[int, int, int], deque[Any]] = defaultdict(deque)
        self.events: list[tuple[float, int, str, Any]] = []
        self.count, self.ended, self.now = 0, 0, 0.0

    def run(self) -> float:
        self.issue([key for key, waits in self.waits.items() if waits == 0])
        while self.events:
            self.now = self.events[0][0]
            free: list[tuple[int, int]] = []
            while self.events and self.events[0][0] <= self.now + 1e-16:
                _, _, what, about = heapq.heappop(self.events)
                if what == "free":
                    self.busy.discard(about)
                    self.serve(about)
                elif what == "arrives":
                    link, key, tag = about
                    free += self.end(key)
                    place = (*link, tag)
                    if self.receives[place]:
                        free += self.end(self.receives[place].popleft())
                    else:
                        self.arrived[place] += 1
                else:
                    free += self.end(about)
            self.issue(free)
        assert self.ended == len(self.nodes), "some nodes are never issued"
        return self.now

    def at(self, after: float, what: str, about: Any) -> None:
        self.count += 1
        heapq.heappush(self.events, (self.now + after, self.count, what, about))

    def end(self, key: tuple[int, int]) -> list[tuple[int, int]]:
        """The nodes that can be issued now."""
        self.ended += 1
        for user in self.users[key]:
            self.waits[user] -= 1
        return [user for user in self.users[key] if self.waits[user] == 0]

    def issue(self, keys: list[tuple[int, int]]) -> None:
        while keys:
            later: list[tuple[int, int]] = []
            for k in self.rng.permutation(len(keys)):
                later += self.issue_one(keys[int(k)])
            keys = later

    def issue_one(self, key: tuple[int, int]) -> list[tuple[int, int]]:
        kind, values = self.nodes[key]
        rank, _ = key
        if kind == COMP:
            self.at(COMPUTE_S, "computed", key)
        elif kind == SEND:
            link = (rank, values["comm_dst"])
            self.queue[link].append((key, values["comm_size"], values["comm_tag"]))
            self.serve(link)
        else:
            place = (values["comm_src"], rank, values["comm_tag"])
            if self.arrived[place]:
                self.arrived[place] -= 1
                return self.end(key)
            self.receives[place].append(key)
        return []

    def serve(self, link: tuple[int, int]) -> None:
        if link in self.busy or not self.queue[link]:
            return
        key, size, tag = self.queue[link].popleft()
        self.busy.add(link)
        self.at(size / self.bandwidth, "free", link)
        self.at(size / self.bandwidth + self.latency, "arrives", (link, key, tag))
