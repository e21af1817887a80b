"""Numbers of phases asked for, refuted and proven: terminations, bounds, certificates, and solvers that fail."""

from __future__ import annotations

import importlib
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from models.mlfm.slow_replay import least_phases

import synth
from synth.errors import SizeLimitError
from synth.instance import parse
from synth.method import Outcome
from synth.options import RunOptions
from synth.solvers.catalogue import solvers_for
from synth.solvers.status import SolverResult
from synth_models.mlfm import FAMILY
from synth_models.mlfm.bounds import machine as bound
from synth_models.mlfm.check.certificates import check_bound
from synth_models.mlfm.instance import MLFMInstance
from synth_models.mlfm.programs import whole


def job(d: int, **changes: Any) -> MLFMInstance:
    made = parse({"family": "mlfm", "name": "x", "source": "a test", "d": d} | changes, MLFMInstance, "x")
    assert isinstance(made, MLFMInstance)
    return made


TWO_LEAVES = job(3, block={"layers": 1, "columns": 2, "servers": 3})  # 9 phases by a forced link, see programs' tests
FAILED = [{"leaf": [0, 0], "spine": [0, 1]}, {"leaf": [0, 1], "spine": [1, 2]}]
ODD_ONE = job(
    2, subset=[[0, 1, 0], [0, 2, 0], [0, 2, 1], [1, 0, 0], [1, 2, 0]], failed={"links": FAILED}, routes="detour"
)


def outcome(instance: MLFMInstance, method: str, seconds: float | None = 60.0, **own: Any) -> Outcome:
    solver = next(iter(solvers_for(FAMILY.methods[method].needs)), None)
    return FAMILY.methods[method].load()(instance, RunOptions(seconds, solver=solver, method=own))


@pytest.mark.parametrize("method", ["cpsat", "ilp"])
@pytest.mark.parametrize("decompose", [True, False])
@pytest.mark.parametrize("horizon", [1, 6, 8])
def test_below_the_proven_bound_the_answer_has_its_proof(method: str, decompose: bool, horizon: int) -> None:
    """6 servers need 6 phases, a link 9: whatever is asked below, the certificate of the 9 is handed over."""
    ended = outcome(TWO_LEAVES, method, decompose=decompose, horizon=horizon)
    assert (ended.termination, ended.bound, ended.solution) == ("infeasible", 9, None)
    assert ended.certificate is not None
    assert check_bound(TWO_LEAVES, 9, ended.certificate) == []
    assert check_bound(TWO_LEAVES, 10, ended.certificate) != []
    assert f"{horizon} phases are fewer than the proven bound 9: links: 9 flows must use" in (ended.message or "")


def test_a_job_whose_links_hold_what_its_servers_cannot_send() -> None:
    """Five servers; by exhaustive search between servers six phases are needed, though no link carries six flows."""
    assert least_phases(ODD_ONE, 7) == 6
    assert bound.solve(ODD_ONE, RunOptions()).bound == 5


@pytest.mark.long(after=1)
@pytest.mark.parametrize("method", ["cpsat", "ilp"])
def test_refuting_n_phases_over_two_spines_proves_one_more(method: str) -> None:
    whole_solve = outcome(ODD_ONE, method, decompose=False)
    assert (whole_solve.termination, whole_solve.bound, whole_solve.solution.phases) == ("optimal", 6, 6)
    assert whole_solve.certificate is None  # the solver's word
    assert "5 phases proven impossible by exhaustive search" in (whole_solve.bound_proof or "")
    five = outcome(ODD_ONE, method, decompose=False, horizon=5)
    assert (five.termination, five.bound, five.certificate, five.solution) == ("infeasible", 6, None, None)
    four = outcome(ODD_ONE, method, decompose=False, horizon=4)
    assert (four.termination, four.bound, four.certificate) == ("infeasible", 5, {"binding": "ranks"})
    record = synth.solve(ODD_ONE, method, options={"decompose": "off"})
    assert (record.ok, record.value, record.bound) == (True, 6, 6)


