"""Names of variables and rows in an exported model, which say what they mean and are made only where one is written.

``send[3, 12, 2]`` with the letters ``k a t`` is ``send_k3_a12_t2``. A part of an index that is a word stands for
itself: ``leaving["far", 3]`` with ``way u`` is ``leaving_far_u3``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

Names = Callable[[], tuple[Sequence[str], Sequence[str]]]
"""Makes the names of all variables, and of all rows, in the model's order; no rows' names: they have none."""


def named(name: str, letters: Sequence[str], index: Any) -> str:
    """The name of a variable or row. Raises ``ValueError`` where index and letters are not equally long."""
    parts = index if isinstance(index, tuple) else () if index is None else (index,)
    pairs = zip(letters, parts, strict=True)
    return "_".join([name, *(part if isinstance(part, str) else f"{letter}{part}" for letter, part in pairs)])


def all_named(name: str, letters: str, indices: Iterable[Any]) -> list[str]:
    """The names of a whole family, ``letters`` separated by spaces."""
    split = letters.split()
    return [named(name, split, index) for index in indices]


def give_letters(component: Any, letters: str) -> Any:
    """The Pyomo component, the parts of whose indices have these letters from now on."""
    component.index_letters = tuple(letters.split())
    return component


def give_names(component: Any, name: Callable[[int], str]) -> Any:
    """The Pyomo component, whose element ``i`` has the name ``name(i)`` from now on."""
    component.index_name = name
    return component


def give_indices(component: Any, letters: str, indices: Sequence[Any]) -> Any:
    """The Pyomo component, whose elements 0, 1, … have these indices from now on."""
    component.indices = indices
    split = letters.split()
    return give_names(component, lambda i: named(component.local_name, split, indices[i]))


def indices_of(component: Any) -> Sequence[Any]:
    """The indices of rows that were added with some, in order."""
    found: Sequence[Any] = component.indices
    return found


def name_of(element: Any) -> str | None:
    """The name of a Pyomo variable or constraint; None where nobody gave it letters. In one of several blocks the
    block's index stands behind: ``links_u0_v1_i2`` in a block with the letter ``i``."""
    component = element.parent_component()
    name = getattr(component, "index_name", None)
    letters = getattr(component, "index_letters", None)
    if name is not None:
        own = str(name(element.index()))
    elif not component.is_indexed():
        own = str(component.local_name)
    elif letters is not None:
        own = named(component.local_name, letters, element.index())
    else:
        return None
    block = element.parent_block()  # None: the constant that a writer of LP files adds
    blocks = None if block is None else getattr(block.parent_component(), "index_letters", None)
    return own if blocks is None else named(own, blocks, block.index())


def name_variables(model: Any, name: str, letters: str, variables: Mapping[Any, Any]) -> None:
    """Have the variables of a ``CpModel`` (by index) named by name and letters where it is written; costs nothing else.
    The mapping may still grow."""
    families: list[tuple[str, str, Mapping[Any, Any]]] = getattr(model, "families", [])
    families.append((name, letters, variables))
    model.families = families


def families_of(model: Any) -> list[tuple[str, str, Mapping[Any, Any]]]:
    """What :func:`name_variables` was told of a ``CpModel``."""
    return list(getattr(model, "families", []))
