"""Placements of experts: EPLB's own example, brute force, and drawn traces."""

import itertools
import json
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import command
import numpy as np
import pytest

from synth.errors import InputError
from synth.options import RunOptions
from synth.placement.program import placed, simple_bound
from synth.placement.question import Question, asked, faults, loads
from synth.placement.rule import rule
from synth.placement.search import improved

EXAMPLE = (
    [90, 132, 40, 61, 104, 165, 39, 4, 73, 56, 183, 86],
    [20, 107, 104, 64, 19, 197, 187, 157, 172, 86, 16, 27],
)
PRINTED = (
    [5, 6, 5, 7, 8, 4, 3, 4, 10, 9, 10, 2, 0, 1, 11, 1],
    [7, 10, 6, 8, 6, 11, 8, 9, 2, 4, 5, 1, 5, 0, 3, 1],
)


def exact() -> RunOptions:
    """Options whose clock starts here."""
    return RunOptions(60.0, relative_gap=0.0)


@pytest.mark.parametrize(("load", "printed"), zip(EXAMPLE, PRINTED, strict=True))
def test_the_rule_answers_its_own_example_as_printed(load: list[int], printed: list[int]) -> None:
    assert rule(asked(np.array(load), 2, 8, 16, 4)).ravel().tolist() == printed


@pytest.mark.parametrize(("load", "by_rule", "best"), [(EXAMPLE[0], 156, 151), (EXAMPLE[1], Fraction(359, 2), None)])
def test_the_example_is_solved_to_optimality(load: list[int], by_rule: Fraction, best: int | None) -> None:
    question = asked(np.array(load), 2, 8, 16, 4)
    found, old = placed(question, exact())
    assert old == by_rule
    assert found.value == found.bound == (by_rule if best is None else best)
    assert not faults(question, found.placement)
    assert max(loads(question.load, found.placement)) == found.value


def every_placement(question: Question) -> Iterator[np.ndarray]:
    """All ways to fill the slots."""
    cells = question.ranks * question.slots
    for row in itertools.product(range(len(question.load)), repeat=cells):
        placement = np.array(row).reshape(question.ranks, question.slots)
        if not faults(question, placement):
            yield placement


@pytest.mark.parametrize("seed", range(6))
def test_no_placement_is_better_than_the_optimum(seed: int) -> None:
    rng = np.random.default_rng(seed)
    experts, boxes, ranks, slots, groups = [(3, 1, 2, 2, 1), (4, 2, 2, 2, 2), (2, 2, 4, 1, 2)][seed % 3]
    question = asked(rng.integers(0, 20, experts), boxes, ranks, ranks * slots, groups)
    best = min(max(loads(question.load, placement)) for placement in every_placement(question))
    found, by_rule = placed(question, exact())
    assert simple_bound(question)[0] <= best
    assert found.bound == found.value == best <= by_rule


def compare(seed: int) -> tuple[bool, float]:
    """Whether a drawn trace's placement is below the rule's, and its gap."""
    rng = np.random.default_rng(seed)
    share = rng.permutation(1 / np.arange(1, 65) ** rng.choice([0.4, 0.8, 1.2]))
    question = asked(rng.multinomial(20_000, share / share.sum()), 4, 16, 80, int(rng.choice([1, 4, 8])))
    found, by_rule = placed(question, RunOptions(10.0, relative_gap=0.0, seed=seed))
    assert not faults(question, found.placement)
    assert found.bound <= found.value == max(loads(question.load, found.placement)) <= by_rule
    return found.value < by_rule, float(1 - found.bound / found.value)


def test_drawn_traces() -> None:
    better, gaps = zip(*map(compare, range(3)), strict=True)
    assert any(better)
    assert max(gaps) < 0.05


@pytest.mark.slow
def test_twenty_drawn_traces() -> None:
    better, gaps = zip(*map(compare, range(20)), strict=True)
    assert sum(better) >= 15
    assert max(gaps) < 0.05


