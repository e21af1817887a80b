"""Open MPI's file ``coll_tuned_dynamic_rules_filename``: numbers apart from comments (``#`` to the line's end).

The number of collectives; for each its number (``COLLTYPE`` in coll_base_functions.h) and the number of communicator
sizes; for each that size and the number of message sizes; for each of these the size, the algorithm's number, fan in
and out, and the segment size in bytes. A rule holds from its size on, up to the next; among ranks likewise. Algorithm 0
leaves the choice to Open MPI. The first message size must be 0. Communicators smaller than the first one named take its
rules all the same, so a rule of size 0 that leaves the choice to Open MPI stands first.

Sizes are those of nccl-tests: the decision functions count an allgather's, an alltoall's, a gather's and a scatter's
buffer of all ranks. Algorithms are those that 4.1 to 6 number alike; 6 needs a fan of 2 for Bruck's (its radix).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from synth.errors import Fault, InputError
from synth.exchange.selection.rules import MOST_BYTES, MOST_RANKS, Rule, Vocabulary, demand_filled, filled, merged

COLLECTIVES = {
    "allgather": 0, "allreduce": 2, "alltoall": 3, "broadcast": 7, "gather": 9, "reduce": 11, "reduce_scatter": 12,
    "reduce_scatter_block": 13, "scatter": 15,
}  # fmt: skip
COUNT = 22  # of MPI's collectives
OPEN = 0  # the algorithm that leaves the choice to Open MPI
MOST_RULES = 100_000
MOST_FANOUT, MOST_SEGMENT = 1023, 2**31 - 1


def _numbered(*names: str) -> dict[str, int | str]:
    return {name: number for number, name in enumerate(names, 1)}


VOCABULARY = Vocabulary(
    "Open MPI",
    {  # names and numbers: ompi_info --param coll tuned --level 9, 4.1.4
        "allgather": _numbered("linear", "bruck", "recursive_doubling", "ring", "neighbor", "two_proc"),
        "allreduce": _numbered("basic_linear", "nonoverlapping", "recursive_doubling", "ring", "segmented_ring",
                               "rabenseifner"),
        "alltoall": _numbered("linear", "pairwise", "modified_bruck", "linear_sync", "two_proc"),
        "broadcast": _numbered("basic_linear", "chain", "pipeline", "split_binary_tree", "binary_tree", "binomial",
                               "knomial", "scatter_allgather", "scatter_allgather_ring"),
        "gather": _numbered("basic_linear", "binomial", "linear_sync"),
        "reduce": _numbered("linear", "chain", "pipeline", "binary", "binomial", "in-order_binary", "rabenseifner"),
        "reduce_scatter": _numbered("non-overlapping", "recursive_halving", "ring", "butterfly"),
        "reduce_scatter_block": _numbered("basic_linear", "recursive_doubling", "recursive_halving", "butterfly"),
        "scatter": _numbered("basic_linear", "binomial", "linear_nb"),
    },
    {"fanout": range(MOST_FANOUT + 1), "segment": range(MOST_SEGMENT + 1)},
    nodes=False,
)  # fmt: skip


def write(rules: Iterable[Rule]) -> str:
    """The file's text. Rules of so many ranks hold for these communicators alone, rules of any number for all others.
    Raises :class:`InputError` for rules that Open MPI cannot follow."""
    ordered = VOCABULARY.checked(rules)
    places = list(dict.fromkeys(rule.collective for rule in ordered))
    lines = [f"{len(places)} # collectives"]
    for collective in places:
        mine = [rule for rule in ordered if rule.collective == collective]
        sizes = _communicators(mine)
        lines += [f"{COLLECTIVES[collective]} # {collective}", f"{len(sizes)} # communicator sizes"]
        for ranks, inside in sizes:
            steps = list(_steps(inside))
            lines += [f"{ranks} # ranks and more", f"{len(steps)} # message sizes", *steps]
    return "\n".join(lines) + "\n"


def _communicators(rules: list[Rule]) -> list[tuple[int, list[Rule]]]:
    """From how many ranks on which rules hold, ascending, the first from 0 on."""
    others = [rule for rule in rules if rule.ranks is None]
    named = sorted({rule.ranks for rule in rules if rule.ranks is not None})
    found = {0: others}
    for ranks in named:
        found.setdefault(ranks + 1, others)
        found[ranks] = filled([rule for rule in rules if rule.ranks == ranks], others, ranks)
    return sorted(found.items())


def _steps(rules: list[Rule]) -> Iterator[str]:
    """The lines of message sizes, from 0 on; what no rule covers is left to Open MPI."""
    at = 0
    for rule in rules:
        if rule.min_bytes > at or (at == 0 and rule.min_bytes > 0):
            yield f"{at} {OPEN} 0 0"
        number = VOCABULARY.algorithms[rule.collective][rule.algorithm]
        told = rule.parameters.get("fanout", 0), rule.parameters.get("segment", 0)
        yield f"{rule.min_bytes} {number} {told[0]} {told[1]} # {rule.algorithm}"
        if rule.max_bytes is None:
            return
        at = rule.max_bytes + 1
    yield f"{at} {OPEN} 0 0"


class _Numbers:
    """The file's numbers in order, each with its line."""

    def __init__(self, text: str) -> None:
        rows = [(number, line.partition("#")[0].split()) for number, line in enumerate(text.split("\n"), 1)]
        self._words = [(number, word) for number, row in rows for word in row]
        self._at = 0

    def next(self, what: str, most: int) -> int:
        """The next number, 0 to ``most``. Raises :class:`InputError` naming the line."""
        if self._at == len(self._words):
            last = self._words[-1][0] if self._words else 1
            raise InputError([Fault(f"line {last}", f"the file ends before {what}")])
        line, word = self._words[self._at]
        self._at += 1
        if not re.fullmatch("0|[1-9][0-9]{0,18}", word) or int(word) > most:  # %li: a leading 0 would mean octal
            raise InputError([Fault(f"line {line}", f"{what} must be a whole number, 0 to {most}", word, True)])
        return int(word)

    def fail(self, words: str) -> InputError:
        """An error at the last number."""
        return InputError([Fault(f"line {self._words[self._at - 1][0]}", words)])

    def end(self) -> None:
        """Raises :class:`InputError` where numbers are left."""
        if self._at < len(self._words):
            raise InputError([Fault(f"line {self._words[self._at][0]}", "Open MPI reads no further than here")])


