"""A machine by name: boxes that are alike, and the switches that join them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field

from synth.instance import Part
from synth.network.spec import Bandwidth, Latency
from synth_models.fabric.problem.box_cluster import Above, Box, Cluster
from synth_models.fabric.problem.box_data import Count, MachineFile, machine_file
from synth_models.fabric.problem.machine import Machine


@dataclass(frozen=True)
class Variant:
    """What of a machine is not as in its file: see :class:`MachineSpec`."""

    gpus: tuple[int, ...] | None = None
    bandwidths: Mapping[str, float] | None = None
    latencies: Mapping[str, float] | None = None
    leaf: int | None = None
    rails: bool | None = None
    oversubscription: float | None = None
    spines: int | None = None

    @property
    def words(self) -> list[str]:
        """The same in words for names: the GPUs of boxes, rates, the fat tree between."""
        words = []
        if self.gpus is not None:
            words.append("gpus" + "-".join(map(str, self.gpus if len(set(self.gpus)) > 1 else self.gpus[:1])))
        words += [f"{kind}{rate / 1e9:g}GB" for kind, rate in (self.bandwidths or {}).items()]
        words += [f"{kind}{delay * 1e6:g}us" for kind, delay in (self.latencies or {}).items()]
        if self.leaf is None:
            return words + (["rails"] if self.rails else [])
        words.append(f"leaf{self.leaf}" if self.rails is not False else f"plain{self.leaf}")
        words += [f"spines{self.spines}"] if self.spines is not None else []
        ratio = self.oversubscription or 1
        return words + ([f"over{ratio:g}"] if ratio != 1 else [])


class MachineSpec(Part):
    """``boxes`` boxes of a named machine. Ranks come first, box after box, then the switches.

    ``gpus``: how many ranks each box has, where not all have those of the machine's file; the first ones are there, and
    of a box's switches those that lead to one of them. What the boxes share is as for full boxes.

    With ``leaf`` the switches that the machine's file lets all boxes share become a fat tree of ``spines`` spines, with
    ``rails`` (default true) and ``oversubscription`` (default 1) as
    :class:`~synth_models.fabric.problem.box_cluster.Above` says. ``bandwidths`` (bytes/s) and ``latencies`` (s) are
    numbers by class of link in the place of the file's
    (:func:`~synth_models.fabric.problem.link_classes.changed`).
    """

    kind: Literal["machine"]
    name: str
    boxes: Count = 1
    gpus: tuple[Count, ...] | None = None
    leaf: Count | None = None
    rails: bool | None = None
    oversubscription: Annotated[float, Field(ge=1, le=1024)] | None = None
    spines: Annotated[int, Field(ge=1, le=4096)] | None = None
    bandwidths: Mapping[str, Bandwidth] | None = None
    latencies: Mapping[str, Latency] | None = None

    def __hash__(self) -> int:
        return hash(self.model_dump_json())

    @property
    def variant_words(self) -> list[str]:
        """What is not as in the machine's file, in words for names."""
        return Variant(
            self.gpus, self.bandwidths, self.latencies, self.leaf, self.rails, self.oversubscription, self.spines
        ).words

    @property
    def box_sizes(self) -> list[int]:
        """Ranks of every box. Raises ``ValueError`` where ``gpus`` does not fit the boxes or the machine."""
        return sizes(self.gpus, self.boxes, machine_file(self.name))

    @property
    def data(self) -> MachineFile:
        """The machine's file with the numbers stated here. Raises ``ValueError``."""
        data, _ = machine_file(self.name).with_numbers("bandwidth", self.bandwidths or {})
        return data.with_numbers("latency", self.latencies or {})[0]

    def build(self) -> Machine:
        return self._cluster().machine()

    def size(self) -> tuple[int, int]:
        """About how many nodes and links it has, without building it."""
        return self._cluster().size()

    def _cluster(self) -> Cluster:
        data = self.data
        if self.boxes > data.most_boxes:
            raise ValueError(f"machine {self.name} is known for boxes={data.most_boxes} at most")
        if self.leaf is None:
            demand_no_tree({key: getattr(self, key) for key in ("rails", "oversubscription", "spines")})
        above = Above(self.leaf, self.rails is not False, self.oversubscription or 1, self.spines)
        return Cluster([Box(data, size) for size in self.box_sizes], above, self.name)


def sizes(gpus: tuple[int, ...] | None, boxes: int, data: MachineFile) -> list[int]:
    """Ranks of every box of a machine. Raises ``ValueError`` where ``gpus`` does not fit the boxes or the machine."""
    if gpus is None:
        return [data.gpus] * boxes
    if len(gpus) != boxes:
        raise ValueError(f"gpus: {len(gpus)} numbers for boxes={boxes}")
    if max(gpus) > data.gpus:
        raise ValueError(f"gpus: a box of {data.name} has {data.gpus} at most, not {max(gpus)}")
    return list(gpus)


def demand_no_tree(given: Mapping[str, object]) -> None:
    """Raises ``ValueError`` where something is said of a fat tree that is not there."""
    for key, value in given.items():
        if value is not None:
            raise ValueError(f"{key} has no meaning without leaf, the number of boxes a leaf switch joins")
