"""The one table that all files are written from: which algorithm runs for which sizes, among how many ranks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

from synth.errors import Fault, InputError

MOST_BYTES = 2**62
MOST_RANKS = 2**30


@dataclass(frozen=True)
class Rule:
    """From ``min_bytes`` to ``max_bytes`` (both included, None: without end) ``collective`` among ``ranks`` ranks on
    ``nodes`` nodes (None: any number) runs ``algorithm``.

    Sizes as nccl-tests count them: an allgather's is what every rank ends with, a reduce-scatter's what every rank
    begins with, an alltoall's what every rank sends. ``parameters``: what else the library is told, whole numbers or
    words.
    """

    collective: str
    ranks: int | None
    nodes: int | None
    min_bytes: int
    max_bytes: int | None
    algorithm: str
    parameters: Mapping[str, int | str] = field(default_factory=dict)

    @property
    def place(self) -> tuple[str, int, int]:
        """Collective, ranks, nodes: rules of one place must not overlap; 0 for any number."""
        return self.collective, self.ranks or 0, self.nodes or 0

    def covers(self, size: int) -> bool:
        """Whether a size is within the rule's."""
        return self.min_bytes <= size and (self.max_bytes is None or size <= self.max_bytes)


@dataclass(frozen=True)
class Vocabulary:
    """What a library knows: by collective its algorithms with the numbers or words that its file has for them, and the
    parameters that a rule may have, each with its range or its words."""

    library: str
    algorithms: Mapping[str, Mapping[str, int | str]]
    parameters: Mapping[str, range | tuple[str, ...]]
    nodes: bool

    def checked(self, rules: Iterable[Rule]) -> list[Rule]:
        """The rules in order of place and size. Raises :class:`InputError` with every fault: what the library does not
        know, numbers out of range, sizes that overlap."""
        given = list(rules)
        faults = [fault for number, rule in enumerate(given, 1) for fault in self._wrong(f"rule {number}", rule)]
        if faults:
            raise InputError(faults)
        ordered = sorted(given, key=lambda rule: (rule.place, rule.min_bytes))
        overlaps = [
            Fault(f"{after.collective}, {after.min_bytes} bytes", "another rule covers the same sizes and ranks")
            for before, after in pairwise(ordered)
            if before.place == after.place and before.covers(after.min_bytes)
        ]
        if overlaps:
            raise InputError(overlaps)
        return ordered

    def _wrong(self, where: str, rule: Rule) -> Iterator[Fault]:
        known = self.algorithms.get(rule.collective)
        if known is None:
            words = f"{self.library} takes no rules for it; only {', '.join(self.algorithms)}"
            yield Fault(f"{where}, collective", words, rule.collective, True)
        elif rule.algorithm not in known:
            words = f"{self.library} has {', '.join(known)} for {rule.collective}"
            yield Fault(f"{where}, algorithm", words, rule.algorithm, True)
        yield from _out_of_range(where, rule)
        if rule.nodes is not None and not self.nodes:
            yield Fault(f"{where}, nodes", f"{self.library} chooses by ranks alone", rule.nodes, True)
        for name, value in rule.parameters.items():
            allowed = self.parameters.get(name)
            if allowed is None:
                yield Fault(f"{where}, {name}", f"no parameter of {self.library}'s rules", value, True)
            elif isinstance(value, bool) or value not in allowed:
                shown = ", ".join(allowed) if isinstance(allowed, tuple) else f"{allowed.start} to {allowed.stop - 1}"
                yield Fault(f"{where}, {name}", f"must be {shown}", value, True)


def _out_of_range(where: str, rule: Rule) -> Iterator[Fault]:
    if not 0 <= rule.min_bytes <= MOST_BYTES:
        yield Fault(f"{where}, min_bytes", f"must be 0 to {MOST_BYTES}", rule.min_bytes, True)
    if rule.max_bytes is not None and not rule.min_bytes <= rule.max_bytes <= MOST_BYTES:
        yield Fault(f"{where}, max_bytes", "must not be below min_bytes, nor huge", rule.max_bytes, True)
    for name, number in (("ranks", rule.ranks), ("nodes", rule.nodes)):
        if number is not None and not 1 <= number <= MOST_RANKS:
            yield Fault(f"{where}, {name}", f"must be 1 to {MOST_RANKS}", number, True)


def chosen(rules: Sequence[Rule], collective: str, size: int, ranks: int, nodes: int = 1) -> Rule | None:
    """The rule for a call, the one that names ranks and nodes before one that takes any; None where none is."""
    fitting = [
        rule
        for rule in rules
        if rule.collective == collective
        and rule.covers(size)
        and rule.ranks in (None, ranks)
        and rule.nodes in (None, nodes)
    ]
    return max(fitting, key=lambda rule: (rule.ranks is not None, rule.nodes is not None), default=None)


def merged(rules: Sequence[Rule]) -> list[Rule]:
    """Neighbours that say the same as one rule; the rules ordered as :meth:`Vocabulary.checked` returns them."""
    found: list[Rule] = []
    for rule in rules:
        last = found[-1] if found else None
        alike = (
            last is not None
            and last.place == rule.place
            and (last.algorithm, dict(last.parameters)) == (rule.algorithm, dict(rule.parameters))
            and last.max_bytes is not None
            and last.max_bytes + 1 == rule.min_bytes
        )
        if alike:
            assert last is not None
            both = (last.min_bytes, rule.max_bytes)
            found[-1] = Rule(rule.collective, rule.ranks, rule.nodes, *both, rule.algorithm, rule.parameters)
        else:
            found.append(rule)
    return found


def filled(own: Sequence[Rule], others: Sequence[Rule], ranks: int) -> list[Rule]:
    """The rules of one collective for so many ranks: their own, and what those for any number say of the sizes between.

    ``own`` and ``others`` by size. For formats of which a call takes one list of sizes alone."""
    found = list(own)
    for rule in others:
        first: int | None = rule.min_bytes
        for one in own:
            if first is None or (rule.max_bytes is not None and first > rule.max_bytes):
                break
            if one.max_bytes is not None and one.max_bytes < first:
                continue
            last = one.min_bytes - 1
            if rule.max_bytes is not None:
                last = min(last, rule.max_bytes)
            if first <= last:
                found.append(replace(rule, ranks=ranks, min_bytes=first, max_bytes=last))
            first = None if one.max_bytes is None else one.max_bytes + 1
        if first is not None and (rule.max_bytes is None or first <= rule.max_bytes):
            found.append(replace(rule, ranks=ranks, min_bytes=first))
    return sorted(found, key=lambda rule: rule.min_bytes)


def demand_filled(rules: Sequence[Rule]) -> Sequence[Rule]:
    """The same rules. Raises :class:`InputError` where some ranks leave sizes to the library that have a rule for any
    number of ranks: the table has no word for that."""
    for collective in {rule.collective for rule in rules}:
        mine = [rule for rule in rules if rule.collective == collective]
        others = [rule for rule in mine if rule.ranks is None]
        for ranks in sorted({rule.ranks for rule in mine if rule.ranks is not None}):
            own = [rule for rule in mine if rule.ranks == ranks]
            gap = next((rule for rule in filled(own, others, ranks) if rule not in own), None)
            if gap is not None:
                words = f"from {gap.min_bytes} bytes on there is no rule, but there is one for any number of ranks"
                raise InputError([Fault(f"{collective} of {ranks} ranks", words)])
    return rules
