"""Words and sentences of the documents and the help texts: no phrase a reader stumbles over, no sentence without end.

`python tests/test_prose.py [FILE …]` prints sentences and paragraphs that are too long, and phrases to put plainly.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from markdown_it import MarkdownIt
from markdown_it.token import Token

from synth.family import families

ROOT = Path(__file__).resolve().parents[1]
WORDS = 30  # in a sentence
LINES = 6  # in a paragraph
IN_ALL, UNRELEASED = 45_000, 1000  # words of all pages written by hand, and of what the next version has new
MADE = re.compile(r"<!-- (?:tour|gaps|(?:published|fields|methods): \w+) -->.*?<!-- end -->", re.DOTALL)
PHRASES = (
    r"in hand(?! (?:in|over))",
    r"(?:by|on) (?:its|the solver's|their) word",
    "nobody can beat",
    "pays? for its way",
    "finds? new ways?",
    "playing field",
    "anew",
    "what is free",
    "(?:is|are) no more",
)
TERMS = ("lanes?", "legs?", "in the book", "on the board", "the booking")  # routes, reservations, routing state
PLAIN = re.compile(rf"\b(?:{'|'.join((*PHRASES, *TERMS))})\b", re.I)
ENDS = re.compile(r"(?<=[.!?:;])\s+(?=[A-Z`0-9($])")
MARKDOWN = MarkdownIt("commonmark").enable("table")


def documents() -> list[str]:
    """Return the paths of all documents that people read, from the root of the checkout."""
    folders = [*(ROOT / "models").rglob("*.md"), *(ROOT / "results/published").rglob("*.md")]
    folders += [*(ROOT / "synth").rglob("README.md")]
    return ["README.md", "CONTRIBUTING.md", *sorted(str(file.relative_to(ROOT)) for file in folders)]


def spoken(token: Token) -> str:
    """Return the words of a paragraph as they are read: code counts as one word, a formula as one."""
    parts = []
    for child in token.children or []:
        if child.type == "code_inline":
            parts.append("`code`")
        elif child.type == "text":
            parts.append(child.content)
        elif child.type in ("softbreak", "hardbreak"):
            parts.append(" ")
    return re.sub(r"\$[^$]+\$", "$x$", "".join(parts))


def paragraphs(text: str) -> Iterator[tuple[int, int, str]]:
    """Yield the first line, the number of lines and the words of every paragraph and list item; tables are left out."""
    in_table = False
    for token in MARKDOWN.parse(text):
        in_table = token.type == "table_open" or (in_table and token.type != "table_close")
        if token.type == "inline" and not in_table and token.map:
            yield token.map[0] + 1, token.map[1] - token.map[0], spoken(token)


def too_long(text: str) -> tuple[list[tuple[int, int, str]], list[tuple[int, int]]]:
    """Return the sentences (line, words, sentence) of more than ``WORDS`` words and the paragraphs (line, lines) of
    more than ``LINES`` lines."""
    found = [(line, len(s.split()), s) for line, _, words in paragraphs(text) for s in ENDS.split(words)]
    return [each for each in found if each[1] > WORDS], [(line, n) for line, n, _ in paragraphs(text) if n > LINES]


def phrases(text: str) -> list[tuple[int, str]]:
    return [(line, found.group()) for line, _, words in paragraphs(text) for found in PLAIN.finditer(words)]


def test_the_linter_finds_what_it_should() -> None:
    """One document with each fault, and one with none."""
    long = "Word " * WORDS + "and more."
    assert [each[:2] for each in too_long(f"# Title\n\nShort. {long}\n")[0]] == [(3, WORDS + 2)]
    assert too_long("word\n" * (LINES + 1))[1] == [(1, LINES + 1)]
    assert phrases("The best\nin hand is kept.") == [(1, "in hand")]
    assert phrases("`in hand` is a name.\n\n| lane |\n| --- |\n| leg |\n") == []
    assert too_long(f"| {long} |\n| --- |\n") == ([], [])
    assert too_long("`a` is one. " * WORDS) == ([], [])


@pytest.mark.parametrize("document", documents())
def test_documents_are_put_plainly(document: str) -> None:
    assert phrases((ROOT / document).read_text()) == []


@pytest.mark.parametrize("document", documents())
def test_sentences_and_paragraphs_have_an_end(document: str) -> None:
    sentences, long_paragraphs = too_long((ROOT / document).read_text())
    assert sentences == []
    assert long_paragraphs == []


def by_hand() -> dict[str, int]:
    """Words of each page, separated by spaces, without the tables that are made; results' pages are made as a whole."""
    folders = [ROOT, *(ROOT / name for name in ("models", "synth"))]
    files = [*folders[0].glob("*.md"), *(file for folder in folders[1:] for file in folder.rglob("*.md"))]
    return {str(file.relative_to(ROOT)): len(MADE.sub("", file.read_text()).split()) for file in files}


def test_what_is_written_by_hand_can_be_read() -> None:
    words = by_hand()
    assert len(words) > 40
    assert sum(words.values()) <= IN_ALL, sorted(words.items(), key=lambda item: -item[1])[:10]
    assert len((ROOT / "CHANGELOG.md").read_text().split("\n## ")[1].split()) <= UNRELEASED


def test_help_texts_are_put_plainly() -> None:
    told = [(family.name, method.name, method.summary) for family in families() for method in family.methods.values()]
    assert [each for each in told if PLAIN.search(each[-1]) or len(each[-1].split()) > WORDS] == []


def main(files: list[str]) -> None:
    for file in files or documents():
        text = (ROOT / file).read_text()
        sentences, long_paragraphs = too_long(text)
        for line, words, sentence in sentences:
            print(f"{file}:{line}: {words} words: {sentence}")
        for line, lines in long_paragraphs:
            print(f"{file}:{line}: a paragraph of {lines} lines")
        for line, phrase in phrases(text):
            print(f"{file}:{line}: put plainly: {phrase}")


if __name__ == "__main__":
    main(sys.argv[1:])
