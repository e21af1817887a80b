"""``synth tune``: never slower than any reference in the form that runs; what it writes stands; hostile input."""

from __future__ import annotations

import math
import re
import shutil
from functools import partial
from itertools import pairwise
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

import synth
from synth.cli.main import app
from synth.errors import InputError
from synth.exchange.file_check import check_file
from synth.exchange.forms import Lowered, in_form, in_seconds, most_moves, refusal
from synth.exchange.program_files import LOADED
from synth.exchange.record_export import transfers_of
from synth.exchange.selection import FORMATS
from synth.family import defaults_for, get_family
from synth.tuning import Question, tune
from synth.tuning.robustness import machines, read_variation
from synth.tuning.rows import MOST_DRAWN, Row, Scheduled
from synth.tuning.search import Say, _Search
from synth.tuning.sizes import read_sizes

SIZES = (4096, 2**22)
WORDS = ("network=ring", "nodes=4", "bandwidth=25GB/s", "latency=0.7us")
ASK = (*WORDS, "--collective", "allgather", "--collective", "allreduce", "--sizes", "4KiB,4MiB", "-m", "forest")


def run(*words: str, code: int = 0) -> str:
    done = CliRunner().invoke(app, ["tune", *words])
    if isinstance(done.exception, InputError):
        assert code == 2, done.exception
        return str(done.exception)
    assert done.exit_code == code, (done.output, done.exception)
    return done.output


