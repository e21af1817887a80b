"""What `models/fabric.md` says is what the published records and tables say."""

from __future__ import annotations

import pandas as pd
from published import PUBLISHED, prose


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
