"""Step 1: the family, named by the entry point; it ties instance, methods, check and views together."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import pandas as pd
from matplotlib.figure import Figure

from synth.family import Family, Method, Objective, Verdict
from synth.instance import parse
from synth.options import read_int
from synth.reproduction import Reproduction
from toy_broadcast.check import Solution, check_bound, check_solution
from toy_broadcast.instance import ToyInstance


class ToyFamily(Family):
    """Broadcast in fewest rounds; no paper behind it."""

    name = "toy_broadcast"
    title = "Toy: broadcast in rounds"
    citation = "folklore"
    objective = Objective("rounds", "rounds")
    instance_type = ToyInstance
    default_methods = ("bound", "chain", "doubling")
    methods: ClassVar[Mapping[str, Method]] = {
        "bound": Method("bound", "bound", "informed nodes at most double", "toy_broadcast.methods:bound"),
        "chain": Method("chain", "reference", "one after the other", "toy_broadcast.methods:chain"),
        "doubling": Method("doubling", "reference", "all informed nodes send", "toy_broadcast.methods:doubling"),
    }

    def make(self, parameters: Mapping[str, str]) -> ToyInstance:
        """``nodes=8``."""
        nodes = read_int(1)(parameters["nodes"])
        raw = {"family": self.name, "name": f"toy-{nodes}", "source": f"synth make toy_broadcast nodes={nodes}"}
        made = parse(raw | {"nodes": nodes}, ToyInstance, "synth make toy_broadcast")
        assert isinstance(made, ToyInstance)
        return made

    def check(self, instance: ToyInstance, solution: Solution) -> Verdict:
        return check_solution(instance, solution)

    def check_bound(self, instance: ToyInstance, bound: float, certificate: Mapping[str, Any]) -> list[str]:
        return check_bound(instance, bound, certificate)

    def pack(self, solution: Solution) -> dict[str, Any]:
        return {"sends": [list(send) for send in solution]}

    def unpack(self, instance: ToyInstance, packed: Mapping[str, Any]) -> Solution:
        return [(int(step), int(sender), int(receiver)) for step, sender, receiver in packed["sends"]]

    def table(self, instance: ToyInstance, solution: Solution) -> pd.DataFrame:
        return pd.DataFrame(list(solution), columns=["round", "src", "dst"])

    def describe(self, instance: ToyInstance, solution: Solution) -> str:
        return "\n".join(f"round {step}: {sender}->{receiver}" for step, sender, receiver in solution)

    def plot(self, instance: ToyInstance, solution: Solution, title: str) -> Figure:
        figure = Figure()
        axes = figure.subplots()
        for step, sender, receiver in solution:
            axes.plot([step - 1, step], [sender, receiver], "o-")
        axes.set(title=title, xlabel="round", ylabel="node")
        return figure

    def reproduce(self, page: Reproduction) -> None:
        """Optional: what ``synth reproduce`` puts beside the paper's numbers."""
        [(_, record)] = page.solve([page.keep(self.make({"nodes": "8"}), "made")], ["doubling"], part="made")
        page.compare("folklore", "rounds for 8 nodes", 3, record.value, "rounds")
