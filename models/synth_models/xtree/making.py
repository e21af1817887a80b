"""``synth make xtree``: instances from a network's name and size or from a file of links."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from synth.making import Count, Positive
from synth.network.keys import NetworkKeys, network_name
from synth_models.xtree.instance import XTreeInstance


class XTreeKeys(NetworkKeys):
    """The network's keys and the collective's."""

    examples = (
        "network=equimesh rows=4 cols=6 chunks=4 collective=allreduce rings=even_up,odd_up,odd_up,even_up",
        "links=my-links.csv chunks=2",
    )
    collective: Literal["allgather", "reduce_scatter", "allreduce"] = Field("allgather", description="what to schedule")
    chunks: Count = Field(1, description="equal chunks that every node's data is cut into")
    chunk_bytes: Positive | None = Field(None, description="size of a chunk, bytes (default 1048576)")


def make(keys: XTreeKeys) -> XTreeInstance:
    """An instance of these keys. Raises :class:`synth.errors.InputError` listing every fault."""
    raw: dict[str, Any] = {"network": keys.raw_network(), "chunks": keys.chunks}
    raw |= {key: getattr(keys, key) for key in ("collective", "chunk_bytes") if key in keys.given}
    suffix = "" if keys.collective == "allgather" else "-" + keys.collective.replace("_", "")
    name = f"{network_name(raw['network'])}-c{keys.chunks}{suffix}"
    return keys.instance("xtree", XTreeInstance, name, **raw)
