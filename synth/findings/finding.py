"""A finding: what records of ours say of a published result, as data. Its numbers come from the records when the page
is made (:mod:`synth.findings.evidence`); nothing here is one, but for what others print.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from synth.records.optimality import exceeds, gap
from synth.reproduction.printed import below, same

if TYPE_CHECKING:
    from synth.findings.evidence import Held
    from synth.reproduction.collect import Reproduction, Source

Kind = Literal["improves", "settles", "qualifies", "corrects"]


@dataclass(frozen=True)
class Case:
    """One instance of a finding: the published figure and where the records beside it are.

    ``folder`` is where the instance's records lie below ``results/published`` (``optree/ring-1024-w64``). ``printed``
    is in the objective's unit; where nothing is printed, ``published`` names the record of the published algorithm, in
    that folder or by its address below ``results/published``. ``ours`` names the record that carries the value, or
    alone the bound; without it the best replayed schedule does. With ``measure`` a fact of that record is meant instead
    of its value, and ``proof`` is the fact that proves it the least (or most): both as the check computes them, never
    as they are stored.
    """

    what: str
    folder: str
    printed: float | None = None
    published: str = ""
    ours: str = ""
    measure: str = ""
    proof: str = ""


@dataclass(frozen=True)
class Claim:
    """What must hold of every case, in words and as a test; ``on_bound`` says whether it rests on a bound."""

    words: str
    holds: Callable[[Held], bool]
    on_bound: bool = False


@dataclass(frozen=True)
class Finding:
    """One row of the page.

    ``kind``: a finding *qualifies* a claim that is true as it is stated and says less than it seems to; it *corrects*
    what is not. ``sources`` are where the authors state what ours stands beside
    (:data:`synth.reproduction.collect.SOURCES`); those of ``errata`` are said there.
    ``statement`` is a template: ``{cases}``, ``{ours}``, ``{printed}``, ``{least}`` and the others of
    :func:`synth.findings.evidence.numbers`, and what ``numbers`` adds. ``cases`` may be made from what is published
    (``results/published``). ``claims`` must hold of every case, and ``numbers`` raises ``ValueError`` in words where
    what concerns several cases does not. ``errata`` is a computation that states errata as on a page of ``synth
    reproduce`` (that of the name ``page``, or the family's own) and is run when the page of findings is made; ``word``
    is the solver on which alone it rests, if any.
    """

    name: str
    kind: Kind
    paper: str
    where: str
    statement: str = ""
    cases: Sequence[Case] | Callable[[Path], Sequence[Case]] = ()
    claims: Sequence[Claim] = ()
    numbers: Callable[[Sequence[Held]], Mapping[str, Any]] | None = None
    unit: str = ""  # of a measure
    errata: Callable[[Reproduction], None] | None = None
    page: str = ""
    word: str = ""
    sources: Sequence[Source] = ()
    quick: bool = True  # whether it is on the short page


def _compared(test: Callable[[float, float], bool]) -> Callable[[Held], bool]:
    return lambda held: held.value is not None and held.printed is not None and test(held.value, held.printed)


def within(share: float) -> Claim:
    """At most ``share`` above the bound, relative to the value."""

    def holds(held: Held) -> bool:
        left = gap(held.value, held.least)
        return left is not None and left <= share

    return Claim(f"at most {100 * share:g} % above the proven bound", holds, True)


LEAST = Claim("no schedule does better: the value meets its proven bound", within(0.0).holds, True)
BELOW = Claim("below the published figure", _compared(below))
NO_MORE = Claim("at most the published figure", _compared(lambda ours, printed: not below(printed, ours)))
ABOVE = Claim("above the published figure", _compared(lambda ours, printed: below(printed, ours)))
EQUAL = Claim("equal to the published figure", _compared(same))
BOUND_EQUAL = Claim(
    "the proven bound is the published figure",
    lambda held: held.least is not None and held.printed is not None and same(held.least, held.printed),
    True,
)
BEYOND = Claim(
    "the published figure is below the proven bound: nothing reaches it",
    lambda held: held.least is not None and held.printed is not None and exceeds(held.least, held.printed),
    True,
)
NO_MORE_OR_BEYOND = Claim(
    "at most the published figure, or that is below the proven bound",
    lambda held: NO_MORE.holds(held) or BEYOND.holds(held),
    True,
)
