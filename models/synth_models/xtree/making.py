"""``synth make xtree``: instances from a network's name and size or from a file of links."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from pydantic import Field

from synth.making import Bytes, Count, Listed
from synth.network.builders import RING_DIRECTIONS
from synth.network.keys import NetworkKeys, network_name
from synth.network.spec import MAX_NODES
from synth_models.xtree.instance import XTreeInstance
from synth_models.xtree.parts import ring_directions


class XTreeKeys(NetworkKeys):
    """The network's keys and the collective's."""

    examples = (
        "network=equimesh rows=4 cols=6 chunks=4 collective=allreduce rings=even_up,odd_up,odd_up,even_up",
        "links=my-links.csv chunks=2 bandwidth=25GB/s latency=0.7us",
    )
    CHOSEN: ClassVar[tuple[str, ...]] = ("best",)
    rings: Listed | None = Field(
        None,
        description="EquiMesh: even_up or odd_up, one for all edges or four (top,bottom,left,right); best: those that "
        "the collective and its chunks finish earliest with",
    )
    collective: Literal["allgather", "reduce_scatter", "allreduce"] = Field("allgather", description="what to schedule")
    chunks: Count = Field(1, description="equal chunks that every node's data is cut into")
    chunk_bytes: Bytes | None = Field(None, description="size of a chunk, bytes (default 1048576)")

    def directions(self) -> list[str]:
        if self.rings != "best":
            return super().directions()
        rows, cols = self.rows or 0, self.cols or 0
        if min(rows, cols) < 2 or rows * cols > MAX_NODES:
            return [RING_DIRECTIONS[0]] * 4  # no such network: the instance says what is wrong
        return [*ring_directions.best(rows, cols, self.chunks, self.collective)]


def make(keys: XTreeKeys) -> XTreeInstance:
    """An instance of these keys. Raises :class:`synth.errors.InputError` listing every fault."""
    raw: dict[str, Any] = {"network": keys.raw_network(), "chunks": keys.chunks}
    raw |= {key: getattr(keys, key) for key in ("collective", "chunk_bytes") if key in keys.given}
    suffix = "" if keys.collective == "allgather" else "-" + keys.collective.replace("_", "")
    name = f"{network_name(raw['network'])}-c{keys.chunks}{suffix}"
    return keys.instance("xtree", XTreeInstance, name, notes=keys.network_notes(), **raw)
