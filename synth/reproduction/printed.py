"""What a paper prints, as data, and the one comparison of ours with it.

Beside the page of a paper lies ``printed.toml``, a table a number. What a table states holds for those inside it::

    [table-2]                               # keys of an entry: its tables' names, table-2.wrht.2048
    unit = "%"
    [table-2.wrht]
    of = "OpTree below WRHT"                # of what instance or parameters it is
    512 = { where = "Table 2, N = 512", value = 87.64 }
    2048 = { where = "Table 2, N = 2048", value = 39.76, erratum = "Lemma 3", remark = "their depth is 8, {erratum}" }

``where``: table, figure, equation or section. ``value``: the number with the digits that are printed, or a text: a
ratio (``"341/256"``, exact), a range (``"73 to 142"``), a limit (``"<= 33"``), ``"up to about 2"``, or words that no
number of ours can agree with (``"–"``: nothing is printed). ``unit``: as printed. ``about``: the text itself says
"around" or "nearly". ``cut``: the paper cuts digits off instead of rounding. ``erratum``: the erratum of the page (its
``where``) that says why the printed number is not what the paper's own data give. ``remark``: what the page says beside
it. ``row = false``: a table or a remark quotes it, and no number of ours stands beside it in the page's rows.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from synth.arrays import SAME
from synth.errors import Fault, InputError
from synth.instance import faults_of
from synth.text.input_file import InputFile
from synth.text.toml import parse_toml

FILE = "printed.toml"
MOST, DIGITS = 10**15, 15  # of a printed number
BEYOND = Fraction(10**300)
CUT = "rounding of the last digit"
Verdict = Literal["agrees", "differs", "erratum", "not compared"]

_NUMBER = r"-?\d{1,15}(?:\.\d{1,15})?"
_RATIO = re.compile(r"(-?\d{1,15})/([1-9]\d{0,14})")
_RANGE = re.compile(rf"({_NUMBER}) to ({_NUMBER})")
_LIMIT = re.compile(rf"(<=|>=) ({_NUMBER})")
_LOOSE = re.compile(rf"(?:up to )?(about )?({_NUMBER})")
_Text = Annotated[str, Field(min_length=1)]


class Printed(BaseModel):
    """One number of a paper; the fields are those of the file."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, arbitrary_types_allowed=True)

    where: _Text
    of: _Text
    value: int | Decimal | _Text
    unit: str = ""
    about: bool = False
    cut: bool = False
    erratum: str = ""
    remark: str = ""
    row: bool = True

    @field_validator("value", mode="before")
    @classmethod
    def _readable(cls, value: Any) -> Any:
        if isinstance(value, bool) or not isinstance(value, int | Decimal | str):
            raise ValueError("must be a number or a text")
        if not isinstance(value, str):
            number = Decimal(value)
            if not number.is_finite() or abs(number) > MOST or number != round(number, DIGITS):
                raise ValueError(f"must be at most {MOST:g}, with at most {DIGITS} digits behind the point")
        elif ends := _RANGE.fullmatch(value):
            least, most = map(Decimal, ends.groups())
            if least > most:
                raise ValueError("must go from the least to the most")
        return value

    @property
    def exact(self) -> Fraction:
        """The number itself. Raises ``ValueError`` for a range, a limit and words."""
        if not isinstance(self.value, str):
            return Fraction(self.value)
        if ratio := _RATIO.fullmatch(self.value):
            over, under = map(int, ratio.groups())
            return Fraction(over, under)
        raise ValueError(f"{self.where}, {self.of}: {self.value!r} is not one number")

    @property
    def number(self) -> float:
        """The float nearest to it. Raises as :attr:`exact`."""
        return float(self.exact)

    @property
    def paper(self) -> int | float | str:
        """What a page shows: a number, or the text of what is none."""
        if isinstance(self.value, str) and not _RATIO.fullmatch(self.value):
            return self.value
        return self.value if isinstance(self.value, int) else self.number

    @property
    def text(self) -> str:
        """As printed, with its unit: ``2x``, ``87.64 %``, ``73 to 142 s``."""
        return f"{self.value}{'' if self.unit in ('', 'x') else ' '}{self.unit}"

    @property
    def comparable(self) -> bool:
        """Whether a number of ours can agree with it."""
        return self._limits() is not None

    def agrees(self, ours: float) -> bool:
        """Whether ours is printed like this: rounded to the printed digits, either way where it is half of the last;
        within a range or a limit of such numbers; where the text says "about", a unit of the last digit away."""
        limits = self._limits()
        if limits is None or not math.isfinite(ours):
            return False
        value = _exactly(ours)
        noise = abs(value) * Fraction(SAME)
        return limits[0] - noise <= value <= limits[1] + noise or self.is_cut(ours)

    def is_cut(self, ours: float) -> bool:
        """Whether ours is printed like this only by a paper that cuts digits off, and this one does."""
        if not self.cut or isinstance(self.value, str) or not math.isfinite(ours):
            return False
        number, value = Decimal(self.value), _exactly(ours)
        (least, most), unit = _around(number, self.about), _last_digit(number)
        return not least <= value <= most and int(value / unit) * unit == self.exact

    def _limits(self) -> tuple[Fraction, Fraction] | None:
        """Between which numbers ours is rounded to this one; None for words."""
        if not isinstance(self.value, str):
            return _around(Decimal(self.value), self.about)
        if _RATIO.fullmatch(self.value):
            return self.exact, self.exact
        if ends := _RANGE.fullmatch(self.value):
            (least, _), (_, most) = (_around(Decimal(end), self.about) for end in ends.groups())
            return least, most
        if limit := _LIMIT.fullmatch(self.value):
            relation, number = limit.groups()
            least, most = _around(Decimal(number), self.about)
            return (-BEYOND, most) if relation == "<=" else (least, BEYOND)
        if loose := _LOOSE.fullmatch(self.value):
            about, number = loose.groups()
            return _around(Decimal(number), self.about or about is not None)
        return None


