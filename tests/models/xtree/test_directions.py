"""Ring directions: sixteen choices, each another network, and reversal turns the rings the other way."""

from __future__ import annotations

from collections import Counter

from synth_models.xtree.instance import XTreeInstance
from synth_models.xtree.paper.directions import ALIKE, EDGES, LARGE, choices


def links(instance: XTreeInstance, backwards: bool = False) -> Counter[tuple[int, int]]:
    """How many links lead from one node to another, or, backwards, the other way."""
    pairs = list(zip(instance.topology.src.tolist(), instance.topology.dst.tolist(), strict=True))
    return Counter((v, u) if backwards else (u, v) for u, v in pairs)


def test_sixteen_choices_with_names_of_their_own() -> None:
    made = list(choices(4))
    assert len({instance.name for instance in made}) == len({instance.sha256 for instance in made}) == 2 ** len(EDGES)
    assert len({frozenset(links(instance).items()) for instance in made}) == 16
    assert {instance.name[-4:] for instance in choices(LARGE)} >= set(ALIKE)


def test_the_letters_are_those_of_the_edges() -> None:
    """The ring of the top edge of a 4x4 mesh, nodes 0 to 3: even positions upwards are 0-2-3-1-0, odd ones 1-3-2-0-1;
    2 to 3 and 3 to 2 are links of the mesh too."""
    by_letters = {instance.name[-4:]: links(instance) for instance in choices(4)}
    assert by_letters["eooo"][0, 2] == by_letters["eooo"][3, 1] == 1
    assert by_letters["oooo"][0, 2] == by_letters["oooo"][3, 1] == 0
    assert by_letters["oooo"][1, 3] == by_letters["oooo"][2, 0] == 1
    assert by_letters["oeoo"][12, 14] == 1
    assert by_letters["ooeo"][0, 8] == 1
    assert by_letters["oooe"][3, 11] == 1


def test_backwards_every_ring_turns_the_other_way() -> None:
    """A reduce-scatter is an allgather on the network backwards: what `oooo` is for one, `eeee` is for the other."""
    turned = str.maketrans("eo", "oe")
    by_letters = {instance.name[-4:]: links(instance) for instance in choices(6)}
    for instance in choices(6):
        assert links(instance, backwards=True) == by_letters[instance.name[-4:].translate(turned)]
