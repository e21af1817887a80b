"""UCC's ``UCC_TL_UCP_TUNE``: tokens joined by ``#``, of each what it holds for joined by ``:``.

``collective:first-last:[ranks]:@algorithm``, sizes in bytes (K, M, G, T are binary, ``inf`` is without end), ends
included. A size is what UCC measures (ucc_coll_args_msgsize): the destination's bytes, which for a reduce-scatter is
what one rank ends with, so its sizes need the number of ranks. Any other collective's is that of nccl-tests. No two
tokens here hold for the same call: those for any number of ranks name all but the numbers that have their own.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from synth.errors import Fault, InputError
from synth.exchange.selection.rules import MOST_BYTES, MOST_RANKS, Rule, Vocabulary, demand_filled, filled, merged

VARIABLE = "UCC_TL_UCP_TUNE"
NAMES = {
    "allreduce": "allreduce", "allgather": "allgather", "reduce_scatter": "reduce_scatter", "alltoall": "alltoall",
    "broadcast": "bcast", "reduce": "reduce", "gather": "gather",
}  # fmt: skip
_UNITS = {"": 1, "k": 2**10, "m": 2**20, "g": 2**30, "t": 2**40}
_SIZE = re.compile(r"([0-9]{1,19})([kmgt]?)b?", re.IGNORECASE)
_RANKS = re.compile(r"\[[0-9]{1,10}(-([0-9]{1,10}|inf))?(,[0-9]{1,10}(-([0-9]{1,10}|inf))?){0,1000}\]")
MEMORIES = ("cpu", "host", "cuda", "rocm")
LONGEST = 2**17  # characters: an environment variable's limit


def _words(*names: str) -> dict[str, int | str]:
    return {name: name for name in names}


VOCABULARY = Vocabulary(
    "UCC",
    {
        "allreduce": _words("knomial", "sra_knomial", "dbt", "sliding_window", "ring"),
        "allgather": _words("knomial", "ring", "neighbor", "bruck", "sparbit", "linear", "batched"),
        "reduce_scatter": _words("ring", "knomial"),
        "alltoall": _words("pairwise", "bruck", "onesided"),
        "broadcast": _words("knomial", "sag_knomial", "dbt"),
        "reduce": _words("knomial", "dbt", "srg"),
        "gather": _words("knomial"),
    },
    {},
    nodes=False,
)


def write(rules: Iterable[Rule]) -> str:
    """A line ``UCC_TL_UCP_TUNE=…``. Raises :class:`InputError` for rules that UCC cannot follow."""
    ordered = VOCABULARY.checked(rules)
    named = {rule.collective: sorted({one.ranks for one in ordered if one.collective == rule.collective and one.ranks})
             for rule in ordered}  # fmt: skip
    tokens = [_token(rule, named[collective]) for collective in named for rule in _all(ordered, collective, named)]
    line = f"{VARIABLE}={'#'.join(tokens)}\n"
    if len(line) > LONGEST:
        raise InputError(f"{len(tokens)} rules are more than an environment variable takes")
    return line


def _all(rules: Sequence[Rule], collective: str, named: Mapping[str, Sequence[int]]) -> list[Rule]:
    """The rules of a collective: for any number of ranks, then for every number that is named, gaps filled."""
    mine = [rule for rule in rules if rule.collective == collective]
    found = others = [rule for rule in mine if rule.ranks is None]
    for ranks in named[collective]:
        found = found + filled([rule for rule in mine if rule.ranks == ranks], others, ranks)
    return found


def _token(rule: Rule, named: Sequence[int]) -> str:
    """One rule; ``named``: the numbers of ranks that have rules of their own."""
    per_rank = 1
    if rule.collective == "reduce_scatter":
        whole = rule.min_bytes == 0 and rule.max_bytes is None
        if rule.ranks is None and not whole:
            words = "UCC counts what one rank ends with: sizes need the number of ranks"
            raise InputError([Fault("reduce_scatter", words)])
        per_rank = rule.ranks or 1
    first = -(-rule.min_bytes // per_rank)
    last = "inf" if rule.max_bytes is None else str(rule.max_bytes // per_rank)
    if rule.max_bytes is not None and first > rule.max_bytes // per_rank:
        words = f"no multiple of {per_rank} ranks is within"
        raise InputError([Fault(f"reduce_scatter, {rule.min_bytes} bytes", words)])
    ranges = [f"{rule.ranks}-{rule.ranks}"] if rule.ranks else _all_but(named)
    parts = [NAMES[rule.collective], f"{first}-{last}", *([f"[{','.join(ranges)}]"] if ranges else [])]
    return ":".join([*parts, f"@{rule.algorithm}"])


def _all_but(named: Sequence[int]) -> list[str]:
    """Ranges of ranks without these; none where all numbers are meant."""
    starts = [1, *(ranks + 1 for ranks in named)]
    ends = [*(str(ranks - 1) for ranks in named), "inf"]
    found = [f"{first}-{last}" for first, last in zip(starts, ends, strict=True) if last == "inf" or first <= int(last)]
    return found if named else []


class _Token(NamedTuple):
    """A token's rule; ``others``: the ranges of ranks, where they are not one number or all."""

    rule: Rule
    others: tuple[str, ...]


