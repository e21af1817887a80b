"""Values of a JSON file by kind and range, with the faults of the whole file at once."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any

from synth.errors import Fault

Place = str | tuple[object, ...]
"""Where a value stands: a text, or parts of one, which are joined once a fault is found."""


def spelt(place: object) -> str:
    """A place, or a part of one, as a text."""
    return "".join(map(spelt, place)) if isinstance(place, tuple) else str(place)


@dataclass
class Values:
    """Reads values and keeps all faults; what is wrong reads as something harmless, so that the rest is read."""

    faults: list[Fault] = field(default_factory=list)

    def fault(self, place: Place, message: str) -> None:
        self.faults.append(Fault(spelt(place), message))

    def value(self, stored: Any, key: str, kind: type, place: Place, default: Any = None) -> Any:
        """``stored[key]`` of a kind, or ``default`` (a fault where there is none)."""
        found = stored.get(key, default) if isinstance(stored, dict) else None
        if type(found) is kind:
            return found
        if isinstance(stored, dict) and key not in stored and default is None:
            self.fault(place, f"{key} is missing")
        else:
            words = {int: "a whole number", str: "a text", bool: "true or false", list: "a list", dict: "an object"}
            self.fault(place, f"{key} is not {words[kind]}")
        return kind()

    def whole(self, stored: Any, key: str, least: int, most: int, place: Place, default: int | None = None) -> int:
        if isinstance(stored, dict) and type(right := stored.get(key, default)) is int and least <= right <= most:
            return right
        before = len(self.faults)
        found = int(self.value(stored, key, int, place, default))
        if len(self.faults) == before and not least <= found <= most:
            self.fault(place, f"{key} = {found} is outside {least}..{most}")
        return min(max(found, least), most)

    def word(self, stored: Any, key: str, words: Collection[str], place: Place) -> str:
        if isinstance(stored, dict) and type(right := stored.get(key)) is str and right in words:
            return right
        before = len(self.faults)
        found = str(self.value(stored, key, str, place))
        if len(self.faults) == before and found not in words:
            self.fault(place, f"{key} = {found[:40]!r} is none of {', '.join(words)}")
        return found if found in words else next(iter(words))

    def numbers(self, stored: Any, key: str, most: int, place: Place, default: list[int] | None = None) -> list[int]:
        """Whole numbers 0..most."""
        good = []
        for entry in self.value(stored, key, list, place, default):
            if type(entry) is not int or not 0 <= entry <= most:
                self.fault(place, f"{key} holds {str(entry)[:40]}, not one of 0..{most}")
            else:
                good.append(entry)
        return good
