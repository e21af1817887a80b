"""Instances of the optree family: an optical ring, torus or mesh, what a step carries, optional physical budgets."""

from __future__ import annotations

import math
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import Field

from synth.errors import Fault
from synth.instance import Instance, Part, Unit

NonNegative = Annotated[float, Field(ge=0)]


class Power(Part):
    """Optical power budget (the paper's Eq. 5 and 6), in dBm and dB.

    A signal that passes ``L`` optical interfaces loses ``modulator_loss_db + L * pass_loss_db``; the laser must make
    up for that and for ``penalty_db``.
    """

    laser_dbm: float
    modulator_loss_db: NonNegative = 0.0
    pass_loss_db: NonNegative
    penalty_db: NonNegative = 0.0

    def loss_db(self, interfaces: int) -> float:
        """Insertion loss in dB of a path through ``interfaces`` optical interfaces (Eq. 5)."""
        return self.modulator_loss_db + interfaces * self.pass_loss_db

    def laser_needed_dbm(self, interfaces: int) -> float:
        """Least laser power in dBm for such a path (Eq. 6)."""
        return self.loss_db(interfaces) + self.penalty_db

    def allows(self, interfaces: int) -> bool:
        """Whether the laser reaches through ``interfaces`` interfaces; equality (to 1e-9 dB) is enough."""
        return self.laser_dbm >= self.laser_needed_dbm(interfaces) - 1e-9


class Crosstalk(Part):
    """Crosstalk budget (the paper's Eq. 7 to 9), powers in mW.

    The worst-case noise after ``L`` interfaces is ``L * rx_noise_mw + tx_noise_mw + other_noise_mw``. As in the paper
    the signal's power does not depend on the path, and the bit error rate takes the SNR in dB.
    """

    signal_mw: Annotated[float, Field(gt=0)]
    rx_noise_mw: NonNegative
    tx_noise_mw: NonNegative = 0.0
    other_noise_mw: NonNegative = 0.0
    max_ber: Annotated[float, Field(gt=0, lt=0.5)] = 1e-9

    def snr_db(self, interfaces: int) -> float:
        """Worst-case signal-to-noise ratio in dB (Eq. 7 and 8); infinite without noise."""
        noise = interfaces * self.rx_noise_mw + self.tx_noise_mw + self.other_noise_mw
        return 10 * math.log10(self.signal_mw / noise) if noise > 0 else math.inf

    def ber(self, interfaces: int) -> float:
        """Bit error rate (Eq. 9), between 0 and 1/2 for a non-negative SNR."""
        return 0.5 * math.exp(-self.snr_db(interfaces) / 4)

    def allows(self, interfaces: int) -> bool:
        """Whether the bit error rate stays below ``max_ber``."""
        return self.ber(interfaces) < self.max_ber


MOST_DIMENSIONS = 3


class Grid(Part):
    """Several dimensions: nodes that differ in one coordinate only form a ring (a torus has only rings) or a line (a
    mesh has only lines). The last coordinate runs fastest in the nodes' numbers: a 4 x 8 grid has 4 rows of 8 nodes.
    """

    sides: Annotated[tuple[Annotated[int, Field(ge=2)], ...], Field(min_length=1, max_length=MOST_DIMENSIONS)]
    kinds: Annotated[tuple[Literal["ring", "line"], ...], Field(min_length=1, max_length=MOST_DIMENSIONS)]


class Dimension(NamedTuple):
    """One dimension: ``side`` nodes on every ring (``ring``) or line, their numbers ``stride`` apart."""

    side: int
    stride: int
    ring: bool

    def place(self, node: int) -> int:
        """The node's coordinate."""
        return node // self.stride % self.side

    def moved(self, node: int, by: int) -> int | None:
        """The node ``by`` places further up, round the ring; None beyond the end of a line."""
        place = self.place(node)
        to = (place + by) % self.side if self.ring else place + by
        return node + (to - place) * self.stride if 0 <= to < self.side else None

    @property
    def links(self) -> int:
        """Links of one ring or line; each is there in both directions."""
        return self.side if self.ring else self.side - 1


