"""The comparator of printed numbers: what is printed like ours, and what a file of printed numbers may say."""

from __future__ import annotations

from decimal import ROUND_DOWN, ROUND_HALF_EVEN, ROUND_HALF_UP, Decimal
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from synth.errors import InputError
from synth.reproduction import printed
from synth.reproduction.printed import Comparison, Printed

ENTRY = '[steps]\nwhere = "Table 1"\nof = "ring"\nvalue = 128\n'


def entry(value: Any, **stated: Any) -> Printed:
    return Printed(where="Table 1", of="ring", value=Decimal(value) if isinstance(value, float) else value, **stated)


def number(text: str, **stated: Any) -> Printed:
    return entry(Decimal(text) if "." in text else int(text), **stated)


@given(st.decimals(-1000, 1000, places=6), st.integers(0, 4), st.sampled_from([ROUND_HALF_EVEN, ROUND_HALF_UP]))
def test_ours_agrees_with_its_own_rounding(ours: Decimal, digits: int, way: str) -> None:
    """Whatever is printed of a number with these digits, halves rounded up or to even digits, agrees with it."""
    text = str(ours.quantize(Decimal(1).scaleb(-digits), way))
    assert number(text).agrees(float(ours))
    assert not number(text, cut=True).is_cut(float(ours))


@given(st.decimals(-1000, 1000, places=6), st.integers(0, 4))
def test_a_paper_may_cut_digits_off(ours: Decimal, digits: int) -> None:
    """Where its file says so, and then towards 0."""
    stated = str(ours.quantize(Decimal(1).scaleb(-digits), ROUND_DOWN))
    beyond = abs(ours - Decimal(stated)) > Decimal(1).scaleb(-digits) / 2
    assert number(stated, cut=True).agrees(float(ours))
    assert number(stated, cut=True).is_cut(float(ours)) == beyond
    assert number(stated).agrees(float(ours)) == (not beyond)


@given(st.decimals(-1000, 1000, places=2), st.floats(-2000, 2000), st.booleans())
def test_what_is_a_unit_of_the_last_digit_away_differs(stated: Decimal, ours: float, cut: bool) -> None:
    if abs(Fraction(ours) - Fraction(stated)) > Fraction(1, 100) * (1 + Fraction(1, 10**6)):
        assert not number(str(stated), cut=cut).agrees(ours)


@pytest.mark.parametrize(
    ("text", "ours", "agrees"),
    [
        ("0.28", 0.285, True), ("0.29", 0.285, True), ("0.28", 0.2850001, False), ("0.28", 0.2749, False),
        ("0.29", 0.284, False), ("-31.27", -31.27413, True), ("-31.27", -31.279, False), ("-31.27", -31.2649, False),
        ("86.32", 86.328125, False), ("86.33", 86.328125, True), ("2", 1.83, True), ("2.0", 1.83, False),
        ("87.50", 87.5, True), ("87.50", 87.506, False), ("16", 15.999999999999986, True), ("0", 0.4, True),
        ("0", -0.5, True), ("0", -0.6, False), ("128", 2048.0, False), ("87.5", 87.549, True),
    ],
)  # fmt: skip
def test_printed_digits(text: str, ours: float, agrees: bool) -> None:
    """Two digits printed, two compared."""
    assert number(text).agrees(ours) == agrees


@pytest.mark.parametrize(
    ("text", "ours", "agrees"),
    [
        ("86.32", 86.328125, True), ("86.33", 86.328125, True), ("86.34", 86.328125, False), ("86.32", 86.33, False),
        ("86.32", 86.3149, False), ("-31.27", -31.279, True), ("-31.28", -31.271, False), ("0", -0.6, True),
    ],
)  # fmt: skip
def test_digits_that_are_cut_off(text: str, ours: float, agrees: bool) -> None:
    assert number(text, cut=True).agrees(ours) == agrees


