"""TOML of whatever origin: one message each, and soon."""

from __future__ import annotations

import pytest

from synth.errors import InputError
from synth.text.toml import parse_toml

ODD = {
    "a = [": "not valid TOML",
    "a = " + "9" * 5000: "a number that is too long",
    "a = " + "[" * 100_000: "nested too deeply",
    "a = " + "{a=" * 5000: "nested too deeply",
    "x = 1\n" + ".".join("a" * 100_000) + " = 1": "line 2: has a key of more than 100 parts",
    "[" + ".".join("a" * 100_000) + "]": "line 1: has a key of more than 100 parts",
    "a = [1, { b = 0x" + "f" * 5000 + " }]": "a: holds a whole number of more than 1024 bits",
    "#" * (1 << 23): "has 8,388,608 characters: at most 4,194,304 are supported",
}


@pytest.mark.parametrize("text", ODD, ids=range(len(ODD)))
def test_odd_files_have_one_short_message(text: str) -> None:
    with pytest.raises(InputError) as raised:
        parse_toml(text, "f.toml")
    told = str(raised.value)
    assert ODD[text] in told
    assert told.startswith("f.toml")
    assert len(told) < 200


def test_long_lines_of_numbers_are_read() -> None:
    assert parse_toml(f"a = [{', '.join(['1.5'] * 1000)}]", "f.toml") == {"a": [1.5] * 1000}