class OpTreeInstance(Instance):
    """Allgather of one item per node on a bidirectional ring of ``nodes`` nodes, or on a ``grid`` of rings and lines.

    Every directed link carries ``wavelengths`` wavelengths. In one step a wavelength
    of a link carries at most one item of ``item_bytes`` bytes at ``wavelength_bandwidth`` bytes/s; every step costs
    ``step_overhead`` seconds more. A circuit of ``h`` hops passes ``h + 1`` optical interfaces. On a grid a circuit
    runs along one ring or line: an item changes dimension at a node, where it is received and sent again.
    """

    family: Literal["optree"] = "optree"
    nodes: Annotated[int, Field(ge=2, le=10_000_000)]
    grid: Grid | None = None
    wavelengths: Annotated[int, Field(ge=1, le=1_000_000)]
    item_bytes: Annotated[float, Field(gt=0), Unit("bytes")] = 4_194_304.0
    wavelength_bandwidth: Annotated[float, Field(gt=0), Unit("bytes/s")] = 5e9
    step_overhead: Annotated[NonNegative, Unit("s")] = 25e-6
    power: Power | None = None
    crosstalk: Crosstalk | None = None

    @classmethod
    def faults_in(cls, raw: dict[str, Any]) -> list[Fault]:
        """The sides make the nodes; a kind a side; one ring alone is written without a grid."""
        grid = raw.get("grid")
        sides, kinds = (grid.get("sides"), grid.get("kinds")) if isinstance(grid, dict) else (None, None)
        if not isinstance(sides, (list, tuple)) or not isinstance(kinds, (list, tuple)):
            return []
        faults = []
        if len(kinds) != len(sides):
            faults.append(Fault("grid.kinds", f"must have a kind a side, {len(sides)}", list(kinds), True))
        if len(sides) == 1 and list(kinds) == ["ring"]:
            faults.append(Fault("grid", "one ring is written without a grid"))
        if all(isinstance(side, int) for side in sides) and len(sides) <= MOST_DIMENSIONS:
            nodes = math.prod(sides)
            if raw.get("nodes") != nodes:
                faults.append(Fault("nodes", f"must be the product of the sides, {nodes}", raw.get("nodes"), True))
        return faults

    @property
    def dimensions(self) -> tuple[Dimension, ...]:
        """The dimensions in the order of the sides; a ring is one of its own."""
        if self.grid is None:
            return (Dimension(self.nodes, 1, True),)
        sides = self.grid.sides
        return tuple(
            Dimension(side, math.prod(sides[k + 1 :]), kind == "ring")
            for k, (side, kind) in enumerate(zip(sides, self.grid.kinds, strict=True))
        )

    @property
    def directed_links(self) -> int:
        """Links of the whole network, both directions counted."""
        return sum(2 * dimension.links * (self.nodes // dimension.side) for dimension in self.dimensions)

    @property
    def step_seconds(self) -> float:
        """Seconds that one step takes: ``item_bytes / wavelength_bandwidth + step_overhead`` (the paper's Eq. 3)."""
        return self.item_bytes / self.wavelength_bandwidth + self.step_overhead

    @property
    def max_hops(self) -> int:
        """The most hops a circuit may have under the budgets, at most those of the longest ring or line, N-1 on a ring
        of N nodes; below 1 nothing can be sent at all."""
        return min(hops for hops, _ in self._limits())

    @property
    def limiting_budget(self) -> str | None:
        """The budget that limits circuits most, in words; None when the ring or line itself (N-1 hops) does."""
        hops, words = min(self._limits(), key=lambda limit: limit[0])
        return words or None if hops < self._longest - 1 else None

    @property
    def _longest(self) -> int:
        return max(dimension.side for dimension in self.dimensions)

    def _limits(self) -> list[tuple[int, str]]:
        limits = [(self._longest - 1, "")]
        if self.power is not None:
            spare = self.power.laser_dbm - self.power.laser_needed_dbm(0)
            hops = self._last_allowed(self.power)
            per_interface = self.power.pass_loss_db
            words = f"power budget: {spare:g} dB after modulator loss and penalty, {per_interface:g} dB per interface"
            limits.append((hops, words))
        if self.crosstalk is not None:
            hops = self._last_allowed(self.crosstalk)
            limits.append((hops, f"crosstalk budget: bit error rate below {self.crosstalk.max_ber:g}"))
        return limits

    def _last_allowed(self, budget: Power | Crosstalk) -> int:
        """Most hops (-1: not even the sender's own interface) by bisection; losses and noise grow with the path."""
        low, high = -1, self._longest - 1
        while low < high:
            middle = (low + high + 1) // 2
            low, high = (middle, high) if budget.allows(middle + 1) else (low, middle - 1)
        return low

    @property
    def budget_fault(self) -> str | None:
        """Why no schedule at all can meet the budgets, naming the budget, or None.

        Every node must send its item away, over one hop (2 interfaces) at least; where one hop is allowed, passing
        items on from neighbour to neighbour is a schedule. So this test is exact.
        """
        if self.max_hops >= 1:
            return None
        return f"{self.limiting_budget}: not even a circuit to the neighbour (1 hop, 2 interfaces) is allowed"


def size(instance: OpTreeInstance) -> int:
    """Return the number of nodes."""
    return instance.nodes
