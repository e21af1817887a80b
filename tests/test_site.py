"""The documentation site: it builds without a warning, every link on it leads somewhere on it, nothing comes from
elsewhere, and the commands that its own pages show run as they stand.

``python tests/test_site.py`` runs the commands and stores the pictures that they draw (``PICTURES``) beside the pages.
"""

from __future__ import annotations

import html.parser
import importlib.util
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from urllib.parse import unquote

import command
import pytest
from exchange.test_solution_import import by_plain_highs
from published import ROOT

SITE = ROOT / "models/site"
PAGES = SITE / "pages"
FENCE = re.compile(
    r"(?:<!-- (?P<why>[^>]*?) -->\n)?```(?P<kind>\w*)(?: title=\"(?P<title>[^\"]+)\")?\n(?P<text>.*?)```", re.DOTALL
)
GALLERY = PAGES / "gallery.md"
Runner = Callable[[list[str], Path], str]  # (words of a command, folder) -> what it prints
NOT_RUN = ("it installs",)
PICTURES = {  # by page: what its commands have drawn, or a record to draw
    "how-to/tune.md": ("tune.svg", "tuned/bandwidth.svg"),
    "how-to/drill.md": ("drill.svg", "drilled/losses.svg"),
    "how-to/study.md": ("study.svg", "results/studies/small/figures/gaps.svg"),
    "how-to/run.md": ("run.svg", "results/fabric/four/ring.json"),
    "how-to/export.md": ("export.svg", "results/fabric/four/forest-highs.json"),
    "how-to/plan.md": ("plan.svg", "planned/fabric/dgx-a100-gpus4-broadcast-1B-demand-line2/plan.json"),
    "start/topology.md": ("topology.svg", "results/fabric/mine/pull.json"),
    "start/algorithm.md": ("algorithm.svg", "results/xtree/ring4/pull.json"),
}


def blocks(page: Path) -> Iterator[re.Match[str]]:
    return FENCE.finditer(page.read_text())


def to_run(page: Path) -> list[str | None]:
    """Of the page's blocks of commands that run here, what is said above them: nothing, or `slow`."""
    found = [block["why"] for block in blocks(page) if block["kind"] == "bash" and not block["title"]]
    return [why for why in found if why in (None, "slow")]


WITH_COMMANDS = [
    pytest.param(page, why, marks=[pytest.mark.slow] if why else [], id=f"{page.stem}{'-slow' if why else ''}")
    for page in [ROOT / "README.md", *sorted(PAGES.rglob("*.md"))]
    for why in sorted(set(to_run(page)), key=str)
]


def run_by_another_test(why: str) -> Path | None:
    """The test that a comment above a block names."""
    return ROOT / why.removeprefix("run by ") if why.startswith("run by ") else None


def prepare(folder: Path) -> None:
    """What a reader has: a checkout's instances and published results, and a matrix of nvidia-smi."""
    (folder / "instances").symlink_to(ROOT / "instances")
    (folder / "results").mkdir()
    (folder / "results/published").symlink_to(ROOT / "results/published")
    shutil.copy(ROOT / "tests/exchange/machines/samples/dgx1-topo.txt", folder / "topo.txt")


