"""The search for the fewest steps, against decisions made up for the purpose."""

from __future__ import annotations

import pytest

from synth.errors import SizeLimitError
from synth.method import Outcome
from synth.options import RunOptions
from synth.solvers.horizon import Decision, HorizonProgram, Incumbent, Proven, fewest

ANSWERS = {"f": "feasible", "i": "infeasible", "r": "restricted", "l": "limit", "e": "error"}


def search(
    answers: str, horizon: int | None = None, incumbent: int | None = None, most: int | None = None, seek: bool = False
) -> Outcome:
    """Horizons 3, 4, … are answered by the letters of ``answers``; a solution is its number of steps."""

    def decide(steps: int) -> Decision:
        letter = answers[steps - 3]
        if letter == "s":
            raise SizeLimitError("too large")
        message = {"r": "no round schedule", "e": "broken"}.get(letter)
        return Decision(ANSWERS[letter], steps if letter == "f" else None, message)  # type: ignore[arg-type]

    return fewest(
        HorizonProgram(decide, "S", "steps", size=lambda x: x),
        Proven(3, "by counting", {"binding": "cut"}),
        RunOptions(),
        Incumbent(incumbent, "us"),
        horizon=horizon,
        most=most,
        seek=seek,
    )


@pytest.mark.parametrize(
    ("answers", "incumbent", "termination", "value", "bound", "certified"),
    [
        ("f", None, "optimal", 3, 3, True),
        ("iif", None, "optimal", 5, 5, False),
        ("rf", None, "finished", 4, 3, True),  # a restricted class refutes nothing
        ("irf", None, "finished", 5, 4, False),
        ("il", None, "time_limit", None, 4, False),
        ("il", 6, "time_limit", 6, 4, False),
        ("ii", 5, "optimal", 5, 5, False),
        ("rr", 5, "finished", 5, 3, True),
        ("", 3, "optimal", 3, 3, True),
        ("is", 9, "size_limit", 9, 4, False),
    ],
)
def test_upwards(
    answers: str, incumbent: int | None, termination: str, value: int | None, bound: int, certified: bool
) -> None:
    found = search(answers, incumbent=incumbent)
    assert (found.termination, found.solution, found.bound) == (termination, value, bound)
    assert (found.certificate is not None) == certified  # a certificate proves its own bound and no other


@pytest.mark.parametrize(
    ("answers", "incumbent", "termination", "value", "bound"),
    [
        ("ilf", 6, "time_limit", 5, 4),  # 4 undecided, 5 found: better than 6, not known to be best
        ("lll", 6, "time_limit", 6, 3),
        ("lif", 6, "optimal", 5, 5),  # what is infeasible in 4 steps is infeasible in 3
        ("lr", 5, "time_limit", 5, 3),
        ("l", None, "time_limit", None, 3),
    ],
)
def test_seeking_beyond_an_undecided_horizon(
    answers: str, incumbent: int | None, termination: str, value: int | None, bound: int
) -> None:
    found = search(answers, incumbent=incumbent, seek=True)
    assert (found.termination, found.solution, found.bound) == (termination, value, bound)


def test_no_time_left_asks_nobody() -> None:
    def decide(steps: int) -> Decision:
        raise AssertionError

    options = RunOptions(time_limit_s=0.0)
    program = HorizonProgram(decide, "S", "steps", size=lambda x: x)
    found = fewest(program, Proven(3, "by counting"), options)
    assert (found.termination, found.bound) == ("time_limit", 3)


@pytest.mark.parametrize(
    ("horizon", "answers", "termination", "bound", "words"),
    [
        (2, "", "infeasible", 3, "2 steps are fewer than the proven bound 3: by counting"),
        (3, "f", "optimal", 3, "schedule of 3 steps by S"),
        (4, "xf", "finished", 3, "schedule of 4 steps by S"),
        (4, "xi", "infeasible", 5, "S proves 4 steps infeasible"),
        (4, "xr", "finished", 3, "no round schedule"),
        (4, "xl", "time_limit", 3, "4 steps undecided within the limit"),
    ],
)
def test_one_horizon(horizon: int, answers: str, termination: str, bound: int, words: str) -> None:
    found = search(answers, horizon)
    assert (found.termination, found.bound, found.message) == (termination, bound, words)


def test_errors_are_raised_and_size_limits_lose_nothing() -> None:
    with pytest.raises(RuntimeError, match="broken"):
        search("e")
    with pytest.raises(SizeLimitError):
        search("s")
    assert search("rrrr", most=5).termination == "finished"


def test_the_curve_shows_incumbents_and_bounds() -> None:
    options = RunOptions()

    def decide(steps: int) -> Decision:
        return Decision("infeasible" if steps < 5 else "feasible", steps)

    program = HorizonProgram(decide, "S", "steps", size=lambda x: x)
    fewest(program, Proven(3, "by counting"), options, Incumbent(7, "us"))
    assert [row[1:] for row in options.progress.rows] == [(7, 3), (7, 4), (7, 5), (5, 5)]
