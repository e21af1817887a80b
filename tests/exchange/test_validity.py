"""The check of algorithms against an interpreter that walks through all interleavings, on thousands of small ones."""

from __future__ import annotations

import io
import random
import re

import numpy as np
import pytest
from exchange.interpreter import Broken, TooMany, outcomes, wrong
from exchange.random_copies import with_copies
from exchange.small_algorithms import SMALL, edited, swapped, without

from synth.errors import InputError
from synth.exchange.msccl_xml import read_stream
from synth.exchange.validity import check
from synth.schedule.collective import NAMES


def faults(text: str) -> str:
    """What the check says, empty for a valid algorithm."""
    try:
        verdict = check(read_stream(io.BytesIO(text.encode()), "small.xml").algorithm)
    except InputError as error:
        return str(error)
    return "" if verdict.ok else str(InputError(verdict.faults))


@pytest.mark.parametrize("name", SMALL)
def test_small_valid_algorithms(name: str) -> None:
    assert wrong(SMALL[name]) == set()
    assert faults(SMALL[name]) == ""


def mutant(text: str, chance: random.Random) -> str:
    """The file with one or two small changes of any kind."""
    for _ in range(chance.choice((1, 1, 2))):
        places = []
        gpu = tb = -1
        for line in text.splitlines():
            if "<gpu" in line:
                gpu, tb, step = gpu + 1, -1, -1
            elif "<tb" in line:
                tb, step = tb + 1, -1
            elif "<step" in line:
                step += 1
                places.append((gpu, tb, step))
        at = chance.choice(places)
        blocks = max(b for g, b, _ in places if g == at[0]) + 1
        try:
            match chance.randrange(9):
                case 0:
                    text = without(text, *at)
                case 1:
                    text = swapped(text, *at)
                case 2:
                    text = edited(text, *at, srcoff=chance.randrange(4), dstoff=chance.randrange(4))
                case 3:
                    text = edited(
                        text, *at, type=chance.choice(["s", "r", "cpy", "re", "rrc", "rcs", "rrs", "rrcs", "nop"])
                    )
                case 4:
                    text = edited(text, *at, srcbuf=chance.choice("ios"), dstbuf=chance.choice("ios"))
                case 5:
                    dep = chance.randrange(-1, blocks)
                    text = edited(text, *at, depid=dep, deps=-1 if dep < 0 else chance.randrange(3))
                case 6:
                    peer = {chance.choice(("send", "recv")): chance.randrange(-1, 3)}
                    text = edited(text, *at[:2], None, **peer)
                case 7:
                    text = edited(text, *at, depid=-1, deps=-1)
                case 8:
                    text = edited(text, *at, hasdep=chance.randrange(2), cnt=chance.choice((1, 1, 2)))
        except (AssertionError, IndexError):
            continue
    return text


@pytest.mark.long(after=3)
@pytest.mark.parametrize("count", [50, pytest.param(150, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", SMALL)
def test_mutants_are_judged_as_by_walking_through_all_interleavings(name: str, count: int) -> None:
    """A verdict is right, and says `race`, `deadlock`, `nothing has written` where that is what is wrong. The first 50
    mutants of each algorithm are of all nine kinds of change; slow are the other 100."""
    chance = random.Random(name)
    for _ in range(count):
        text = mutant(SMALL[name], chance)
        said, known = faults(text), wrong(text)
        assert bool(said) == bool(known), (said, known, text)
        if any(word.startswith("broken") for word in known) or "this is the last" in said:
            continue
        if "count" in known or ("which" in said and "receives as" in said):
            continue
        assert ("race: " in said) == ("race" in known and "deadlock" not in known), (said, known, text)
        assert ("deadlock" in said) == ("deadlock" in known), (said, known, text)
        if known == {"unwritten"}:
            assert "which nothing has written by then" in said, (said, text)
        if known == {"result"}:
            assert "must end with" in said, (said, text)


@pytest.mark.long(after=2)
@pytest.mark.parametrize("name", sorted(SMALL.keys() - {"allgather-two-blocks"}))  # which has too many states
def test_copies_are_judged_as_by_running_all_interleavings_on_real_cells(name: str) -> None:
    """A copy of a cell onto itself, whatever two names it has in place, is harmless beside others that read the cell,
    and a race beside one that writes it."""
    chance = random.Random(f"copies {name}")
    harmless = 0
    for _ in range(20):
        text, itself = with_copies(SMALL[name], chance)
        said = faults(text)
        try:
            known = outcomes(text, most=2500)
        except (Broken, TooMany):
            continue
        if not said:
            assert known <= {"same"}, (known, text)
            harmless += itself
        else:
            assert known, (said, text)
        if not known & {"same", "deadlock"}:
            assert ("race: " in said) == ("race" in known), (said, known, text)
    assert harmless, "no copy of a cell onto itself was found harmless"


def test_no_collective_is_left_out() -> None:
    assert {name.split("-")[0] for name in SMALL if "-in" in name} == set(NAMES)


def test_facts_and_logical_time() -> None:
    """The ring of three: a step waits for the step before it and for its message. Steps 1 and 2 of a gpu come after the
    steps 0 and 1 of its neighbour, so that the longest chain is three."""
    verdict = check(read_stream(io.BytesIO(SMALL["allgather-ring"].encode()), "ring").algorithm)
    assert verdict.facts == {
        "ranks": 3, "thread_blocks": 3, "channels": 1, "steps": 9, "messages": 6, "longest_chain": 3,
        "sends_to_hold": 2,
    }  # fmt: skip
    assert np.array_equal(verdict.level, [1, 2, 3] * 3)


def test_how_many_sends_a_connection_must_hold() -> None:
    """Both gpus send twice before they receive: a connection that holds one send for the other end stops them both."""
    text = SMALL["allgather-in"]
    text = re.sub(r"<gpu (.|\n)*</gpu>", lambda found: found[0].replace('cnt="2"', 'cnt="1"'), text)
    both = text.replace("    </tb>", "")
    lines = []
    for line in both.splitlines():
        again = re.search(r'<step s="(\d)".*(src|dst)off="(\d)"', line)
        if again is None:
            lines.append(line if "</gpu>" not in line else "    </tb>\n  </gpu>")
            continue
        s = int(again[1])
        more = re.sub(r'off="(\d)"', lambda found: f'off="{int(found[1]) + 1}"', line)
        lines += [line.replace(f's="{s}"', f's="{2 * s}"', 1), more.replace(f's="{s}"', f's="{2 * s + 1}"', 1)]
    verdict = check(read_stream(io.BytesIO("\n".join(lines).encode()), "two").algorithm)
    assert verdict.ok
    assert verdict.facts["sends_to_hold"] == 2
