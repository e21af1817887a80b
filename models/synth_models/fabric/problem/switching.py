"""How an instance says its switches forward, and what is wrong in that."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Literal

import numpy as np

from synth.errors import Fault
from synth.instance import Part
from synth.network.spec import Bandwidth
from synth_models.fabric.problem.abilities import ANY_NUMBER, Abilities, Streams
from synth_models.fabric.problem.machine import Machine


class Switching(Part):
    """How switches forward.

    ``cut_through``: a transfer goes from rank to rank over a route whose inner nodes are switches; with ``multicast``
    the route may be an out-tree. ``store_and_forward``: a hop into a switch is a transfer of its own; without
    ``buffer`` a piece leaves the switch when it has arrived or never, with ``copies`` on several links at once.

    ``adds``, of every switch: cut through, streams of one piece that come in over several links may leave as their sum
    (in-trees); stored, with ``buffer``, a switch adds up what comes. ``streams``, ``add_rate``: as in
    :class:`synth_models.fabric.problem.abilities.Ability`, whose own statements of single switches come on top.
    """

    mode: Literal["cut_through", "store_and_forward"] = "cut_through"
    multicast: bool = False
    buffer: bool = False
    copies: bool = True
    adds: bool | None = None
    streams: Streams | None = None
    add_rate: Bandwidth | None = None


def able_to(machine: Machine, switching: Switching) -> Machine:
    """The machine with what the instance says of all switches that cut through."""
    if switching.mode == "store_and_forward" or not (switching.adds or switching.multicast):
        return machine
    every, stated = machine.is_switch, machine.abilities
    streams = np.where(stated.streams == ANY_NUMBER, switching.streams or ANY_NUMBER, stated.streams)
    return replace(
        machine,
        stated=Abilities(
            stated.copies | (every & switching.multicast),
            stated.adds | (every & bool(switching.adds)),
            streams,
            np.minimum(stated.add_rate, switching.add_rate or np.inf),
            stated.copy_rate,
        ),
    )


def switching_faults(switching: Any, network: dict[str, Any]) -> Iterator[Fault]:
    """What switches add, and how, where they cannot."""
    if not isinstance(switching, dict) or not isinstance(switching.get("adds") or False, bool):
        return
    stores, adds = switching.get("mode") == "store_and_forward", switching.get("adds")
    if stores and network.get("abilities"):
        yield Fault("network.abilities", "have no meaning where switches store: take switching.adds and copies")
    if stores and adds:
        yield from _adding_stores_faults(switching)
    if stores or not (adds or switching.get("multicast")):
        words = "where switches store" if stores else "without adds or multicast"
        for key in ("streams", "add_rate"):
            if switching.get(key) is not None:
                yield Fault(f"switching.{key}", f"has no meaning {words}", switching[key], True)


def _adding_stores_faults(switching: dict[str, Any]) -> Iterator[Fault]:
    for key, default in (("buffer", False), ("copies", True)):
        if switching.get(key, default) is False:
            yield Fault(f"switching.{key}", "must be true where switches add what they store", False, True)
