"""Which algorithm and protocol NCCL (or RCCL) should take, by its own cost model on the machine's rates.

The times are those of :mod:`synth.exchange.selection.nccl_reach` and :mod:`synth.exchange.selection.rccl_reach`, with
CollNet and the chains of broadcast and reduce beside them; of the group that was asked for, no less than the machine's
own time of the same algorithm, so that an oversubscribed fabric or a slow link counts. An algorithm is there where NCCL
has it: NVLS where a box's switch adds (from Hopper on), NVLSTree between such boxes, CollNet where the network's
switches add, PAT with one GPU a box, trees for allreduce. A machine of which no boxes are stated has one rank a box.

``channels`` is 0 in every row: NCCL then counts them itself (NVIDIA/nccl @5067397c, src/enqueue.cc, ncclGetAlgoInfo); a
row that says -1, and a call that no row fits, get one channel of the plug-in. Where NCCL cannot run what a row says,
the plug-in goes on to the next that fits: the last ones are for any group, and of what every group has.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from synth.errors import InputError
from synth.exchange.selection import nccl_reach, rccl_reach
from synth.exchange.selection.machine_rates import of_one_domain, rates
from synth.exchange.selection.nccl_reach import PROTOCOLS, ROUNDS, Boxes, ring_channels
from synth.exchange.selection.nccl_tuner import NAMES, OWN_COUNT
from synth.exchange.selection.rules import Rule, merged
from synth.instance import Instance
from synth.records.record import Record

LARGE = 2**38  # bytes, of which no latency is seen
SIZES = [2**k for k in range(8, 37)]  # bytes at which rows beside those that were asked for are decided
WORDS = {"ring": "ring", "tree": "tree", "PAT": "pat", "NVLS": "nvls", "NVLSTree": "nvls_tree"}
METHODS = {"ring": "ring", "tree": "double_tree", "nvls": "nvls", "nvls_tree": "nvls", "pat": "pat",
           "collnet_direct": "sharp", "collnet_chain": "sharp"}  # fmt: skip
ALWAYS = (("ring", "LL"), ("ring", "Simple"), ("tree", "LL"), ("tree", "Simple"))  # what every communicator has
MOST_COLLNET = 8  # GPUs of a box
NAMED = {"gb200": "blackwell", "gb300": "blackwell", "b200": "blackwell", "b300": "blackwell", "h100": "hopper",
         "h200": "hopper", "h800": "hopper", "a100": "ampere", "a800": "ampere", "v100": "volta", "dgx1": "volta",
         "dgx2": "volta", "ndv2": "volta", "mi300": "mi300x", "mi325": "mi300x", "mi250": "mi250"}  # fmt: skip
PORTS = {"volta": 150e9, "ampere": 300e9, "hopper": 450e9, "blackwell": 900e9}  # bytes/s of a GPU inside its box

Run = Callable[[Instance, str], Record | None]
Way = tuple[str, str]  # algorithm and protocol
Seconds = Callable[[str], float | None]


@dataclass(frozen=True)
class Nccl:
    """NCCL on a machine: the whole group, and the kind of GPU. ``nodes``: None where the machine states no boxes;
    ``sharp``: bytes/s of a large allreduce that the network's switches add up, 0 where they do not."""

    group: Boxes
    nodes: int | None
    gpu: str
    sharp: float = 0.0

    @classmethod
    def of(cls, make: Callable[[str, int], Instance], run: Run, gpu: str | None = None) -> Nccl:
        """NCCL on the machine of these instances. Raises :class:`InputError` for fewer than two ranks, and where no
        ring goes around them."""
        large: Any = make("allgather", LARGE)
        members, found = list(large.members), [list(box) for box in large.boxes]
        if len(members) < 2:
            raise InputError("nccl has no choice for one rank")
        known = large.hosts > 1 or len(found) < len(members)
        group = _group(large, [members] if known and large.hosts == 1 else found, run)
        whole = make("allreduce", LARGE)
        tree = run(whole, "sharp") if group.sums and group.boxes > 1 else None
        sharp = LARGE / tree.value if tree is not None and tree.value else 0.0
        return cls(group, group.boxes if known else None, gpu or nearest_gpu(large), sharp)

    @property
    def box(self) -> Boxes | None:
        """One box of several ranks; None where the machine states no boxes."""
        width, inside = self.group.width, self.group.inside
        if self.nodes is None or width == 1 or not inside:
            return None
        return self.group._replace(ranks=width, boxes=1, nics=0, nic=0.0)

    @property
    def rail(self) -> Boxes | None:
        """One rank of every box; None where that is the group itself, or no boxes are."""
        if self.box is None or self.group.boxes == 1:
            return None
        return Boxes("allreduce", self.group.boxes, self.group.boxes, 0.0, 1, self.group.nic)

    def choice(
        self, collective: str, size: int, machine_s: Seconds
    ) -> tuple[dict[str, float], dict[str, dict[str, int | str]]]:
        """By algorithm the seconds of its quickest protocol at a size, no less than ``machine_s`` of the method that is
        the same algorithm, and what NCCL is told."""
        quickest: dict[str, float] = {}
        told: dict[str, dict[str, int | str]] = {}
        for (word, protocol), value in self.times(self.group, collective, size).items():
            if value < quickest.get(word, math.inf):
                quickest[word], told[word] = value, _told(protocol)
        for word in quickest if collective == "allreduce" else {"ring", "pat"} & quickest.keys():
            quickest[word] = max(quickest[word], machine_s(METHODS[word]) or 0.0)
        return quickest, told

    def times(self, group: Boxes, collective: str, size: int) -> dict[Way, float]:
        """Seconds of every algorithm and protocol that NCCL has for a collective in a group."""
        model = nccl_reach if self.gpu in nccl_reach.data()["gpu"] else rccl_reach
        asked = group._replace(collective=collective)
        if collective not in ROUNDS:
            return dict(self._chains(asked, size))
        found = {(WORDS[one.algorithm], one.protocol): one.seconds for one in model.every(asked, self.gpu, size)}
        if collective == "allreduce" and group.boxes > 1 and group == self.group and model is nccl_reach:
            found |= dict(self._collnet(size))
        return found

    def _chains(self, asked: Boxes, size: int) -> Iterator[tuple[Way, float]]:
        """Broadcast and reduce along a ring; the steps are counted once where channels are the same in all boxes, which
        here is in one box (tuning.cc)."""
        if self.gpu in nccl_reach.data()["gpu"]:
            card, table, tree = nccl_reach.data()["gpu"][self.gpu], nccl_reach.data()["ring"], nccl_reach.data()["tree"]
            ring = ring_channels(asked, card)
            shares, steps = table["share"], [*table["net_step"][:2], tree["net_step"][2]]
            rate, most = ring.number * ring.inside, nccl_reach.most_ll(card, asked.boxes)
            inside = table["nvlink_step"]
        else:
            card = rccl_reach.data()["gpu"][self.gpu]
            table = rccl_reach.data()[card["inside" if asked.boxes == 1 else "between"]]["ring"]
            shares, steps, inside = table["share"][asked.boxes > 2], table["net_step"], table["step"]
            rate, most = min(one for one in (asked.inside, asked.nics * asked.nic) if one > 0), math.inf
        for p, protocol in enumerate(PROTOCOLS):
            if shares[p] > 0:
                wait = inside[p] if asked.boxes == 1 else asked.ranks * steps[p]
                cap = most if p == 0 else math.inf
                yield ("ring", protocol), float(table["base"][p] + wait + size / min(rate * shares[p], cap))

    def _collnet(self, size: int) -> Iterator[tuple[Way, float]]:
        """Allreduces with sums in the network's switches, for boxes of few ranks; in NVLS boxes add up before."""
        card, group = nccl_reach.data()["gpu"][self.gpu], self.group
        table, others, rate = nccl_reach.data(), group.width - 1, self.sharp * nccl_reach.NET_SHARE
        if not self.sharp:
            return
        if group.sums and card["nvls_share"] and others:
            wait = table["nvls"]["nvlink_step"][2] + table["nvls"]["net_step"][2]
            yield ("nvls", "Simple"), wait + size / rate
        if group.width <= MOST_COLLNET:
            direct, chain = table["collnet_direct"], table["collnet_chain"]
            wait = 2 * (min(1, others) * direct["nvlink_step"][2] + others * direct["arity_step"])
            yield ("collnet_direct", "Simple"), wait + direct["net_step"][2] + size / rate
            yield ("collnet_chain", "Simple"), 2 * others * chain["nvlink_step"][2] + chain["net_step"][2] + size / rate

    def beside(self, asked: Sequence[str]) -> list[Rule]:
        """The rows for everything that was not asked for: the other collectives of this group, groups in one box, one
        rank of every box, and for any other group what every group has."""
        rows: list[Rule] = []
        for collective in NAMES:
            if collective not in asked:
                rows += self._rows(collective, self.group, (self.group.ranks, self.nodes))
            if self.box is not None:
                rows += self._rows(collective, self.box, (None, 1))
            if self.rail is not None:
                rows += self._rows(collective, self.rail, (self.rail.ranks, self.rail.boxes))
            rows += self._rows(collective, self.group, (None, None), ALWAYS)
        return rows

    def _rows(
        self, collective: str, group: Boxes, place: tuple[int | None, int | None], ways: Sequence[Way] | None = None
    ) -> list[Rule]:
        """The rows of one place over all sizes."""
        best: list[Way] = []
        for size in SIZES:
            known = self.times(group, collective, size)
            best.append(min((way for way in known if ways is None or way in ways), key=lambda way: known[way]))
        edges = [math.isqrt(a * b) for a, b in pairwise(SIZES)]
        ranges = zip([0, *(edge + 1 for edge in edges)], [*edges, None], best, strict=True)
        return merged(
            [Rule(collective, *place, first, last, word, _told(protocol)) for first, last, (word, protocol) in ranges]
        )


