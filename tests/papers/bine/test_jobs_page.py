"""``synth reproduce bine-jobs``: a machine's jobs whose crossings are counted by hand, and files that are no such."""

from __future__ import annotations

import gzip
from pathlib import Path

import command
import pandas as pd
import pytest

from synth.errors import InputError
from synth.family import reproduced
from synth.reproduction.collect import Reproduction, plain_figures
from synth_models.bine import making
from synth_models.bine.making import lines_of
from synth_papers.bine import jobs_page

ROOT = Path(__file__).resolve().parents[3]
TRACE = ROOT.parent / "shared" / "data" / "leonardo-jobs.csv.gz"
# By hand. pair: the root informs one rank of the other group; doubling sends 0-1, then 0-2 and 1-3.
# lone: eight ranks in three rounds keep every informed rank busy, the root has no other rank in its group: 3.
# weave: even ranks left, odd ones right. Bine's distances are all odd (3, -1, 1), so its 7 messages cross; halving
# sends the last four (distance 1) across, doubling only the first.
# thirds: two groups to reach. Halving reaches 1..5 from 0, 0, 2, 0, 4; doubling from 0, 0, 1, 0, 1. Bine folds (0, 1)
# and (2, 3): 0-5, then 0-2 and 5-4, then 0-1 and 2-3.
MACHINE = """# one rank a node
job,nodes,groups
pair,4,sw-1x2 sw-2x2
lone,8,ax1 bx7
weave,8,leftx1 rightx1 leftx1 rightx1 leftx1 rightx1 leftx1 rightx1
thirds,6,0x2 1x2 2x2
still,4,ax4
"""
CROSSINGS = {"pair": (1, 1, 1, 2), "lone": (3, 3, 3, 3), "weave": (1, 7, 4, 1), "thirds": (2, 2, 2, 4)}
# a large allreduce: 2 * 7 vectors when all cross; the lightest dimension alone: 4 edges, 2 ways, 2 halves, 1/8 each;
# recursive doubling's reduce-scatter begins with neighbours, half a vector each: 8 * 2 / 2
WEAVE = (2.0, 14.0, 8.0)


def page_of(folder: Path, data: Path, quick: bool = False) -> Reproduction:
    page = Reproduction(folder / "bine-jobs", quick, ROOT / "instances", data)
    with plain_figures():
        jobs_page.reproduce(page)
    return page


def written(folder: Path, text: str) -> Path:
    path = folder / "machine.csv"
    path.write_text(text)
    return path


def test_crossings_of_another_machine_are_those_counted_by_hand(tmp_path):
    page = page_of(tmp_path, written(tmp_path, MACHINE))
    trees = pd.read_csv(page.folder / "trees.csv").set_index("job")
    shown = trees[["least", "bine", "binomial_halving", "binomial_doubling"]]
    assert {job: tuple(row) for job, row in zip(shown.index, shown.to_numpy(), strict=True)} == CROSSINGS
    assert (trees.proof == "prices of rounds, certified").all()
    assert trees.bine_gap["weave"] == pytest.approx(600 / 7)
    placed = pd.read_csv(page.folder / "placements.csv").set_index("job")
    assert sorted(placed.index) == ["lone", "pair", "weave"]
    assert tuple(placed.loc["weave", ["placement", "bine", "recursive"]]) == WEAVE
    spread = pd.read_csv(page.folder / "distribution.csv").set_index("algorithm")
    assert spread.loc["broadcast, Bine", ["jobs", "no_gap", "p50", "most"]].tolist() == [4, 75, 0, 85.71]
    assert spread["no_gap"]["broadcast, doubling (Open MPI)"] == 50
    assert [path.name for path, _ in page.figures] == ["gaps.png"]
    assert not page.skipped


def test_one_command_writes_it_and_the_second_time_the_same_bytes(tmp_path):
    with gzip.open(tmp_path / "m.csv.gz", "wt") as stream:
        stream.write("a,3,ax1 bx1 cx1\n")  # no power of two: no placement, and the figure stands
    words = ("reproduce", "bine-jobs", "--quick", "--data", "m.csv.gz", "--results", "out")
    command.run(*words, cwd=tmp_path)
    out = tmp_path / "out"
    first = {path: path.read_bytes() for path in out.rglob("*") if path.is_file()}
    assert {path.name for path in first} >= {"bine-jobs.md", "trees.csv", "distribution.csv", "gaps.png"}
    assert "| a     |       3 |        3 |       2 |" in (out / "bine-jobs.md").read_text()
    page_of(out, tmp_path / "m.csv.gz", quick=True)
    assert all(path.read_bytes() == data for path, data in first.items())


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        ("a,4", "is not job,nodes,groups"),
        ("a,²,1x2", "is not job,nodes,groups"),
        ("a," + "9" * 5000 + ",1x2", "is not job,nodes,groups"),
        ("a,-4,1x4", "is not job,nodes,groups"),
        (",4,1x4", "is not job,nodes,groups"),
        ("a,4,1x2 2x3", "says 4 nodes, its groups hold 5"),
        ("a,4,1x2 2y2", "'2y2' is not GROUPxCOUNT with a count >= 1"),
        ("a,4,1x0 2x4", "'1x0' is not GROUPxCOUNT with a count >= 1"),
        ("a,4,1x4 2x" + "9" * 5000, "digits"),
        ("a,4,", "names no ranks"),
        ("a,1,1x1", "a collective needs at least 2 ranks"),
    ],
)
def test_a_bad_line_is_named(tmp_path, line, fault):
    path = written(tmp_path, f"job,nodes,groups\nfine,4,1x2 2x2\n{line}\n")
    with pytest.raises(InputError) as refused:
        page_of(tmp_path, path)
    [found] = refused.value.faults
    assert found.path == "line 3"
    assert fault in str(refused.value)
    assert not (tmp_path / "bine-jobs").exists()


