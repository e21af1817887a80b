"""What to cite for a record or a finding, as BibTeX: the method's source, the instance's paper, it, and this toolkit.

A family states its papers in ``papers.bib`` beside its rooms; of one without, what its citation says. Two fields there
are not printed: ``methods``, whose source an entry is (the toolkit's own are with the entry ``synth``), and ``states``,
words of the sources of those instances that are from the paper (``*``: all). Nothing is made up: a field that the
family, the instance or the record does not state is left out.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from synth.family import Family
    from synth.records.record import Record

TITLE = "synth: collective-communication synthesis by mathematical programming"
AUTHORS = "{The synth authors}"
YEAR = "2026"  # of the toolkit's release
OURS = "synth"  # the key of this toolkit in a file of papers
METHODS, STATES = "methods", "states"
ACCENTS = {"\u0300": "`", "\u0301": "'", "\u0302": "^", "\u0303": "~", "\u0308": '"', "\u030c": "v", "\u0327": "c"}
_VENUE = re.compile(r"\s*(?P<title>[^,(]+?)\s*\((?:(?P<venue>[A-Za-z][A-Za-z ]*?)\s+)?(?P<year>(?:19|20)\d\d)\)\s*")
_SPECIAL = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"} | {
    sign: f"\\{sign}" for sign in "&%$#_{}"
}


@dataclass(frozen=True)
class Entry:
    """One entry: ``kind`` (misc, article, inproceedings), ``key``, and its fields in their order."""

    kind: str
    key: str
    fields: Mapping[str, str]

    def text(self) -> str:
        """The entry as BibTeX reads it: braces balanced, every special character escaped but in DOIs and groups."""
        lines = [f"@{self.kind}{{{self.key},"]
        plain_key = {} if "author" in self.fields else {"key": self.key}  # what an entry without author is sorted by
        for name, value in {**self.fields, **plain_key}.items():
            if name in (METHODS, STATES):
                continue
            plain = value if name in ("doi", "url", "key") or value == AUTHORS else escaped(value)
            title = f"{{{plain}}}" if name == "title" else plain
            lines.append(f"  {name} = {{{title}}},")
        return "\n".join([*lines, "}"])

    @property
    def words(self) -> str:
        """The entry for a table: ``Family names: title (year)``, as far as they are stated."""
        names = [name.partition(",")[0].strip("{} ") for name in self.fields.get("author", "").split(" and ")]
        who = names[0] + " et al." if len(names) > 2 or "others" in names else " and ".join(names)
        title, year = self.fields.get("title", self.key), self.fields.get("year")
        return f"{who}: {title}" * bool(who) + title * (not who) + (f" ({year})" if year else "")


def escaped(text: str) -> str:
    """The text with what TeX would read as a command written as itself, on one line without control characters."""
    one_line = " ".join(text.split())
    kept = (sign for sign in one_line if unicodedata.category(sign) not in ("Cc", "Cf"))
    return "".join(_SPECIAL.get(sign) or _accented(sign) for sign in kept)


def _accented(sign: str) -> str:
    """A letter with its accent as every version of BibTeX sorts it; all else stays."""
    parts = unicodedata.normalize("NFD", sign)
    letter, mark = parts[:1], parts[1:]
    if not letter.isascii() or mark not in ACCENTS:
        return sign
    accent = ACCENTS[mark]
    return f"{{\\{accent}{{{letter}}}}}" if accent.isalpha() else f"{{\\{accent}{letter}}}"


def key_of(*words: str) -> str:
    """A key of letters, digits and hyphens out of words."""
    plain = unicodedata.normalize("NFKD", " ".join(words)).encode("ascii", "ignore").decode()
    return "-".join(re.findall(r"[A-Za-z0-9]+", plain))[:60].strip("-").lower() or "entry"


def of_family(family: Family) -> list[Entry]:
    """The papers that state a family's problem: those of its ``papers.bib``, else those that its citation names."""
    return [entry for entry in _listed_papers(family) if STATES in entry.fields]


def of_method(family: Family, name: str) -> list[Entry]:
    """The sources of a method, first the one that names it earliest; that of the toolkit's own is :func:`toolkit`'s."""
    found = [entry for entry in _listed_papers(family) if name in _words(entry, METHODS)]
    return sorted(found, key=lambda entry: _words(entry, METHODS).index(name))


def _of_source(family: Family, source: str) -> list[Entry]:
    """The papers that an instance of this source is from: of ``machine=teccl``, ``machine=teccl-ndv2-2`` too."""
    beginnings = {word[:end] for word in source.split() for end, sign in enumerate(f"{word}-") if sign == "-"}
    return [entry for entry in of_family(family) if {"*", *beginnings} & {*_words(entry, STATES)}]


