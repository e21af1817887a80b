"""What the site is made of beside ``pages/``: the repository's own Markdown, under shorter addresses.

MkDocs calls the functions ``on_…``. A page keeps the links that it has in the repository; here they become links of the
site. A link to a file that is no page becomes its text; one to nothing at all is a warning, which ``--strict`` refuses.
"""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from latex2mathml.converter import convert
from markdown_it import MarkdownIt
from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parents[2]
OWN = "models/site/pages/"
LOG = logging.getLogger("mkdocs.hooks.site")
TREES = {"models/formats/": "formats/", "results/published/": "results/", "models/": "families/"}
SINGLE = {
    "README.md": "index.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "synth/study/README.md": "reference/study.md",
    "synth/batch/README.md": "reference/batch.md",
    "synth/ranks/README.md": "reference/run.md",
    "synth/exchange/machines/README.md": "reference/machine-files.md",
}
SHOWN = {".png", ".svg", ".csv", ".txt", ".sh", ".json", ".py"}  # files below TREES that a page may link
LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(\s*([^)\s#]*)(#[^)\s]*)?\s*\)")
CODE = re.compile(r"(`+)(?:.|\n)*?\1")


def address(path: str) -> str | None:
    """Where a file of the repository stands on the site; None for what is not there."""
    if path.startswith(OWN):
        return path.removeprefix(OWN)
    if path in SINGLE:
        return SINGLE[path]
    for tree, there in TREES.items():
        if path.startswith(tree) and Path(path).suffix in {".md", *SHOWN}:
            inside = path.removeprefix(tree)
            if tree == "models/" and not re.fullmatch(r"[\w-]+\.md", inside):
                return None
            return there + re.sub(r"(^|/)README\.md$", r"\1index.md", inside)
    return None


def repository_pages() -> Iterator[str]:
    """Every page of the site that is Markdown of the repository, by its path there."""
    yield from SINGLE
    for tree in TREES:
        folder = ROOT / tree
        inside = folder.glob("*.md") if tree != "results/published/" else folder.rglob("*.md")
        yield from (path.relative_to(ROOT).as_posix() for path in sorted(inside))


def linked(path: str) -> Iterator[str]:
    """The paths, from the repository's top, to which a page leads."""
    for _, _, target, _ in LINK.findall(CODE.sub("", (ROOT / path).read_text())):
        if target and "://" not in target:
            yield os.path.normpath(os.path.join(os.path.dirname(path), target))


def on_files(files: Files, config: Any) -> Files:
    """The pages of the repository, and what they and ours show."""
    ours = [OWN + file.src_uri for file in files if file.src_uri.endswith(".md")]
    pages = [*repository_pages(), *ours]
    shown = {target for page in pages for target in linked(page) if Path(target).suffix in SHOWN}
    for path in dict.fromkeys([*pages, *sorted(shown)]):
        there = address(path)
        if there is not None and (ROOT / path).is_file() and files.get_file_from_path(there) is None:
            files.append(File.generated(config, there, abs_src_path=str(ROOT / path)))
            origins()[there] = path
    return files


@cache
def origins() -> dict[str, str]:
    """Path in the repository by path on the site."""
    return {}


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """The page with links of the site, and lists as Python-Markdown wants them."""
    site = page.file.src_uri
    return relinked(COMMANDS.sub(comments_above, four_spaces(markdown)), origins().get(site, OWN + site), site)


COMMANDS = re.compile(r"```bash\n.*?```", re.DOTALL)
COMMENTED = re.compile(r"^(\S.*?) {2,}(# .*)$", re.MULTILINE)
BROAD = 96  # characters that a line of commands has room for


def comments_above(block: re.Match[str]) -> str:
    """A block of commands with the comments above their commands where some line is too long for both."""
    if all(len(line[0]) <= BROAD for line in COMMENTED.finditer(block[0])):
        return block[0]
    return COMMENTED.sub(r"\2\n\1", block[0])


def relinked(text: str, path: str, site: str) -> str:
    """Links of the repository as links of the site."""

    def one(found: re.Match[str]) -> str:
        shown, words, target, anchor = found[1], found[2], found[3], found[4] or ""
        if not target or "://" in target or target.startswith("mailto:"):
            return found[0]
        full = os.path.normpath(os.path.join(os.path.dirname(path), target))
        there = address(full) if (ROOT / full).is_file() else None
        if (ROOT / full / "README.md").is_file():
            there = address(f"{full}/README.md")
        if there is None:
            if not (ROOT / full).exists():
                LOG.warning("%s links to %s, which is not there", path, target)
            return words
        return f"{shown}[{words}]({os.path.relpath(there, os.path.dirname(site) or '.')}{anchor})"

    return outside_code(text, lambda part: LINK.sub(one, part))


def outside_code(text: str, change: Any) -> str:
    """``change`` applied to all but fenced blocks; code spans are part of what it sees."""
    parts, inside = [""], False
    for line in text.splitlines(keepends=True):
        fence = line.lstrip().startswith(("```", "~~~"))
        if fence and not inside:
            parts.append("")
        parts[-1] += line
        if fence and inside:
            parts.append("")
        inside ^= fence
    return "".join(part if part.lstrip().startswith(("```", "~~~")) else change(part) for part in parts)


def four_spaces(text: str) -> str:
    """Lists of CommonMark, whose items are indented as far as their text begins, with four spaces a level and an empty
    line before the first item: what Python-Markdown reads as the same lists."""
    lines = text.split("\n")
    tokens = [token for token in MarkdownIt().enable("table").parse(text) if token.map]
    items = [token.map for token in tokens if token.type == "list_item_open"]
    around: list[list[int]] = [[] for _ in lines]  # of every line: the columns at which the items around it begin
    for first, end in items:
        column = _content_column(lines[first], around[first])
        for number in range(first, end):
            around[number].append(column)
    lists = {token.map[0] for token in tokens if token.type.endswith("_list_open") and token.level == 0}
    marked = {first for first, _ in items}
    made: list[str] = []
    for number, line in enumerate(lines):
        if number in lists and made and made[-1].strip():
            made.append("")
        made.append(_indented(line, around[number], number in marked) if around[number] and line.strip() else line)
    return "\n".join(made)


def _indented(line: str, around: list[int], marked: bool) -> str:
    """A line of a list with four spaces a level."""
    text = line.lstrip()
    if marked:
        marker, _, rest = text.partition(" ")
        return "    " * (len(around) - 1) + f"{marker:<3} {rest.lstrip()}"
    return "    " * len(around) + " " * max(len(line) - len(text) - around[-1], 0) + text


def _content_column(line: str, around: list[int]) -> int:
    """The column at which an item's text begins."""
    found = re.match(r"\s*(?:[-*+]|\d+[.)])\s+", line)
    return found.end() if found else (around or [0])[-1] + 2


MATH = re.compile(r'<(span|div) class="arithmatex">\\[(\[](.*?)\\[)\]]</\1>([.,;:)?]*)', re.DOTALL)
TAG = re.compile(r"\\tag\{([\w, ]+)\}")
ROLE = re.compile(r":(?:class|func|mod|meth|data|attr|exc):<code>~?")


IMAGE = re.compile(r'(<img alt="[^"]*" src="([^"]+)"[^>]*>)')
LONG = 30  # characters of a formula in a line, from which on it may be wider than a phone
PICTURE = re.compile(r'<p>(<img alt="([^"]+)"[^>]*>)</p>')
CELL = re.compile(r"(<t([dh])(?=[ >])[^>]*>)(.*?)(?=</t[dh]>)")
PHRASE, WORDS = 18, 40  # characters of a cell or a column's head, from which on it gets more width
WIDE = 30  # characters of code in a cell, from which on it may break behind a slash or a comma
LONG_CODE = re.compile(rf"<code>([^<]{{{WIDE},}})</code>")
CODE_OF_PAGE = re.compile(r"<code[^>]*>.*?</code>", re.DOTALL)
OPTION = re.compile(r"(?<=[\s>(])-{1,2}[A-Za-z][\w-]*(?![^<]*>)")
QUANTITY = re.compile(r"(?<=\d) (?=(?:[A-Za-z]{1,9}|%)$)")


def on_page_content(html: str, page: Any, **_: Any) -> str:
    """Formulas as MathML, which browsers draw themselves (in the table of contents as letters); roles of docstrings as
    plain code; a picture that stands alone with its caption (the results' pages have theirs); every picture a link to
    itself, to be seen in its full size; tables that break no quantity, code that breaks no option."""
    entries = list(page.toc)
    while entries:
        entry = entries.pop()
        entry.title = re.sub(r"\\\((.*?)\\\)", r"\1", entry.title)
        entries += entry.children
    if not page.file.src_uri.startswith("results/"):
        html = PICTURE.sub(r"<figure>\1<figcaption>\2</figcaption></figure>", html)
    html = IMAGE.sub(r'<a class="picture" href="\2">\1</a>', html)
    html = CODE_OF_PAGE.sub(_whole_options, CELL.sub(_cell, html))
    return MATH.sub(_mathml, ROLE.sub("<code>", html))


def _cell(found: re.Match[str]) -> str:
    """A table's cell: a number and its unit stay on one line, long code breaks where a path or a list does, and the
    style sheet is told which cells are text."""
    tag, kind, text = found.groups()
    long = len(re.sub("<[^>]*>", "", text))
    if kind == "h":
        return (tag.replace("<th", '<th class="head"', 1) if long > PHRASE else tag) + text
    if long > PHRASE:
        tag = tag.replace("<td", f'<td class="{"words" if long > WORDS else "phrase"}"', 1)

    def breaking(code: re.Match[str]) -> str:
        return '<code class="long">' + re.sub("([/,])", r"\1<wbr>", code[1]) + "</code>"

    return tag + QUANTITY.sub("\u00a0", LONG_CODE.sub(breaking, text))


def _whole_options(code: re.Match[str]) -> str:
    """Options of a command, which a browser would break behind a hyphen: ``-`` at a line's end, ``m bound`` below."""
    return OPTION.sub(r'<span class="one-line">\g<0></span>', code[0])


def _mathml(found: re.Match[str]) -> str:
    latex = found[2]
    for entity, sign in (("&lt;", "<"), ("&gt;", ">"), ("&amp;", "&")):
        latex = latex.replace(entity, sign)
    tag = TAG.search(latex)
    latex = TAG.sub("", latex)
    block = found[1] == "div"
    made = convert(latex.strip(), display="block" if block else "inline")
    if not block:
        if len(latex) > LONG:
            return f'<span class="long-formula">{made}</span>{found[3]}'
        return f'<span class="one-line">{made}{found[3]}</span>' if found[3] else made
    return f'<div class="formula">{made}{f"<span>({tag[1]})</span>" if tag else ""}</div>{found[3]}'


SHIM = re.compile(r'<script src="https://unpkg\.com/iframe-worker/shim"></script>')


def on_post_page(output: str, page: Any, **_: Any) -> str:
    """The theme's search asks another host for a worker that runs in pages opened as files; ours does that."""
    up = "../" * page.file.dest_uri.count("/")
    return SHIM.sub(f'<script src="{up}worker.js"></script>', output)


def on_post_build(config: Any, **_: Any) -> None:
    """Without what only a server would send."""
    for name in ("404.html", "sitemap.xml", "sitemap.xml.gz"):
        (Path(config["site_dir"]) / name).unlink(missing_ok=True)
