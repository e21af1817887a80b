"""The study's table: one row per run, tidy, with documented columns."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from synth.arrays import SAME
from synth.errors import Fault, InputError
from synth.family import get_family
from synth.instance import Instance
from synth.records.contradictions import Standing, by_instance, standing
from synth.records.folder import read_all
from synth.records.optimality import gap
from synth.records.record import Record
from synth.records.repetition import name_stands

WITHIN = 0.01  # gap to the best bound at which the time to a gap is taken

COLUMNS: dict[str, str] = {
    "study": "name of the study",
    "family": "problem class",
    "instance": "name of the instance; name@hash where the study has several versions of its file",
    "method": "method of the family",
    "kind": "program, reference or bound",
    "solver": "solver, empty where the method uses none",
    "variant": "seed, limit and options that tell runs of one method and solver apart",
    "label": "method, solver (if not of the same name) and, where the study has several variants of it, what differs",
    "group": "the label of all runs that differ from this one in their seed only",
    "seed": "seed",
    "time_limit_s": "limit of the run [s]",
    "threads": "threads of the run",
    "relative_gap": "gap at which the solver might stop [1]",
    "options": "the method's own parameters [JSON]",
    "method_proof": "of a baseline's or a published method's record: run again (its solution is that of its method), "
    "stated (only the record says so); empty for others",
    "termination": "why the run ended",
    "infeasible_by": "what proves that the question has no answer: certified, the solver whose word it is, or method",
    "status": "ok; failed (the check found faults or the run died); bound disproved (a replayed value lies below the "
    "solver's bound: its value counts, its bound does not); disproved (a counted value lies below a proven bound); "
    "alarm (a replayed value lies below a certified bound: one of the checks is wrong); none (ended well with neither "
    "value nor proven bound)",
    "evidence": "of the value: replayed (its schedule was) or counted (a formula's or program's count, no schedule)",
    "value": "objective value recomputed by the check [unit]",
    "bound": "bound the run proved [unit]",
    "proof": "what proves bound: certified (derived again from a certificate) or the solver whose word it is",
    "unit": "unit of value and bound",
    "best_value": "least replayed value of the instance over all runs of the study [unit]",
    "best_bound": "greatest proven bound of the instance, by its file's hash, over all runs of the study [unit]",
    "best_proof": "what proves best_bound: certified or the solver whose word it is",
    "gap_own": "(value - bound) / |value| with the run's own bound [1]",
    "gap": "(value - best_bound) / |value| [1]",
    "ratio_to_best": "value / best_value [1]",
    "win": "whether value is best_value and replayed",
    "solved": "whether gap_own is at most relative_gap: value proven best within it by the run itself (see proof)",
    "build_s": "time to make the model [s]",
    "solve_s": "time to solve [s]",
    "check_s": "time to check [s]",
    "total_s": "build_s + solve_s [s]",
    "to_gap_s": f"after how long the run held a value within {WITHIN:.0%} of best_bound, by its progress; empty: never "
    "[s]",
    "solver_version": "version of the solver",
    "toolkit_version": "version of synth",
    "host": "machine",
    "created": "when the record was written [UTC]",
    "message": "what the run had to say",
    "faults": "what the check found, separated by semicolons",
    "record": "record file, relative to the study's folder",
    "instance_sha256": "hash of the instance file",
    "series": "what the instance shares with those that differ in size only, empty where sizes mean nothing",
    "size_bytes": "its size, bytes / time being its bandwidth [bytes]",
}
NUMBERS = (
    "value",
    "bound",
    "best_value",
    "best_bound",
    "gap_own",
    "gap",
    "ratio_to_best",
    "time_limit_s",
    "to_gap_s",
    "size_bytes",
)
VALUE_COUNTS = ("ok", "bound disproved")  # statuses of rows whose value stands
WRONG = ("failed", "alarm", "bound disproved", "disproved")  # statuses of rows in which something is not as stated
RUN_AGAIN, ONLY_STATED = "run again", "stated"  # what a baseline's method rests on
VERSION = "@"  # between a name and its file's hash; no name holds one


def read_records(folder: Path) -> list[Record]:
    """All records below ``folder/records`` in path order. Raises :class:`InputError` naming damaged ones."""
    if not any((folder / "records").rglob("*.json*")):
        return []
    found = list(read_all([folder / "records"]))
    faults = [Fault("", line) for error in found if isinstance(error, InputError) for line in str(error).splitlines()]
    if faults:
        raise InputError(faults)
    return [record for record in found if isinstance(record, Record)]


def build(
    study: str,
    folder: Path,
    found: Sequence[Record],
    baselines: Iterable[str] = (),
    instances: Iterable[Instance] = (),
) -> pd.DataFrame:
    """The table, rows by family, instance, kind and label; per baseline a column ``ratio_to_<baseline>``
    (this row's value over the baseline's best value on the instance: < 1 means better than the baseline).

    :mod:`synth.records.contradictions` says which runs of one instance file contradict each other: see ``status``.
    A counted value has a gap and ratios, but is nobody's best value. Series and sizes are the ``instances``'."""
    judged = {key: standing(group) for key, group in by_instance(found).items()}
    named = tuple(baselines)
    rows = [_row(study, folder, record, judged[record["family"], record["instance_sha256"]], named) for record in found]
    table: Any = pd.DataFrame(rows, columns=list(COLUMNS))
    sizes = sizes_of(instances)
    table["series"] = [sizes.get(sha, ("", None))[0] for sha in table["instance_sha256"]]
    table["size_bytes"] = [sizes.get(sha, ("", None))[1] for sha in table["instance_sha256"]]
    for column in NUMBERS:
        table[column] = pd.to_numeric(table[column])
    if table.empty:
        return pd.DataFrame(table)
    table["label"] = _told_apart(table, found, table["variant"])
    table["group"] = _told_apart(table, found, table["variant"].str.replace(r"^seed\d+-?", "", regex=True))
    _tell_versions_apart(table)
    keys = [table["family"], table["instance_sha256"]]
    good = table["status"].isin(VALUE_COUNTS)
    replayed = table["evidence"] == "replayed"
    table["best_value"] = table["value"].where(good & replayed).groupby(keys).transform("min")
    table["ratio_to_best"] = _ratio(table["value"], table["best_value"]).where(good)
    table["win"] = good & replayed & (table["ratio_to_best"] <= 1 + SAME)
    table["solved"] = good & replayed & (table["gap_own"] <= table["relative_gap"])
    for baseline in named:
        theirs = table["value"].where(good & (table["method"] == baseline)).groupby(keys).transform("min")
        table[f"ratio_to_{baseline}"] = _ratio(table["value"], theirs).where(good)
    order = ["family", "instance", "kind", "label"]
    return pd.DataFrame(table.sort_values(order, kind="stable", ignore_index=True))


def baselines_of(table: pd.DataFrame) -> list[str]:
    """The baselines that the table was built with."""
    names = [str(name).removeprefix("ratio_to_") for name in table.columns if str(name).startswith("ratio_to_")]
    return [name for name in names if name != "best"]


def sizes_of(instances: Iterable[Instance]) -> dict[str, tuple[str, float]]:
    """Series and size in bytes by the hash of the instance's file, of those that have them."""
    found = {}
    for instance in instances:
        family = get_family(instance.family)
        placed = family.capability("series")(instance) if family.can("series") else None
        if placed is not None:
            found[instance.sha256] = placed
    return found