def read(text: str) -> list[Rule]:
    """The rules of a line with or without the variable's name. Raises :class:`InputError` naming the token that UCC
    would refuse, or that says more than rules here know."""
    value = text.strip().removeprefix(f"{VARIABLE}=")
    if not value or "\n" in value or len(value) > LONGEST:
        raise InputError("must be one line of tokens with # between")
    found: list[_Token] = []
    for number, token in enumerate(value.split("#"), 1):
        try:
            found.append(_read_token(token))
        except ValueError as error:
            raise InputError([Fault(f"token {number}", str(error), token, True)]) from None
    for number, one in enumerate(found, 1):
        named = {other.rule.ranks for other in found if other.rule.collective == one.rule.collective}
        if one.rule.ranks is None and one.others != tuple(_all_but(sorted(filter(None, named)))):
            words = "must hold for one number of ranks, or for all that no other token of the collective names"
            raise InputError([Fault(f"token {number}", words)])
    return merged(demand_filled(VOCABULARY.checked(one.rule for one in found)))


def _read_token(token: str) -> _Token:
    said = _parts(token)
    collective = next(one for one, name in NAMES.items() if name == said["collective"])
    ranks, others = _ranks(said.get("ranks"))
    first, last = _sizes(said.get("sizes", "0-inf"))
    if collective == "reduce_scatter":
        if ranks is None and (first, last) != (0, None):
            raise ValueError("a reduce_scatter's sizes need [ranks]: UCC counts what one rank ends with")
        each = ranks or 1  # what is no multiple of the ranks belongs to the smaller size
        first, last = first * each, None if last is None else last * each + each - 1
    algorithm = said["algorithm"][1:]
    if algorithm.isdigit():
        words = list(VOCABULARY.algorithms[collective])
        if len(algorithm) > 3 or int(algorithm) >= len(words):
            raise ValueError(f"must be @0 to @{len(words) - 1}")
        algorithm = words[int(algorithm)]
    return _Token(Rule(collective, ranks, None, first, last, algorithm), others)


def _parts(token: str) -> dict[str, str]:
    """What a token says, by what it is. Raises ``ValueError``."""
    said: dict[str, str] = {}
    for part in token.split(":"):
        low = part.lower()
        if low in NAMES.values():
            kind = "collective"
        elif low in MEMORIES:
            kind = "memory"
        else:
            kind = {"[": "ranks", "@": "algorithm"}.get(part[:1], "sizes" if "-" in part else "")
        if not kind or kind in said:
            raise ValueError("must hold collective, first-last, [ranks], memory and @algorithm, each at most once")
        said[kind] = low
    if "collective" not in said or "algorithm" not in said:
        raise ValueError("must name a collective and @algorithm")
    return said


def _ranks(text: str | None) -> tuple[int | None, tuple[str, ...]]:
    """The one number of ranks, or None and the ranges. Raises ``ValueError``."""
    if text is None:
        return None, ()
    if not _RANKS.fullmatch(text):
        raise ValueError("ranks must be [n], [n-n] or ranges with commas between such as [1-7,9-inf]")
    ranges = text[1:-1].split(",")
    first, _, last = ranges[0].partition("-")
    if len(ranges) == 1 and last in ("", first):
        if not 1 <= int(first) <= MOST_RANKS:
            raise ValueError(f"ranks must be 1 to {MOST_RANKS}")
        return int(first), ()
    return None, tuple(ranges)


def _sizes(text: str) -> tuple[int, int | None]:
    """First and last size, None without end. Raises ``ValueError``."""
    wanted = "sizes must be first-last such as 0-4k or 1M-inf, the last not below the first"
    first_text, _, last_text = text.partition("-")
    first = _size(first_text, wanted)
    last = None if last_text == "inf" else _size(last_text, wanted)
    if last is not None and last < first:
        raise ValueError(wanted)
    return first, last


def _size(text: str, wanted: str) -> int:
    found = _SIZE.fullmatch(text)
    if found is None:
        raise ValueError(wanted)
    number, unit = found.groups()
    size = int(number) * _UNITS[unit.lower()]
    if size > MOST_BYTES:
        raise ValueError(wanted)
    return size
