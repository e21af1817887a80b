"""The study's table and statistics against examples computed by hand."""

import hashlib
import json
import math

import pandas as pd
import pytest

import synth
from synth.records import record as records
from synth.study import figures, measures, sizes
from synth.study.chart import natural
from synth.study.compare import compare
from synth.study.report import alarms
from synth.study.table import COLUMNS, build, read_records


def test_geometric_means_by_hand():
    assert measures.geometric_mean([1, 4, 2]) == pytest.approx(2.0)  # (1*4*2)^(1/3)
    assert math.isnan(measures.geometric_mean([]))
    assert math.isnan(measures.geometric_mean([1.0, 0.0]))
    assert measures.shifted_geometric_mean([0.0, 3.0]) == pytest.approx(1.0)  # sqrt(1*4) - 1
    assert measures.shifted_geometric_mean([6.0, 6.0], shift=10.0) == pytest.approx(6.0)
    assert math.isnan(measures.shifted_geometric_mean([]))


def test_performance_profile_by_hand():
    """Three instances; A solves all in 1, 4, 9 s, B the first two in 2, 2 s; nobody solves a fourth.

    Ratios: A 1, 2, 1; B 2, 1, -. At tau 1: A 2/3, B 1/3; at tau 2: A 3/3, B 2/3."""
    costs = pd.DataFrame({"A": [1.0, 4.0, 9.0, None], "B": [2.0, 2.0, None, None]})
    profiles = measures.performance_profile(costs)
    at = lambda label, tau: max(s for t, s in zip(*profiles[label], strict=True) if t <= tau)  # noqa: E731
    assert [at("A", 1), at("B", 1), at("A", 2), at("B", 2)] == pytest.approx([2 / 3, 1 / 3, 1, 2 / 3])


@pytest.fixture(scope="module")
def template(tmp_path_factory):
    instance = synth.read("instances/xtree/equimesh-2x3-c1.json")
    return synth.solve(instance, "pull", results=tmp_path_factory.mktemp("template"))


def write(
    template,
    folder,
    instance,
    method,
    value,
    bound,
    seconds,
    ok=True,
    termination="finished",
    variant="a",
    replayed=True,
    file=None,
    **others,
):
    data = json.loads(json.dumps(dict(template.data)))
    data |= {"instance": instance, "method": method, "bound": bound, "termination": termination} | others
    data["instance_sha256"] = hashlib.sha256((file or instance).encode()).hexdigest()  # a file of its own for each
    data |= {"kind": "program", "solver": method, "certificate": None}
    data["bound_grade"] = None if bound is None else "solver"
    if method == "bound":  # what stands as its solution is its certificate then
        data |= {"kind": "bound", "solver": None, "bound_grade": "certified"}
    data["objective"]["value"] = value
    data["verified"] = {"ok": ok, "facts": {"replayed": replayed}, "faults": [] if ok else ["a fault"]}
    data["seconds"] = {"build": 0.0, "solve": seconds, "check": 0.0}
    path = folder / "records" / variant / "xtree" / instance / f"{method}.json"
    records.write(records.Record(data), path)


@pytest.fixture
def table(template, tmp_path):
    """Two instances. i1: bound 8; A 10 (own bound 5), B 8 in 3 s; C claims 1 but its check failed. i2: A 20, B ran out
    of memory; nobody has a bound."""
    write(template, tmp_path, "i1", "bound", None, 8.0, 0.0)
    write(template, tmp_path, "i1", "A", 10.0, 5.0, 0.0)
    write(template, tmp_path, "i1", "B", 8.0, 8.0, 3.0)
    write(template, tmp_path, "i1", "C", None, 9.0, 1.0, ok=False)
    write(template, tmp_path, "i2", "A", 20.0, None, 3.0, termination="time_limit")
    write(template, tmp_path, "i2", "B", None, None, 100.0, termination="out_of_memory")
    return build("s", tmp_path, read_records(tmp_path), ["A"])