@pytest.mark.slow
def test_the_command_exits_with_3_below_the_bound_only(tmp_path: Path) -> None:
    file = tmp_path / "odd.json"
    file.write_text(ODD_ONE.to_json().replace('"x"', '"odd"'))
    for own, code in ((["horizon=4"], 3), (["horizon=5", "decompose=off"], 3), (["horizon=6"], 0), (["horizon=5"], 4)):
        words = [part for text in own for part in ("-O", text)]
        command = [Path(sys.executable).with_name("synth"), "solve", file, "-m", "cpsat", *words]
        ended = subprocess.run([*command, "--results", tmp_path / "r"], capture_output=True, text=True, check=False)
        assert ended.returncode == code, (own, ended.stdout, ended.stderr)


@pytest.mark.parametrize("method", ["cpsat", "ilp"])
def test_a_packing_that_fails_proves_nothing(method: str) -> None:
    """The same job in two parts: five phases can be counted but not packed, so five stays the bound."""
    five = outcome(ODD_ONE, method, decompose=True, horizon=5)
    assert (five.termination, five.bound, five.solution) == ("finished", 5, None)
    assert five.message == "packing two-spine flows into 5 phases failed, which proves nothing"
    free = outcome(ODD_ONE, method, decompose=True)
    assert (free.termination, free.bound, free.solution.phases) == ("finished", 5, 6)
    assert free.certificate == {"binding": "ranks"}
    assert "packing two-spine flows into fewer than 6 phases failed, which proves nothing" in (free.message or "")


@pytest.mark.long(after=1)
@pytest.mark.parametrize("method", ["cpsat", "ilp", "min_congestion"])
@pytest.mark.parametrize("name", ["d3-n2l4m3-link", "d4-fragment-20", "d4-n2l2m4"])
def test_bounds_of_programs_keep_the_certificates_of_what_binds(method: str, name: str) -> None:
    instance = synth.read(f"instances/mlfm/{name}.json")
    assert isinstance(instance, MLFMInstance)
    ended, counted = outcome(instance, method), bound.solve(instance, RunOptions())
    assert (ended.bound, ended.certificate) == (counted.bound, counted.certificate)
    assert ended.bound is not None
    assert check_bound(instance, ended.bound, ended.certificate or {}) == []
    late = outcome(instance, method, seconds=1e-9)
    assert late.bound is None or check_bound(instance, late.bound, late.certificate or {}) == []


def test_min_congestion_states_what_it_proves(monkeypatch: pytest.MonkeyPatch) -> None:
    """Five phases for six servers: the ranks' certificate. A load refuted for 6 phases refutes 6 phases: without the
    forced link's bound the search itself finds that 6 phases of load 1 are too few, so 7 are needed."""
    five = outcome(TWO_LEAVES, "min_congestion", phases=5)
    assert (five.termination, five.bound, five.certificate) == ("infeasible", 6, {"binding": "ranks"})
    six = outcome(TWO_LEAVES, "min_congestion", phases=6)
    assert (six.termination, six.bound) == ("finished", 9)
    weaker = bound.Bound(6, "ranks", {"binding": "ranks"})
    congestion = importlib.import_module("synth_models.mlfm.programs.min_congestion")
    monkeypatch.setattr(congestion, "lower_bound", lambda *_: weaker)
    again = outcome(TWO_LEAVES, "min_congestion", phases=6)
    assert (again.termination, again.bound, again.certificate) == ("finished", 7, None)
    assert "worst link load 2 in 6 phases, proven smallest: no whole flows per route fit into 6 phases with load 1" in (
        again.message or ""
    )