def _group(large: Any, boxes: list[list[int]], run: Run) -> Boxes:
    """What NCCL sees of the ranks in these boxes. Raises :class:`InputError` where that is not known."""
    ranks, sums = len(large.members), bool(large.machine.abilities.adds.any())
    inside, ways = rates(large.machine.network, boxes)
    if whole := of_one_domain(inside, ways, boxes, ranks):
        return Boxes("allreduce", ranks, 1, whole, sums=sums)
    around = _around(large, run) or inside
    if not (around or ways):
        raise InputError("nccl: what rings carry here is not known", large.name)
    if len(boxes) == 1:
        return Boxes("allreduce", ranks, 1, around, sums=sums)
    nics, nic = (len(ways), min(ways.values())) if ways else (ranks // len(boxes), around)
    return Boxes("allreduce", ranks, len(boxes), inside, nics, nic, sums)


def _around(large: Any, run: Run) -> float | None:
    """Bytes/s through a rank of the rings that the machine has, None where no run says it. Raises :class:`InputError`
    where there are none."""
    record = run(large, "ring")
    if record is None:
        return None
    if not record.value:
        raise InputError(f"none of nccl's algorithms runs here: ring: {record['message'] or 'no schedule'}", large.name)
    return float(large.bytes * (len(large.members) - 1) / len(large.members) / record.value)


def _told(protocol: str) -> dict[str, int | str]:
    return {"protocol": protocol.lower(), "channels": OWN_COUNT}


def nearest_gpu(instance: Instance) -> str:
    """The kind of GPU that the machine's name says, else the one whose links carry what comes nearest to those of the
    first rank."""
    for word, gpu in NAMED.items():
        if word in instance.name.lower():
            return gpu
    found: Any = instance
    net = found.machine.network
    rate = max(float(net.bandwidth[net.src == found.members[0]].sum()), 1.0)
    return min(PORTS, key=lambda gpu: abs(math.log(PORTS[gpu] / rate)))
