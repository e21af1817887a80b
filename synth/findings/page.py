"""The page ``findings.md``, a section a finding. Beside it in ``findings/``: the pictures, and every case as a row of
``cases.csv``."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path

import pandas as pd

from synth import family as installed
from synth.errors import InputError
from synth.family import Family, get_family
from synth.findings.command_line import commands
from synth.findings.evidence import CERTIFIED, Evidence, Held, Shown, UnfoundedError
from synth.findings.figure import CAPTION, CASES_CAPTION, WITHOUT_BOUND, draw, draw_cases
from synth.findings.finding import Finding
from synth.records.record import Record
from synth.reproduction.collect import SOURCES, Reproduction, plain_figures
from synth.reproduction.page import markdown
from synth.text.files import write_atomically
from synth.text.quantities import percent
from synth.views.figure_style import save

NAME, FIGURE = "findings", "ratios.png"
LISTED = 6  # cases of a finding without a picture that stand on the page; of more, the file has all
HOW = """\
## How to read this

A finding *qualifies* a claim that is true as it is stated and says less than it seems to; it *corrects* what is not
true. Every number of ours was read from records, each of which passed the check (`synth check`) when the page was made.
The check replays a schedule from its instance alone, and derives a certificate again. If a record is missing, refused
or does not show what its finding states, no page is written.

All cases of all findings are rows of [cases.csv](findings/cases.csv): the exact numbers, the addresses of the records,
and the commands that make them again below `results/`. `synth solve RECORD` solves the instance that a record holds:

```bash
synth solve instances/optree/ring-1024-w64.json -m relay
synth check --summary results/published/optree/ring-1024-w64
```

A finding has a picture where four cases or more differ; of fewer a table is shown. Where no figure is printed, we ran
the published algorithm: `(by bine)` behind a published figure names that record. The gap is (value − bound) / value.

| theirs is | what ours stands beside |
|:--|:--|
| printed | a figure, formula or sentence of the paper, or of the project's own pages |
| in their data | a figure in results that the authors ship beside the text |
| in their code | what the authors' code does, as we read it |
| by our reading | the published algorithm or formula, run by us as we read the text |
| left open | the authors state nothing |

| grade | what it means |
|:--|:--|
| certified | the schedule was replayed, and the bound that the statement needs was derived again from its certificate |
| *solver, version* | the schedule was replayed; that nothing is better is proven by this solver alone |
| replayed | the schedule was replayed; nothing is said of the best possible |
| counted | a published formula's count, no schedule |
| recomputed | no record: the computation ran again when this page was made (by a solver alone where that is said) |
"""


def stated(families: Sequence[str] | None = None) -> dict[str, tuple[Finding, ...]]:
    """The findings of all installed families that state some, by family. Raises ``RuntimeError`` where two bear the
    same name."""
    found = {}
    for family in installed.families() if families is None else map(get_family, families):
        if family.can("findings"):
            found[family.name] = tuple(family.capability("findings"))
    twice = [name for name, n in Counter(one.name for group in found.values() for one in group).items() if n > 1]
    if twice:
        raise RuntimeError(f"several findings are named {', '.join(twice)}")
    return found


def make(out: Path, root: Path, scratch: Reproduction) -> tuple[Path, dict[str, list[Shown]]]:
    """Verify all findings against the records below ``root`` and write the page and its cases into ``out``; returns the
    page and what it shows by family. ``scratch`` says where data and instances are, and whether the short page is
    asked for. Raises :class:`UnfoundedError` naming every fault; nothing is written then."""
    evidence, known = Evidence(root), stated()
    shown: dict[str, list[Shown]] = {}
    for family, findings in known.items():
        shown[family] = []
        for finding in findings:
            if finding.quick or not scratch.quick:
                shown[family].append(_computed(evidence.shown(finding), scratch))
                scratch.say(f"{finding.name}: {shown[family][-1].grade or 'left out'}")
    faults = [fault for group in shown.values() for one in group for fault in one.faults]
    if faults:
        raise UnfoundedError("\n".join(["the records do not carry these findings:", *faults]))
    left = [one.name for findings in known.values() for one in findings if scratch.quick and not one.quick]
    path = out / f"{NAME}.md"
    pictures = _beside(shown, root, out / NAME)
    write_atomically(path, text(shown, left, scratch.quick, pictures).encode())
    return path, shown


def _beside(shown: dict[str, list[Shown]], root: Path, folder: Path) -> set[str]:
    """Write the cases and the pictures into ``folder``; returns the pictures' names."""
    folder.mkdir(parents=True, exist_ok=True)
    _cases(shown, root).to_csv(folder / "cases.csv", index=False)
    told = [one for group in shown.values() for one in group]
    pictures = {FIGURE: draw(told)} | {f"{one.finding.name}.png": draw_cases(one) for one in told}
    drawn = {name: figure for name, figure in pictures.items() if figure is not None}
    for old in {*folder.glob("*.md"), *folder.glob("*.png")} - {folder / name for name in drawn}:
        old.unlink()
    with plain_figures():
        for name, figure in drawn.items():
            save(figure, folder / name, bbox_inches="tight", dpi=110)
    return set(drawn)


