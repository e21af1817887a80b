"""Methods in a file of the user's own: ``synth solve INSTANCE -m package.module:function``, or ``module.py:function``,
or ``module.py`` where it has one function that may be meant.

The file is looked for beside the instance, then in the current folder, and nowhere else: no installed module of the
same name takes its place, nor it theirs. What it imports itself is looked for in its folder last. Nothing here is ever
called for a name that stands in a record: a record starts no code.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable
from dataclasses import replace
from inspect import isfunction
from pathlib import Path
from typing import TYPE_CHECKING, Any

from synth.errors import InputError, abridged
from synth.family import Family
from synth.method import Method
from synth.plugins.entry_points import files_of, load_in

if TYPE_CHECKING:
    from synth.instance import Instance

TARGET = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*", re.ASCII)


def method_of(family: Family, name: str, instance: Instance) -> Method:
    """The family's method of that name, or the one that ``package.module:function`` names. Raises
    :class:`InputError`."""
    if ":" not in name and not name.endswith(".py"):
        return family.method(name)
    beside = [] if instance.file is None else [instance.file.parent]
    return find(name, [*beside, Path()])


def of_function(function: Callable[..., Any]) -> Method:
    """A function at hand as a method, named as ``-m`` would name it where it stands in a file. Raises
    :class:`InputError` for what is no function."""
    if not callable(function) or isinstance(function, type):
        words = f"of type {type(function).__name__}: must be a name, a function or a Method"
        raise InputError(f"method {abridged(repr(function))} is {words}")
    code = getattr(function, "__code__", None)
    name = re.sub(r"\W", "_", getattr(function, "__name__", type(function).__name__), flags=re.ASCII)
    summary = (getattr(function, "__doc__", None) or "").strip().partition("\n")[0]
    file = Path(code.co_filename) if code is not None else Path()
    if not file.is_file():
        return Method(name, "reference", summary, name, origin="a function")
    if TARGET.fullmatch(f"{file.stem}:{name}") and "<" not in getattr(function, "__qualname__", "<"):
        name = f"{file.stem}:{name}"
    return Method(name, "reference", summary, name, origin=_origin(file))


def _origin(file: Path) -> str:
    return f"{file.name} {hashlib.sha256(file.read_bytes()).hexdigest()[:16]}"


def _only_function(folder: Path, file: Path, module: str) -> str:
    """The name of the function that is meant where the file alone is named: ``solve``, or the only one that others may
    use. Raises :class:`InputError` where there are none or several."""
    loaded = load_in(folder, f"{module}:__dict__")
    own = [name for name, thing in loaded.items() if _is_method(thing, loaded["__name__"]) and name[0] != "_"]
    if "solve" in own or len(own) == 1:
        return "solve" if "solve" in own else own[0]
    has = f"has {', '.join(own)}" if own else "has no function"
    raise InputError(f"{has}: name one function, {file.name}:FUNCTION", str(file))


def _is_method(thing: Any, module: str) -> bool:
    return isinstance(thing, Method) or (isfunction(thing) and thing.__module__ == module)


def as_module(name: str) -> str:
    """``package.module:function`` where the file was named, ``package/module.py:function``."""
    file, _, function = name.partition(":")
    return f"{_module(file)}:{function}" if file.endswith(".py") and function else name


def _module(file: str) -> str:
    return ".".join(Path(file).with_suffix("").parts)


def find(name: str, folders: Iterable[Path]) -> Method:
    """The method of that name, ``package.module:function``, in the first of the folders that has such a file. A plain
    function is a reference without parameters. Raises :class:`InputError`."""
    given, alone = name, name.endswith(".py")
    name = f"{_module(name)}:" if alone else as_module(name)
    if not TARGET.fullmatch(f"{name}solve" if alone else name):
        words = "must be package.module:function or package/module.py:function"
        raise InputError(f"method {given}: {words}, beside the instance or in the current folder")
    folders = list(dict.fromkeys(folder.resolve() for folder in folders))
    module = name.partition(":")[0]
    found = next(((folder, file) for folder in folders for file in files_of(folder, module)), None)
    if found is None:
        places = " or ".join(map(str, folders))
        raise InputError(f"method {given}: there is no file {module.replace('.', '/')}.py in {places}")
    folder, file = found
    name = f"{name}{_only_function(folder, file, module)}" if alone else name
    thing = load_in(folder, name)
    origin = _origin(file)
    if isinstance(thing, Method):
        return replace(thing, name=name, origin=origin, folder=folder)
    if not callable(thing) or isinstance(thing, type):
        words = f"is of type {type(thing).__name__}: must be a function (instance, RunOptions) -> Outcome, or a Method"
        raise InputError(f"method {name}: {words}", str(file))
    summary = (thing.__doc__ or "").strip().partition("\n")[0]
    return Method(name, "reference", summary, name, origin=origin, folder=folder)
