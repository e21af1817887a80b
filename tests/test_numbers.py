"""Every number with a unit in a hand-written document has a source, and says what its source says; so has every count
of two digits or more. A size is none where it is only what is asked for: a power of two in a sentence that names a
collective or a machine.

A test of the page builds the sentence from records (``TEXT in …`` in ``tests/papers/*/test_page.py`` or
``test_readme.py``), or ``numbers.toml`` says where the number comes from. *Traced*: a published file, one of the code,
or an instance has lines with the words that are named, and they hold the number with as many digits or more.
*Computed*: an expression gives it, which counts files or their bytes or is arithmetic. *Cited*: a paper's text has such
lines (tested where the papers are). *Outside*: another's format or product, with the place that states it.
Tables between comments (``<!-- tour -->``) are compared by tests.

``python tests/test_numbers.py [FILE …]`` prints the numbers without a source.
"""

from __future__ import annotations

import ast
import json
import math
import re
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from command import flat

ROOT = Path(__file__).resolve().parents[1]
NUMBER = r"(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?(?:e[-+]?\d+)?"
JOIN = ", | to | and | or | instead of | against "
UNIT = r"%|times\b|[num]?s\b|seconds?\b|minutes?\b|hours?\b|timesteps?\b|steps\b|phases\b|×(?!\d)"
SIZE = r"(?:[KMGT]i?|k)?B(?:/s)?\b|[KMG]bit/s|bytes\b"
UNIT = rf"{UNIT}|{SIZE}"
STATED = re.compile(rf"(?<![\w.,/×^-])(?:{NUMBER}(?:(?:{JOIN}){NUMBER})* ?(?:{UNIT})|{NUMBER} of {NUMBER})")
COUNT = re.compile(r"(?<![\w.,/×^-])\d[\d,]*\d(?![\w.]*\d|[×^]|e[-+]?\d)")  # of two digits or more
CODE = r"`[^`]+`"
NO_COUNT = re.compile(  # formulas, years of publication, parts of papers, and items of lists
    rf"{CODE}|\$\$.*?\$\$|\$[^$ ][^$]*\$|(?:[A-Z][\w.-]*|\bal\.|,) (?:19[5-9]\d|20[0-2]\d)\b"
    r"|\((?:19[5-9]\d|20[0-2]\d)\b|Figures? \d+(?:(?:,| and| to) \d+)*|'\d\d\b|pp\. \d+–\d+|lines? \d+ and \d+|\(\d\d\)"
    r"|(?<=\. )\d\d\. (?=\*\*)"
)
ASKED = re.compile(  # words of a sentence that asks a question of some size
    r"allgather|reduce|broadcast|alltoall|all-to-all|dragonfl|machine|GPU|DGX|DGX-|MI250|mesh|torus|schedule|message|`run`"
)
MEASURED = re.compile(r"memory|file|records?\b|kept|git")  # words of one that says how large something is
MADE = r"<!-- (?P<kind>tour|gaps|(?:published|fields|methods): \w+) -->.*?<!-- end -->"
NOT_READ = (r"^ *```.*?^ *```$", MADE, r"!\[[^\]]*\]")
SCALES = (1, 100, 1e3, 1e6, 1e9, 1e-9, 1e-6, 1e-3, 1e-12, 2**-10, 2**-20, 2**-30)  # %, ms to ns, GB/s, millions, KiB
PAPERS = ROOT.parent / "shared/papers"
KINDS = ("traced", "computed", "cited", "outside")
SOURCES = tomllib.loads((ROOT / "tests/numbers.toml").read_text())
GENERATED = "models/synth_papers"  # what these modules write is computed, but for the sentences that stand in them
DOCUMENTS = [
    GENERATED,
    *("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "models/README.md", "results/published/README.md"),
    "results/published/harvest/gaps.md",
    *sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "models").glob("[a-z]*.md")),
    *sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "models/formats").glob("*.md")),
    *sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "models/site/pages").rglob("*.md")),
    *sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "synth").rglob("README.md")),
    *sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "notebooks").glob("*.ipynb")),
]


@cache
def prose(document: str) -> str:
    """The document in one line, without what is run, made or drawn; of the changelog the first version."""
    if document == GENERATED:
        return flat(" … ".join(sentences()))
    text = (ROOT / document).read_text()
    if document.endswith(".ipynb"):
        cells = json.loads(text)["cells"]
        text = "\n\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown")
    text = text.split("\n## ")[1] if document == "CHANGELOG.md" else text
    for pattern in NOT_READ:
        text = re.sub(pattern, "", text, flags=re.DOTALL | re.MULTILINE)
    return flat(text)


