"""``results/published/verify.py``, written from models/formats alone, and ``synth check`` say the same of published
records and of forgeries: records in which a value, a schedule or a certificate has been changed at random."""

from __future__ import annotations

import ast
import hashlib
import json
import math
import random
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from copy import deepcopy
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from two_checkers import ROOT, VERIFY, as_double, opinions, verify

PUBLISHED = ROOT / "results" / "published"
PARTS = ("", "_harvest", "_several", "_networks", "_base", "_possession", "_permutations", "_placements")
FILES = tuple(VERIFY.with_name(f"verify{part}.py") for part in PARTS)
SMALL = 20_000  # numbers in a record that is forged
NOT_LOOKED_AT = ".chunk_times"  # by verify.py, as its first lines say
FAMILIES = ("fabric", "harvest", "xtree", "mlfm", "optree", "bine")
CLAIMS = (
    "format", "family", "instance", "instance_sha256", "kind", "termination", "objective", "verified",
    "bound", "bound_grade", "bound_proof", "solution", "certificate", "message", "solver",
)  # fmt: skip
ODD = (
    0,
    1,
    -1,
    2,
    -(2**31),
    2**31,
    2**53 + 1,
    2**63,
    2**70,
    10**400,
    0.5,
    1e-300,
    1e308,
    math.nan,
    math.inf,
    "7",
    "",
    None,
    [],
    {},
)


@cache
def published() -> dict[str, list[tuple[str, str]]]:
    """Return the folder and the text of every published record, by family."""
    found: dict[str, list[tuple[str, str]]] = {}
    for _, folder, text in verify.records_of([str(path) for path in sorted(PUBLISHED.rglob("records.jsonl"))]):
        found.setdefault(json.loads(text)["family"], []).append((folder, text))
    return found


@cache
def records(family: str) -> tuple[dict[str, Any], ...]:
    """Return a family's published records that are small, each whole: its arrays and its instance stand in it."""
    found = []
    checker = verify.Checker()
    for folder, text in published()[family]:
        record = json.loads(text)
        arrays = checker.open_arrays(f"{folder}/{record['solution_file']}") if record["solution_file"] else None
        place = record.pop("record_path") + "/"
        for part, prefix in (("certificate", place + "certificate/"), ("solution", place)):
            names = [name for name in arrays.names if name.startswith(prefix)] if arrays else []
            names = [name for name in names if "/" not in name[len(prefix) :]]
            if names and sum(arrays.zip.getinfo(name + ".npy").file_size for name in names) < SMALL:
                record[part] |= {name[len(prefix) :]: nested(arrays.read(name)) for name in names}
            elif names:
                record["too_large"] = True
        if record.pop("too_large", False) or len(json.dumps(record)) > 4 * SMALL:
            continue
        if "instance_text" not in record:
            record["instance_text"] = (ROOT / record["instance_file"]).read_text()
        if record["solution"]:  # plans are not covered, and facts are not: one more message would change them
            record["solution"] = {
                key: value for key, value in record["solution"].items() if not key.startswith("plan_")
            }
            record["verified"]["facts"] = {
                key: value for key, value in record["verified"]["facts"].items() if key == "replayed"
            }
        record["solution_file"] = record["progress"] = None
        found.append(record)
    return tuple(found)


def nested(array: Any) -> list[Any]:
    """Return an array as lists of lists."""
    values = list(array.values)
    for length in reversed(array.shape[1:]):
        values = [values[at : at + length] for at in range(0, len(values), length)]
    return list(values)


def forgeries(family: str, seed: int) -> Iterator[tuple[str, str]]:
    """Yield (what was done, the forged record's text) without end."""
    chance = random.Random(f"{family} {seed}")
    originals = records(family)
    while True:
        record = deepcopy(chance.choice(originals))
        done = chance.choice(FORGERS)(record, chance)
        if done is None:
            continue
        if chance.random() < 0.5:
            done += repair(record)
        yield f"{record.get('instance')} {record.get('method')}: {done}", json.dumps(record)


