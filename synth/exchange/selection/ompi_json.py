"""The JSON in which Open MPI 6 reads ``coll_tuned_dynamic_rules_filename``; as ``ompi_rules`` says it in numbers.

Written from open-mpi/ompi @8efebee7, coll_tuned_dynamic_file.c and _rules.c (whose names of collectives and field
``seg_size`` its schema lacks). ``collectives`` by name; of each the first entry that the communicator's size fits is
taken, of its ``rules`` the first that the message fits, ends included; else Open MPI chooses. An unknown algorithm
switches its rule off, an unknown collective the file. That version reads a file of numbers with every communicator size
one entry too late (``mpi_comsize_min`` is the end of the entry before), so that it should be given this one.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Annotated, Literal

from pydantic import Field

from synth.errors import Fault, InputError
from synth.exchange.selection.ompi_rules import COLLECTIVES, MOST_FANOUT, MOST_SEGMENT, VOCABULARY
from synth.exchange.selection.rules import MOST_BYTES, MOST_RANKS, Rule, demand_filled, filled, merged
from synth.instance import Part, parse

NAMES = {one: "bcast" if one == "broadcast" else one for one in COLLECTIVES}
VERSION = 3
Size = Annotated[int, Field(ge=0, le=MOST_BYTES)]
Ranks = Annotated[int, Field(ge=1, le=MOST_RANKS)]


class _Message(Part):
    """Sizes, and what runs for them."""

    alg: int | str
    msg_size_min: Size = 0
    msg_size_max: Size | Literal["inf"] = "inf"
    faninout: Annotated[int, Field(ge=0, le=MOST_FANOUT)] = 0
    seg_size: Annotated[int, Field(ge=0, le=MOST_SEGMENT)] = 0


class _Communicator(Part):
    """Numbers of ranks, and what holds for them."""

    rules: tuple[_Message, ...]
    comm_size_min: Ranks | None = None
    comm_size_max: Ranks | None = None


class _File(Part):
    rule_file_version: Literal[3]
    module: Literal["tuned"]
    collectives: dict[str, tuple[_Communicator, ...]]


def write(rules: Iterable[Rule]) -> str:
    """The file's text. Rules of so many ranks hold for these communicators alone, rules of any number for all others.
    Raises :class:`InputError` for rules that Open MPI cannot follow."""
    ordered = VOCABULARY.checked(rules)
    collectives: dict[str, list[dict[str, object]]] = {}
    for collective in dict.fromkeys(rule.collective for rule in ordered):
        mine = [rule for rule in ordered if rule.collective == collective]
        others = [rule for rule in mine if rule.ranks is None]
        entries: list[dict[str, object]] = []
        for ranks in sorted({rule.ranks for rule in mine if rule.ranks is not None}):
            own = filled([rule for rule in mine if rule.ranks == ranks], others, ranks)
            entries.append({"comm_size_min": ranks, "comm_size_max": ranks, "rules": [_message(rule) for rule in own]})
        if others:
            entries.append({"rules": [_message(rule) for rule in others]})
        collectives[NAMES[collective]] = entries
    return json.dumps({"rule_file_version": VERSION, "module": "tuned", "collectives": collectives}, indent=1) + "\n"


def _message(rule: Rule) -> dict[str, int | str]:
    """By the algorithm's number: one of them has another name from version to version."""
    return {
        "msg_size_min": rule.min_bytes,
        "msg_size_max": "inf" if rule.max_bytes is None else rule.max_bytes,
        "alg": VOCABULARY.algorithms[rule.collective][rule.algorithm],
        "faninout": rule.parameters.get("fanout", 0),
        "seg_size": rule.parameters.get("segment", 0),
    }


def read(text: str) -> list[Rule]:
    """The rules of a file; a choice that is left to Open MPI is none. Raises :class:`InputError` naming the place where
    Open MPI would drop the file or a rule, or that says more than rules here know."""
    try:
        raw = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(f"is no JSON: {error}") from None
    if isinstance(raw, dict):
        raw.pop("$schema", None)
    file = parse(raw, _File, "rules of Open MPI")
    names = {name: one for one, name in NAMES.items()}
    found: list[Rule] = []
    for name, entries in file.collectives.items():
        if name not in names:
            raise InputError([Fault(f"collectives.{name}", f"must be one of {', '.join(names)}")])
        seen: set[int | None] = set()
        for k, entry in enumerate(entries):
            place = f"collectives.{name}[{k}]"
            if entry.comm_size_min != entry.comm_size_max:
                raise InputError([Fault(place, "holds for a range of ranks, which rules here do not know")])
            if entry.comm_size_min in seen or None in seen:
                raise InputError([Fault(place, "an entry before it holds for the same ranks")])
            seen.add(entry.comm_size_min)
            found += _read_messages(entry, names[name], place)
    return merged(demand_filled(VOCABULARY.checked(found)))


def _read_messages(entry: _Communicator, collective: str, place: str) -> Iterator[Rule]:
    numbers = {number: word for word, number in VOCABULARY.algorithms[collective].items()}
    for k, one in enumerate(entry.rules):
        word = numbers.get(one.alg, one.alg)
        if one.alg not in (0, "ignore"):
            if word not in VOCABULARY.algorithms[collective]:
                known = ", ".join(VOCABULARY.algorithms[collective])
                raise InputError(
                    [Fault(f"{place}.rules[{k}].alg", f"must be a number or one of {known}", one.alg, True)]
                )
            last = None if isinstance(one.msg_size_max, str) else one.msg_size_max
            told: dict[str, int | str] = {"fanout": one.faninout, "segment": one.seg_size}
            yield Rule(collective, entry.comm_size_min, None, one.msg_size_min, last, str(word), told)