def test_table_by_hand(table):
    row = {(r["instance"], r["method"]): r for r in table.to_dict("records")}
    assert set(COLUMNS) | {"ratio_to_A"} == set(table.columns)
    assert row["i1", "A"]["gap"] == pytest.approx(0.2)  # (10 - 8) / 10: the failed run's bound 9 counts for nothing
    assert row["i1", "A"]["gap_own"] == pytest.approx(0.5)
    assert row["i1", "B"]["gap"] == 0
    assert row["i1", "B"]["solved"]
    assert not row["i1", "A"]["solved"]
    assert row["i1", "A"]["ratio_to_best"] == pytest.approx(1.25)
    assert row["i1", "B"]["ratio_to_A"] == pytest.approx(0.8)
    assert math.isnan(row["i2", "B"]["ratio_to_A"])
    assert row["i1", "C"]["status"] == row["i2", "B"]["status"] == "failed"
    assert math.isnan(row["i1", "C"]["gap"])
    assert math.isnan(row["i2", "A"]["best_bound"])
    assert math.isnan(row["i2", "A"]["gap"])  # no bound is no gap, not a gap of 1 or 0
    assert math.isnan(row["i2", "B"]["value"])


def test_summary_by_hand(table):
    row = {r["label"]: r for r in measures.summary(table).to_dict("records")}
    assert (row["A"]["runs"], row["A"]["with_value"], row["A"]["wins"], row["A"]["solved"]) == (2, 2, 1, 0)
    assert row["A"]["ratio_to_best"] == pytest.approx(math.sqrt(1.25))
    assert row["A"]["mean_gap"] == pytest.approx(0.2)
    assert row["A"]["time_s"] == pytest.approx(1.0)  # sqrt((0 + 1) * (3 + 1)) - 1
    assert (row["B"]["runs"], row["B"]["failed"], row["B"]["wins"], row["B"]["solved"]) == (2, 1, 1, 1)
    assert row["B"]["time_s"] == pytest.approx(3.0)  # the run that died does not count
    assert row["C"]["failed"] == 1
    assert math.isnan(row["C"]["ratio_to_best"])
    held = {(r["instance"], r["label"]): r for r in table.to_dict("records")}
    assert (held["i1", "B"]["best_value"], held["i1", "B"]["best_bound"], held["i1", "B"]["win"]) == (8, 8, True)
    assert held["i1", "B"]["gap"] == 0
    assert math.isnan(held["i2", "A"]["gap"])


def test_a_value_below_a_proven_bound_counts_for_nothing(template, tmp_path):
    """Bound 2. A published count says 1, a (faulty) replay 1.5, a right one 3, and another count 2."""
    write(template, tmp_path, "i1", "bound", None, 2.0, 0.0)
    write(template, tmp_path, "i1", "A", 1.0, None, 0.0, replayed=False)
    write(template, tmp_path, "i1", "B", 1.5, None, 0.0)
    write(template, tmp_path, "i1", "C", 3.0, None, 0.0)
    write(template, tmp_path, "i1", "D", 2.0, None, 0.0, replayed=False)
    made = build("s", tmp_path, read_records(tmp_path))
    row = {r["method"]: r for r in made.to_dict("records")}
    assert [row[m]["status"] for m in "ABCD"] == ["disproved", "alarm", "ok", "ok"]
    assert row["A"]["faults"] == "the counted value 1 lies below the proven bound 2"
    assert "the replayed value 1.5" in row["B"]["faults"]
    assert row["C"]["best_value"] == 3  # a count is nobody's best value
    assert [row[m]["win"] for m in "ABCD"] == [False, False, True, False]
    assert row["D"]["ratio_to_best"] == pytest.approx(2 / 3)
    assert row["D"]["gap"] == 0
    assert math.isnan(row["A"]["gap"])
    assert math.isnan(row["A"]["ratio_to_best"])
    summary = {r["label"]: r for r in measures.summary(made).to_dict("records")}
    assert [summary[m]["failed"] for m in "ABCD"] == [1, 1, 0, 0]


def test_values_of_zero(template, tmp_path):
    write(template, tmp_path, "i1", "A", 0.0, 0.0, 0.0)
    write(template, tmp_path, "i1", "B", 3.0, 0.0, 0.0)
    row = {r["method"]: r for r in build("s", tmp_path, read_records(tmp_path)).to_dict("records")}
    assert row["A"]["win"]
    assert row["A"]["gap"] == 0
    assert not row["B"]["win"]
    assert math.isnan(row["B"]["ratio_to_best"])
    assert row["B"]["gap"] == 1.0


