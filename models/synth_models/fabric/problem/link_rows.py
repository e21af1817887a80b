"""Links of a machine as a builder collects them."""

from __future__ import annotations

from typing import Any

import numpy as np

from synth.network import Network
from synth_models.fabric.problem.abilities import Abilities, Ability
from synth_models.fabric.problem.machine import Machine


class LinkRows:
    """Links as they are collected."""

    def __init__(self) -> None:
        self.ends: list[tuple[int, int]] = []
        self.bandwidth: list[float] = []
        self.latency: list[float] = []
        self.group: list[str | None] = []
        self.abilities: dict[int, Ability] = {}

    def add(self, u: int, v: int, link: Any, group: str | None, both: bool) -> None:
        for tail, head in ((u, v), (v, u))[: 2 if both else 1]:
            self.ends.append((tail, head))
            self.bandwidth.append(link.bandwidth)
            self.latency.append(link.latency)
            self.group.append(group)

    def machine(self, names: list[str], switches: set[int], kind: str, positions: Any = None) -> Machine:
        network = Network(len(names), self.ends, self.bandwidth, self.latency, kind=kind).shown_as(None, positions)
        groups = list(dict.fromkeys(name for name in self.group if name is not None))
        number: dict[str | None, int] = {name: i for i, name in enumerate(groups)}
        is_switch = np.zeros(len(names), dtype=bool)
        is_switch[sorted(switches)] = True
        group = np.array([number.get(name, -1) for name in self.group], dtype=np.int64)
        stated = Abilities.of(len(names), self.abilities.items()) if self.abilities else None
        return Machine(network, is_switch, group, tuple(names), tuple(groups), stated=stated)
