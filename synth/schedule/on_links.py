"""A collective on links that the solution of another family builds: its instance, its methods, its check.

The family behind it is the one that can state a collective on any links (capability ``on_links``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from synth.errors import SizeLimitError, UnsupportedError
from synth.family import Family, families, function_of
from synth.instance import Instance
from synth.method import Outcome, Verdict, load
from synth.network.links_table import LinksTable
from synth.options import RunOptions


@dataclass(frozen=True)
class OnLinks:
    """A collective on links as an ``instance`` of its ``family``."""

    family: Family
    instance: Instance

    @classmethod
    def of(cls, table: LinksTable, name: str, collective: str, size: int) -> OnLinks:
        """The collective over all nodes of the table. Raises :class:`synth.errors.InputError`."""
        family = next(family for family in families() if family.can("on_links"))
        return cls(family, family.capability("on_links")(table, name, name, collective, size))

    def replayed(self, packed: Mapping[str, Any]) -> Verdict:
        """What the family's check finds of a stored schedule; the value is its time in seconds."""
        try:
            schedule = load(self.family.unpack)(self.instance, packed)
            left = set(packed) - set(load(self.family.pack)(schedule))
        except (ValueError, KeyError, TypeError) as error:
            return Verdict(None, {}, [f"the stored schedule cannot be read: {error}"])
        if left:
            return Verdict(None, {}, [f"the stored schedule holds what nobody reads: {', '.join(sorted(left))}"])
        found: Verdict = load(self.family.check)(self.instance, schedule)
        return found

    def knows(self, method: str) -> bool:
        """Whether the family has the method by default for such an instance."""
        return not self.family.can("suited") or bool(self.family.capability("suited")(self.instance, method))

    def solved(self, method: str, options: RunOptions) -> Outcome:
        """What the method finds within the options' time, its own parameters at their defaults."""
        from dataclasses import replace

        chosen = self.family.method(method)
        own = replace(options, method={one.name: one.default for one in chosen.parameters}, solver=None)
        found = Outcome("time_limit")
        try:
            with own.in_time():
                found = function_of(self.family, chosen)(self.instance, own)
        except (UnsupportedError, SizeLimitError) as error:
            return Outcome("unsupported", message=str(error))
        found.take_over(own.held)
        return found

    def packed(self, schedule: Any) -> Mapping[str, Any]:
        """The schedule as its family stores it."""
        found: Mapping[str, Any] = load(self.family.pack)(schedule)
        return found
