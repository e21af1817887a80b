"""Cuts with a release: what only ranks have that are ready from some moment on, and that must leave them, or enter
others.

For a moment t let L be the ranks that are ready at t or later. What has its origin in L and is wanted outside a box
crosses the links out of the box after t; what is wanted in another box crosses the links into that. Searches from rank
to rank see such cuts only where a rank's own links are the narrowest. The check is that of every cut.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from synth.arrays import BoolArray
from synth_models.fabric.bounds.arrays import Links
from synth_models.fabric.bounds.cuts import mask, strongest_of, with_joined
from synth_models.fabric.bounds.proven import Proven
from synth_models.fabric.problem.ready import moments

MOST_MOMENTS = 8  # the latest
MOST_BOXES = 64  # for each of them


def strongest_late_cut(links: Links, more: Callable[[], bool], known: Proven) -> Proven:
    """The strongest such cut, or ``known`` where none is stronger."""
    return strongest_of(links, _candidates(links), more, known)


def _candidates(links: Links) -> Iterator[tuple[BoolArray, BoolArray, BoolArray]]:
    """Insides, sources and sinks."""
    instance, late = links.instance, moments(links.instance.ready)
    members = mask(links, instance.members)
    for moment in sorted(set(late.values()), reverse=True)[:MOST_MOMENTS]:
        sources = mask(links, [rank for rank, when in late.items() if when >= moment])
        whole = with_joined(links, sources.nonzero()[0].tolist())
        yield whole, sources, members & ~whole
        for box in instance.boxes[:MOST_BOXES]:
            inside = with_joined(links, box)
            if (inside & sources).any():
                yield inside, inside & sources, members & ~inside
            if (sources & ~inside).any():
                yield ~inside, sources & ~inside, inside & members
