"""Routes and rails of a machine, kept from one schedule of a strategy to its next in more chunks."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import TypeVar, cast

import numpy as np

from synth_models.fabric.instance import FabricInstance
from synth_models.fabric.references.hierarchical.box_rails import Rails
from synth_models.fabric.references.hierarchical.box_trees import Growth, PlacedTrees
from synth_models.fabric.references.hierarchical.group_leaders import groups_of_boxes
from synth_models.fabric.references.hierarchical.tuned import KEPT
from synth_models.fabric.routes.box_routes import PairRoutes
from synth_models.fabric.routes.near_boxes import seconds_between

Kept = TypeVar("Kept")


class Known:
    """What :meth:`rails` and :meth:`placed` found last. Where bandwidths differ, routes depend on the size."""

    def __init__(self) -> None:
        self._found: dict[Hashable, object] = {}

    def rails(
        self, instance: FabricInstance, boxes: Sequence[tuple[int, ...]], strategy: Hashable, size: int
    ) -> tuple[PairRoutes, Rails]:
        """The routes for pieces of this size and the rails of a strategy."""

        def made() -> tuple[PairRoutes, Rails]:
            routes = PairRoutes(instance, boxes, size)
            return routes, Rails.of(routes, boxes)

        by_size = instance.switching.mode == "store_and_forward" or bool(np.ptp(instance.machine.network.bandwidth))
        return self._kept(("rails", instance.machine, tuple(boxes), strategy, size if by_size else 0), made)

    def groups(self, routes: PairRoutes, boxes: Sequence[tuple[int, ...]]) -> list[list[int]]:
        """The groups of near boxes on these routes."""
        return self._kept(("groups", routes), lambda: groups_of_boxes(seconds_between(routes, boxes)))

    def placed(self, routes: PairRoutes, growth: Growth, make: Callable[[], PlacedTrees]) -> PlacedTrees:
        """The places of two trees on these routes."""
        return self._kept(("placed", routes, growth), make)

    def _kept(self, key: Hashable, make: Callable[[], Kept]) -> Kept:
        found = self._found.pop(key, None)
        made = make() if found is None else cast(Kept, found)
        self._found[key] = made
        while len(self._found) > KEPT:
            del self._found[next(iter(self._found))]
        return made