def test_all_that_does_not_fit_is_named_at_once() -> None:
    with pytest.raises(InputError) as caught:
        asked(np.ones(10, int), 2, 8, 9, 3)
    words = str(caught.value)
    assert "groups = 3: must divide the 10 experts" in words
    assert "copies = 9: must be a multiple of the 8 ranks" in words
    assert "copies = 9: must be 10" in words


def test_what_a_placement_breaks() -> None:
    question = asked(np.array([3, 2, 1, 1]), 2, 2, 4, 2)
    assert not faults(question, np.array([[0, 1], [2, 3]]))
    apart = ["a group is in several boxes", "boxes have unequal numbers of groups"]
    assert faults(question, np.array([[0, 2], [1, 3]])) == apart
    assert faults(question, np.array([[0, 0], [2, 3]])) == ["expert 1 is nowhere"]
    assert faults(question, np.array([[0, 1, 2, 3]]))


MACHINE = ("dgx-a100", "boxes=2")


@pytest.mark.slow
def test_the_command_writes_what_plan_reads_and_check_accepts(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("source,experts,tokens\n0,0 1,50\n9,0 2,30\n12,3 15,8\n")
    words = ("--tokens", "t.csv", "--copies", "32", "--held-out", "t.csv")
    done = command.run("place", *MACHINE, *words, "-o", "p.csv", "--json", cwd=tmp_path)
    by_rule, ours = [json.loads(line) for line in done.stdout.splitlines()]
    assert (by_rule["by"], ours["by"]) == ("eplb", "synth")
    assert ours["bound"] <= ours["largest"] == ours["held_out"] <= by_rule["largest"]
    assert (tmp_path / "p.csv").read_text().startswith("expert,rank,copies\n")
    command.run("plan", *MACHINE, "--tokens", "t.csv", "--placement", "p.csv", "-o", "out", cwd=tmp_path)
    records = sorted(tmp_path.glob("out/fabric/*/*.json"))
    assert [path.parent.name.rpartition("-")[2] for path in records] == ["combine", "dispatch"]
    command.run("check", *records, cwd=tmp_path)


def test_a_search_among_too_many_swaps_is_left_out() -> None:
    question = asked(np.arange(4096), 1, 2, 4096, 1)
    start = rule(question)
    assert improved(question, start, 0, lambda: True) is start


def test_a_search_ends_with_its_time() -> None:
    """None is left: the rule's own placement; and looks at the clock are few until it ends."""
    question = asked(np.arange(1, 65), 1, 16, 80, 1)
    start, left = rule(question), iter(range(5))
    assert (improved(question, start, 0, lambda: False) == start).all()
    improved(question, start, 0, lambda: next(left, None) is not None)
    assert next(left, None) is None


def test_the_rule_among_many_ranks() -> None:
    """As many copies as are supported on as many ranks as a cluster has: each has its eight, all within the rule."""
    question = asked(np.arange(2**15), 2**10, 2**13, 2**16, 1)
    assert sorted(map(len, rule(question).tolist())) == [8] * 2**13


def test_bad_traces(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("source,experts\n0,7\n")
    for words, told in (
        (("t.csv", "--experts", "3"), "names expert 7"),
        (("t.csv", "--experts", str(2**64)), "less than or equal to 1048576"),
        (("t.csv", "--copies", "9"), "must be a multiple of the 16 ranks"),
        (("t.csv", "--groups", "3"), "must divide the 8 experts"),
        (("drawn:tokens=x",), "must be a number"),
    ):
        done = command.run("place", *MACHINE, "--tokens", *words, "-o", "p.csv", cwd=tmp_path, code=2)
        assert told in done.stderr
    assert not (tmp_path / "p.csv").exists()


@pytest.mark.parametrize("option", ["--dispatch-bytes", "--combine-bytes", "--placement"])
def test_options_of_tokens_are_refused_beside_demands(tmp_path: Path, option: str) -> None:
    (tmp_path / "d.jsonl").write_text("[[0, 1], [1, 0]]\n")
    done = command.run("plan", *MACHINE, "--demands", "d.jsonl", option, "8", cwd=tmp_path, code=2)
    assert done.stderr.splitlines() == [f"synth: {option} = '8': needs --tokens"]
