"""What is shown of a text out of a file: every character of it, in one line that no terminal and no page obeys."""

from __future__ import annotations

import unicodedata

from hypothesis import given
from hypothesis import strategies as st

from synth.text.visible import in_cell, visible

UNSEEN = ("Cc", "Cf", "Cs", "Zl", "Zp")  # controls, formats, surrogates, ends of lines and of paragraphs
ANY_TEXT = st.text(st.characters(), max_size=60)  # halves of characters too


def test_what_is_not_seen_is_written_as_python_writes_it() -> None:
    assert visible("a\nb\r\t\x1b[31m\0\x85") == r"a\nb\r\t\x1b[31m\x00\x85"
    assert visible("\u202egnorw\u2066\u200b\u2028\ufeff") == r"\u202egnorw\u2066\u200b\u2028\ufeff"
    assert visible("\ud800 \U000e0041") == r"\ud800 \U000e0041"
    assert visible("a\u00a0b\u3164") == r"a\xa0b\u3164"


def test_what_is_seen_stays() -> None:
    for text in ("", "12.1 us – 3 × 4 …", "größer", "机器", "é", r"C:\new\x1b", "[bold]", "🙂"):
        assert visible(text) == text


def test_no_character_of_the_unseen_categories_is_left() -> None:
    every = "".join(map(chr, range(0x110000)))
    assert not {unicodedata.category(letter) for letter in visible(every)} & set(UNSEEN)


@given(text=ANY_TEXT)
def test_it_is_one_line_that_can_be_written_and_asked_again(text: str) -> None:
    shown = visible(text)
    assert shown.splitlines() in ([], [shown])
    assert shown.encode().decode() == shown
    assert visible(shown) == shown
    kept = [letter for letter in text if visible(letter) == letter]
    assert "".join(visible(letter) for letter in text) == shown
    assert len(kept) == len(text) or shown != text


def test_a_cell_of_a_table_is_neither_link_nor_tag_nor_another_cell() -> None:
    assert in_cell("a|b\n<b>[x](y)`*") == r"a\|b\\n\<b>\[x\](y)\`\*"
    assert in_cell("ilp (highs), 2.5 us") == "ilp (highs), 2.5 us"
