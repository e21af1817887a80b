"""Methods of a user's own: what they may return, in every family; what they may not, and what their code raises."""

from __future__ import annotations

import dataclasses
import itertools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from command import run

import synth
from synth.family import get_family
from synth.instance import Instance
from synth.method import Outcome, load

ROOT = Path(__file__).resolve().parents[2]
SMALL = {  # an instance of every family, and a quick method with a table
    "fabric": ("full-4-allgather-4KiB", "direct"),
    "xtree": ("ring-8-c1", "pull"),
    "mlfm": ("d3-n2l3m2", "greedy"),
    "optree": ("mesh-2x3-w1", "relay"),
    "harvest": ("bruck-allgather-8-p1", "static_ring"),
    "bine": ("groups-3-6-7-scatter", "bine"),
}


def small(family: str) -> Instance:
    return synth.read(ROOT / "instances" / family / f"{SMALL[family][0]}.json")


def ring(nodes: int = 4) -> Instance:
    return synth.make("xtree", network="ring", nodes=nodes, chunks=1)


def around(instance: Instance) -> synth.Moves:
    """Every chunk once around."""
    moves = synth.Moves(instance)
    nodes = instance.topology.nodes  # type: ignore[attr-defined]
    for node in range(nodes):
        for step in range(nodes - 1):
            moves.send((node + step) % nodes, (node + step + 1) % nodes, node)
    return moves


@pytest.mark.parametrize("family", SMALL)
def test_every_family_takes_the_rows_of_its_table(family: str) -> None:
    """A method's schedule as rows and as a DataFrame: the same value, and a faulty row is named."""
    instance, method = small(family), SMALL[family][1]
    held = get_family(family)
    known = synth.solve(instance, method)
    table = load(held.table)(instance, known.solution())
    flows = held.capability("flow_table")(instance, known.solution()) if held.can("flow_table") else None
    for given in (table, table.to_dict("records")):

        def mine(instance: Instance, options: Any, given: Any = given) -> Any:
            return given if flows is None else synth.from_table(instance, given, flows)

        assert synth.solve(instance, mine).value == known.value
    rows = table.to_dict("records")
    rows[1]["src"] = "nowhere"
    with pytest.raises(synth.InputError, match="row 1, src = 'nowhere'"):
        synth.from_table(instance, rows, flows)
    if flows is None:
        with pytest.raises(synth.InputError, match="has one table and no flows"):
            synth.from_table(instance, rows, rows)
    else:
        with pytest.raises(synth.InputError, match="needs two tables, rows and flows"):
            synth.from_table(instance, rows)


@pytest.mark.parametrize("family", SMALL)
def test_every_family_says_what_no_method_may_return(family: str) -> None:
    instance = small(family)
    for wrong in (None, 3.5, "text", [1, 2], {}, object(), Outcome("finished", 5), Outcome("done"), (), int):  # type: ignore[arg-type]

        def mine(instance: Instance, wrong: Any = wrong) -> Any:
            return wrong

        with pytest.raises(synth.InputError) as error:
            synth.solve(instance, mine)
        [line] = str(error.value).splitlines()
        assert line.startswith("method test_own_methods.mine: returned ") or line.startswith("method mine: returned ")
        assert "synth.Moves, an Outcome" in line or "termination is 'done': one of finished, optimal" in line


def test_a_function_may_return_moves_a_solution_or_an_outcome() -> None:
    instance = ring()
    schedule = around(instance).schedule()
    for given in (around(instance), schedule, Outcome("finished", schedule), Outcome("finished", around(instance))):

        def mine(instance: Instance, options: Any, given: Any = given) -> Any:
            return given

        assert synth.solve(instance, mine, time_limit=5, seed=3).value == 3
    record = synth.solve(instance, around)
    assert record["method"] == "test_own_methods:around"
    assert record["method_origin"].startswith("test_own_methods.py ")


def test_own_methods_are_compared_with_others() -> None:
    """A function beside a name, or alone; a Method of the user's own is told in a sentence what it may return too."""
    frame = synth.compare(ring(), [around, "pull"])
    assert frame.index.tolist() == ["test_own_methods:around", "pull"]
    assert frame["value"].tolist() == [3, 2]
    assert synth.compare(ring(), around)["value"].tolist() == [3]
    odd = synth.Method("mine", "reference", "nothing", "json:dumps")
    with pytest.raises(synth.InputError, match="method mine: "):
        synth.solve(ring(), odd)


def test_a_functions_record_is_written_and_checked(tmp_path: Path) -> None:
    instance = ring()
    record = synth.solve(instance, around, results=tmp_path)
    assert record.path is not None
    assert record.path.name == "test_own_methods@around.json"
    assert synth.check(record.path, instance).ok


def helper(nothing: dict[str, int]) -> int:
    return nothing["a"]


def raising(instance: Instance) -> Any:
    return helper({})


def in_a_library(instance: Instance) -> Any:
    return json.loads("{")


def leaving(instance: Instance) -> Any:
    raise SystemExit(3)


def wrong_moves(instance: Instance) -> synth.Moves:
    moves = synth.Moves(instance)
    moves.send(0, 9, 0)
    moves.send(0, 1, 7)
    return moves


