"""Every figure that the peers publish for a machine, beside ours: `synth reproduce peers`.

Their numbers are facts from their repositories and papers, read from ``<data>/peers``; where that is not, their part is
left out and the page says so. Ours are values of schedules that the check replays in continuous time, and bounds with
certificates.
"""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd

from synth.reproduction.collect import Reproduction
from synth_papers.peers import direct_connect, epochs, errata, forestcoll, sccl, taccl, tacos, teccl

redrawn = teccl.redrawn


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
    tables = dict(page.tables)
    if {teccl.EVERY, teccl.SUMMARY, taccl.TITLE} <= set(tables):
        page.opens(answer(tables))


def answer(tables: Mapping[str, pd.DataFrame]) -> str:
    """What the page says, from its tables by title: TE-CCL's and TACCL's results in three sentences."""
    every, summary, others = tables[teccl.EVERY], tables[teccl.SUMMARY], tables[taccl.TITLE]
    columns = ("ours at most theirs", "theirs below the bound", "others")
    within, beyond, left = (int(summary[name].sum()) for name in columns)
    missed = f"; in {left} it takes longer" if left else ""
    ours, theirs = (summary[name].sum() for name in ("ours, all [s]", "Gurobi, all [s]"))
    ratio = others["ours / theirs"].dropna()
    return (
        f"Ours takes at most the printed time in {within} of TE-CCL's {len(every)} results. In {beyond} the printed "
        f"time is below the certified bound of the machine, so that nothing can reach it{missed}. The ratio of "
        f"our time to TE-CCL's is {every['ours / theirs'].median():.3f} in the median; to TACCL's it is "
        f"{ratio.min():.2f} to {ratio.max():.3f} in {len(ratio)} results. All our methods together took {ours:.0f} s "
        f"for TE-CCL's results; its solver took {theirs:.0f} s."
    )
