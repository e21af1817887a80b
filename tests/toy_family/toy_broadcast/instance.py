"""Step 2 of 'add a paper': the instance type. Every field is validated; unknown keys are refused."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from synth.instance import Instance


class ToyInstance(Instance):
    """``nodes`` nodes, node 0 knows the message; in a round every informed node may inform one other."""

    family: Literal["toy_broadcast"] = "toy_broadcast"
    nodes: Annotated[int, Field(ge=1, le=10_000)]
