"""The page ``topology``: circuits of published topologies beside ours, a module a part."""

from __future__ import annotations

from collections.abc import Callable

from synth.reproduction.collect import Reproduction
from synth_papers.topology import cubes, failures, graphs, mixes, two_cubes

PARTS: tuple[Callable[[Reproduction], str], ...] = (
    *(two_cubes.tables, cubes.tables, graphs.direct_connect, graphs.golf),
    *(mixes.tables, failures.tables),
)
"""Each puts its tables on the page and returns its sentence of the answer, of which there are two to four."""


def reproduce(page: Reproduction) -> None:
    """All parts in their order, their sentences first."""
    page.opens(" ".join(filter(None, (part(page) for part in PARTS))))
