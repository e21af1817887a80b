"""Machines x collectives x sizes, solved by every method that knows them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from synth.making import make
from synth.records.optimality import gap
from synth.records.record import Record
from synth.reproduction.collect import Reproduction
from synth.text.quantities import shown
from synth_models.fabric.family import FAMILY
from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.problem.reach import knows

MACHINES: tuple[Mapping[str, str], ...] = (
    {"machine": "dgx1"},
    {"machine": "ndv2", "boxes": "2"},
    {"machine": "dgx2"},
    {"machine": "dgx-a100"},
    {"machine": "dgx-a100", "boxes": "2"},
    {"machine": "dgx-h100", "boxes": "2"},
    {"machine": "mi250"},
    {"machine": "amd16"},
)
OURS = ("forest", "flow", "pull")
TODAY = ("ring", "double_tree", "recursive_doubling", "direct", "bruck", "pat", "two_level")
PEERS = ("bfb", "tacos")
TIME_LIMIT = 20.0
PUBLISHED = (2**10, 2**13, 2**16, 2**30)  # sizes at which schedules of ours are published whole
EVERYONE = (*OURS, *TODAY, *PEERS)


@dataclass
class Cell:
    """All that was found on one instance."""

    machine: str
    collective: str
    size: int
    instance: FabricInstance
    records: dict[str, Record] = field(default_factory=dict)

    @property
    def bound(self) -> float:
        """The greatest bound of any method [s], 0 without one."""
        return greatest_bound(self.records)

    def best(self, methods: Iterable[str]) -> tuple[float, str] | None:
        """The least value [s] among these methods and whose it is."""
        order = [*OURS, *TODAY, *PEERS]  # who is named of those that are equal
        held = [
            (self.records[name].value, order.index(name) if name in order else len(order), name)
            for name in methods
            if name in self.records
        ]
        values = [(value, rank, name) for value, rank, name in held if value is not None]
        if not values:
            return None
        least, _, name = min(values)
        return least, self.records[name].lender or name

    @property
    def gap(self) -> float | None:
        """(best - bound) / best over all methods."""
        best = self.best(EVERYONE)
        return None if best is None else gap(best[0], self.bound)

    @property
    def speedup(self) -> float | None:
        """Time of the best that users have today over time of ours."""
        ours, today = self.best(OURS), self.best(TODAY)
        return None if ours is None or today is None else today[0] / ours[0]


def greatest_bound(records: Mapping[str, Record]) -> float:
    """The greatest bound of any method [s], 0 without one."""
    return max((record.bound or 0.0 for record in records.values()), default=0.0)


def made(**keys: str) -> FabricInstance:
    """``synth make fabric key=value …``."""
    instance = make(FAMILY, keys)
    assert isinstance(instance, FabricInstance)
    return instance


def name_of(machine: Mapping[str, str]) -> str:
    """What a machine is called in tables."""
    if "machine" in machine:
        return machine["machine"] + (f" x{machine['boxes']}" if machine.get("boxes", "1") != "1" else "")
    return " ".join([machine["network"], "x".join(machine[key] for key in ("rows", "cols", "nodes") if key in machine)])


def cells(
    page: Reproduction,
    machines: Iterable[Mapping[str, str]],
    collectives: Iterable[str],
    sizes: Iterable[int],
) -> Iterator[Cell]:
    """Solve every instance by every default method that knows it, a record each.

    Bounds, and schedules of ours at the sizes of :data:`PUBLISHED`, are published with the page. The part ``tables``
    holds the rest: it stays where it was made, and the page's command makes it again.
    """
    collectives, sizes = tuple(collectives), tuple(sizes)
    for machine in machines:
        for collective in collectives:
            for size in sizes:
                keys = {**machine, "collective": collective, "bytes": str(size)}
                asked = made(**keys)
                instance = page.keep(asked, "ours")
                cell = Cell(name_of(machine), collective, size, instance)
                chosen = [name for name in FAMILY.default_methods if knows(name, collective)]
                for name in chosen:
                    part = "ours" if name == "bound" or (name in OURS and size in PUBLISHED) else "tables"
                    for _, record in page.solve([page.keep(asked, part)], [name], time_limit=TIME_LIMIT, part=part):
                        cell.records[name] = record
                yield cell
        page.say(f"{name_of(machine)}: {', '.join(collectives)} at {', '.join(shown(s, 'bytes') for s in sizes)}")


def without_latency(instance: FabricInstance) -> FabricInstance:
    """The same machine, link by link, with all latencies 0."""
    machine = instance.machine
    net = machine.network
    links = [
        {"src": u, "dst": v, "bandwidth": b, "latency": 0.0}
        | ({} if group < 0 else {"group": machine.group_names[group]})
        for u, v, b, group in zip(
            net.src.tolist(), net.dst.tolist(), net.bandwidth.tolist(), machine.group.tolist(), strict=True
        )
    ]
    switches = [node for node in range(machine.nodes) if machine.is_switch[node]]
    network = {"kind": "links", "nodes": machine.nodes, "switches": switches, "links": links, "names": machine.names}
    return instance.model_copy(update={"network": network, "name": f"{instance.name}-no-latency"})
