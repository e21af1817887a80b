"""Every figure that the peers publish for a machine, beside ours: `synth reproduce peers`.

Their numbers are facts from their repositories and papers, read from ``<data>/peers``; where that is not, their part is
left out and the page says so. Ours are values of schedules that the check replays in continuous time, and bounds with
certificates.
"""

from __future__ import annotations

from synth.reproduction.collect import Reproduction
from synth_papers.peers import direct_connect, epochs, errata, forestcoll, sccl, taccl, tacos, teccl


def reproduce(page: Reproduction) -> None:
    """Everything that the page states, a record behind every number of ours."""
    found = teccl.results(page)
    if found is not None:
        epochs.counted(page, found)
        teccl.tables(page, found)
        teccl.beyond_the_bound(page, found)
        teccl.figures(page, found)
    taccl.results(page)
    sccl.table(page)
    forestcoll.machines(page)
    direct_connect.networks(page)
    tacos.torus(page)
    if found is not None:
        errata.te_ccl(page, found)
    errata.topologies(page)
    tacos.causality(page)