def _computed(shown: Shown, scratch: Reproduction) -> Shown:
    """With the errata of a finding that has some, made on a page of their own."""
    finding = shown.finding
    if finding.errata is None:
        return shown
    page = Reproduction(scratch.folder, scratch.quick, scratch.instances, scratch.data)
    try:
        finding.errata(page)
    except (InputError, RuntimeError, OSError) as error:
        return replace(shown, faults=[*shown.faults, f"{finding.name}: {error}"])
    silent = [] if page.errata or page.skipped else [f"{finding.name}: the computation states nothing"]
    skipped = [f"{finding.name}: {line}" for line in page.skipped]
    return replace(shown, faults=[*shown.faults, *silent], errata=page.errata, skipped=skipped)


def text(shown: dict[str, list[Shown]], left: Sequence[str], quick: bool, pictures: Collection[str]) -> str:
    """The page of all findings as Markdown. Holds no time or date: the same records give the same bytes."""
    command = f"synth reproduce {NAME}{' --quick' if quick else ''}"
    told = [one for group in shown.values() for one in group if one.grades]
    parts = [f"# Findings\n\nMade by `{command}`.\n\n{_opening(told)}"]
    parts += [f"![{CAPTION}]({NAME}/{FIGURE})\n\n{CAPTION}\n"] if FIGURE in pictures else []
    skipped = [*(f"{name} (--quick)" for name in left), *(s for g in shown.values() for one in g for s in one.skipped)]
    if skipped:
        parts.append("**Left out of this run**\n\n" + "".join(f"* {line}\n" for line in skipped))
    parts += [part for family, group in shown.items() for part in _chapter(get_family(family), group, pictures)]
    return "\n".join([*parts, HOW])


def _chapter(family: Family, group: Sequence[Shown], pictures: Collection[str]) -> list[str]:
    """A family's findings: a line each, then a section each; nothing without any."""
    rows = [one for one in group if one.grades]
    sections = [_section(one, family, pictures) for one in rows]
    return [f"## {family.title}\n\n{_overview(rows)}", *sections] if rows else []


def _opening(told: Sequence[Shown]) -> str:
    """Three sentences: how many findings there are, what they rest on, and where the rest is."""
    kinds = Counter(one.finding.kind for one in told)
    grades = Counter(
        grade if grade in (CERTIFIED, "replayed", "counted", "recomputed") else "by a solver alone"
        for one in told
        for grade in one.grades.elements()
    )
    what = ", ".join(f"{n} {_verb(kind, n)}" for kind, n in sorted(kinds.items(), key=lambda item: -item[1]))
    words = ", ".join(f"{n} {grade}" for grade, n in sorted(grades.items(), key=lambda item: -item[1]))
    return (
        f"Of {len(told)} findings on published results, {what} what is stated there. Their cases and errata by grade: "
        f"{words}. Cases, records and the commands that make them again are rows of [cases.csv]({NAME}/cases.csv).\n"
    )


def _verb(kind: str, count: int) -> str:
    """The kind as a verb of so many findings."""
    return kind if count == 1 else {"qualifies": "qualify"}.get(kind, kind.removesuffix("s"))