@pytest.mark.parametrize(
    ("value", "ours", "agrees"),
    [
        ("341/256", 1.33203125, True), ("341/256", 1.3320, False), ("2400/7", 342.8571428571429, True),
        ("73 to 142", 73, True), ("73 to 142", 142.4, True), ("73 to 142", 72.4, False), ("73 to 142", 142.6, False),
        ("<= 33", 31.65, True), ("<= 33", 33.3, True), ("<= 33", 33.6, False), ("<= 33", -187.5, True),
        (">= 1.35", 1.4, True), (">= 1.35", 1.345, True), (">= 1.35", 1.34, False),
        ("up to 3.0", 3.03, True), ("up to 3.0", 2.9, False), ("about 7.3", 7.4, True), ("about 7.3", 7.2, True),
        ("about 7.3", 7.41, False), ("up to about 2", 2.43, True), ("up to about 2", 0.9, False),
    ],
)  # fmt: skip
def test_ratios_ranges_limits_and_about(value: str, ours: float, agrees: bool) -> None:
    assert entry(value).comparable
    assert entry(value).agrees(ours) == agrees


@pytest.mark.parametrize("value", ["128", "<= 33", "73 to 142", "about 2"])
@pytest.mark.parametrize("ours", [float("nan"), float("inf"), -float("inf")])
def test_what_is_no_number_agrees_with_nothing(value: str, ours: float) -> None:
    one = entry(value, cut=True) if " " in value else number(value, cut=True)
    assert not one.agrees(ours)
    assert not one.is_cut(ours)


def test_about_is_a_unit_of_the_last_digit() -> None:
    assert [number("7.3", about=True).agrees(ours) for ours in (7.2, 7.4, 7.19)] == [True, True, False]


@pytest.mark.parametrize("words", ["–", "consistently faster", "falls with more ports", "2 or 3", "1/0"])
def test_no_number_agrees_with_words(words: str) -> None:
    one = entry(words)
    assert not one.comparable
    assert not one.agrees(2.0)
    assert one.paper == words
    with pytest.raises(ValueError, match=r"Table 1, ring: .* is not one number"):
        _ = one.exact


@pytest.mark.parametrize(
    ("one", "text", "paper"),
    [
        (number("2", unit="x"), "2x", 2), (number("87.50", unit="%"), "87.50 %", 87.5), (number("8005"), "8005", 8005),
        (entry("2400/7", unit="GB/s"), "2400/7 GB/s", 2400 / 7), (entry("73 to 142", unit="s"), "73 to 142 s",
                                                                 "73 to 142"),
    ],
)  # fmt: skip
def test_as_printed_with_its_unit(one: Printed, text: str, paper: float | str) -> None:
    assert one.text == text
    assert one.paper == paper
    assert type(one.paper) is type(paper)


@pytest.mark.parametrize(
    ("ours", "stated", "beside", "verdict"),
    [
        (128.0, {}, "", "agrees"), (2048.0, {}, "", "differs"), (None, {}, "", "not compared"),
        (2048.0, {"erratum": "Table 1"}, "", "erratum"), (128.0, {"erratum": "Table 1"}, "", "agrees"),
        (19.0, {}, "steps of ours", "not compared"),
    ],
)  # fmt: skip
def test_verdicts(ours: float | None, stated: dict[str, str], beside: str, verdict: str) -> None:
    assert Comparison(entry(128, **stated), ours, beside=beside).verdict == verdict


@pytest.mark.parametrize(
    ("value", "ours", "difference"),
    [("200", 150.0, -0.25), ("-20.0", -25.0, -0.25), ("0.0", 3.0, None), ("5", None, None)],
)
def test_difference_is_relative_to_the_printed_number(value: str, ours: float | None, difference: float | None) -> None:
    assert Comparison(number(value), ours).difference == difference
    assert Comparison(entry("2 to 3"), ours).difference is None


