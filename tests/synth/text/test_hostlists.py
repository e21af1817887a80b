"""Lists of hosts: expanded as Slurm does, refused in words, never longer than allowed."""

from __future__ import annotations

import pytest

from synth.text.hostlists import expanded


@pytest.mark.parametrize(
    ("text", "hosts"),
    [
        ("n1", ["n1"]),
        ("n[1-3]", ["n1", "n2", "n3"]),
        ("n[08-10,3],login", ["n08", "n09", "n10", "n3", "login"]),
        ("r[1-2]n[01-02]-ib", ["r1n01-ib", "r1n02-ib", "r2n01-ib", "r2n02-ib"]),
        ("a,b[5]", ["a", "b5"]),
    ],
)
def test_a_list_is_expanded(text: str, hosts: list[str]) -> None:
    assert expanded(text, 10) == hosts


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "must be names of hosts"),
        ("n[1-3", "must be names of hosts"),
        ("n]1[", "must be names of hosts"),
        ("a,,b", "must be names of hosts"),
        ("a b", "must be names of hosts"),
        ("n[3-1]", "must have ranges such as"),
        ("n[x]", "must have ranges such as"),
        ("n[]", "must have ranges such as"),
        ("n[1-11]", "are more than 10 hosts"),
        ("n[1-9],m[1-9]", "are more than 10 hosts"),
        ("[1-999999999][1-999999999][1-999999999][1-999999999]", "are more than 10 hosts"),
    ],
)
def test_what_is_none_is_refused(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        expanded(text, 10)
