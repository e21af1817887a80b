"""What NCCL should reach by its own cost model, beside what is possible: no bound and no choice uses it.

``time = base + steps + bytes / rate`` of each algorithm and protocol, the quickest counts (``nccl_protocols.toml``
names the sources). A rate is a channel's times their number, as NCCL's search finds them: as many as links carry of
the rates that it tries, :class:`Channels`. Left out: CollNet, NVLS between boxes without trees, a NIC's own latency,
boxes whose GPUs are joined by PCIe alone, and what is oversubscribed above the NICs, of which NCCL does not know.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

PROTOCOLS = ("LL", "LL128", "Simple")
ROUNDS = {"allreduce": 2, "allgather": 1, "reduce_scatter": 1}  # about the ring
FILE = Path(__file__).with_name("nccl_protocols.toml")
MOST_CHANNELS = 32
NET_SHARE = 0.96  # of a NIC that has what an aggregation tree carries: 48 of 50 GB/s
SLOWER = 0.49  # of the best channel's rate, below which NCCL's search stops
LEAST_MESSAGE = 64  # bytes a channel and rank from which rings between boxes are at their plateau; corrections' first


class Reach(NamedTuple):
    """Seconds by the quickest, and which that is."""

    seconds: float
    algorithm: str
    protocol: str


class Boxes(NamedTuple):
    """What NCCL looks at: the collective, ranks and boxes; ``inside``: bytes/s that a GPU's links in its box carry each
    way, 0 where it has none; ``nics`` of a box and bytes/s of each (none in one box); ``sums``: whether the switch in
    the box copies and adds, as NVLS needs."""

    collective: str
    ranks: int
    boxes: int
    inside: float
    nics: int = 0
    nic: float = 0.0
    sums: bool = False

    @property
    def width(self) -> int:
        """GPUs of a box."""
        return self.ranks // self.boxes


class Channels(NamedTuple):
    """How many, and the bytes/s of each in a box and between boxes."""

    number: int
    inside: float
    between: float


@cache
def data() -> dict[str, Any]:
    """The file's tables."""
    return tomllib.loads(FILE.read_text(encoding="utf-8"))


def reach(asked: Boxes, gpu: str, size: int) -> Reach | None:
    """What NCCL expects at a size in bytes; None for a collective that its model does not know."""
    return quickest(asked, every(asked, gpu, size))


def quickest(asked: Boxes, found: Iterator[Reach]) -> Reach | None:
    """The quickest of what is ``found``; None where the model does not know the collective, or nothing joins GPUs."""
    if asked.collective not in ROUNDS or asked.ranks < 2 or (asked.boxes == 1 and asked.inside <= 0):
        return None
    return min(found, default=None)


def every(asked: Boxes, gpu: str, size: int) -> Iterator[Reach]:
    """What NCCL expects of each of its algorithms and protocols that runs there."""
    card = data()["gpu"][gpu]
    ring = ring_channels(asked, card)
    for p, protocol in enumerate(PROTOCOLS):
        yield Reach(_ring_seconds(asked, card, ring, p, size), "ring", protocol)
        if asked.collective == "allreduce":
            yield Reach(_tree_seconds(asked, card, tree_channels(asked, card, ring), p, size), "tree", protocol)
    if asked.collective != "allreduce" and asked.width == 1:
        yield Reach(_pat_seconds(asked, tree_channels(asked, card, ring), size), "PAT", "Simple")
    if asked.sums and card["nvls_share"] and asked.width > 1:
        yield from _nvls(asked, card, size)


def ring_channels(asked: Boxes, card: dict[str, Any]) -> Channels:
    """The most that fits the links of a GPU, or the NICs of a box: rates are tried from the highest on."""
    total = asked.inside * card["nvlink_share"]
    best = (0, 0.0)
    for rate in card["channel_between" if asked.boxes > 1 else "channel_inside"]:
        if best[0] and rate < SLOWER * best[1]:
            break
        number = _fitting(asked, total, rate)
        if number * rate > best[0] * best[1]:
            best = number, rate
    number, rate = best if best[0] else (1, asked.nic if asked.boxes > 1 else total)
    few = not card["keeps_channels"] or rate >= 50e9 or number <= 4
    if rate >= 25e9 and few:
        number, rate = min(2 * number, MOST_CHANNELS), rate * number / min(2 * number, MOST_CHANNELS)
    return Channels(number, rate, rate)


def _fitting(asked: Boxes, total: float, rate: float) -> int:
    """Channels of a rate: in a box all links of a GPU carry them; a chain through a box ends at one of its GPUs."""
    if asked.boxes == 1:
        return int(total / rate + 1e-9)
    number = asked.nics * int(asked.nic / rate + 1e-9)
    if asked.width > 1 and asked.inside:
        number = min(number, int(total * asked.width / (asked.width - 1) / rate + 1e-9))
    return number


def tree_channels(asked: Boxes, card: dict[str, Any], ring: Channels) -> Channels:
    """As many as the ring has, in boxes of up to twice the rate between two of them."""
    rate = ring.inside
    for quicker in reversed(card["channel_between"]) if asked.boxes > 1 else ():
        fits = asked.width == 1 or ring.number * quicker * (asked.width - 1) <= (
            asked.inside * card["nvlink_share"] * asked.width
        )
        if rate < quicker and rate < 2 * ring.between and fits:
            rate = quicker
    return Channels(ring.number, rate, ring.between)


