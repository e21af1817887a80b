"""``synth make fabric``, and what it complains of."""

from __future__ import annotations

import pytest

import synth
from synth.errors import InputError
from synth_models.fabric.instance import FabricInstance


def made(**keys: object) -> FabricInstance:
    """The instance of these keys, of 1 GiB where no bytes are given."""
    sized = {} if {"bytes", "demand"} & set(keys) else {"bytes": 2**30}
    instance = synth.make("fabric", **sized, **keys)
    assert isinstance(instance, FabricInstance)
    return instance


def faults(**keys: object) -> list[str]:
    """The lines of the one message that refuses these keys, as they are."""
    with pytest.raises(InputError) as caught:
        synth.make("fabric", **keys)
    return str(caught.value).splitlines()
