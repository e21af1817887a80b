"""Rates and latencies by class of link: what a person says instead of a machine's numbers, or where it has none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from synth.text.quantities import shown

What = Literal["bandwidth", "latency"]
CALLED = {
    "nic": ("nic", "net"),
    "nvlink": ("nvlink", "nv"),
    "xgmi": ("xgmi",),
    "pcie": ("pcie", "pci", "psb", "pix", "pxb", "phb", "node", "sys", "pcilink"),
}  # a word for links, and what files call them
UNITS = {"bandwidth": "bytes/s", "latency": "s"}


@dataclass(frozen=True)
class Stated:
    """One link's number: its class, bytes/s or seconds (None: unknown), and how many links are bonded in it."""

    kind: str
    value: float | None
    lanes: int = 1


def classes(rows: Sequence[Stated]) -> list[str]:
    """The classes, in the order of their first link."""
    return list(dict.fromkeys(row.kind for row in rows))


def meant(word: str, kinds: Sequence[str]) -> list[str]:
    """The classes that a word means: the class of that name, or what files call such links. Raises ``ValueError``."""
    known = {word.casefold(), *CALLED.get(word.casefold(), ())}
    found = [kind for kind in kinds if kind.casefold() in known]
    if not found:
        raise ValueError(f"no such class of links; this machine has {', '.join(kinds)}")
    return found


def concerning(asked: Mapping[str, float], kinds: Sequence[str]) -> dict[str, float]:
    """Those of the numbers whose class is one of these, and the one for every gap."""
    words = {
        word
        for kind in kinds
        for word in (kind.casefold(), *(w for w, own in CALLED.items() if kind.casefold() in own))
    }
    return {word: number for word, number in asked.items() if word == "" or word.casefold() in words}


def changed(
    rows: Sequence[Stated], asked: Mapping[str, float], what: What, called: Mapping[str, str]
) -> tuple[list[float | None], list[str]]:
    """The numbers of all links with those asked for by class, and what that did, in words.

    Where some links of a class have no number, only these get one: the gaps. Else the class's numbers are replaced. A
    number is that of the slowest link of the class (the least rate, the greatest latency); those of the others stay in
    proportion, for gaps that of the links bonded. Under ``""`` stands what fills every gap. ``called``: how each word
    of ``asked`` was typed. Raises ``ValueError`` for a class that is not there.
    """
    found, notes = [row.value for row in rows], list[str]()
    kinds = classes(rows)
    for word, number in sorted(asked.items(), key=lambda one: one[0] == ""):
        chosen = kinds if word == "" else meant(word, kinds)
        mine = [i for i, row in enumerate(rows) if row.kind in chosen]
        gaps = [i for i in mine if found[i] is None]
        typed = f"{called[word]}={shown(number, UNITS[what])}"
        if gaps:
            least = min(rows[i].lanes for i in gaps)
            for i in gaps:
                found[i] = number * (rows[i].lanes / least) if what == "bandwidth" else number
            stay = len(mine) - len(gaps)
            notes.append(f"{typed} fills {len(gaps)} links" + (f"; {stay} stated numbers stay" if stay else ""))
        elif word == "":
            raise ValueError(f"every {what} is known: name the class, one of {', '.join(kinds)}")
        else:
            notes.append(f"{typed} takes the place of {_replace(found, mine, number, what)}")
    return found, notes


def _replace(found: list[float | None], mine: Sequence[int], number: float, what: What) -> str:
    """Put in the number, in proportion; what stood there, in words."""
    old = [found[i] or 0.0 for i in mine]
    slowest = min(old) if what == "bandwidth" else max(old)
    for i, value in zip(mine, old, strict=True):
        found[i] = number if value == slowest else number * (value / slowest)
    there = ", ".join(shown(value, UNITS[what]) for value in sorted(set(old)))
    return f"{there} on {len(mine)} links"