def nvls_channels(asked: Boxes, card: dict[str, Any]) -> Channels | None:
    """One for each GPU that sums up, which are those with a NIC: its own link carries two parts, None where that is too
    much. The rate between boxes is raised as far as the NICs go, to twice that in the box."""
    number = asked.width if asked.boxes == 1 else min(asked.nics, asked.width)
    rates = card["channel_between" if asked.boxes > 1 else "channel_inside"]
    total = asked.inside * card["nvlink_share"]
    for k, rate in enumerate(rates):
        if (number + 1) * rate <= total and (asked.boxes == 1 or rate <= asked.nic):
            between = rate
            for quicker in reversed(rates[:k]):
                if between < 2 * rate and (asked.boxes == 1 or quicker <= asked.nic):
                    between = quicker
            return Channels(number, rate, between)
    return None


def _ring_seconds(asked: Boxes, card: dict[str, Any], ring: Channels, p: int, size: int) -> float:
    protocol, rounds, kind = data()["ring"], ROUNDS[asked.collective], min(asked.boxes, 3) - 1
    rate = ring.number * (ring.inside if asked.boxes <= 2 else ring.between) * protocol["share"][p]
    if p == 0:
        rate = min(rate, most_ll(card, asked.boxes))
    elif p == 1:
        rate = min(rate, ring.number * card["ring_LL128_channel"][kind])
    steps = rounds * (asked.ranks - 1)
    between = rounds * (asked.boxes - 1)
    inside = protocol["nvlink_step"][p]
    if asked.boxes > 1:
        inside = max(inside, data()["cpu"][card["cpu"]]["post"] * (3 if p == 2 else 1))
    step = data()["tree" if asked.width == 1 else "ring"]["net_step"][p]
    wait = protocol["base"][p] + (steps - between) * inside + between * step
    long = size // (ring.number * asked.ranks) >= LEAST_MESSAGE
    if p == 2 and asked.boxes > 1 and asked.collective == "allreduce" and long:
        wait *= card["plateau"]
    return float(wait + size * steps / asked.ranks / rate)


def most_ll(card: dict[str, Any], boxes: int) -> float:
    """Bytes/s that LL never exceeds: by GPU in a box, by CPU between boxes."""
    return float(card["most_LL"] if boxes == 1 else data()["cpu"][card["cpu"]]["most_LL"][min(boxes, 3) - 2])


def _tree_seconds(asked: Boxes, card: dict[str, Any], tree: Channels, p: int, size: int) -> float:
    protocol, kind = data()["tree"], min(asked.boxes, 3) - 1
    rate = tree.number * (tree.inside if asked.boxes <= 2 else tree.between)
    rate = min(rate * protocol["share_of_all"], tree.number * card["tree_channel"][kind])
    rate *= protocol["share_LL128_in_a_box"] if p == 1 and asked.boxes == 1 else protocol["share"][p]
    if p == 0:
        rate = min(rate, most_ll(card, asked.boxes))
    elif p == 1:
        rate = min(rate, tree.number * card["tree_LL128_channel"][kind])
    rate *= corrected(protocol["corrections"][PROTOCOLS[p]], size)
    doublings = asked.boxes.bit_length() - 1
    wait = 2 * ((asked.width - 1) * protocol["nvlink_step"][p] + doublings * protocol["net_step"][p])
    return float(protocol["base"][p] + wait + 2 * size / rate)


def corrected(factors: Sequence[float], size: int) -> float:
    """The factor of a size in bytes: by powers of two, from 64 B on; 1 for what is shorter or longer."""
    power = (size // LEAST_MESSAGE).bit_length() - 1
    return factors[power] if 0 <= power < len(factors) else 1.0


def _pat_seconds(asked: Boxes, tree: Channels, size: int) -> float:
    protocol = data()["pat"]
    rate = tree.number * (tree.inside if asked.boxes <= 2 else tree.between) * protocol["share_of_all"]
    doublings = asked.boxes.bit_length() - 1
    wait = doublings * protocol["net_step"][2] / protocol["net_steps_at_once"] + asked.ranks * protocol["rank_step"]
    return float(protocol["base"][2] + wait + size / rate)


def _nvls(asked: Boxes, card: dict[str, Any], size: int) -> Iterator[Reach]:
    """In one box NVLS, and between boxes trees of it, which there are for allreduce alone."""
    channels = nvls_channels(asked, card)
    name = "NVLS" if asked.boxes == 1 else "NVLSTree"
    if channels is None or channels.number < 2 or (asked.boxes > 1 and asked.collective != "allreduce"):
        return
    number = channels.number
    inside = channels.inside * card["nvls_share"] * (number - 1) / number
    inside *= 2 if asked.collective == "allreduce" else (asked.width - 1) / asked.width
    rate = min(inside, channels.between * (2 if asked.boxes == 2 else 1))
    protocol = data()["nvls" if asked.boxes == 1 else "nvls_tree"]
    wait = protocol["nvlink_step"][2]
    if asked.boxes > 1:
        rate = min(rate, card["nvls_tree_channel"][min(asked.boxes, 3) - 1])
        wait += 2 * (asked.boxes.bit_length() - 1) * protocol["net_step"][2]
    carried = 2 * (asked.ranks - 1) / asked.ranks if asked.collective == "allreduce" else 1.0
    yield Reach(wait + size * carried / (number * rate), name, "Simple")
