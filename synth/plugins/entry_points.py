"""What others add: through the entry points of their distributions, found without importing them, or in a file.

The groups are ``synth.families`` (an entry point names a :class:`synth.family.Family`), ``synth.methods`` (a
:class:`synth.method.Method`, the entry point named ``<family>.<method>``), ``synth.certificates`` (a
:class:`synth.method.Certificates`, named in the same way) and ``synth.solvers`` (a
:class:`synth.solvers.solver.Solver`). An entry point that cannot be loaded, or whose name is taken, is left out with
one line of words (:func:`complaints`); everything else works on. A file is imported under a name of its folder's own
(:func:`load_in`): no installed module of the same name takes its place, nor it theirs.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from importlib.machinery import ModuleSpec
from importlib.util import module_from_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from synth.errors import InputError

if TYPE_CHECKING:
    from importlib.metadata import Distribution, EntryPoint

T = TypeVar("T")
FAMILIES, METHODS, SOLVERS = "synth.families", "synth.methods", "synth.solvers"
CERTIFICATES = "synth.certificates"
FOLDER_PACKAGE = "synth_files_of_"  # with a digest: the package whose modules are a folder's files
OUR_PACKAGES = ("synth", "synth_models", "synth_peers")  # whose entry points come with this distribution

_COMPLAINTS: dict[tuple[str, str], str] = {}  # by group and name of the entry point


def entries(group: str) -> dict[str, EntryPoint]:
    """The entry points of a group by name, in order of names. Ours come before others' of the same name; of several
    others' with one name none is taken."""
    found: dict[str, EntryPoint] = {}
    for name, several in sorted(_by_name()[group].items()):
        own = [entry for entry in several if is_ours(entry)]
        others = [entry for entry in several if not is_ours(entry)]
        if own or len(others) == 1:
            found[name] = (own or others)[0]
        if others and len(several) > 1:
            taken = "is the name of one of synth's own" if own else "is the name of several"
            complain(group, name, f"{taken}: left out is that of {' and '.join(map(origin, others))}")
    return found


def load(group: str, entry: EntryPoint, kind: type[T]) -> T | None:
    """What the entry point names, or None with a complaint."""
    try:
        thing = entry.load()
    except Exception as error:  # somebody else's module may raise anything
        complain(group, entry.name, f"of {origin(entry)} cannot be loaded: {in_words(error)}")
        return None
    if not isinstance(thing, kind):
        words = f"of {origin(entry)} names {entry.value}, of type {type(thing).__name__}: must be a {kind.__name__}"
        complain(group, entry.name, words)
        return None
    return thing


def is_ours(entry: EntryPoint) -> bool:
    """Whether it comes with this distribution."""
    return entry.module.partition(".")[0] in OUR_PACKAGES


def origin(entry: EntryPoint) -> str:
    """The distribution it comes from, with its version: ``ring-methods 0.1``."""
    return _named(entry.dist) if entry.dist is not None else entry.module


def in_words(error: BaseException) -> str:
    """An exception in one line."""
    return " ".join(f"{type(error).__name__}: {error}".split())


def complain(group: str, name: str, words: str) -> None:
    """Note in words what is wrong with an entry point."""
    _COMPLAINTS.setdefault((group, name), f"entry point {name} ({group}) {words}")


def complaint(group: str, name: str) -> str | None:
    """What is wrong with this entry point; whoever asks says it, so that :func:`complaints` does not again."""
    key = group, name
    if words := _COMPLAINTS.get(key):
        _COMPLAINTS[key] = ""
    return words or None


def complaints() -> list[str]:
    """A line for every entry point that was left out and of which nobody has spoken yet."""
    return [words for words in _COMPLAINTS.values() if words]


def load_in(folder: Path, target: str) -> Any:
    """What ``module:name`` names in a file of the folder, or, without such a file, in an installed module. Raises
    :class:`InputError` where that fails."""
    module, _, name = target.partition(":")
    file = next(files_of(folder, module), None)
    try:
        loaded = import_module(module) if file is None else import_module(f"{_package(folder)}.{module}")
    except Exception as error:  # the file may raise anything
        raise InputError(f"cannot be imported: {in_words(error)}{_line(error, file)}", str(file or module)) from None
    if not hasattr(loaded, name):
        raise InputError(f"has no {name}", str(file or module))
    return getattr(loaded, name)


def files_of(folder: Path, module: str) -> Iterator[Path]:
    """The file of a module in the folder, if it is there."""
    place = folder.joinpath(*module.split("."))
    yield from (file for file in (place / "__init__.py", place.with_name(f"{place.name}.py")) if file.is_file())


@cache
def _by_name() -> dict[str, dict[str, list[EntryPoint]]]:
    """All entry points of our groups: one walk over the installed distributions."""
    from importlib.metadata import entry_points

    found: dict[str, dict[str, list[EntryPoint]]] = {}
    installed = entry_points()
    for group in (FAMILIES, METHODS, CERTIFICATES, SOLVERS):
        names = found.setdefault(group, {})
        for entry in installed.select(group=group):
            names.setdefault(entry.name, []).append(entry)
    return found


@cache
def _named(distribution: Distribution) -> str:
    return f"{distribution.name} {distribution.version}"


def _package(folder: Path) -> str:
    """The package, of a name of its own, whose modules are the folder's files."""
    import hashlib

    name = FOLDER_PACKAGE + hashlib.sha256(str(folder).encode()).hexdigest()[:16]
    if name not in sys.modules:
        spec = ModuleSpec(name, None, is_package=True)
        spec.submodule_search_locations = [str(folder)]
        sys.modules[name] = module_from_spec(spec)
    if str(folder) not in sys.path:
        sys.path.append(str(folder))
    return name


def _line(error: Exception, file: Path | None) -> str:
    """Where in the file an exception arose."""
    import traceback

    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(file)]
    return f" (line {lines[-1]})" if lines else ""
