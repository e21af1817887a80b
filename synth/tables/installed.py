"""What is installed: families, their methods, and the keys of their instances."""

from __future__ import annotations

import re
import shlex
from collections import Counter

import pandas as pd

from synth import family as installed
from synth.family import Family, get_family
from synth.making import Keys
from synth.method import Method, load
from synth.plugins import entry_points
from synth.records import bibtex
from synth.solvers.catalogue import solvers_for
from synth.tables.frame import Frame

SUCH_AS = re.compile(r"such as ([\w./*+:,-]*\w)")
BY_DEFAULT = re.compile(r"\(default:? ([^()]*)\)")
TRIED = ("4", "1", "0.5", "0")  # as examples of keys that are numbers


def families() -> Frame:
    """The installed families, a row each, its name in the index.

    Columns: ``title``, ``objective`` (what is minimised) and its ``unit``, the numbers of ``programs``, ``references``
    and ``bounds`` among its methods, ``citation``, and ``origin``, the distribution that it comes from (missing: this
    one).
    """
    rows, names = [], []
    for family in installed.families():
        entry = entry_points.entries(entry_points.FAMILIES)[family.name]
        kinds = Counter(method.kind for method in family.methods.values())
        names.append(family.name)
        rows.append(
            {
                "title": family.title,
                "objective": family.objective.name,
                "unit": family.objective.unit,
                **{f"{kind}s": kinds[kind] for kind in ("program", "reference", "bound")},
                "citation": family.citation,
                "origin": None if entry_points.is_ours(entry) else entry_points.origin(entry),
            }
        )
    telling = ("title", "objective", "unit", "programs", "references", "bounds")
    return Frame.of(rows, index=pd.Index(names, name="family", dtype=object), telling=telling)


def methods(family: str) -> Frame:
    """The methods of a family, a row each, its name in the index.

    Columns: ``kind`` (program, reference or bound), ``default`` (runs where none is named and it suits), ``published``
    (a method of others, which ours are measured against), ``source`` (the paper that it is from; missing for ours),
    ``solvers`` that it runs with, the best first, and ``takes``, its own parameters, both separated by commas,
    ``summary``, and ``origin``, the distribution that it comes from (missing: this one). Raises :class:`InputError`.
    """
    found = get_family(family)
    rows = [_method_row(found, method) for method in found.methods.values()]
    index = pd.Index(list(found.methods), name="method", dtype=object)
    return Frame.of(rows, index=index, telling=("kind", "default", "published", "takes", "summary"))


def _method_row(family: Family, method: Method) -> dict[str, object]:
    papers = [entry for entry in bibtex.of_method(family, method.name) if entry.key != bibtex.OURS]
    return {
        "kind": method.kind,
        "default": method.name in family.default_methods,
        "published": method.name in family.published,
        "source": "; ".join(entry.words for entry in papers) or None,
        "solvers": ", ".join(solvers_for(method.needs)) or None,
        "takes": ", ".join(parameter.name for parameter in method.parameters) or None,
        "summary": method.summary,
        "origin": method.origin,
    }


def keys(family: str) -> Frame:
    """The keys that :func:`synth.make` takes for a family, a row each, its name in the index.

    Columns: ``meaning`` (with the unit), ``takes`` (which texts), ``needed``, ``default`` (as one would type it, or in
    words; missing where there is none) and ``example``. Raises :class:`InputError`.
    """
    taken: type[Keys] = load(get_family(family).keys)
    in_examples = dict(word.partition("=")[::2] for one in reversed(taken.examples) for word in shlex.split(one))
    rows = []
    for key, takes, default, meaning in taken.described():
        needed, told = taken.model_fields[key].is_required(), BY_DEFAULT.search(meaning)
        rows.append(
            {
                "meaning": meaning,
                "takes": takes or None,
                "needed": needed,
                "default": default if default and not needed else told[1] if told else None,
                "example": in_examples.get(key) or _example(taken, key, takes, meaning),
            }
        )
    index = pd.Index(taken.names(), name="key", dtype=object)
    return Frame.of(rows, index=index, telling=("takes", "default", "example", "meaning"))


def _example(taken: type[Keys], key: str, takes: str, meaning: str) -> str | None:
    """A text that the key takes, where its meaning or its kind tells one."""
    told = [found[1] for text in (meaning, takes) if (found := SUCH_AS.search(text))]
    by_kind = () if re.search("text|file|^$", takes) else (*takes.split(" | "), *TRIED)
    return next((text for text in (*told, *by_kind) if taken.reads(key, text)), None)