def sentences() -> Iterator[str]:
    """The texts of more than seven words in the modules that write pages; no docstrings."""
    for file in sorted((ROOT / GENERATED).rglob("*.py")):
        nodes = list(ast.walk(ast.parse(file.read_text())))
        told = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
        for node in nodes:
            text = node.value if isinstance(node, ast.Constant) and id(node) not in told else None
            if isinstance(text, str) and len(text.split()) > 7:
                yield text


def stated(text: str) -> Iterator[re.Match[str]]:
    """Each number with a unit, or list of numbers before one, outside code."""
    return STATED.finditer(re.sub(CODE, lambda code: "`" + "-" * (len(code.group()) - 2) + "`", text))


def numbers(text: str) -> list[tuple[float, float]]:
    """Value and half a unit of the last digit of each number in a text."""
    found = [number.replace(",", "") for number in re.findall(rf"(?:(?<![\w.])|(?<=[ -]x)){NUMBER}", text)]
    return [(float(number), 0.5 * 10 ** -len(number.partition("e")[0].partition(".")[2])) for number in found]


def counts(document: str) -> Iterator[re.Match[str]]:
    """The numbers without a unit."""
    yield from COUNT.finditer(uncounted(prose(document)))


def uncounted(text: str) -> str:
    """A text without what holds numbers that are no counts, each of its characters where it was."""
    return NO_COUNT.sub(lambda found: "`" * len(found.group()), text)


def is_asked(document: str, text: str, found: re.Match[str]) -> bool:
    """Whether a size is only that of a question; in what modules write, whose measured sizes are computed, each is."""
    if not re.search(rf"(?:{SIZE})$", found.group()) or found.group().endswith("/s"):
        return False
    begin = max(text.rfind(end, 0, found.start()) for end in (". ", "| ", "* ", "… "))
    sentence = re.split(r"\. | \|| …", text[begin + 1 :], maxsplit=1)[0]
    question = document == GENERATED or ASKED.search(sentence)
    round_ones = all(value > 0 and (math.log2(value) % 1 == 0 or value == 1056) for value, _ in numbers(found.group()))
    return round_ones and bool(question) and not MEASURED.search(sentence)


@cache
def asserted() -> list[re.Pattern[str]]:
    """What tests look for in documents: each ``TEXT in …``, of an f-string with any number or word where it
    computes."""
    patterns = []
    for file in [*(ROOT / "tests/papers").glob("*/test_page.py"), ROOT / "tests/test_readme.py"]:
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.In):
                parts = node.left.values if isinstance(node.left, ast.JoinedStr) else [node.left]
                texts = [part.value if isinstance(part, ast.Constant) else None for part in parts]
                if sum(len(str(text)) for text in texts if text) > 8:
                    words = (
                        r"(?:[\d.,]+(?: of \d+)?|[a-z]+|–)" if text is None else re.escape(str(text)) for text in texts
                    )
                    patterns.append(re.compile("".join(words)))
    return patterns


def without_source(document: str) -> list[str]:
    """The numbers of a document, each with the words before it, that neither a test nor the list names."""
    text, listed = prose(document), SOURCES.get(document, {})
    known = [re.compile(re.escape(phrase)) for kind in listed.values() for phrase in kind]
    spans = [found.span() for pattern in [*asserted(), *known] for found in pattern.finditer(text)]
    return [
        text[max(0, found.start() - 70) : found.end()]
        for found in [*stated(text), *counts(document)]
        if not is_asked(document, text, found) and not any(begin <= found.start() < end for begin, end in spans)
    ]


def not_in_source(phrase: str, source: str, kind: str = "traced") -> list[float]:
    """The numbers of a phrase (those with a unit and counts, if there are any) that the source does not give."""
    held = computed(source) if kind == "computed" else in_lines(source, PAPERS if kind == "cited" else ROOT)
    scales = (1,) if kind == "computed" else SCALES
    asked = " ".join(found.group() for found in [*stated(phrase), *COUNT.finditer(uncounted(phrase))]) or phrase
    return [
        value
        for value, half in numbers(asked)
        if not any(abs(scale * other - value) <= half * 1.000001 for other in held for scale in scales)
    ]


def in_lines(source: str, folder: Path) -> list[float]:
    """The numbers of those lines of a file that hold the words: ``file | words``."""
    file, _, words = source.partition(" | ")
    lines = [line for line in (folder / file).read_text().splitlines() if words in line]
    lines = [re.sub(r"(?<=\d)_(?=\d)", "", line) for line in lines] if file.endswith("py") else lines
    return [value for line in lines for value, _ in numbers(line.replace(",", " ") if file.endswith("csv") else line)]


def computed(expression: str) -> list[float]:
    """The values of an expression of numbers, numbers of files, and sizes of published files in megabytes."""
    names = {"files": lambda pattern: len(list(ROOT.glob(pattern))), "megabytes": megabytes}
    values = eval(expression, {"__builtins__": {}} | names | {"ceil": math.ceil, "factorial": math.factorial})
    return [float(value) for value in (values if isinstance(values, tuple) else (values,))]


