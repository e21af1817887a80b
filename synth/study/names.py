"""Names for print: what a study's file calls methods, instances and series in figures and tables for a paper."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

import pandas as pd

from synth.errors import Fault, one_of

RUNS, NAMED = ("label", "group"), ("instance", "series", "label", "group")  # columns of a study's table
LONGEST = 60


def named(table: pd.DataFrame, labels: Mapping[str, str]) -> pd.DataFrame:
    """The table with these names in place of its own; what stands behind one in a run's label (``pull 20s``) stays."""
    if not labels:
        return table
    shown = {name: table[name].map(lambda text: labels.get(text, text)) for name in NAMED if name in table}
    for name in {*RUNS} & {*shown}:
        shown[name] = table[name].map(lambda text: label_of(str(text), labels))
    return table.assign(**shown)


def label_of(label: str, labels: Mapping[str, str]) -> str:
    """The run's label with the name of the longest of these keys that it begins with."""
    keys = [key for key in labels if label == key or label.startswith((f"{key} ", f"{key}-"))]
    key = max(keys, key=len, default="")
    return f"{labels[key]}{label[len(key) :]}" if key else label


def faults_of(labels: Mapping[str, str], instances: Iterable[str], methods: Iterable[str]) -> Iterator[Fault]:
    """What is wrong with the names, given those of the study's instances and series, and of its methods (a run's label
    begins with its method's)."""
    known, runs = set(instances), set(methods)
    for key, name in labels.items():
        where = f"labels.{key}"
        if key not in known and not any(
            key == method or key.startswith((f"{method}-", f"{method} ")) for method in runs
        ):
            names = one_of(key, [*sorted(known), *sorted(runs)])
            yield Fault(where, f"no run, instance or series has this name; {names}")
        if not name.strip() or len(name) > LONGEST or not name.isprintable() or "$" in name:
            yield Fault(where, f"must be a name of 1 to {LONGEST} characters, without $", name, True)
        elif name in known | runs and name != key:
            yield Fault(where, "is the name of another", name, True)
    for name, times in Counter(labels.values()).items():
        if times > 1:
            yield Fault("labels", f"{times} have this name in print", name, True)