def test_variants_are_told_apart(template, tmp_path):
    write(template, tmp_path, "i1", "A", 4.0, 4.0, 0.0, variant="seed0")
    write(template, tmp_path, "i1", "A", 5.0, 4.0, 0.0, variant="seed1")
    made = build("s", tmp_path, read_records(tmp_path))
    assert sorted(made["label"]) == ["A seed0", "A seed1"]
    assert list(made.sort_values("label")["win"]) == [True, False]


def test_seeds_belong_together_and_limits_do_not(template, tmp_path):
    """By hand: A with seeds 0 and 1 (values 4 and 5 on i1, 10 and 10 on i2), under two limits; the bound of i1 is 4."""
    for limit in ("20s", "60s"):
        for seed, (one, two) in enumerate([(4.0, 10.0), (5.0, 10.0)]):
            variant = f"seed{seed}-{limit}"
            options = {"seed": seed}
            write(template, tmp_path, "i1", "A", one, 4.0, 0.0, variant=variant, options=options)
            write(template, tmp_path, "i2", "A", two, None, 0.0, variant=variant, options=options)
    made = build("s", tmp_path, read_records(tmp_path))
    assert made["label"].nunique() == 4
    assert sorted(made["group"].unique()) == ["A 20s", "A 60s"]
    found = {row["label"]: row for row in measures.summary(made).to_dict("records")}
    assert sorted(found) == ["A 20s", "A 60s"]
    for row in found.values():
        assert (row["runs"], row["seeds"], row["wins"]) == (4, 2, 3)
        assert row["spread"] == pytest.approx((1 / 4 + 0) / 2)


def test_the_time_to_a_gap_is_that_of_the_first_row_within_it(template, tmp_path):
    """By hand: 103 is 2.9 % above the bound 100, 101 is 0.99 %; the bound counts that is best over all runs."""
    rows = [[0.0, None, None], [1.0, 103.0, 90.0], [4.0, 101.0, 90.0], [9.0, 100.0, 100.0]]
    write(template, tmp_path, "i1", "A", 100.0, 100.0, 9.0, progress=rows)
    write(template, tmp_path, "i1", "B", 103.0, 90.0, 9.0, progress=rows[:2])
    made = {row["method"]: row for row in build("s", tmp_path, read_records(tmp_path)).to_dict("records")}
    assert made["A"]["to_gap_s"] == 4.0
    assert math.isnan(made["B"]["to_gap_s"])
    found = {
        row["label"]: row for row in measures.summary(build("s", tmp_path, read_records(tmp_path))).to_dict("records")
    }
    assert (found["A"]["reached"], found["B"]["reached"]) == (1, 0)
    assert found["A"]["to_gap_s"] == pytest.approx(4.0)
    assert math.isnan(found["B"]["to_gap_s"])


def test_a_schedule_disproves_a_solvers_bound_and_never_the_other_way_round(template, tmp_path):
    """Solver A says bound 9; a replayed schedule takes 8, and A's own takes 10. The bound is false, all values stand.
    What is left is B's bound 6, and the certified bound 6 says by what."""
    write(template, tmp_path, "i1", "A", 10.0, 9.0, 0.0)
    write(template, tmp_path, "i1", "B", 8.0, 6.0, 0.0)
    write(template, tmp_path, "i1", "bound", None, 6.0, 0.0)
    made = build("s", tmp_path, read_records(tmp_path))
    row = {r["method"]: r for r in made.to_dict("records")}
    assert {m: row[m]["status"] for m in row} == {"A": "bound disproved", "B": "ok", "bound": "ok"}
    assert "is disproved by the replayed value 8 of a/xtree/i1/B.json" in row["A"]["faults"]
    assert (row["A"]["best_bound"], row["A"]["best_proof"], row["A"]["best_value"]) == (6, "certified", 8)
    assert row["A"]["gap"] == pytest.approx(0.4)
    assert math.isnan(row["A"]["gap_own"])
    assert not row["A"]["solved"]
    assert row["A"]["ratio_to_best"] == pytest.approx(1.25)
    assert row["B"]["win"]
    assert (row["B"]["proof"], row["bound"]["proof"]) == ("B", "certified")
    summary = {r["label"]: r for r in measures.summary(made).to_dict("records")}
    assert (summary["A"]["failed"], summary["A"]["with_value"], summary["B"]["failed"]) == (1, 1, 0)