def read(text: str) -> list[Rule]:
    """The rules of a file; a choice that is left to Open MPI is none. Raises :class:`InputError` naming the line where
    Open MPI would drop the file, or would follow it otherwise than it reads."""
    numbers = _Numbers(text)
    found: list[Rule] = []
    names = {number: name for name, number in COLLECTIVES.items()}
    seen: set[int] = set()
    for _ in range(numbers.next("the number of collectives", COUNT)):
        which = numbers.next("a collective's number", COUNT - 1)
        if which not in names or which in seen:
            raise numbers.fail("must be a collective of " + ", ".join(f"{n} {name}" for n, name in names.items()))
        seen.add(which)
        found += _read_collective(numbers, names[which])
    numbers.end()
    return merged(demand_filled(VOCABULARY.checked(found)))


def _read_collective(numbers: _Numbers, collective: str) -> Iterator[Rule]:
    """The rules of one collective, as those of exactly so many ranks and of all others."""
    blocks: dict[int, list[Rule]] = {}
    for _ in range(numbers.next("the number of communicator sizes", MOST_RULES)):
        ranks = numbers.next("a communicator's size", MOST_RANKS)
        if blocks and ranks <= max(blocks):
            raise numbers.fail("communicator sizes must ascend: Open MPI looks no further than the first larger one")
        blocks[ranks] = _read_sizes(numbers, collective)
    starts = sorted(blocks)
    if starts and starts[0] > 1:
        raise numbers.fail(f"communicators of less than {starts[0]} ranks would take its rules: let 0 be the first")
    others = blocks.get(0, [])
    for place, ranks in enumerate(starts):
        rules = blocks[ranks]
        alone = place + 1 < len(starts) and starts[place + 1] == ranks + 1
        if rules == others or (ranks == 0 and not rules):
            yield from others if ranks == 0 else ()
        elif alone or ranks == MOST_RANKS:
            yield from (Rule(one.collective, ranks, None, one.min_bytes, one.max_bytes, one.algorithm, one.parameters)
                        for one in rules)  # fmt: skip
        else:
            raise numbers.fail(f"rules from {ranks} ranks on hold for ranges of ranks, which rules here do not know")


def _read_sizes(numbers: _Numbers, collective: str) -> list[Rule]:
    known = {number: name for name, number in VOCABULARY.algorithms[collective].items()}
    rows: list[tuple[int, int, dict[str, int | str]]] = []
    for _ in range(numbers.next("the number of message sizes", MOST_RULES)):
        size = numbers.next("a message size", MOST_BYTES)
        if size != 0 and not rows:
            raise numbers.fail("the first message size must be 0")
        if rows and size <= rows[-1][0]:
            raise numbers.fail("message sizes must ascend")
        algorithm = numbers.next("an algorithm's number", len(known))
        told: dict[str, int | str] = {"fanout": numbers.next("fan in and out", MOST_FANOUT)}
        told["segment"] = numbers.next("a segment's size", MOST_SEGMENT)
        rows.append((size, algorithm, told))
    ends = [size - 1 for size, _, _ in rows[1:]] + [None]
    return [
        Rule(collective, None, None, size, end, str(known[algorithm]), told)
        for (size, algorithm, told), end in zip(rows, ends, strict=False)
        if algorithm != OPEN
    ]
