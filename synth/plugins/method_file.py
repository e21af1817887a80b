"""Methods in a file of the user's own: ``synth solve INSTANCE -m package.module:function``, or ``module.py:function``.

The file is looked for beside the instance, then in the current folder, and nowhere else: no installed module of the
same name takes its place, nor it theirs. What it imports itself is looked for in its folder last. Nothing here is ever
called for a name that stands in a record: a record starts no code.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from synth.errors import InputError
from synth.family import Family
from synth.method import Method
from synth.plugins.entry_points import files_of, load_in

if TYPE_CHECKING:
    from synth.instance import Instance

TARGET = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*", re.ASCII)


def method_of(family: Family, name: str, instance: Instance) -> Method:
    """The family's method of that name, or the one that ``package.module:function`` names. Raises
    :class:`InputError`."""
    if ":" not in name:
        return family.method(name)
    beside = [] if instance.file is None else [instance.file.parent]
    return find(name, [*beside, Path()])


def as_module(name: str) -> str:
    """``package.module:function`` where the file was named, ``package/module.py:function``."""
    file, _, function = name.partition(":")
    return f"{'.'.join(Path(file).with_suffix('').parts)}:{function}" if file.endswith(".py") else name


def find(name: str, folders: Iterable[Path]) -> Method:
    """The method of that name, ``package.module:function``, in the first of the folders that has such a file. A plain
    function is a reference without parameters. Raises :class:`InputError`."""
    given, name = name, as_module(name)
    if not TARGET.fullmatch(name):
        words = "must be package.module:function or package/module.py:function"
        raise InputError(f"method {given}: {words}, beside the instance or in the current folder")
    folders = list(dict.fromkeys(folder.resolve() for folder in folders))
    module = name.partition(":")[0]
    found = next(((folder, file) for folder in folders for file in files_of(folder, module)), None)
    if found is None:
        places = " or ".join(map(str, folders))
        raise InputError(f"method {name}: there is no file {module.replace('.', '/')}.py in {places}")
    folder, file = found
    thing = load_in(folder, name)
    origin = f"{file.name} {hashlib.sha256(file.read_bytes()).hexdigest()[:16]}"
    if isinstance(thing, Method):
        return replace(thing, name=name, origin=origin, folder=folder)
    if not callable(thing) or isinstance(thing, type):
        words = f"is of type {type(thing).__name__}: must be a function (instance, RunOptions) -> Outcome, or a Method"
        raise InputError(f"method {name}: {words}", str(file))
    summary = (thing.__doc__ or "").strip().partition("\n")[0]
    return Method(name, "reference", summary, name, origin=origin, folder=folder)