def _words(entry: Entry, field: str) -> list[str]:
    return [word for word in entry.fields.get(field, "").split(", ") if word]


def _listed_papers(family: Family) -> list[Entry]:
    package = family.instance.partition(":")[0].rpartition(".")[0]
    file = resources.files(package) / "papers.bib" if package else None
    if file is not None and file.is_file():
        return parsed(file.read_text(encoding="utf-8"))
    return [Entry(one.kind, one.key, {**one.fields, STATES: "*"}) for one in papers(family.citation)]


def parsed(text: str) -> list[Entry]:
    """The entries of a BibTeX file with one field a line, as :meth:`Entry.text` writes them."""
    return [
        Entry(kind, key, dict(re.findall(r"^  (\w+) = \{(.*)\},$", body, re.MULTILINE)))
        for kind, key, body in re.findall(r"^@(\w+)\{([\w-]+),\n(.*?)^\}$", text, re.DOTALL | re.MULTILINE)
    ]


def papers(citation: str) -> list[Entry]:
    """The papers that a citation of ours names: ``Authors: Title``, a title alone, or a list ``X (VENUE 2024), Y
    (2024)``."""
    _, colon, behind = citation.rpartition(": ")
    listed = behind if colon else citation
    found = [_VENUE.fullmatch(part) for part in listed.split(", ")]
    if all(found):
        return [_listed(one) for one in found if one is not None]
    who, colon, title = citation.partition(": ")
    if colon and ("," in who or who.endswith("et al.")):
        names = [name.strip() for name in who.removesuffix("et al.").split(",") if name.strip()]
        names += ["others"] if who.endswith("et al.") else []
        return [Entry("misc", key_of(names[0], *title.split()[:2]), {"author": " and ".join(names), "title": title})]
    return [Entry("misc", key_of(*citation.split()[:4]), {"title": citation})]


def _listed(found: re.Match[str]) -> Entry:
    title, venue, year = found["title"], found["venue"], found["year"]
    fields = {"title": title} | ({"booktitle": venue} if venue else {}) | {"year": year}
    return Entry("inproceedings" if venue else "misc", key_of(title, year), fields)


def of_record(record: Record) -> list[Entry]:
    """The sources of the methods that made its solution, who submitted it if somebody did, the papers that its
    instance is from, the instance, and the toolkit, with the year of the run."""
    from synth.errors import InputError
    from synth.family import get_family

    family = get_family(record["family"])
    note = f"family {family.name}, sha256 {record['instance_sha256']}"
    try:
        source = record.find_instance().source
    except InputError:
        source = ""
    about = {"title": f"Instance {record['instance']}", "howpublished": source, "note": note}
    instance = Entry("misc", key_of("instance", record["instance"]), {k: v for k, v in about.items() if v})
    version, created = (str(record.data.get(key, "")) for key in ("toolkit_version", "created"))
    makers = dict.fromkeys([*(record.data.get("made_by") or ()), record["method"]])
    of_methods = [entry for name in makers for entry in of_method(family, str(name)) if entry.key != OURS]
    stated = _of_source(family, source)
    return [*of_methods, *_submitted(record), *stated, instance, toolkit(version, created[:4])]


def _submitted(record: Record) -> list[Entry]:
    """Who handed in a submitted record, with the DOI where one is stated."""
    said = record.data.get("submitted")
    if not isinstance(said, dict) or not said.get("by"):
        return []
    fields = {"author": f"{said['by']}", "title": f"Schedule or bound for instance {record['instance']}"}
    fields |= {"doi": str(said["doi"])} if said.get("doi") else {}
    return [Entry("misc", key_of("submitted", str(said["by"]), record["instance"]), fields)]


def of_finding(name: str, paper: str, where: str, family: Family) -> list[Entry]:
    """The paper that a finding concerns (of several that whose key its name begins with), the finding, the toolkit."""
    every = of_family(family)
    of = [entry for entry in every if key_of(paper).startswith(entry.key)] or every
    note = f"on {paper}, {where}; results/published/findings.md#{name}"
    finding = {"author": AUTHORS, "title": f"Finding {name}", "year": YEAR, "note": note}
    return [*of, Entry("misc", key_of("finding", name), finding), toolkit("")]


def toolkit(version: str, year: str = "") -> Entry:
    """This toolkit, of the version that made the record in this year (default: the one that runs)."""
    import synth

    version = version or synth.__version__
    year = year if re.fullmatch(r"20\d\d", year) else YEAR
    fields = {"author": AUTHORS, "title": TITLE, "howpublished": "Software", "year": year, "note": f"version {version}"}
    return Entry("misc", key_of("synth", version), fields)


def as_text(entries: Sequence[Entry]) -> str:
    """The entries as one BibTeX file, each key once."""
    return "\n\n".join({entry.key: entry.text() for entry in entries}.values()) + "\n"