@pytest.fixture(
    scope="module",
    params=[
        "mscclpp",
        "fair",
        *(pytest.param(form, marks=pytest.mark.slow) for form in ("msccl:azure", "msccl", "scheduled")),
    ],
)
def tuned(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    folder = tmp_path_factory.mktemp("tuned")
    run(*ASK, "--for", request.param, "-o", str(folder))
    return request.param, folder


@pytest.mark.long
def test_no_row_is_slower_than_any_reference_in_its_form(tuned: tuple[str, Path]) -> None:
    """Every reference is run and lowered again here, as a user would."""
    form, folder = tuned
    table = pd.read_csv(folder / "table.csv")
    family = get_family("fabric")
    keys = dict(word.split("=") for word in WORDS)
    for row in table.to_dict("records"):
        asked = synth.make("fabric", collective=row["collective"], bytes=row["bytes"], **keys)
        assert row["form_s"] >= row["bound_s"] * (1 - 1e-9)
        assert row["gap"] == pytest.approx((row["form_s"] - row["bound_s"]) / row["form_s"], abs=1e-12)
        assert row["algbw_bytes_per_s"] == pytest.approx(row["bytes"] / row["form_s"])
        share = {"allgather": 3 / 4, "allreduce": 6 / 4}[row["collective"]]
        assert row["busbw_bytes_per_s"] == pytest.approx(row["algbw_bytes_per_s"] * share)
        for method in set(family.today) & set(defaults_for(family, asked)):
            record = synth.solve(asked, method)
            if record.value is None:
                continue
            if form in ("scheduled", "fair"):
                assert row["form_s"] <= in_form(record, form).seconds * (1 + 1e-9)
                continue
            for program in Lowered(transfers_of(record), form).programs((1,)):
                assert row["form_s"] <= program.seconds(asked) * (1 + 1e-9), (row, method)


@pytest.mark.long
def test_files_pass_their_check_and_take_the_time_of_the_table(tuned: tuple[str, Path]) -> None:
    form, folder = tuned
    table = pd.read_csv(folder / "table.csv").fillna("")
    assert (folder / "table.md").read_text().count("\n| all") == len(table) == 2 * len(SIZES)
    assert (folder / "bandwidth.svg").read_text().startswith("<?xml")
    if form in ("scheduled", "fair"):
        assert set(table["algorithm"]) == {""}
        return
    keys = dict(word.split("=") for word in WORDS)
    for row in table.to_dict("records"):
        path = folder / row["algorithm"]
        found = check_file(path, row["collective"], {"msccl:azure": "azure"}.get(form, form))
        assert not found.faults
        asked = synth.make("fabric", collective=row["collective"], bytes=row["bytes"], **keys)
        record = synth.solve(asked, "imported", options={"file": path.as_posix()})
        assert record.value is not None
        assert row["form_s"] >= record.value * (1 - 1e-9)
        if form != "mscclpp":  # of a plan, method imported keeps its messages, not the order of its thread blocks
            assert row["form_s"] == pytest.approx(record.value, rel=1e-9)
            text = path.read_text()
            assert f'minBytes="{row["min_bytes"]}"' in text
            assert f'maxBytes="{row["max_bytes"]}"' in text


@pytest.mark.long
@pytest.mark.parametrize("form", ["msccl:azure", "scheduled"])
def test_robust_has_the_least_worst_regret(form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the quickest that could have been chosen, timed here on every machine drawn; never slower than a reference."""
    found: list[tuple[Question, list[Row]]] = []

    def kept(question: Question, say: Say, *_: object) -> list[Row]:
        found.append((question, tune(question, say)))
        return found[0][1]

    monkeypatch.setattr("synth.tuning.tune", kept)
    said = ["--robust", "--vary", "bandwidth=40%", "--vary", "latency=60%", "--samples", "5"]
    run(*WORDS, "--sizes", "4KiB,4MiB", "-m", "forest", "--for", form, *said, "-o", str(tmp_path))
    table = pd.read_csv(tmp_path / "table.csv")
    variation = read_variation(["bandwidth=40%", "latency=60%"], 5)
    [(asked, rows)] = found
    assert (asked.collectives, asked.sizes, asked.form, asked.methods) == (("allreduce",), SIZES, form, ("forest",))
    assert asked.variation == variation
    for row, told in zip(rows, table.to_dict("records"), strict=True):
        assert told["form_s"] <= min(row.references.values()) * (1 + 1e-9)
        most = min(*row.references.values(), 1.3 * min(one.seconds for one in row.offered))
        able = sorted((one for one in row.offered if one.seconds <= most), key=lambda one: one.seconds)[:MOST_DRAWN]
        drawn = list(machines(row.instance, variation))
        there = [[in_seconds(machine, one.moves, costs=asked.costs) for machine in drawn] for one in able]
        best = [min(column) for column in zip(*there, strict=True)]
        least = min(max(t / b - 1 for t, b in zip(times, best, strict=True)) for times in there)
        assert told["worst_regret"] == pytest.approx(least, abs=1e-12)


@pytest.mark.long
def test_ranges_leave_no_gap(tuned: tuple[str, Path]) -> None:
    table = pd.read_csv(tuned[1] / "table.csv")
    for _, rows in table.groupby("collective"):
        pairs = rows[["min_bytes", "max_bytes"]].drop_duplicates().to_numpy().tolist()
        assert pairs[0][0] == SIZES[0]
        assert pairs[-1][1] == SIZES[-1]
        assert all(before[1] + 1 == after[0] for before, after in pairwise(pairs))
        assert all(low <= size <= high for low, size, high in rows[["min_bytes", "bytes", "max_bytes"]].to_numpy())


@pytest.mark.long
@pytest.mark.parametrize("tuned", ["fair"], indirect=True)
def test_interrupted_and_resumed(tuned: tuple[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a first call left is taken over: no run of it is made again, a damaged record is, and the table is the
    same."""
    form, folder = tuned
    shutil.copytree(folder / "records", tmp_path / "records")
    whole = sorted((tmp_path / "records").rglob("*.json"))
    whole[0].write_text("{")
    made: list[str] = []
    solve = synth.api.solve
    monkeypatch.setattr("synth.api.solve", lambda *a, **k: (made.append(a[1]), solve(*a, **k))[1])
    run(*ASK, "--for", form, "-o", str(tmp_path), "--resume")
    assert len(made) == 1
    assert (tmp_path / "table.csv").read_text() == (folder / "table.csv").read_text()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--sizes", "1KiB..zz"), r"--sizes.*must be sizes such as 1KiB..4GiB"),
        (("--sizes", "4GiB..1KiB"), r"--sizes.*is less than"),
        (("--sizes", "1KiB..4GiB*1"), r"--sizes.*factor must be at least 2"),
        (("--sizes", "1..9999999*2,3,4,5..99999999*2,7..99999999999*2"), r"--sizes.*more than 64 sizes"),
        (("--sizes", "0"), r"--sizes"),
        (("--sizes", "-1KiB"), r"--sizes"),
        (("--for", "gloo"), r"--for.*must be one of scheduled.*nccl"),
        (("--time-limit", "soon"), r"--time-limit"),
        (("--vary", "latency=30%"), r"--vary.*--robust"),
        (("--reach", "kepler"), r"--reach.*volta, ampere, hopper, blackwell"),
        (("--reach", "hopper", "--for", "ompi"), r"--reach.*not of a library's own"),
        (("--robust", "--vary", "latency=300%"), r"--vary.*less than 100 %"),
        (("--robust", "--for", "nccl"), r"--robust"),
        (("--robust", "--for", "fair"), r"--robust"),
        (("-m", "forrest"), r"forrest.*forest"),
        (("--collective", "allsum"), r"collective"),
        (("bytes=3",), r"say --collective and --sizes instead"),
        (("--boxes", "2"), r"--boxes = '2'.*another tool's file.*say boxes=2"),
        (("--only", "NV"), r"--only = 'NV'.*another tool's file"),
        (("--format", "nccl"), r"--format = 'nccl'.*another tool's file"),
    ],
)
def test_what_cannot_be_asked(words: tuple[str, ...], message: str, tmp_path: Path) -> None:
    said = run(*WORDS, *words, "-o", str(tmp_path / "new"), code=2)
    assert re.search(message, said), said
    assert not (tmp_path / "new").exists()