def forge_number(record: dict[str, Any], chance: random.Random) -> str | None:
    """Move a stated value or bound."""
    part, key = chance.choice(((record, "bound"), (record["objective"], "value"), (record["options"], "relative_gap")))
    old = part[key]
    if not isinstance(old, int | float):
        new: Any = chance.choice((0, 1, 0.25, *ODD))
    else:
        near = (
            math.nextafter(old, math.inf),
            math.nextafter(old, -math.inf),
            old * (1 + 1e-9),
            old * 2,
            -old,
            old + 1,
            float(old),
            old / 2,
        )
        new = chance.choice((*near, *near, *ODD))
    part[key] = new
    return f"{key} {old} becomes {new!r:.40}"


def forge_statement(record: dict[str, Any], chance: random.Random) -> str | None:
    """Change or drop what a record states beside its numbers; how a run went is not looked at by the second checker."""
    key = chance.choice(CLAIMS)
    if key in ("kind", "solver"):  # of a method it knows, synth check also knows kind and solvers
        record["method"] = "forged"
    if chance.random() < 0.3:
        record.pop(key, None)
        return f"without {key}"
    others = {
        "termination": ("finished", "optimal", "infeasible", "time_limit", "unsupported", "error", "killed"),
        "kind": ("program", "reference", "bound", "submitted"),
        "bound_grade": ("certified", "solver", None),
        "solver": ("highs", None),
        "bound": (None, 0, 1),
    }
    record[key] = chance.choice((*others.get(key, ()), *others.get(key, ()), *ODD))
    return f"{key} becomes {record[key]!r:.40}"