def test_remarks() -> None:
    """The page's before the entry's; cut digits are said where nothing else is; errata by their number on the page."""
    cut = number("86.32", cut=True)
    assert Comparison(cut, 86.328).words(()) == printed.CUT
    assert Comparison(cut, 86.321).words(()) == Comparison(cut, 86.328, beside="another").words(()) == ""
    own = number("86.32", cut=True, remark="own")
    assert [Comparison(own, 86.328, said).words(()) for said in ("", "the page's")] == ["own", "the page's"]
    misprint = Comparison(entry(128, erratum="Table 1", remark="theirs, {erratum}"), 2048.0)
    assert misprint.words(["Lemma 1", "Table 1"]) == "theirs, erratum 2"
    with pytest.raises(RuntimeError, match="Table 1, ring: the page has no erratum 'Table 1'"):
        misprint.words(["Lemma 1"])
    with pytest.raises(RuntimeError, match="Table 1, ring: ours agrees with what erratum 'Table 1' corrects"):
        Comparison(misprint.printed, 128.0).words(["Table 1"])


def test_a_file_hands_down_and_keeps_digits(tmp_path):
    path = tmp_path / "printed.toml"
    path.write_text(
        '[table-2]\nunit = "%"\n[table-2.wrht]\nof = "below WRHT"\n512 = { where = "N = 512", value = 87.50 }\n'
        '1024 = { where = "N = 1024", value = -180, row = false }\n'
    )
    found = printed.read(path)
    assert list(found) == ["table-2.wrht.512", "table-2.wrht.1024"]
    assert found["table-2.wrht.512"].text == "87.50 %"
    assert list(found.within("table-2.wrht")) == ["512", "1024"]
    assert not found["table-2.wrht.1024"].row
    assert printed.read(tmp_path / "page.py") == found
    with pytest.raises(KeyError, match="nothing in table-3"):
        found.within("table-3")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (ENTRY.replace('where = "Table 1"\n', ""), r"printed\.toml: steps\.where: is missing"),
        (ENTRY.replace('"ring"', '""'), r"printed\.toml: steps\.of = '': "),
        (ENTRY.replace("128", "true"), r"printed\.toml: steps\.value = True: must be a number or a text"),
        (
            ENTRY.replace("128", "nan"),
            r"steps\.value = .*: must be at most 1e\+15, with at most 15 digits",
        ),
        (ENTRY.replace("128", "1e999999"), r"printed\.toml: steps\.value = .*: must be at most 1e\+15"),
        (ENTRY.replace("128", "1e-999999"), r"printed\.toml: steps\.value = .*: must be at most 1e\+15"),
        (ENTRY.replace("128", "[1, 2]"), r"printed\.toml: steps\.value = \[1, 2\]: must be a number or a text"),
        (ENTRY.replace("128", '"142 to 73"'), r"steps\.value = '142 to 73': must go from the least to the most"),
        (ENTRY + 'tolerance = "5 %"\n', r"printed\.toml: steps\.tolerance: unknown key"),
        (ENTRY + "unit = 3\n", r"printed\.toml: steps\.unit = 3: "),
        (ENTRY + 'about = "yes"\n', r"printed\.toml: steps\.about = 'yes': "),
        (ENTRY + ENTRY.replace("steps", "again"), r"printed\.toml: again: says where and of what the same as steps"),
        ("[steps\n", r"printed\.toml: not valid TOML"),
        ("", r"printed\.toml: states no number"),
        ("value = 3\n", r"printed\.toml: states no number"),
    ],
)
def test_a_malformed_file_is_one_message_with_file_and_key(tmp_path, text, words):
    path = tmp_path / "printed.toml"
    path.write_text(text)
    with pytest.raises(InputError, match=words) as found:
        printed.read(path)
    assert len(str(found.value).splitlines()) == 1


def test_every_fault_of_a_file_at_once(tmp_path):
    path = tmp_path / "printed.toml"
    path.write_text("[one]\nvalue = 1\n[two]\nvalue = true\n")
    with pytest.raises(InputError) as found:
        printed.read(path)
    assert [fault.path for fault in found.value.faults] == ["one.where", "one.of", "two.where", "two.of", "two.value"]


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(InputError, match=r"printed\.toml: cannot be read"):
        printed.read(tmp_path / "page.py")
