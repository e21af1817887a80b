"""Step 5: solutions for people."""

from __future__ import annotations

from matplotlib.figure import Figure

from toy_broadcast.instance import ToyInstance
from toy_broadcast.solution import Solution


def describe(instance: ToyInstance, solution: Solution) -> str:
    """A line a send."""
    return "\n".join(f"round {step}: {sender}->{receiver}" for step, sender, receiver in solution)


def plot(instance: ToyInstance, solution: Solution, title: str) -> Figure:
    """A line from sender to receiver in every round."""
    figure = Figure()
    axes = figure.subplots()
    for step, sender, receiver in solution:
        axes.plot([step - 1, step], [sender, receiver], "o-")
    axes.set(title=title, xlabel="round", ylabel="node")
    return figure
