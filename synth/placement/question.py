"""What a placement of experts is, and what loads the ranks have by it.

Every rank has as many slots, each with a copy of an expert. An expert's load is shared evenly by its copies, as in
EPLB (github.com/deepseek-ai/EPLB). All experts of a group, as many in each, are in one box, and as many groups in each.
"""

from __future__ import annotations

from fractions import Fraction
from typing import NamedTuple

import numpy as np

from synth.arrays import IntArray
from synth.errors import Fault, InputError

MOST_EXPERTS, MOST_COPIES = 2**16, 2**18


class Question(NamedTuple):
    """``load[e]``: tokens that expert e gets, shape (experts,); ``ranks``: of all ``boxes``, box after box; ``slots``:
    of a rank; ``groups``: of experts in their order, one where an expert may have its copies in any box."""

    load: IntArray
    boxes: int
    ranks: int
    slots: int
    groups: int

    @property
    def homes(self) -> int:
        """Parts of the ranks that groups are bound to: the boxes, or one for all ranks."""
        return self.boxes if self.groups > 1 else 1


def asked(load: IntArray, boxes: int, ranks: int, copies: int, groups: int) -> Question:
    """The question of that many copies in all. Raises :class:`InputError` listing all that does not fit."""
    experts = len(load)
    alike = groups > 0 and experts % groups == 0
    tests = {
        "experts": (experts, 1 <= experts <= MOST_EXPERTS, f"must be 1 to {MOST_EXPERTS:,}"),
        "groups": (groups, alike, f"must divide the {experts} experts"),
        "groups ": (groups, groups == 1 or groups % boxes == 0, f"must be 1, or a multiple of the {boxes} boxes"),
        "copies": (copies, copies % ranks == 0, f"must be a multiple of the {ranks} ranks"),
        "copies ": (copies, experts <= copies <= MOST_COPIES, f"must be {experts} (the experts) to {MOST_COPIES:,}"),
    }
    faults = [Fault(key.strip(), words, value, True) for key, (value, fits, words) in tests.items() if not fits]
    if faults:
        raise InputError(faults)
    return Question(load, boxes, ranks, copies // ranks, groups)


def loads(load: IntArray, placement: IntArray) -> list[Fraction]:
    """What every rank gets of these loads by a placement, the expert in every slot, shape (ranks, slots)."""
    copies = np.bincount(placement.ravel(), minlength=len(load))
    share = [Fraction(int(tokens), int(count)) if count else Fraction(0)
             for tokens, count in zip(load, copies, strict=True)]  # fmt: skip
    return [sum((share[expert] for expert in row), Fraction(0)) for row in placement.tolist()]


def faults(question: Question, placement: IntArray) -> list[str]:
    """What a placement breaks of the question's rules."""
    experts = len(question.load)
    if placement.shape != (question.ranks, question.slots) or placement.min() < 0 or placement.max() >= experts:
        return ["has other slots or experts than the question"]
    found = [f"expert {expert} is nowhere" for expert in range(experts) if not (placement == expert).any()]
    homes = np.repeat(np.arange(question.homes), placement.size // question.homes)
    group = placement.ravel() // (experts // question.groups)
    where = {(int(one), int(home)) for one, home in zip(group, homes, strict=True)}
    if len(where) > question.groups:
        found.append("a group is in several boxes")
    if any(sum(home == h for _, home in where) != question.groups // question.homes for h in range(question.homes)):
        found.append("boxes have unequal numbers of groups")
    return found
