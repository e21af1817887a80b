"""Where the transfers of a schedule land, found once for all ways in which its pieces are dealt."""

from __future__ import annotations

from synth.exchange.mscclpp.layout import Layout, Place
from synth.exchange.mscclpp.pieces import rows_of
from synth.exchange.mscclpp.streams import Acts, acts
from synth.exchange.transfers import Transfers


class Landings:
    """The transfers ``t`` as ``rows``, and what ``acts`` over switches may make of them. ``node``: ranks of one."""

    def __init__(self, t: Transfers, in_place: bool, node: int | None) -> None:
        self.t, self.in_place, self.node, self.rows = t, in_place, node, rows_of(t)
        self.acts = acts(t, Layout(t, in_place), in_place, node)
        self._found: dict[tuple[bool, bool], tuple[Layout, list[Place]]] = {}

    def of(self, chosen: Acts, staged: bool) -> tuple[Layout, list[Place]]:
        """A layout for one writer, and where every transfer lands there. ``chosen``: ``acts`` or none; ``staged``: all
        copies go over scratch."""
        key = chosen is self.acts, staged
        if key not in self._found:
            at = Layout(self.t, self.in_place)
            self._found[key] = at, [self._place(k, at, chosen, staged) for k in range(len(self.t.piece))]
        at, places = self._found[key]
        return at.copy(), places

    def _place(self, k: int, at: Layout, chosen: Acts, staged: bool) -> Place:
        dst, piece = self.rows.dst[k], self.rows.piece[k]
        if chosen.sums(k):
            return at.own(piece)  # it stays where it is
        if self.rows.adds[k] or staged:
            return "s", at.slot(dst, self.rows.size[piece])
        return at.store(dst, piece)
