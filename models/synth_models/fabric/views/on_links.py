"""A collective on a table of links."""

from __future__ import annotations

from synth.instance import FORMAT, parse
from synth.network.links_table import LinksTable
from synth_models.fabric.instance import FabricInstance


def on_links(table: LinksTable, name: str, source: str, collective: str, size: int) -> FabricInstance:
    """The collective over all nodes of the table, ``size`` bytes as nccl-tests count. Raises :class:`InputError`."""
    own = {"name": name, "source": source, "collective": collective, "bytes": size}
    return parse({"format": FORMAT, "family": "fabric", "network": table.raw(), **own}, FabricInstance, source)
