"""What the xtree tests share."""

from __future__ import annotations

from functools import partial
from typing import Any

import synth
from synth_models.xtree.instance import XTreeInstance

make = partial(synth.make, "xtree")


def instance_of(network: dict[str, Any], chunks: int, collective: str = "allgather") -> XTreeInstance:
    """The instance on a network as it stands in an instance file."""
    raw = {"name": "t", "source": "test", "network": network, "chunks": chunks, "collective": collective}
    return XTreeInstance.model_validate(raw)