def place(record: Record, folder: Path) -> str:
    """The table's column ``record``: its address, relative to the study's folder."""
    assert record.path is not None
    return record.path.relative_to(folder).as_posix()


def plain_name(instance: str) -> str:
    """The instance's name without the version of its file."""
    return instance.partition(VERSION)[0]


def _told_apart(table: Any, found: Sequence[Record], variants: Any) -> list[str]:
    """The records' labels, with what tells their variants apart where runs of one method and solver on an instance have
    several: what all of these variants share is left out."""
    method = [table[key] for key in ("family", "method", "solver")]
    several = variants.groupby([*method, table["instance"]]).transform("nunique")
    marked = several.groupby(method).transform("max") > 1
    parts = [set(str(variant).split("-")) for variant in variants[marked]]
    common = set.intersection(*parts) if parts else set()
    labels = []
    for record, variant, told in zip(found, variants, marked, strict=True):
        differs = "-".join(part for part in str(variant).split("-") if part not in common)
        labels.append(f"{record.label} {differs}" if told and differs else record.label)
    return labels


def _to_gap(record: Record, bound: float | None) -> float | None:
    """Seconds until the run's progress holds a value within :data:`WITHIN` of a bound; None if it never does."""
    for row in record.data.get("progress") or ():
        left = gap(row[1], bound)
        if left is not None and left <= WITHIN:
            return float(row[0])
    return None


