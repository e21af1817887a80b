"""The README and its pages say what is there: links, counts, records that pass the check."""

from __future__ import annotations

import csv
import hashlib
import re
from pathlib import Path

import pytest
from command import flat
from published import PUBLISHED, ROOT, below, held_for, published, readme, whole

import synth
from synth.execution.runs import Request, plan
from synth.family import families
from synth.options import RELATIVE_GAP
from synth.records.optimality import gap
from synth.text.quantities import percent

PAGES = ["README.md", "synth/study/README.md", "synth/batch/README.md", "CONTRIBUTING.md"]
PAGES += [
    path.relative_to(ROOT).as_posix()
    for path in (*(ROOT / "models").glob("*.md"), *(ROOT / "models/formats").glob("*.md"))
]
PAGES += ["synth/exchange/machines/README.md", "results/published/README.md"]
PAGES += [path.relative_to(ROOT).as_posix() for path in (ROOT / "models/site/pages").rglob("*.md")]
CLUSTER = "models/site/pages/start/cluster.md"  # has the table of gaps by number of GPUs


def test_the_shipped_instances_are_over_a_thousand_runs():
    assert "takes hours: over a thousand runs" in readme("models/site/pages/how-to/index.md")
    assert len(plan([ROOT / "instances"], Request(limits=("20s",)), Path("results"))) > 1000


LONG_CHECK_S = 1.0


def takes_long(record):
    return record["seconds"].get("check", 0.0) > LONG_CHECK_S


def passes(record):
    verdict = synth.check(whole(record))
    assert verdict.ok, (record.path, verdict.faults)


SHARES = 48  # of the records, of which one is checked by default; `.ci/run` checks all


def shares():
    """The records dealt out, all but the few largest, each of which has smaller ones of its family and method."""
    quick = [record for record in published() if not takes_long(record)]
    assert len(published()) - len(quick) < 110
    assert {(r["family"], r["method"]) for r in quick} == {(r["family"], r["method"]) for r in published()}
    return [quick[first::SHARES] for first in range(SHARES)]


@pytest.mark.parametrize("share", [0, *(pytest.param(k, marks=pytest.mark.slow) for k in range(1, SHARES))])
def test_published_records_pass_the_check(share):
    records = shares()[share]
    assert len(records) > 1000 // SHARES
    for record in records:
        passes(record)


@pytest.mark.slow
def test_the_largest_published_records_pass_the_check():
    for record in filter(takes_long, published()):
        passes(record)


def test_arrays_are_those_that_were_packed():
    """Their file's name carries its hash; the records that are checked are read with them."""
    files = list(PUBLISHED.rglob("records.*.npz"))
    assert len(files) > 10
    for path in files:
        assert path.name == f"records.{hashlib.sha256(path.read_bytes()).hexdigest()[:12]}.npz"


def test_what_is_published_stays_small():
    """Records stand in collections; what is larger than a megabyte is named in the folder's README, with its reason."""
    files = [path for path in PUBLISHED.rglob("*") if path.is_file() and path.suffix not in (".py", ".pyc")]
    assert len([path for path in files if path.parent != PUBLISHED / "findings"]) < 250  # a picture a finding
    assert not [path for path in files if path.suffix in (".json", ".instance")]
    said = (PUBLISHED / "README.md").read_text()
    for path in files:
        named = path.relative_to(PUBLISHED).parent / re.sub(r"^records\..+\.npz$", "records*.npz", path.name)
        assert path.stat().st_size <= 2**20 or f"`{named.as_posix()}`" in said, path


def test_counts_of_what_is_large():
    """How many records the folder's README says that some collections hold; their megabytes are in numbers.toml."""
    said = flat((PUBLISHED / "README.md").read_text())
    whole = [record for record in below("xtree") if record.path.parents[1] == PUBLISHED / "xtree"]
    assert f"{len(whole)} records of {len({record['instance'] for record in whole})} instances" in said
    assert f"the same {len(whole)} records' statements" in said
    jobs = below("jobs")
    assert f"{len({record['instance'] for record in jobs})} instances, made and solved again by" in said
    assert "16 to 256 nodes, one rank a node" in said
    ranks = {len(groups) for record in jobs for groups in record.find_instance().allocations}
    assert (min(ranks), max(ranks)) == (16, 256)
    ours = [record for record in below("fabric") if PUBLISHED / "fabric/ours" in record.path.parents]
    bounds = [record for record in ours if record["kind"] == "bound"]
    assert f"{len(bounds)} bounds with certificates and {len(ours) - len(bounds)} schedules" in said


