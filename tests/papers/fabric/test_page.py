"""What `models/fabric.md` says is what the published records and tables say."""

from __future__ import annotations

import pandas as pd
import pytest
from published import PUBLISHED, prose

import synth


def test_the_page_of_fabric_says_what_its_tables_say():
    """Gaps of small messages by machine, the largest gap at 1 GiB, the least speedup: from the published tables."""
    text = prose("fabric")
    small = pd.read_csv(PUBLISHED / "fabric/small.csv")
    of_machine = small.groupby("machine", sort=False)["gap"]
    for line, numbers in (("median gap, %", of_machine.median()), ("largest, %", of_machine.max())):
        assert f"| {line} | {' | '.join(f'{100 * gap:.2f}' for gap in numbers)} |" in text
    assert f"the median gap of {len(small)} instances is {100 * small['gap'].median():.2f} %" in text
    large = pd.read_csv(PUBLISHED / "fabric/large.csv")
    gaps = large["gap"].str.removesuffix(" %").astype(float)
    assert f"All {len(large)} instances are within {gaps.max():.2f} % of their bound" in text
    times = pd.read_csv(PUBLISHED / "fabric/times.csv")
    today = times[["ring", "double_tree", "recursive_doubling", "direct", "bruck"]].min(axis=1)
    ours = times[["forest", "flow", "pull"]].min(axis=1)
    assert (ours <= today).all()
    assert f"never slower on the {len(times)} instances" in text


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "ranks"),
    [
        ("machine=dgx-h100 boxes=128", 1024),
        ("machine=dgx-h100 boxes=512", 4096),
        ("machine=dgx-h100 boxes=2048", 16384),
        ("network=torus rows=32 cols=32 layers=16 bandwidth=50GB/s latency=1us", 16384),
    ],
)
def test_the_table_of_quotients_is_what_symmetric_finds(words, ranks):
    keys, gaps = dict(word.split("=") for word in words.split()), []
    for collective in ("allgather", "reduce_scatter", "allreduce"):
        record = synth.solve(synth.make("fabric", **keys, collective=collective, bytes="1GiB"), "symmetric")
        assert record.ok
        gaps.append(100 * record.gap)
    row = prose("fabric").partition(f"| `{words}` ")[2].partition("`")[0]
    assert f"| {ranks:,} | {gaps[0]:.2f} % | {gaps[1]:.2f} % | {gaps[2]:.2f} % |" in row
