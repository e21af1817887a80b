"""What only some families can do: by its name, and as families of others stated it before."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any, get_args

import pytest

from synth.family import Capability, Family, families, get_family


def stated(family: Family, **others: Any) -> Family:
    """The family made again from its fields but the capabilities, and from others."""
    own = {one.name: getattr(family, one.name) for one in fields(Family) if one.name != "capabilities"}
    return Family(**{**own, **others})


def test_a_capability_is_a_target_by_its_name() -> None:
    mlfm = get_family("mlfm")
    assert mlfm.can("demands")
    assert mlfm.capability("demands").__name__ == "demands"
    assert not mlfm.can("export")
    with pytest.raises(KeyError, match="export"):
        mlfm.capability("export")


def test_every_capability_is_one_of_some_family() -> None:
    assert {name for family in families() for name in family.capabilities} == {*get_args(Capability)}


def test_another_name_is_refused_with_those_that_are() -> None:
    with pytest.raises(ValueError, match=r"capabilities: 'exports': must be some of at_least, .*, export, "):
        replace(get_family("mlfm"), capabilities={"exports": "a.b:c"})


def test_former_fields_are_still_taken() -> None:
    """A family of another distribution may have been written when each capability was a field, None where it lacks."""
    former = {"transfers": "a:t", "breakable": "a:b", "planner": "a:p", "paper": "a:r", "size": None}
    now = {"export": "a:t", "failures": "a:b", "planning": "a:p", "paper": "a:r"}
    assert stated(get_family("mlfm"), **former).capabilities == now
    assert stated(get_family("mlfm"), **former, capabilities={"timing": "a:s"}).capabilities == now | {"timing": "a:s"}
    assert stated(get_family("mlfm")).capabilities == {}
    with pytest.raises(TypeError, match="of_no_family"):
        stated(get_family("mlfm"), of_no_family="a:b")