def test_a_solvers_bound_above_its_own_schedule_is_dropped_too(template, tmp_path):
    """The record itself: its check failed because of the bound, its value stands."""
    write(template, tmp_path, "i1", "A", 10.0, 12.0, 0.0, ok=False)
    [row] = build("s", tmp_path, read_records(tmp_path)).to_dict("records")
    assert (row["status"], row["best_value"]) == ("bound disproved", 10)
    assert math.isnan(row["best_bound"])
    assert math.isnan(row["bound"])


def test_a_schedule_below_a_certified_bound_is_an_alarm_that_names_both(template, tmp_path):
    write(template, tmp_path, "i1", "A", 5.0, None, 0.0)
    write(template, tmp_path, "i1", "bound", None, 6.0, 0.0)
    write(template, tmp_path, "i1", "B", 7.0, 5.5, 0.0)  # not disproved: the value 5 is in doubt itself
    made = build("s", tmp_path, read_records(tmp_path))
    row = {r["method"]: r for r in made.to_dict("records")}
    assert {m: row[m]["status"] for m in row} == {"A": "alarm", "B": "ok", "bound": "ok"}
    [text] = alarms(made)
    for part in ("ALARM", "5 of a/xtree/i1/A.json", "6 of a/xtree/i1/bound.json"):
        assert part in text
    assert row["B"]["best_value"] == 7


def test_a_bound_that_nobody_proves_is_none(template, tmp_path):
    """A reference that states a bound without a certificate: no gap, no best bound, nothing solved."""
    write(template, tmp_path, "i1", "A", 5.0, 5.0, 0.0)
    path = tmp_path / "records" / "a" / "xtree" / "i1" / "A.json"
    data = json.loads(path.read_text())
    path.write_text(json.dumps(data | {"solver": None, "solver_version": None, "kind": "reference"}))
    [row] = build("s", tmp_path, read_records(tmp_path)).to_dict("records")
    assert not row["solved"]
    assert row["proof"] == row["best_proof"] == ""
    for column in ("bound", "best_bound", "gap", "gap_own"):
        assert math.isnan(row[column])


def test_versions_of_a_file_do_not_share_a_bound(template, tmp_path):
    """The old file's bound 9 says nothing about the new file's value 4; both are shown, apart."""
    write(template, tmp_path, "i1", "bound", None, 9.0, 0.0, file="old", variant="old")
    write(template, tmp_path, "i1", "A", 12.0, None, 0.0, file="old", variant="old")
    write(template, tmp_path, "i1", "A", 4.0, None, 0.0, file="new", variant="new")
    write(template, tmp_path, "i2", "A", 3.0, None, 0.0)
    made = build("s", tmp_path, read_records(tmp_path))
    old, new = (f"i1@{hashlib.sha256(name.encode()).hexdigest()[:8]}" for name in ("old", "new"))
    assert set(made["instance"]) == {old, new, "i2"}
    held = {r["instance"]: r for r in made[made["method"] == "A"].to_dict("records")}
    assert held[old]["best_bound"] == 9
    assert math.isnan(held[new]["best_bound"])
    assert (held[old]["best_value"], held[new]["best_value"]) == (12, 4)
    assert held[new]["status"] == "ok"
    assert (held[old]["gap"], held[old]["best_proof"]) == (0.25, "certified")
    assert held[new]["best_proof"] == ""


def test_gap_0_says_by_which_grade(template, tmp_path):
    """A solver's bound of 5 and a certified one: the certified one is named, and only what it proves is certified."""
    write(template, tmp_path, "i1", "A", 5.0, 5.0, 0.0)
    write(template, tmp_path, "i2", "A", 5.0, 5.0, 0.0)
    write(template, tmp_path, "i2", "bound", None, 5.0, 0.0)
    made = build("s", tmp_path, read_records(tmp_path))
    best = {r["instance"]: r for r in made[made["label"] == "A"].to_dict("records")}
    assert [(best[i]["gap"], best[i]["best_proof"]) for i in ("i1", "i2")] == [(0, "A"), (0, "certified")]
    summary = {r["label"]: r for r in measures.summary(made).to_dict("records")}
    assert (summary["A"]["solved"], summary["A"]["certified"]) == (2, 0)