def test_refuted_counts_raise_the_bound_without_a_certificate(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same in the search for the fewest phases: 6, 7 and 8 are refuted one by one, and 9 found."""
    decomposition = importlib.import_module("synth_models.mlfm.programs.decomposition")
    monkeypatch.setattr(decomposition, "lower_bound", lambda *_: bound.Bound(6, "ranks", {"binding": "ranks"}))
    ended = outcome(TWO_LEAVES, "cpsat", decompose=True)
    assert (ended.termination, ended.bound, ended.certificate, ended.solution.phases) == ("optimal", 9, None, 9)
    assert ended.bound_proof == "no whole numbers of flows per route fit into 8 phases (exhaustive search by CP-SAT)"
    seven = outcome(TWO_LEAVES, "cpsat", decompose=True, horizon=7)
    assert (seven.termination, seven.bound, seven.certificate) == ("infeasible", 8, None)


@pytest.mark.parametrize("ended", ["error", "unbounded"])
@pytest.mark.parametrize(
    ("method", "decompose"),
    [("cpsat", True), ("cpsat", False), ("ilp", True), ("ilp", False), ("min_congestion", True)],
)
@pytest.mark.parametrize("instance", [TWO_LEAVES, ODD_ONE], ids=["one spine", "two spines"])
def test_a_solver_that_fails_is_no_time_limit(
    monkeypatch: pytest.MonkeyPatch, ended: Any, method: str, decompose: bool, instance: MLFMInstance
) -> None:
    result = SolverResult(ended, False, None, None, 0.0, message="it broke")
    monkeypatch.setattr("synth.solvers.cpsat.solve", lambda *_, **__: (result, None))
    monkeypatch.setattr("synth.solvers.mathprog.solve", lambda *_, **__: result)
    own = {"decompose": decompose} if method != "min_congestion" else {}
    with pytest.raises(RuntimeError, match="it broke"):
        outcome(instance, method, **own)


class Ended:
    """What scipy says of a run without a point."""

    x = None

    def __init__(self, status: int, message: str) -> None:
        self.status, self.message = status, message


@pytest.mark.parametrize(
    ("status", "message", "fails"),
    [
        (1, "Time limit reached.", False),
        (2, "The problem is infeasible.", False),
        (
            4,
            "The HiGHS status code was not recognized. (HiGHS Status 16: model_status is Solution limit reached)",
            False,
        ),
        (4, "The problem is unbounded or infeasible.", False),
        (3, "The problem is unbounded.", True),
        (4, "(HiGHS Status 4: Solve error)", True),
    ],
)
def test_the_program_of_one_phase_does_not_hide_a_failure(
    monkeypatch: pytest.MonkeyPatch, status: int, message: str, fails: bool
) -> None:
    monkeypatch.setattr("scipy.optimize.milp", lambda *_, **__: Ended(status, message))
    if fails:
        with pytest.raises(RuntimeError, match="a whole-number program failed"):
            outcome(ODD_ONE, "cpsat", decompose=True, horizon=5)
    else:
        assert outcome(ODD_ONE, "cpsat", decompose=True, horizon=5).solution is None


@pytest.mark.parametrize(("status", "fails"), [(1, False), (2, True), (3, True), (4, True)])
def test_the_program_of_the_weights_does_not_hide_a_failure(
    monkeypatch: pytest.MonkeyPatch, status: int, fails: bool
) -> None:
    """Out of time the simple bounds stand; any other end of a program that always has an optimum is an error."""
    instance = synth.read("instances/mlfm/d4-n4l5m4-spine.json")
    assert isinstance(instance, MLFMInstance)
    monkeypatch.setattr("scipy.optimize.linprog", lambda *_, **__: Ended(status, "it broke"))
    if fails:
        with pytest.raises(RuntimeError, match="it broke"):
            bound.solve(instance, RunOptions())
    else:
        ended = bound.solve(instance, RunOptions())
        assert check_bound(instance, ended.bound or np.nan, ended.certificate or {}) == []


def test_a_model_too_large_is_a_size_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(whole, "MAX_VARIABLES", 10)
    with pytest.raises(SizeLimitError, match="use decompose=on"):
        outcome(TWO_LEAVES, "cpsat", decompose=False)