def run_here(words: list[str], folder: Path) -> str:
    """What a command of ours, or Python, prints in a folder."""
    if words[0] == "python":
        done = subprocess.run([sys.executable, *words[1:]], cwd=folder, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout
    assert words[0] == "synth", words
    return command.run(*words[1:], cwd=folder).stdout


def follow(page: Path, folder: Path, slow: bool = True, run: Runner = run_here) -> int:
    """Write the page's files and run its commands, in their order, those marked slow too if asked; how many ran."""
    count = 0
    for block in blocks(page):
        if block["title"]:
            (folder / block["title"]).write_text(block["text"])
        elif block["kind"] == "bash" and block["why"] in ((None, "slow") if slow else (None,)):
            for line in block["text"].splitlines():
                run_line(line, folder, run)
                count += 1
    return count


def run_line(line: str, folder: Path, run: Runner = run_here) -> None:
    """One command; `> FILE` and patterns as a shell takes them. The solution of ``model.mps`` is HiGHS's."""
    words = shlex.split(line, comments=True)
    if "model.sol" in words and not (folder / "model.sol").exists():
        by_plain_highs(folder / "model.mps", folder / "model.sol")
    target = words[words.index(">") + 1] if ">" in words else None
    words = words[: words.index(">")] if target else words
    full = [name for word in words[1:] for name in (expanded(word, folder) if is_pattern(word) else [word])]
    printed = run([words[0], *full], folder)
    if target:
        (folder / target).write_text(printed)


def is_pattern(word: str) -> bool:
    """Whether a shell looks for files: a key's value, which a page puts in quotes, is no pattern."""
    return "*" in word and "=" not in word


def expanded(pattern: str, folder: Path) -> list[str]:
    found = sorted(path.relative_to(folder).as_posix() for path in folder.glob(pattern))
    assert found, f"nothing is called {pattern}"
    return found


@pytest.mark.long
@pytest.mark.parametrize(("page", "why"), WITH_COMMANDS)
def test_the_commands_of_a_page_run_as_they_stand(page: Path, why: str | None, tmp_path: Path) -> None:
    prepare(tmp_path)
    assert follow(page, tmp_path, slow=why == "slow")
    _, drawn = (
        PICTURES.get(page.relative_to(SITE).as_posix().removeprefix("pages/"), ("", "."))
        if SITE in page.parents
        else ("", ".")
    )
    assert (tmp_path / drawn).exists() or (why is None and "slow" in to_run(page))


def test_what_is_not_run_says_why() -> None:
    """One of few reasons, or the test that runs it, which quotes it."""
    for page in set(PAGES.rglob("*.md")) - {GALLERY}:
        for block in blocks(page):
            if block["kind"] == "bash" and block["why"] not in (None, "slow"):
                other = run_by_another_test(block["why"])
                assert block["why"].removeprefix("not run: ") in NOT_RUN if other is None else other.exists(), page
                if other is not None:
                    words = shlex.split(block["text"].splitlines()[0], comments=True)
                    assert all(word in other.read_text() for word in words[:2]), block["text"]


def test_every_picture_of_the_pages_is_made_by_a_command() -> None:
    """Those stored beside the pages by the commands of one (``PICTURES``), the others by `synth reproduce`."""
    drawn = {name for name, _ in PICTURES.values()}
    stored = {path.name for path in (PAGES / "pictures").glob("*")}
    assert stored == drawn
    for page in PAGES.rglob("*.md"):
        for target in re.findall(r"!\[[^\]]*\]\(([^)]+)\)", page.read_text()):
            assert (page.parent / target).is_file(), (page, target)


def gallery() -> list[tuple[Path, str]]:
    """Each picture of the gallery with its command."""
    pictures = re.findall(r"!\[[^\]]+\]\(([^)]+)\)", GALLERY.read_text())
    commands = [block["text"].strip() for block in blocks(GALLERY)]
    return [((GALLERY.parent / name).resolve(), line) for name, line in zip(pictures, commands, strict=True)]


LONG = ("study", "harvest")  # of the gallery's commands


@pytest.mark.long(after=1)
@pytest.mark.parametrize(
    ("picture", "line"),
    [
        pytest.param(*one, id=one[1].split()[2], marks=[pytest.mark.slow] if any(map(one[1].count, LONG)) else [])
        for one in gallery()
    ],
)
def test_a_command_of_the_gallery_draws_its_picture(picture: Path, line: str, tmp_path: Path) -> None:
    """Another version of matplotlib may move a few pixels; a study's picture shows times, which differ."""
    from matplotlib.testing.compare import compare_images

    (tmp_path / "instances").symlink_to(ROOT / "instances")
    place = tmp_path / picture.relative_to(ROOT)
    if " show " in line:
        place = tmp_path / shlex.split(line)[-1]
        (tmp_path / "results").symlink_to(ROOT / "results")
    else:
        shutil.copytree(picture.parent, place.parent)
        shutil.copy(picture.parent.with_suffix(".md"), place.parent.parent)
        place.unlink()
        place = tmp_path / "results/quick/harvest" / place.name if "--quick" in line else place
    run_line(line, tmp_path)
    assert " study " not in line or place.stat().st_size > 5000
    assert " study " in line or compare_images(str(picture), str(place), tol=5) is None


def test_the_gallery_shows_twelve_pictures_of_the_pages() -> None:
    assert len(gallery()) == 12
    for picture, _ in gallery()[1:]:
        page = picture.parent.with_suffix(".md")
        assert f"{picture.parent.name}/{picture.name}" in page.read_text()


class Links(html.parser.HTMLParser):
    """What a page leads to, what it loads, and the anchors that it has."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.leads: list[str] = []
        self.loads: list[str] = []
        self.anchors = {""}
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        held = {key: value or "" for key, value in attrs}
        self.anchors |= {held.get("id", ""), held.get("name", "")}
        if tag == "a" and "href" in held:
            self.leads.append(held["href"])
        elif tag == "link" and held.get("rel") not in ("canonical", "prev", "next"):
            self.loads.append(held["href"])
        elif tag in ("img", "script", "iframe", "source") and "src" in held:
            self.loads.append(held["src"])


@cache
def links_of(page: Path) -> Links:
    return Links(page.read_text())


def test_what_a_table_and_a_formula_become() -> None:
    """The style sheet is told which cells are text, aligned or not; a formula's tag and what follows it stay by it."""
    pytest.importorskip("latex2mathml")
    found = importlib.util.spec_from_file_location("hooks", SITE / "hooks.py")
    assert found is not None
    assert found.loader is not None
    hooks = importlib.util.module_from_spec(found)
    found.loader.exec_module(hooks)
    cells = '<td style="text-align: left;">three words of it</td><td style="text-align: left;">{}</td><td>1 us</td>'
    for words, kind in (
        ("twenty characters it has", "phrase"),
        ("as many as forty characters, as a remark has", "words"),
    ):
        one, other, number = re.findall("<td[^>]*>", hooks.CELL.sub(hooks._cell, cells.format(words)))
        assert "class" not in one + number
        assert f'class="{kind}"' in other
        assert f'td.{kind}:not([style*="right"])' in (PAGES / "site.css").read_text()
    heads = hooks.CELL.sub(
        hooks._cell, "<thead><tr><th>gap</th><th style=''>what of all that the column says</th></tr>"
    )
    assert re.findall("<th[^>]*>", heads) == ["<thead>", "<th>", "<th class=\"head\" style=''>"]
    math = r'<div class="arithmatex">\[x \tag{15, 16}\]</div> is <span class="arithmatex">\(y\)</span>, so'
    made = hooks.MATH.sub(hooks._mathml, math)
    assert "<span>(15, 16)</span></div>" in made
    assert re.search(r'<span class="one-line"><math.*</math>,</span> so', made)
    options = hooks.CODE_OF_PAGE.sub(hooks._whole_options, "<code>a b-c.json -m d --time-limit 2</code> --no-code")
    assert re.findall('one-line">([^<]*)<', options) == ["-m", "--time-limit"]
    assert re.sub("<[^>]*>", "", options) == "a b-c.json -m d --time-limit 2 --no-code"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built as `.ci/run` builds it."""
    if any(importlib.util.find_spec(name) is None for name in ("mkdocs", "material", "mkdocstrings", "latex2mathml")):
        pytest.skip("the extra docs is not installed")
    folder = tmp_path_factory.mktemp("site")
    words = [sys.executable, "-m", "mkdocs", "build", "-q", "--strict", "-f", SITE / "mkdocs.yml", "-d", folder]
    nowhere = dict.fromkeys(("http_proxy", "https_proxy"), "http://127.0.0.1:9")  # what is fetched cannot be had
    alone = {**os.environ, **nowhere, "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(words, capture_output=True, text=True, env=alone)
    assert done.returncode == 0, done.stderr
    return folder


@pytest.mark.slow  # `.ci/run` runs it
def test_every_link_on_the_site_leads_somewhere_on_it(site: Path) -> None:
    pages = sorted(site.rglob("*.html"))
    assert len(pages) > 50
    lost = []
    for page in (page for page in pages if page.name != "404.html"):
        for link in [*links_of(page).leads, *links_of(page).loads]:
            path, _, anchor = unquote(link).partition("#")
            if re.match(r"(https?|mailto):", link):
                continue
            target = (page.parent / path.partition("?")[0]).resolve() if path else page
            if not target.is_file() or (target.suffix == ".html" and anchor not in links_of(target).anchors):
                lost.append(f"{page.relative_to(site)}: {link}")
    assert lost == []


@pytest.mark.slow  # `.ci/run` runs it
def test_nothing_on_the_site_comes_from_elsewhere(site: Path) -> None:
    """No script, style, font or picture of another host: it reads the same without a network."""
    for page in site.rglob("*.html"):
        assert [link for link in links_of(page).loads if re.match(r"(https?:)?//", link)] == [], page
    for style in site.rglob("*.css"):
        assert not re.search(r"url\([\"']?(https?:)?//", style.read_text()), style


@pytest.mark.slow  # `.ci/run` runs it
def test_formulas_are_drawn_without_a_script(site: Path) -> None:
    page = (site / "families/xtree.html").read_text()
    assert page.count("<math") > 30
    assert 'class="arithmatex"' not in page
    for file in site.rglob("*.html"):  # a command of TeX that is not known would be shown as its name
        assert not re.search(r"<m\w+[^>]*>\\[A-Za-z]+</m\w+>", file.read_text()), file


@pytest.mark.slow  # `.ci/run` runs it
def test_items_of_a_list_are_items_on_the_site_too(site: Path) -> None:
    """Behind a paragraph inside an item the next item needs an empty line, or it becomes part of that paragraph."""
    for file in (site / "families").glob("*.html"):
        assert not re.search(r"^\s*\* +<strong>", file.read_text(), re.MULTILINE), file


@pytest.mark.slow  # `.ci/run` runs it
def test_long_commands_and_cells_of_words_are_readable(site: Path) -> None:
    """A comment that has no room beside its command stands above it; a phone gives cells of words more of its width."""
    tour = re.sub("<[^>]*>", "", (site / "start/tour.html").read_text())
    assert (
        "# synth make xtree --help: its keys\nsynth make xtree network=equimesh rows=2 cols=3 chunks=1 -o mesh.json"
        in tour
    )
    assert '<td class="words">the best schedule' in (site / "start/tour.html").read_text()
    assert '<td class="phrase">the best proven lower bound</td>' in (site / "start/tour.html").read_text()


@pytest.mark.slow  # `.ci/run` runs it
def test_search_finds_what_the_pages_say(site: Path) -> None:
    index = (site / "search/search_index.json").read_text()
    for word in ("certificate", "synth drill", "edge-isoperimetric", "time_limit"):
        assert word in index


if __name__ == "__main__":
    (PAGES / "pictures").mkdir(exist_ok=True)
    for made_by, (picture, source) in PICTURES.items():
        with tempfile.TemporaryDirectory() as scratch:
            prepare(Path(scratch))
            follow(PAGES / made_by, Path(scratch))
            if source.endswith(".json"):
                command.run("show", source, "--plot", PAGES / "pictures" / picture, cwd=Path(scratch))
            else:
                shutil.copy(Path(scratch) / source, PAGES / "pictures" / picture)