def test_a_study_compared_with_itself_is_empty(template, tmp_path):
    """Several limits, gaps, threads, seeds and versions, and two runs alike in all of these: each run meets itself."""
    place = 0
    for seed in (0, 1):
        for limit in (60.0, None):
            for gap in (1e-4, 0.0):
                for threads in (1, 2):
                    for file in ("old", "new"):
                        place += 1
                        variant = f"v{place}"
                        write(template, tmp_path, "i1", "A", float(place), None, place, variant=variant, file=file)
                        path = tmp_path / "records" / variant / "xtree" / "i1" / "A.json"
                        data = json.loads(path.read_text())
                        data["options"] |= {
                            "seed": seed, "time_limit_s": limit, "relative_gap": gap, "threads": threads,
                        }  # fmt: skip
                        path.write_text(json.dumps(data))
    write(template, tmp_path, "i1", "A", 99.0, None, 99.0, variant="v7again")
    twin = tmp_path / "records" / "v7again" / "xtree" / "i1" / "A.json"
    twin.write_text((tmp_path / "records" / "v7" / "xtree" / "i1" / "A.json").read_text().replace("7.0", "99.0"))
    found = compare(tmp_path, tmp_path)
    assert len(found.rows) == place + 1 == 33
    assert found.only == (0, 0)
    assert found.regressions.empty
    assert (found.rows["value_a"] == found.rows["value_b"]).all()
    assert (found.rows["instance_sha256_a"] == found.rows["instance_sha256_b"]).all()


@pytest.mark.parametrize("key", ["relative_gap", "threads", "seed", "time_limit_s"])
def test_runs_of_other_options_are_not_compared(template, tmp_path, key):
    for folder, number in (("A", 1), ("B", 2)):
        write(template, tmp_path / folder, "i1", "A", float(number), None, 0.0)
        path = tmp_path / folder / "records" / "a" / "xtree" / "i1" / "A.json"
        data = json.loads(path.read_text())
        data["options"][key] = number
        path.write_text(json.dumps(data))
    found = compare(tmp_path / "A", tmp_path / "B")
    assert (len(found.rows), found.only) == (0, (1, 1))
    assert found.regressions.empty


def test_the_best_method_per_size_by_hand(template, tmp_path):
    """Two sizes of one series. 64 bytes: a ring (published) takes 4 s, ours 2 s, bound 1 s. 128 bytes: the ring 5 s,
    ours 6 s: the choice changes, and the speedup is 1. An instance without a series counts for nothing."""
    for name, times, bound in (("small", (4.0, 2.0), 1.0), ("large", (5.0, 6.0), 5.0), ("other", (1.0, 1.0), 1.0)):
        write(template, tmp_path, name, "xtree", times[0], None, 0.0)
        write(template, tmp_path, name, "B", times[1], None, 0.0)
        write(template, tmp_path, name, "bound", None, bound, 0.0)
    made = build("s", tmp_path, read_records(tmp_path))
    assert sizes.best_by_size(made).empty
    made["series"] = made["instance"].map({"small": "a ring", "large": "a ring", "other": ""})
    made["size_bytes"] = made["instance"].map({"small": 64.0, "large": 128.0, "other": 256.0})
    found = sizes.best_by_size(made)
    assert list(found.columns) == list(sizes.COLUMNS)
    assert found[["size_bytes", "best_by", "changes", "value", "bandwidth", "bound"]].to_numpy().tolist() == [
        [64, "B", False, 2.0, 32.0, 1.0],
        [128, "xtree", True, 5.0, 25.6, 5.0],
    ]
    assert found["baseline"].tolist() == ["xtree", "xtree"]  # the family's published algorithm
    assert found["speedup"].tolist() == [2.0, 1.0]
    chart = figures.bandwidth(made)
    assert chart is not None
    assert figures.bandwidth(made[made["instance"] == "small"]) is None


def test_names_are_sorted_as_a_person_would() -> None:
    names = ["ring-16", "x-1MiB", "x-8KiB-r4", "ring-8", "x-64KB", "x-16Bits", "x-2GB"]
    assert sorted(names, key=natural) == ["ring-8", "ring-16", "x-16Bits", "x-8KiB-r4", "x-64KB", "x-1MiB", "x-2GB"]
