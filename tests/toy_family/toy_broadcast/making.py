"""Step 2: ``synth make toy_broadcast``: the keys with their ranges and meaning, and the instance made of them."""

from __future__ import annotations

from pydantic import Field

from synth.making import Count, Keys
from toy_broadcast.instance import ToyInstance


class ToyKeys(Keys):
    """The number of nodes."""

    examples = ("nodes=8",)
    nodes: Count = Field(description="nodes, the informed one included")


def make(keys: ToyKeys) -> ToyInstance:
    """An instance of these keys."""
    return keys.instance("toy_broadcast", ToyInstance, f"toy-{keys.nodes}", nodes=keys.nodes)