def _overview(told: Sequence[Shown]) -> str:
    """A line a finding."""
    rows = [
        (f"[{one.finding.name}](#{one.finding.name})", one.finding.kind, _short(one), _theirs(one), one.grade)
        for one in told
    ]
    return markdown(pd.DataFrame(rows, columns=["finding", "it", "what", "theirs is", "grade"]).astype(object))


def _short(one: Shown) -> str:
    """The first sentence of what is stated, or what the errata are about."""
    if one.statement:
        return re.split(r"(?<!\bal)(?<!\bvs)\.\s", one.statement, maxsplit=1)[0].removesuffix(".")
    return "; ".join(item.where for item in one.errata)


def _theirs(one: Shown) -> str:
    """Where the authors state what ours stands beside, in words."""
    return ", ".join(SOURCES[source].lower() for source in one.sources)


def _section(one: Shown, family: Family, pictures: Collection[str]) -> str:
    """What a finding states and where, its picture if it has one, else its few cases, and its errata."""
    finding, picture = one.finding, f"{one.finding.name}.png"
    cases = f", {len(one.held)} cases" if len(one.held) > 1 else ""
    what = f"{finding.kind} a question of" if finding.kind == "settles" else finding.kind
    lines = [
        f"### {finding.name}\n",
        *(f"{sentence}\n" for sentence in (" ".join(filter(None, [one.statement, one.by_word])),) if sentence),
        f"This {what} *{finding.paper}, {finding.where}* (theirs: {_theirs(one)}; grade: {one.grade}{cases}).\n",
    ]
    if picture in pictures:
        caption = CASES_CAPTION if one.on_bound else WITHOUT_BOUND
        lines.append(f"![{caption}]({NAME}/{picture})\n")
    ours = "Corrected" if finding.kind == "corrects" else "Ours"
    lines += [
        f"* **{item.where}.** {item.stated} {ours}: {item.corrected}\n\n  Computed: {item.computation}\n"
        for item in one.errata
    ]
    if one.errata:
        lines.append(f"Computed again by `synth reproduce {finding.page or family.name}` too.\n")
    if one.held:
        lines += [_table(one)] if picture not in pictures and len(one.held) <= LISTED else []
        claims = "; ".join(claim.words for claim in finding.claims)
        lines += [f"Checked of every case: {claims}.\n"] if claims else []
    return "\n".join(lines)


def _table(one: Shown) -> str:
    """The cases, without the columns that say nothing."""
    frame = pd.DataFrame(
        [_row(one, held) for held in one.held], columns=["case", "published", "value", "bound", "gap", "grade"]
    )
    return markdown(frame[[name for name in frame if (frame[name] != "–").any()]])


def _row(one: Shown, held: Held) -> tuple[str, ...]:
    bound = held.least_text if one.on_bound else "–"
    gap = percent(held.gap) if one.on_bound and not held.case.measure else "–"
    name = f"`{held.case.published}`" + (", a name that was not verified" if held.stated else "")
    published = held.printed_text + (f" (by {name})" if held.published is not None else "")
    return held.case.what, published, held.ours_text, bound, gap, held.grade if one.on_bound else held.evidence


def _address(record: Record, root: Path) -> str:
    assert record.path is not None
    return record.path.relative_to(root).as_posix()


def _cases(shown: dict[str, list[Shown]], root: Path) -> pd.DataFrame:
    """Every case of every finding, one a row; numbers exact, in the unit of the column."""
    rows = []
    for family, group in shown.items():
        for one in group:
            for held in one.held:
                addresses = [_address(record, root) for record in held.carriers]
                rows.append(
                    {
                        "finding": one.finding.name,
                        "it": one.finding.kind,
                        "theirs is": _theirs(one),
                        "family": family,
                        "paper": one.finding.paper,
                        "where": one.finding.where,
                        "case": held.case.what,
                        "unit": held.unit,
                        "published": held.printed,
                        "ours": held.value,
                        "bound": held.least if one.on_bound else None,
                        "grade": held.grade if one.on_bound else held.evidence,
                        "records": " ".join(addresses),
                        "instance_sha256": held.record["instance_sha256"],
                        "again": " && ".join(commands(held.carriers, root)),
                    }
                )
    return pd.DataFrame(rows)