def megabytes(pattern: str) -> float:
    """The size of a published file."""
    [file] = (ROOT / "results/published").glob(pattern)
    return file.stat().st_size / 1e6


def test_what_counts_as_a_number_and_as_its_source() -> None:
    """Lists before a unit are one; code and dimensions are none. A source has as many digits or more."""
    text = "It takes 3.1, 4 and 5 %, 7 of 9 in 1,200 s on 8×8 at 2.5 GB/s, `-O x=5s`."
    assert [found.group() for found in stated(text)] == ["3.1, 4 and 5 %", "7 of 9", "1,200 s", "2.5 GB/s"]
    exact = "results/published/harvest/exact.md | binomial-broadcast-16-circuits-p2"
    assert not_in_source("in 26.07 us or 26.1 us", exact) == []
    assert not_in_source("in 26.08 us or 26.2 us", exact) == [26.08, 26.2]
    assert not_in_source("in 26.07 us", "results/published/harvest/exact.md | swing-8-p1") == [26.07]
    assert any(pattern.search("Over the better of static and BvN it gains up to 2.43 times") for pattern in asserted())


def test_a_computed_number_and_one_of_a_paper() -> None:
    """An expression gives the value itself, no scale of it; a paper's line is read like one of a published file."""
    assert not_in_source("37,896,336 transfers in 6156 phases", "6156**2, 18**2 * 19", "computed") == []
    assert not_in_source("18 phases, 1.0 MB", 'files("instances/tour/tour.toml") * 18, 1000', "computed") == [1.0]
    assert computed('megabytes("xtree/records.jsonl")')[0] > 0.1
    if PAPERS.is_dir():
        assert not_in_source("6156 servers", "mlfm.txt | 36-port switches can connect", "cited") == []
        assert not_in_source("6157 servers", "mlfm.txt | 36-port switches can connect", "cited") == [6157]


def test_what_is_a_count() -> None:
    """Not a formula, a year of publication, a part of a paper, a dimension, a power, nor the number of an equation."""
    text = "12. On 64 GPUs (46, eq. (12)), SC '25, Harper 1964, $n = 17$, 8×8, 10^7, 20e-9 and 1.25: 22 of 3, `55`"
    assert [found.group() for found in COUNT.finditer(uncounted(text))] == ["12", "64", "46", "22"]
    assert not_in_source("64 GPUs", "models/synth_models/bine/check/crossings.py | MOST_PART") == []
    assert not_in_source("65,536 ranks", "models/synth_models/bine/instance.py | MAX_RANKS") == []
    assert not_in_source("65,537 ranks", "models/synth_models/bine/instance.py | MAX_RANKS") == [65537]


def test_a_size_that_is_only_asked_for_needs_no_source() -> None:
    """A power of two, of a collective or on a machine; not what was measured, and not at so many bytes a second."""
    text = "An allgather of 1 and 64 KiB. The record has 4 MiB. On 8 GPUs 3 MiB are sent, at 64 MiB/s; 8 MiB of what."
    asked = {found.group(): is_asked("README.md", text, found) for found in stated(text)}
    assert asked == {"1 and 64 KiB": True, "4 MiB": False, "3 MiB": False, "64 MiB/s": False, "8 MiB": True}
    alone = "It has 4 MiB."
    assert [is_asked("README.md", alone, found) for found in stated(alone)] == [False]


@pytest.mark.parametrize("document", DOCUMENTS)
def test_numbers_have_a_source(document: str) -> None:
    assert without_source(document) == []


@pytest.mark.parametrize("document", SOURCES)
def test_numbers_are_those_of_their_source(document: str) -> None:
    text, listed = prose(document), SOURCES[document]
    assert set(listed) <= set(KINDS)
    assert [phrase for kind in listed.values() for phrase in kind if phrase not in text] == []
    checked = KINDS[:2] if not PAPERS.is_dir() else KINDS[:3]
    wrong = {
        phrase: not_in_source(phrase, source, kind)
        for kind in checked
        for phrase, source in listed.get(kind, {}).items()
    }
    assert {phrase: left for phrase, left in wrong.items() if left} == {}


def test_what_is_outside_names_who_states_it_and_where() -> None:
    """Formats and products of others alone, and few of them."""
    outside = [source for listed in SOURCES.values() for source in listed.get("outside", {}).values()]
    assert [source for source in outside if not re.fullmatch(r"[^|]+ \| \S.*", source)] == []
    assert len(outside) < 10


if __name__ == "__main__":
    for name in sys.argv[1:] or DOCUMENTS:
        print("".join(f"{name}: …{words}\n" for words in without_source(name)), end="")
