"""Whether a certificate proves that a question has no answer: more than a bound on the best solution."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from synth.errors import InputError
from synth.family import get_family, load
from synth.text.untrusted import is_finite


def is_refuted(data: Mapping[str, Any], bound: float | None, certificate: Mapping[str, Any] | None) -> bool:
    """Whether the record's question asks for a value below the bound that its certificate proves, or the certificate
    refutes that question itself (the family's ``refutes``). The certificate itself is the check's to verify."""
    given = data["options"].get("method")
    if certificate is None or bound is None or not isinstance(given, Mapping):
        return False
    try:
        family = get_family(data["family"])
        parameters = family.method(data["method"]).parameters
    except InputError:
        return False
    limits: list[Any] = [given.get(parameter.name) for parameter in parameters if parameter.at_most]
    if any(is_finite(most) and most < bound for most in limits):
        return True
    return family.refutes is not None and bool(load(family.refutes)(given, bound, certificate))