def parts_of(record: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the solution and the certificate, where they are there."""
    return [part for part in (record["solution"], record.get("certificate")) if part]


def forge_row(record: dict[str, Any], chance: random.Random) -> str | None:
    """Drop, repeat or exchange rows of all columns of one length."""
    if not parts_of(record):
        return None
    part = chance.choice(parts_of(record))
    lists = [value for value in part.values() if isinstance(value, list) and value]
    if not lists:
        return None
    length = len(chance.choice(lists))
    columns = [value for value in lists if len(value) == length]
    i, j, how = (
        chance.randrange(length),
        chance.randrange(length),
        chance.choice(("drop", "repeat", "exchange", "last")),
    )
    for column in columns:
        if how == "drop":
            del column[i]
        elif how == "repeat":
            column.insert(j, column[i])
        elif how == "exchange":
            column[i], column[j] = column[j], column[i]
        else:
            column.append(column.pop(i))
    return f"{how} row {i} {j} of {length}"


def forge_entry(record: dict[str, Any], chance: random.Random) -> str | None:
    """Change one entry somewhere in the solution or the certificate."""
    if not parts_of(record):
        return None
    at: Any = chance.choice(parts_of(record))
    place: list[Any] = []
    while isinstance(at, dict | list) and at:
        inside, key = at, chance.choice(list(at) if isinstance(at, dict) else range(len(at)))
        place.append(key)
        at = inside[key]
        if chance.random() < 0.05:
            break
    if not place:
        return None
    old, how = inside[key], chance.random()
    if how < 0.1:
        del inside[key]
        return f"without {place}"
    near: tuple[Any, ...] = ODD
    if isinstance(old, int | float) and how < 0.85:
        near = (old + 1, old - 1, old + 1, old - 1, 0, 1, 2 * old, old // 2, float(old))
        if isinstance(inside, list) and chance.random() < 0.4:
            near = tuple(inside)
    elif isinstance(old, list) and how < 0.6:
        near = (old[:-1], old + old[-1:], old[::-1], old[1:])
    inside[key] = chance.choice(near)
    return f"{place} {old!r:.40} becomes {inside[key]!r:.40}"


def forge_tick(record: dict[str, Any], chance: random.Random) -> str | None:
    """Move one start of a fabric schedule, and that one alone, or a count of another family's by one."""
    solution = record["solution"] or {}
    key = chance.choice(
        [key for key in ("start_steps", "step", "round", "hop", "piece_steps") if solution.get(key)] or [""]
    )
    if not key:
        return None
    steps = solution[key]
    i, by = chance.randrange(len(steps)), chance.choice((-1, 1, 1000, -1000))
    steps[i] += by
    if key.endswith("_steps") and i + 1 < len(steps):
        steps[i + 1] -= by
    return f"{key}[{i}] moved by {by}"


def forge_limit(record: dict[str, Any], chance: random.Random) -> str | None:
    """State the greatest bound that a certificate, changed or not, proves to the second checker, or the next double."""
    if record["kind"] != "bound" or not record["solution"] or len(json.dumps(record)) > SMALL:
        return None
    done = (chance.random() < 0.7 and forge_entry(record, chance)) or "unchanged"
    try:
        instance = verify.read_instance(record["instance_text"], str(ROOT))
    except (verify.Fault, verify.NotCovered):
        return done
    if max(getattr(instance, "N", 0), getattr(instance, "n", 0)) > 64:  # ranks or nodes: verified sixty times below
        return done

    def proves(bits: int) -> bool:
        try:
            instance.certify(verify.Held(record["solution"]), Fraction(as_double(bits)))
        except (verify.Fault, verify.NotCovered, KeyError, TypeError, ValueError, IndexError, ArithmeticError):
            return False
        return True

    low, high = 0, 0x7FE0000000000000  # as doubles: 0 and about 9e307
    if not proves(low) or proves(high):
        return done
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if proves(middle) else (low, middle)
    record["bound"], record["progress"] = as_double(chance.choice((low, low, high))), None
    return f"{done}, bound {record['bound']} of at most {as_double(low)}"


FORGERS: tuple[Callable[[dict[str, Any], random.Random], str | None], ...] = (
    forge_number, forge_statement, forge_row, forge_row, forge_entry, forge_entry, forge_entry, forge_tick, forge_tick,
    forge_limit, forge_limit,
)  # fmt: skip


def repair(record: dict[str, Any]) -> str:
    """State the value that a forged schedule has, where it has one, so that only the schedule decides."""
    try:
        if record["kind"] == "bound" or not record["solution"]:
            return ""
        instance = verify.read_instance(record["instance_text"], str(ROOT))
        value = instance.replay(verify.Held(record["solution"]))
        record["objective"]["value"] = value
        facts = record["verified"]["facts"]
        record["verified"]["facts"] = {"replayed": facts["replayed"]} if "replayed" in facts else {}
    except (verify.Fault, verify.NotCovered, KeyError, TypeError, ValueError):
        return ""
    record |= {"progress": None, "termination": "finished", "certificate": None, "method": "forged"}
    record |= {"bound": None, "bound_grade": None, "bound_proof": None}
    return f", value {value} stated"


def judged(family: str, seed: int, count: int, folder: Path) -> tuple[int, list[str]]:
    """Return how many forgeries both refuse, and those of which the two say unlike things."""
    refused, unlike = 0, []
    for (done, text), _ in zip(forgeries(family, seed), range(count), strict=False):
        ours, theirs, reason, why = opinions(text, folder)
        refused += ours == theirs == "refuse"
        if ours != theirs and ours != "not covered":
            unlike.append(f"{family}: {done}\n   second checker: {ours} ({reason})\n   synth check: {theirs} ({why})")
    return refused, unlike


@pytest.mark.parametrize("file", FILES)
def test_it_imports_the_standard_library_alone(file: Path) -> None:
    """And its own other files."""
    nodes = list(ast.walk(ast.parse(file.read_text())))
    names = {name.name for node in nodes if isinstance(node, ast.Import) for name in node.names}
    names |= {str(node.module) for node in nodes if isinstance(node, ast.ImportFrom)}
    assert names <= sys.stdlib_module_names | {other.stem for other in FILES[1:]}


@pytest.mark.parametrize(("file", "most"), zip(FILES, (1500, 400, 250, 150, 100, 100, 100, 100), strict=True))
def test_a_person_can_read_it_in_an_hour(file: Path, most: int) -> None:
    """At most so many lines of at most 120 columns, a statement a line, and nothing that is run from a text."""
    lines, tree = file.read_text().splitlines(), ast.parse(file.read_text())
    assert len(lines) <= most
    assert max(map(len, lines)) <= 120
    starts = Counter(node.lineno for node in ast.walk(tree) if isinstance(node, ast.stmt))
    assert set(starts.values()) == {1}
    names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    assert not names & {"exec", "eval", "compile", "__import__"}


def run(*paths: Path) -> tuple[int, str]:
    """Run the checker as a reader does; return its exit code and what it printed."""
    done = subprocess.run([sys.executable, str(VERIFY), *map(str, paths)], capture_output=True, text=True)
    assert done.stderr == ""
    return done.returncode, done.stdout


@pytest.mark.long
def test_some_published_records_are_accepted() -> None:
    code, said = run(PUBLISHED / "fabric" / "exact", PUBLISHED / "harvest-delays")
    assert code == 0
    assert "0 refuse" in said


SAMPLE = (("bine", 20), ("jobs", 15), ("fabric/exact", 12))


@pytest.mark.parametrize(("folder", "every"), SAMPLE)
def test_a_sample_of_the_published_records_is_accepted(folder: str, every: int) -> None:
    """Every so many of a folder's records; what is not covered is of a kind that the first lines name."""
    file, checker = PUBLISHED / folder / "records.jsonl", verify.Checker()
    lines = file.read_text().splitlines()[::every]
    told = [checker.check(f"{folder} {number}", str(file.parent), line) for number, line in enumerate(lines)]
    assert [message for _, verdict, message, _ in told if verdict == "refuse"] == []
    assert Counter(verdict for _, verdict, _, _ in told)["accept"] >= 2


def altered(record: dict[str, Any], change: Callable[[dict[str, Any]], None]) -> tuple[str, str]:
    """What the second checker says of a record whose instance is changed, its hash with it."""
    instance = json.loads(record.get("instance_text") or (ROOT / record["instance_file"]).read_text())
    change(instance)
    text = json.dumps(instance)
    record = record | {"instance_text": text, "instance_sha256": hashlib.sha256(text.encode()).hexdigest()}
    _, verdict, message, _ = verify.Checker().check("altered", str(PUBLISHED / "fabric"), json.dumps(record))
    return verdict, message


def test_a_rank_that_joins_later_than_stated_is_noticed() -> None:
    """A schedule in which a rank sends its part as soon as it is ready is refused where it is ready later."""
    with (PUBLISHED / "fabric" / "records.jsonl").open() as lines:
        record = next(
            found
            for found in map(json.loads, lines)
            if "-late7-10ms" in found["instance"] and found["kind"] != "bound" and found["solution"]
        )
    assert altered(record, lambda instance: None)[0] == "accept"

    def later(instance: dict[str, Any]) -> None:
        instance["ready"] = [[rank, 2 * moment] for rank, moment in instance["ready"]]

    verdict, message = altered(record, later)
    assert verdict == "refuse"
    assert "is not at node" in message or "incomplete" in message or "the replay says" in message


@pytest.mark.long
@pytest.mark.parametrize("what", ["lateany", "several"])
def test_scenarios_and_several_collectives_are_replayed_and_their_bounds_are_proven(what: str) -> None:
    """The next double is another value; a bound that is a thousandth larger is not proven."""
    mine = [record for record in records("fabric") if what in record["instance"] and record["solution"]]
    done = Counter[str]()
    for record in mine:
        forged = deepcopy(record)
        if record["kind"] == "bound":
            forged["bound"] *= 1.001
        else:
            forged["objective"]["value"] = math.nextafter(record["objective"]["value"], math.inf)
        verdicts = [verify.Checker().check("one", str(ROOT), json.dumps(x))[1] for x in (record, forged)]
        assert verdicts == ["accept", "refuse"], record["instance"]
        done[record["kind"]] += 1
    assert min(done["bound"], done["reference"]) >= 3


@pytest.mark.long
def test_a_forged_record_is_refused_and_the_exit_code_says_so(tmp_path: Path) -> None:
    record = deepcopy(next(record for record in records("fabric") if record["objective"]["value"] is not None))
    (tmp_path / "record.json").write_text(json.dumps(record))
    assert run(tmp_path)[0] == 0
    record["objective"]["value"] = math.nextafter(record["objective"]["value"], 0)
    (tmp_path / "record.json").write_text(json.dumps(record))
    code, said = run(tmp_path)
    assert code == 1
    assert "the replay says" in said


def test_a_bound_that_is_no_double_is_refused_by_both(tmp_path: Path) -> None:
    """Where a solver's word, or nobody's, is all that stands behind it."""
    record = next(
        record for record in records("mlfm") if record["bound"] is None and record["termination"] == "finished"
    )
    for bound, said in ((2**53, "refuse"), (2**53 + 1, "refuse"), (1, "accept")):
        ours, theirs, reason, why = opinions(json.dumps(record | {"bound": bound}), tmp_path)
        assert (ours, theirs) == (said, said), f"{bound}: {reason} | {why}"


def whole_arrays(part: Any, place: str = "") -> Iterator[tuple[str, list[Any]]]:
    """Yield (its key, the innermost list) of lists that hold a whole number 0 or 1, wherever they stand."""
    for key, inside in part.items() if isinstance(part, dict) else enumerate(part) if isinstance(part, list) else ():
        if isinstance(inside, list) and any(type(entry) is int and entry in (0, 1) for entry in inside):
            yield f"{place}.{key}" if isinstance(key, str) else place, inside
        yield from whole_arrays(inside, f"{place}.{key}" if isinstance(key, str) else place)


@pytest.mark.long
@pytest.mark.parametrize("family", FAMILIES)
def test_a_truth_value_is_no_number_in_any_array(family: str, tmp_path: Path) -> None:
    """JSON's true equals 1 to Python and to numpy: of each array that a family stores, one entry becomes its equal."""
    seen: set[str] = set()
    tried: Counter[str] = Counter()
    for original in records(family):
        for number, (name, _) in enumerate(whole_arrays(parts_of(original))):
            if name in seen or tried[name] == 5:  # what the second checker does not cover is tried in five records
                continue
            tried[name] += 1
            record = deepcopy(original)
            entries = list(whole_arrays(parts_of(record)))[number][1]
            at = next(i for i, entry in enumerate(entries) if type(entry) is int and entry in (0, 1))
            entries[at] = bool(entries[at])
            ours, theirs, reason, why = opinions(json.dumps(record), tmp_path)
            assert theirs == "refuse", f"{name}: {why}"
            assert ours != "accept" or name.startswith(NOT_LOOKED_AT), f"{name}: {reason}"
            seen |= {name} if ours == "refuse" else set()
    assert seen


@pytest.mark.slow
def test_all_published_records_are_accepted() -> None:
    """None is refused, and at least 95 % are covered."""
    verdicts: Counter[str] = Counter()
    for folder in sorted(path.parent for path in PUBLISHED.rglob("records.jsonl")):
        code, said = run(folder / "records.jsonl")
        assert code == 0, folder
        lines = said.split("\n")
        verdicts.update(verdict for line in lines for verdict in ("accept", "not covered") if line.startswith(verdict))
    assert verdicts.total() > 3000
    assert verdicts["not covered"] <= 0.05 * verdicts.total()


@pytest.mark.long(after=1)
@pytest.mark.parametrize("family", FAMILIES)
def test_forgeries_are_judged_alike(family: str, tmp_path: Path) -> None:
    refused, unlike = judged(family, 0, 12, tmp_path)
    assert refused
    assert unlike == []


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("seed", range(1, 6))
def test_many_forgeries_are_judged_alike(family: str, seed: int, tmp_path: Path) -> None:
    """In all 30 of them more than 10,000 forgeries are refused by both."""
    refused, unlike = judged(family, seed, 600, tmp_path)
    assert unlike == []
    assert refused >= 335