def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    said = run(*WORDS, "--sizes", "4KiB", "-o", str(tmp_path / "file"), code=2)
    assert "--out" in said


@given(st.text(alphabet="0123456789KMGiB.,*- eE+x", max_size=24))
@settings(max_examples=200, deadline=None)
def test_sizes_are_read_or_refused(text: str) -> None:
    try:
        found = read_sizes(text)
    except InputError:
        pass
    else:
        assert found == sorted(set(found))
        assert all(1 <= size <= 2**48 for size in found)
        assert len(found) <= 64


@pytest.mark.long
def test_sums_in_switches_are_worth_it_where_a_form_knows_them(tmp_path: Path) -> None:
    """4 GPUs behind NVLS: a plan of MSCCL++ beats the bound of switches that only forward, MSCCL's XML cannot, and the
    table says why."""
    plain = 2 * 3 / 4 * 2**26 / 450e9
    rows = {}
    for form in ("mscclpp", "msccl"):
        asked = ("dgx-h100-nvls", "gpus=4", "--sizes", "64MiB", "-m", "nvls", "--for", form)
        run(*asked, "-o", str(tmp_path), "--resume")  # of the same records
        rows[form] = pd.read_csv(tmp_path / "table.csv").fillna("").to_dict("records")[0]
    assert rows["mscclpp"]["form_s"] < plain < rows["msccl"]["form_s"]
    assert (rows["mscclpp"]["method"], rows["mscclpp"]["how"].partition(",")[0]) == ("nvls", "over switches")
    assert "added up in switches, which msccl knows not" in rows["msccl"]["limit"]


def test_the_page_says_how_every_executor_and_library_is_told() -> None:
    """In the words that the command prints."""
    page = (Path(__file__).parents[3] / "models/site/pages/how-to/tune.md").read_text()
    for form, how in LOADED.items():
        assert f"| `{form}` | `{how.format(folder='FOLDER', files='FILE:FILE')}`" in page
    for library in FORMATS.values():
        assert f"| `{library.name}` | `{library.how.format(file=library.name + library.suffix)}`" in page


@pytest.mark.long
def test_a_tuned_folder_says_which_files_to_copy(tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["tune", *WORDS, "--sizes", "4KiB", "-m", "forest", "-o", str(tmp_path)])
    assert done.exit_code == 0, done.output
    [row] = pd.read_csv(tmp_path / "table.csv").to_dict("records")
    assert f"to run them: copy {row['algorithm']} to the cluster" in done.stdout
    assert "MSCCL_ALGO_DIR=FOLDER" in done.stdout
    assert "gap = (time − bound) / time" in done.stdout


def test_a_chunk_a_rank_of_many_is_lowered() -> None:
    """Every rank sends 2 (n - 1) chunks and receives as many, in a file of 4,095 elements a GPU."""
    for ranks in (4, 256, 1024):
        most = most_moves("msccl:azure", ranks)
        assert (2 * (ranks - 1) * ranks <= most) == (4 * (ranks - 1) <= 4095)
        assert "elements" in refusal("msccl:azure", most + ranks, ranks) or ranks == 4


@pytest.mark.parametrize(
    ("form", "fits", "tried"),
    [
        ("mscclpp", 900, [900, 350, 100]),  # fewer moves may be quicker as a plan
        ("mscclpp", math.inf, [100]),  # a loop
        ("msccl:azure", 1400, [1900, 1400, 100]),
        ("msccl:azure", 0, [1900, 1400, 1000, 600, 250, 100]),
        ("msccl:azure", math.inf, []),
    ],
)
def test_schedules_that_are_too_large_are_made_of_fewer_transfers(
    form: str, fits: float, tried: list[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each number once a method, not once a variant; ``fits``: transfers a rank that the executor takes."""
    asked: list[dict[str, int]] = []

    def lowered(
        self: _Search, row: Row, name: str, options: dict[str, int], reference: bool, wide: bool = True
    ) -> None:
        count = options.get("transfers", 10**6)
        asked.append(dict(options))
        row.schedules.append(Scheduled(count, 1.0, name, tuple(options.items())))
        if count > fits * row.ranks:
            title = " ".join([name, *(f"{key}={value}" for key, value in options.items())])
            row.refused[title] = "too many"
            row.rounded.add(title)

    monkeypatch.setattr(_Search, "_try", lowered)
    make = partial(synth.make, "fabric", **dict(word.split("=") for word in WORDS))
    question = Question(
        lambda what, size: make(collective=what, bytes=size), ("allreduce",), SIZES, form, tmp_path, methods=("forest",)
    )
    search = _Search(question, "allreduce", None, lambda _: None)
    search._ours(search.rows[0], ["forest"])
    assert [one["transfers"] for one in asked if "transfers" in one] == [each * 4 for each in tried]
    chunked = [{"chunks": count} for count in (1, 2, 4, 8, 16, 64)]
    assert [one for one in asked if "transfers" not in one] == [{}, *chunked]
