"""What a log holds once it is read, and what each test costs in latencies and bandwidth.

Cost of one message over a link, alpha-beta (Hockney 1994): ``latency + bytes / bandwidth``. A collective among ``n``
ranks takes ``steps * latency + share * bytes / bandwidth``, by algorithm (Thakur, Rabenseifner, Gropp 2005; for
double trees Sanders, Speck, Träff 2009), sizes counted as nccl-tests count them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple, get_args

import numpy as np

from synth.arrays import FloatArray, IntArray
from synth.errors import Fault, InputError
from synth.text.quantities import counted

Algorithm = Literal["ring", "tree", "doubling"]
ALGORITHMS: tuple[Algorithm, ...] = get_args(Algorithm)
LATENCY, BANDWIDTH, SENDRECV, READ = "latency", "bandwidth", "sendrecv", "read"
PAIRS = (LATENCY, BANDWIDTH, SENDRECV, READ)  # tests of one link; all others are collectives
OUT, IN, BOTH = "out-of-place", "in-place", "both"
PLACES = {"out": OUT, "in": IN, "both": BOTH}
MOST_RANKS = 2**20
FEWEST_SIZES = 3


class Cost(NamedTuple):
    """``steps`` latencies, and ``share`` of the size over the bandwidth."""

    steps: float
    share: float


@dataclass(frozen=True)
class Series:
    """One test of a log.

    ``size``: bytes as nccl-tests count them (allgather: what every rank ends with; alltoall: what every rank sends),
    shape (samples,). ``seconds``: time of one operation, shape (samples,); of test ``bandwidth``, time a message in a
    stream of many. ``lines``: where in the log each stands, 1 for the first. ``source``: the log's path. ``place``:
    ``out-of-place``, ``in-place`` or ``both``, empty where the benchmark knows no two; ``aside``: the times of the
    other place, which the log holds too.
    """

    label: str
    test: str
    ranks: int
    size: IntArray
    seconds: FloatArray
    lines: IntArray
    source: str
    place: str = ""
    aside: Series | None = None

    @property
    def of_pair(self) -> bool:
        """Whether one link was measured, not a collective."""
        return self.test in PAIRS


def checked(series: Series, fewest: int = FEWEST_SIZES) -> Series:
    """The same. Raises :class:`InputError` where too few sizes are measured: by default, for two numbers and their
    spread."""
    count = len(np.unique(series.size))
    if count < fewest:
        first = int(series.lines[0])
        words = f"holds {counted(count, 'size')}; at least {fewest} are needed: run it over more (ib_write_bw -a)"
        raise InputError([Fault(f"line {first}", words)], series.source)
    return series


def cost(test: str, ranks: int, algorithm: Algorithm) -> Cost | None:
    """What a test costs, None for a collective that the algorithm has no formula for."""
    if test in PAIRS:
        return Cost(2.0 if test == READ else 1.0, 1.0)  # a read's request goes one way, its data the other
    if test == "alltoall":
        return Cost(1.0, (ranks - 1) / ranks)
    formulas = _COSTS[algorithm]
    return formulas[test](ranks) if test in formulas else None


def _log2(ranks: int) -> int:
    return max(ranks - 1, 1).bit_length()


def _gathers(steps: Callable[[int], int]) -> Mapping[str, Callable[[int], Cost]]:
    """Collectives of which every rank takes part with an equal part, in so many steps."""
    return {
        "allgather": lambda n: Cost(steps(n), (n - 1) / n),
        "reduce_scatter": lambda n: Cost(steps(n), (n - 1) / n),
        "allreduce": lambda n: Cost(2 * steps(n), 2 * (n - 1) / n),
    }


def _rooted(steps: Callable[[int], int]) -> Mapping[str, Callable[[int], Cost]]:
    """Pipelined along a chain or tree of so many links."""
    return {name: lambda n: Cost(steps(n), 1.0) for name in ("broadcast", "reduce")}


_COSTS: Mapping[Algorithm, Mapping[str, Callable[[int], Cost]]] = {
    "ring": {**_gathers(lambda n: n - 1), **_rooted(lambda n: n - 1)},
    "tree": {**_rooted(_log2), "allreduce": lambda n: Cost(2 * _log2(n), 2.0)},
    "doubling": {**_gathers(_log2), **_rooted(_log2)},
}