@pytest.mark.parametrize(
    ("method", "words"),
    [
        (raising, ["line {helper+1}, in helper: KeyError: 'a'"]),
        (in_a_library, ["line {in_a_library+1}, in in_a_library: JSONDecodeError: Expecting property name"]),
        (leaving, ["line {leaving+1}, in leaving: SystemExit: 3"]),
        (
            wrong_moves,
            ["move 0 (test_own_methods.py, line {wrong_moves+2}), target = 9", "move 1 (test_own_methods.py"],
        ),
        (lambda instance: wrong_moves(instance).schedule(), ["line {wrong_moves+2}), target = 9", "block = 7"]),
    ],
)
def test_what_the_users_code_raises_names_its_file_and_line(method: Callable[..., Any], words: list[str]) -> None:
    places = {name: globals()[name].__code__.co_firstlineno for name in ("helper", "in_a_library", "leaving")}
    places["wrong_moves"] = wrong_moves.__code__.co_firstlineno
    with pytest.raises(synth.InputError) as error:
        synth.solve(ring(), method)
    lines = str(error.value).splitlines()
    assert len(lines) == len(words)
    for line, expected in zip(lines, words, strict=True):
        for name, at in places.items():
            for more in (1, 2):
                expected = expected.replace(f"{{{name}+{more}}}", str(at + more))
        assert expected in line
        assert "test_own_methods.py" in line
        assert "/" not in line


def test_what_is_no_method() -> None:
    def three(a: Any, b: Any, c: Any) -> None:
        pass

    for method, words in ((three, "must take \\(instance, options\\)"), (int, "must be a name"), (3, "must be a name")):
        with pytest.raises(synth.InputError, match=words):
            synth.solve(ring(), method)  # type: ignore[arg-type]


def test_what_is_no_table() -> None:
    for rows, words in (
        ("text", "must be a list of rows"),
        ([{"step": 1}, 3], "row 1 is of type int: must be a dict"),
        ([{"step": 1, "gpu": 3}], "needs a header line"),
        ([], "needs a header line"),
    ):
        with pytest.raises(synth.InputError, match=words):
            synth.from_table(ring(), rows)


def test_a_family_without_moves_says_what_it_takes() -> None:
    moves = synth.Moves(small("mlfm"))
    moves.send(0, 1)
    record = synth.solve(moves.instance, lambda instance: moves)
    assert (record["termination"], record.value) == ("unsupported", None)
    assert record["message"] == "family mlfm takes no moves: return its table (synth.from_table)"


def test_a_solution_of_wrong_columns_is_a_sentence() -> None:
    """Columns of unlike lengths, which no constructor lets pass: they are found before the check."""
    schedule = around(ring()).schedule()
    odd = dataclasses.replace(schedule, link=schedule.link[:-1])
    with pytest.raises(synth.InputError, match="which is no solution of xtree"):
        synth.solve(ring(), lambda instance: odd)


FILE = """import synth


def rings(instance):
    moves = synth.Moves(instance)
    for node in range(4):
        for step in range(3):
            moves.send((node + step) % 4, (node + step + 1) % 4, node)
    return moves
"""
FAILING = FILE.replace("(node + step) % 4", "[0, 1, 2][node]") + "\n\ndef nothing(instance, options):\n    pass\n"


@pytest.mark.long
def test_the_command_takes_a_file_with_one_function_and_says_what_fails(tmp_path: Path) -> None:
    """A file alone where it has one function; of failing ones a sentence each, and the traceback in the record."""
    (tmp_path / "ring4.json").write_text(ring().to_json())
    (tmp_path / "one.py").write_text(FILE)
    (tmp_path / "two.py").write_text(FAILING)
    run("solve", "ring4.json", "-m", "one.py", cwd=tmp_path)
    [record] = tmp_path.glob("results/xtree/*/one@rings.json")
    assert json.loads(record.read_text())["objective"]["value"] == 3
    done = run("solve", "ring4.json", "-m", "two.py:rings", "-m", "two.py:nothing", cwd=tmp_path, code=1)
    assert "error: two.py, line 8, in rings: IndexError: list index out of range\n" in done.stderr
    assert "error: returned None: it may return synth.Moves, an Outcome" in done.stderr
    stored = json.loads(record.with_name("two@rings.json").read_text())
    assert stored["termination"] == "error"
    assert "Traceback" in stored["stderr"]
    done = run("solve", "ring4.json", "-m", "two.py", cwd=tmp_path, code=2)
    assert "two.py: has rings, nothing: name one function, two.py:FUNCTION" in done.stderr


LATE = """
import itertools

import synth


def direct(instance):
    moves = synth.Moves(instance)
    for source, target in itertools.permutations(range(4), 2):
        moves.send(source, target, source)
    return moves
"""


@pytest.mark.parametrize("late", [{}, {"late": "3:10us"}])
def test_a_file_of_the_instance_alone_also_where_a_rank_is_late(late: dict[str, str], tmp_path: Path) -> None:
    """Four ranks that send their data straight to all others; with a rank that is ready later, after that."""
    how: dict[str, Any] = {"network": "full", "nodes": 4, "bandwidth": "25GB/s", "latency": "1us", **late}
    made = synth.make("fabric", collective="allgather", bytes="1MiB", **how)
    (tmp_path / "four.json").write_text(made.to_json())
    (tmp_path / "own_late.py").write_text(LATE)
    instance = synth.read(tmp_path / "four.json")
    record = synth.solve(instance, "own_late.py:direct", time_limit=20)
    assert record.value is not None
    assert synth.check(record, instance).ok
    assert (record.value > 20e-6) is bool(late)


def test_a_function_at_hand_where_a_rank_is_late() -> None:
    """As of a file: it plans for ranks that are all ready, and the plan is timed again."""

    def direct(instance: Instance) -> synth.Moves:
        moves = synth.Moves(instance)
        for source, target in itertools.permutations(range(4), 2):
            moves.send(source, target, source)
        return moves

    how: dict[str, Any] = {"network": "full", "nodes": 4, "bandwidth": "25GB/s", "latency": "1us", "late": "3:10us"}
    record = synth.solve(synth.make("fabric", collective="allgather", bytes="1MiB", **how), direct)
    assert record["verified"]["ok"]
    assert record.value == pytest.approx(10e-6 + 1e-6 + 2**20 / 4 / 25e9)