def _tell_versions_apart(table: Any) -> None:
    versions = table.groupby(["family", "instance"])["instance_sha256"].transform("nunique")
    marked = table["instance"] + VERSION + table["instance_sha256"].str[:8]
    table["instance"] = table["instance"].where(versions <= 1, marked)


def _method_proof(record: Record, baselines: Sequence[str]) -> str:
    if record.value is None or record["method"] not in (*baselines, *get_family(record["family"]).published):
        return ""
    return RUN_AGAIN if name_stands(record) else ONLY_STATED


def _row(study: str, folder: Path, record: Record, among: Standing, baselines: Sequence[str]) -> dict[str, Any]:
    """The record's row, as it stands among those of its instance file."""
    status, contradicted = among.status(record)
    options, seconds, path = record["options"], record["seconds"], place(record, folder)
    return {
        "study": study,
        "family": record["family"],
        "instance": record["instance"],
        "method": record["method"],
        "kind": record["kind"],
        "solver": record["solver"] or "",
        "variant": path.split("/")[1],
        "seed": options.get("seed"),
        "time_limit_s": options.get("time_limit_s"),
        "threads": options.get("threads"),
        "relative_gap": options.get("relative_gap", 0.0),
        "options": json.dumps(options.get("method", {}), sort_keys=True),
        "method_proof": _method_proof(record, baselines),
        "termination": record["termination"],
        "infeasible_by": record.infeasible_by,
        "status": status,
        "evidence": record.evidence or "",
        "value": record.value,
        "bound": record.bound,
        "proof": record.proof if record.bound is not None else "",
        "unit": record["objective"]["unit"],
        "best_bound": among.bound,
        "best_proof": "" if among.bound is None else among.proof,
        "gap_own": gap(record.value, record.bound) if status == "ok" else None,
        "gap": gap(record.value, among.bound) if status in VALUE_COUNTS else None,
        "build_s": seconds["build"],
        "solve_s": seconds["solve"],
        "check_s": seconds["check"],
        "total_s": record.run_s,
        "to_gap_s": _to_gap(record, among.bound) if status in VALUE_COUNTS else None,
        "solver_version": record["solver_version"] or "",
        "toolkit_version": record.data.get("toolkit_version", ""),
        "host": record.data.get("host", ""),
        "created": record.data.get("created", ""),
        "message": record["message"] or "",
        "faults": "; ".join(filter(None, [*record["verified"]["faults"], contradicted])),
        "record": path,
        "instance_sha256": record["instance_sha256"],
    }


def _ratio(above: Any, below: Any) -> Any:
    """``above / below``, 1 where both are 0, missing where only the lower one is 0 or anything is missing."""
    ratio = above / below.where(below != 0)
    return ratio.mask((above == 0) & (below == 0), 1.0)