def same(left: float, right: float) -> bool:
    """Whether two numbers are the same but for rounding errors."""
    return abs(left - right) <= SAME * abs(right)


def below(left: float, right: float) -> bool:
    """Whether the left number is less than the right one by more than rounding errors."""
    return right - left > SAME * abs(right)


def _exactly(ours: float) -> Fraction:
    """The shortest decimal number that is this float, so that 0.285 is half of a last digit where a person sees it."""
    return Fraction(repr(float(ours)))


def _around(number: Decimal, about: bool) -> tuple[Fraction, Fraction]:
    """The numbers that are rounded to this one."""
    room = _last_digit(number) / (1 if about else 2)
    return Fraction(number) - room, Fraction(number) + room


def _last_digit(number: Decimal) -> Fraction:
    """One unit of it: 1/100 for 87.50."""
    exponent = number.as_tuple().exponent
    assert isinstance(exponent, int)
    return Fraction(10) ** exponent


class Numbers(Mapping[str, Printed]):
    """The entries of a ``printed.toml`` by key, in the order of the file."""

    def __init__(self, path: Path, entries: Mapping[str, Printed]) -> None:
        self.path, self._entries = path, dict(entries)

    def __getitem__(self, key: str) -> Printed:
        return self._entries[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def within(self, table: str) -> dict[str, Printed]:
        """The entries inside a table, by the rest of their keys. Raises ``KeyError`` where there are none."""
        found = {key.removeprefix(f"{table}."): one for key, one in self.items() if key.startswith(f"{table}.")}
        if not found:
            raise KeyError(f"{self.path} has nothing in {table}")
        return found


def read(path: str | Path) -> Numbers:
    """Read a ``printed.toml``, or the one beside a page's module (``read(__file__)``).

    Raises :class:`InputError` naming the file and the key of everything that is wrong.
    """
    path = Path(path)
    path = path if path.suffix == ".toml" else path.with_name(FILE)
    raw = parse_toml(InputFile(path).text, str(path), Decimal)
    entries: dict[str, Printed] = {}
    faults: list[Fault] = []
    for key, stated in _leaves(raw, {}, ""):
        try:
            entries[key] = Printed.model_validate(stated)
        except ValidationError as error:
            faults += [Fault(f"{key}.{fault.path}", fault.message, fault.value, fault.has_value)
                       for fault in faults_of(error, stated)]  # fmt: skip
    if not entries and not faults:
        faults.append(Fault("", "states no number"))
    places: dict[tuple[str, str], str] = {}
    for key, one in entries.items():
        first = places.setdefault((one.where, one.of), key)
        if first != key:
            faults.append(Fault(key, f"says where and of what the same as {first}"))
    if faults:
        raise InputError(faults, str(path))
    return Numbers(path, entries)


def _leaves(table: Mapping[str, Any], handed: Mapping[str, Any], key: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Tables without tables inside, each with what the tables around it state."""
    inside = {name: value for name, value in table.items() if isinstance(value, dict)}
    stated = {**handed, **{name: value for name, value in table.items() if name not in inside}}
    if not inside and key:
        yield key, stated
    for name, value in inside.items():
        yield from _leaves(value, stated, f"{key}.{name}" if key else name)


@dataclass(frozen=True)
class Comparison:
    """A row of a page: a printed number and ours.

    ``ours`` is None where nothing was computed; ``remark``, in place of the entry's own, then says why. ``beside`` says
    what ours is where that is not what is printed: the two stand side by side, and neither confirms the other.
    """

    printed: Printed
    ours: float | None
    remark: str = ""
    beside: str = ""

    @property
    def where(self) -> str:
        """Where the number is printed."""
        return self.printed.where

    @property
    def what(self) -> str:
        """What ours is."""
        return self.beside or self.printed.of

    @property
    def difference(self) -> float | None:
        """``(ours - paper) / |paper|``; None where either is no number or the paper prints 0."""
        paper = self.printed.paper
        if isinstance(paper, str) or self.ours is None or not paper:
            return None
        return (self.ours - paper) / abs(paper)

    @property
    def verdict(self) -> Verdict:
        """Whether ours agrees with what is printed; ``erratum`` where it differs and the paper's own data do too."""
        if self.ours is None or self.beside or not self.printed.comparable:
            return "not compared"
        if self.printed.agrees(self.ours):
            return "agrees"
        return "erratum" if self.printed.erratum else "differs"

    def words(self, errata: Sequence[str]) -> str:
        """The remark of the row; ``errata`` are those of the page, by where they are, in its order. Raises
        ``RuntimeError`` where the erratum that it names is not among them, or ours agrees with what that corrects."""
        erratum, remark = self.printed.erratum, self.remark or self.printed.remark
        if erratum and self.verdict == "agrees":
            raise RuntimeError(f"{self.where}, {self.what}: ours agrees with what erratum {erratum!r} corrects")
        if not remark and not self.beside and self.ours is not None and self.printed.is_cut(self.ours):
            return CUT
        if "{erratum}" not in remark:
            return remark
        if erratum not in errata:
            raise RuntimeError(f"{self.where}, {self.what}: the page has no erratum {erratum!r}")
        return remark.replace("{erratum}", f"erratum {errata.index(erratum) + 1}")
