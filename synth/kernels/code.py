"""What stands in a function's code: the names it uses, and all that its compiled form is made of."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from types import CodeType
from typing import Any

import numpy as np


def names_in(code: CodeType) -> Iterator[str]:
    """The global names and attributes a function's code uses, those of functions within it included."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from names_in(constant)


def made_from(function: Callable[..., Any]) -> Iterator[str]:
    """All that a function's compiled form depends on, but for what it calls: its code, its constants and defaults, the
    values of global numbers, and the fields of the named tuples that its module knows."""
    todo = [function.__code__]
    while todo:
        code = todo.pop()
        yield f"{code.co_code.hex()} {code.co_names} {code.co_varnames} {code.co_freevars}"
        for constant in code.co_consts:
            if isinstance(constant, CodeType):
                todo.append(constant)
            else:
                yield repr(constant)
    yield repr((function.__defaults__, function.__kwdefaults__))
    for name in sorted({*names_in(function.__code__)} & {*function.__globals__}):
        value = function.__globals__[name]
        if isinstance(value, bool | int | float | complex | str | tuple | np.generic):
            yield f"{name} {value!r}"
        elif isinstance(value, np.ndarray):
            yield f"{name} {value.dtype} {value.tolist()}"
    known = _named_tuples(function.__globals__)
    for kind in known:  # those in others' fields, too
        known += [within for within in _named_tuples(vars(sys.modules[kind.__module__])) if within not in known]
        yield f"{kind.__qualname__} {kind._fields}"


def _named_tuples(names: dict[str, Any]) -> list[Any]:
    return [names[name] for name in sorted(names) if isinstance(names[name], type) and hasattr(names[name], "_fields")]