@pytest.mark.parametrize(
    ("data", "fault"),
    [
        (b"", "holds no jobs"),
        (b"a,4,1x4\n", "no job in several groups"),
        (b"\x1f\x8b\x08 torn", "cannot be read"),
        (b"\xff\xfa\x00\x01", "not a text file"),
    ],
)
def test_a_file_without_jobs_to_count_is_refused(tmp_path, data, fault):
    (tmp_path / "machine.csv").write_bytes(data)
    with pytest.raises(InputError, match=fault):
        page_of(tmp_path, tmp_path / "machine.csv")


def test_a_file_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(InputError, match="cannot be read"):
        page_of(tmp_path, tmp_path / "nowhere.csv")


def test_a_file_that_unpacks_to_too_much_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(making, "MOST_TEXT", 2**20)
    with gzip.open(tmp_path / "m.csv.gz", "wb") as stream:
        stream.write(b"#" * (2**20 + 1))
    with pytest.raises(InputError, match="unpacks to more than 1 MiB"):
        list(lines_of(tmp_path / "m.csv.gz"))


def test_too_large_jobs_are_left_out_and_said_so(tmp_path):
    many = " ".join(f"g{group}x1" for group in range(jobs_page.MOST_GROUPS + 1))
    text = f"huge,1000000,1x500000 2x500000\nwide,65,{many}\nbig,512,1x256 2x256\nsmall,4,1x2 2x2\n"
    page = page_of(tmp_path, written(tmp_path, text))
    assert page.skipped == [
        "1 jobs of more than 4096 nodes",
        "trees of 1 jobs in more than 64 groups",
        "placements of 1 jobs of more than 256 nodes",
    ]
    assert pd.read_csv(page.folder / "trees.csv").job.tolist() == ["big", "small"]


def test_nothing_but_too_wide_jobs_still_gives_a_page(tmp_path):
    many = " ".join(f"g{group}x1" for group in range(jobs_page.MOST_GROUPS + 1))
    page = page_of(tmp_path, written(tmp_path, f"wide,65,{many}\n"))
    assert not len(pd.read_csv(page.folder / "trees.csv"))


def test_without_a_file_the_shipped_jobs_are_shown(tmp_path):
    page = page_of(tmp_path, tmp_path, quick=True)  # a folder
    assert [text for text in page.skipped if "--data" in text]
    assert pd.read_csv(page.folder / "trees.csv").job.tolist() == ["a1", "a2", "a3", "a4"]
    assert "bine-jobs" in reproduced()


@pytest.mark.slow
@pytest.mark.skipif(not TRACE.exists(), reason="needs ../shared/data/leonardo-jobs.csv.gz")
def test_all_least_trees_of_the_trace_are_certified_as_the_page_says(tmp_path):
    page = page_of(tmp_path, TRACE)
    trees = pd.read_csv(page.folder / "trees.csv")
    assert len(trees) == 1508
    assert (trees.proof == "prices of rounds, certified").all()
    for small in (True, False):
        part = trees[(trees.ranks <= 16) == small]
        assert (part.binomial_halving_gap.mean() < part.bine_gap.mean()) == small
    means = [f"{trees[f'{name}_gap'].mean():.2f} %" for name in jobs_page.TREES]
    text = " ".join((ROOT / "models" / "bine.md").read_text().split())
    assert "Bine's mean gap is {}, halving's {}, doubling's {};".format(*means) in text


@pytest.mark.long
def test_a_tree_of_a_thousand_ranks_in_thirty_groups_is_certified(tmp_path):
    """Prices double backwards over the rounds while ranks do: this one needs prices of 80."""
    sizes = (22, 69, 66, 61, 59, 58, 55, 54, 54, 52, 51, 50, 44, 42, 37, 31, 30, 28, 26, 16, 14, 13, 12, 12, 12, 10, 8)
    sizes += (7, 5, 2)
    runs = " ".join(f"{group}x{size}" for group, size in enumerate(sizes))
    page = page_of(tmp_path, written(tmp_path, f"large,{sum(sizes)},{runs}\n"))
    [tree] = pd.read_csv(page.folder / "trees.csv").itertuples()
    assert (tree.ranks, tree.least, tree.proof) == (1000, 40, "prices of rounds, certified")