@pytest.mark.parametrize("family", ["xtree", "mlfm", "optree", "bine", "harvest", "fabric"])
def test_counts_of_instances_solved_to_optimality(family):
    """The table of models/README.md, counted again from the records: all, and those by a certificate."""
    files = sorted((ROOT / "instances" / family).glob("*.json"))
    closed = certified = near = 0
    for file in files:
        held = held_for(family).get(file.stem, {}).values()
        values = [record.value for record in held if record.value is not None]
        bounds = [record.bound for record in held if record.bound is not None]
        left = gap(min(values), max(bounds)) if values and bounds else None
        closed += left == 0
        near += left is not None and 0 < left <= RELATIVE_GAP
        sure = [record.bound for record in held if record.bound is not None and record.grade == "certified"]
        left = gap(min(values), max(sure)) if values and sure else None
        certified += left == 0
    text = flat(readme("models/README.md"))
    assert f"| `{family}` | {closed} of {len(files)} | {certified} | {near or '–'} |" in text


def test_the_table_of_families_names_every_method():
    rows = readme("models/README.md").splitlines()
    for family in families():
        [row] = [row for row in rows if row.startswith(f"| [`{family.name}`](")]
        assert [method for method in family.methods if f"`{method}`" not in row] == []


def test_harvest_counts_in_words_what_the_table_counts():
    row = re.search(r"\| `harvest` \| (\d+) of (\d+) \| \d+ \| (\d+) ", readme("models/README.md"))
    closed, of, near = row.groups()
    text = flat(readme("models/harvest.md"))
    assert f"Of {of} shipped instances {int(closed) + int(near)} are within 0.01 % of their bound." in text
    assert f"{int(closed) + int(near)} of {of} shipped instances are within 0.01 %," in text


def reached():
    """The table of gaps by number of GPUs, out of the published runs."""
    with (PUBLISHED / "clusters/runs.csv").open() as file:
        runs = [row for row in csv.DictReader(file) if row["gap"] and row["bytes"] == str(2**30)]
    runs.sort(key=lambda row: -float(row["gap"]))  # of several methods the best counts
    gaps = {(row["collective"], row["machine"]): float(row["gap"]) for row in runs}
    boxes = (16, 32, 64, 128)
    yield "| 1 GiB on boxes of 8 H100 | " + " | ".join(f"{8 * count:,} GPUs" for count in boxes) + " |\n"
    yield "| --- |" + " --- |" * len(boxes) + "\n"
    for collective in ("allgather", "reduce_scatter", "allreduce", "broadcast", "reduce", "alltoall"):
        cells = (percent(gaps[collective, f"dgx-h100 x{count}"]) for count in boxes)
        yield f"| {collective} | " + " | ".join(cells) + " |\n"


def test_how_far_it_goes_is_what_was_published():
    """`python tests/test_readme.py` writes the table."""
    assert "<!-- gaps -->\n" + "".join(reached()) + "<!-- end -->" in readme(CLUSTER)


def test_the_readme_is_short_and_its_second_block_runs_the_tests():
    """`.ci/run` reads the second block; what else there is to say stands on the site's pages."""
    text = readme()
    assert len(text.splitlines()) <= 120
    blocks = re.findall(r"```\w+\n(.*?)```", text, re.DOTALL)
    assert [len(block.splitlines()) for block in blocks] == [1, 1, 1]
    assert len(re.findall(r"^\| -", text, re.MULTILINE)) == 1  # a table
    assert "synth tour" in blocks[0]
    assert "pytest" in blocks[1]
    assert len(re.findall(r"!\[", text)) == 2


def test_the_readme_leads_to_every_page_of_the_start_and_how_to():
    for folder in ("start", "how-to"):
        for page in (ROOT / "models/site/pages" / folder).glob("*.md"):
            assert page.stem == "index" or f"({page.relative_to(ROOT)})" in readme()


def test_every_page_of_a_paper_is_linked():
    for path in PUBLISHED.glob("*.md"):
        if path.stem not in ("benchmarks", "README"):
            assert f"({path.name})" in readme("results/published/README.md")


@pytest.mark.parametrize("page", PAGES)
def test_paths_named_in_the_documents_exist(page):
    """Links lead from the page; paths in code spans start at the top folder."""
    text = readme(page)
    for link in re.findall(r"\]\(\s*([\w./-]+?)(?:#[\w-]*)?\)", text):
        assert (ROOT / page).parent.joinpath(link).exists(), link
    for path in re.findall(r"`((?:instances|results/published|tests|models|synth)/[\w./-]*)`", text):
        assert (ROOT / path).exists(), path


if __name__ == "__main__":
    before, _, rest = readme(CLUSTER).partition("<!-- gaps -->\n")
    table = "".join(reached())
    (ROOT / CLUSTER).write_text(f"{before}<!-- gaps -->\n{table}<!-- end -->{rest.partition('<!-- end -->')[2]}")
