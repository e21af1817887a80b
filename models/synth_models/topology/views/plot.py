"""A topology drawn: nodes on a circle, cube by cube, fixed links in grey and circuits in colour."""

from __future__ import annotations

from matplotlib.collections import LineCollection
from matplotlib.figure import Figure

from synth.views.frames import circle
from synth_models.topology.instance import TopologyInstance
from synth_models.topology.solution import Topology, joined

NAMED = 64  # nodes that bear their numbers


def plot(instance: TopologyInstance, topology: Topology, title: str) -> Figure:
    """Nodes, links and circuits."""
    figure = Figure(figsize=(7, 7), layout="constrained")
    axes = figure.subplots()
    place = circle(instance.nodes)
    for links, colour, word in (
        (instance.fixed, "#bbbbbb", "fixed links"),
        (joined(instance, topology.circuits), "#4477aa", "circuits"),
    ):
        axes.add_collection(LineCollection(list(place[links]), colors=colour, linewidths=0.8, label=word))
    axes.plot(*place.T, "o", color="#222222", markersize=4 if instance.nodes <= NAMED else 1.5)
    for node in range(instance.nodes if instance.nodes <= NAMED else 0):
        axes.text(1.08 * place[node, 0], 1.08 * place[node, 1], str(node), ha="center", va="center", fontsize=8)
    axes.set_aspect("equal")
    axes.set_xlim(-1.2, 1.2)
    axes.set_ylim(-1.2, 1.2)
    axes.axis("off")
    axes.set_title(title)
    axes.legend(loc="lower right")
    return figure
