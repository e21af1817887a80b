"""The commands on the site's other pages (families, results, the READMEs of synth) and those of findings' cases.

What makes or reads a file runs as it stands. The rest takes minutes, or what only a reader has: the command line reads
it, so that no option, method or shipped file is called what it is not. (``test_site.py`` runs those of the site's own
pages.)
"""

from __future__ import annotations

import csv
import re
import shlex
import shutil
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import command
import pytest
import test_site
from published import PUBLISHED, ROOT
from typer.main import get_command

from synth.cli.main import app
from synth.family import families

PAGES = [
    ROOT / "CONTRIBUTING.md",
    *sorted((ROOT / "models").glob("*.md")),
    *sorted((ROOT / "results/published").rglob("*.md")),
    *sorted((ROOT / "synth").rglob("README.md")),
]
WITH_COMMANDS = [page for page in PAGES if any(block["kind"] == "bash" for block in test_site.blocks(page))]
RUN = ("make", "import", "library", "families", "solvers")  # in seconds, with the files below
ELSEWHERE = {  # patterns of commands that neither this test nor test_long_commands.py runs, and what does
    r"synth batch (?!.*--dry-run)": "tests/slurm/test_pages.py",
    r"\.venv/bin/synth reproduce all --quick": ".ci/run",
}
NOT_OURS = {  # first words of what is not our command, and who runs it
    "python3": "it installs",
    ".venv/bin/pytest": "`.ci/run`",
    ".venv/bin/ruff": "`.ci/run`",
    ".venv/bin/mkdocs": "`.ci/run`",
    ".ci/run": "whoever hands in a change",
    "pytest": "whoever measures",
    "python": "whoever measures",
    "mpirun": "tests of `synth run`, where MPI is installed",
    "srun": "it needs Slurm",
}
MOST = 12  # commands of a finding that `test_long_commands.py` runs; of more the first
STAR = "".join(f"{rank},{switch},25GB/s,\n{switch},{rank},25GB/s,\n" for switch in (8, 9) for rank in range(8))
FILES = {
    "broken.txt": "link 0 8\n",
    "links.csv": f"src,dst,bandwidth,latency\n{STAR}",
    "my-links.csv": "src,dst\n0,1\n1,2\n2,3\n3,0\n",
    "demand.csv": "src,dst,bytes\n0,1,4096\n5,9,1024\n",
    "servers.txt": "0 0 0\n0 1 1\n1 2 0\n",
    "pairs.csv": "0,0,0,1,1,1,2\n",
    "layers.csv": "name,collective,bytes\nsums,allreduce,4MiB\ntokens,alltoall,1MiB\n",
}
OTHER_FILES = {"models/mlfm.md": {"broken.txt": "link 0 0 0 1\n"}}


def commands(page: Path) -> Iterator[list[str]]:
    """The words of each command in the page's blocks of commands."""
    for block in test_site.blocks(page):
        if block["kind"] == "bash":
            for line in re.sub(r"\\\n\s*", "", block["text"]).splitlines():
                for one in line.partition(" #")[0].split("; "):
                    if one.strip() and not one.startswith("#"):
                        yield shlex.split(one)


def of_findings() -> dict[str, list[str]]:
    """The commands that make the records of every finding again, each once, from the last column of its cases."""
    found: dict[str, dict[str, None]] = {}
    with (PUBLISHED / "findings/cases.csv").open(newline="") as stream:
        for row in csv.DictReader(stream):
            found.setdefault(row["finding"], {}).update(dict.fromkeys(row["again"].split(" && ")))
    return {name: list(lines) for name, lines in found.items()}


@pytest.mark.long
def test_commands_of_findings_are_read(tmp_path: Path) -> None:
    """No option, method or record is called what it is not; `test_long_commands.py` runs them."""
    test_site.prepare(tmp_path)
    lines = {line for lines in of_findings().values() for line in lines}
    assert len(lines) > 300
    for line in lines:
        first, *words = shlex.split(line)
        assert first == "synth"
        read(words, tmp_path)


def test_every_page_with_commands_is_walked_by_one_of_the_two_tests() -> None:
    """All that hooks.py takes from the repository, and the site's own."""
    ours = {*PAGES, ROOT / "README.md", *test_site.PAGES.rglob("*.md")}
    elsewhere = [*(ROOT / "models/formats").glob("*.md"), ROOT / "CHANGELOG.md"]
    assert [page for page in elsewhere if any(block["kind"] == "bash" for block in test_site.blocks(page))] == []
    assert len(ours) > 50


@pytest.mark.long(after=14)
@pytest.mark.parametrize("page", WITH_COMMANDS, ids=lambda page: page.relative_to(ROOT).with_suffix("").as_posix())
def test_commands_run_or_are_read(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    prepare(page, tmp_path)
    monkeypatch.chdir(tmp_path)
    for words in commands(page):
        first = words[0].removeprefix(".venv/bin/") if words[0] == ".venv/bin/synth" else words[0]
        if first == "echo":
            (tmp_path / words[-1]).write_text(words[1])
        elif first == "synth" and words[1] in RUN:
            command.run(*words[1:], cwd=tmp_path)
        elif first == "synth":
            read(words[1:], tmp_path)
        else:
            assert first in NOT_OURS, words


def elsewhere(line: str) -> str | None:
    """What else runs a command, or None."""
    return next((what for pattern, what in ELSEWHERE.items() if re.match(pattern, line)), None)


def test_every_command_of_the_repository_is_run() -> None:
    """Every line in a block of any Markdown that begins with `synth` is run as it stands, and by one test: a default
    one, a slow one, or another that is named. The site's own pages say so above their blocks (see test_site.py)."""
    site, run_by = {ROOT / "README.md", *test_site.PAGES.rglob("*.md")}, Counter[str]()
    known = {None: "default", "slow": "slow", "gallery": "gallery"}
    tops = [top for top in ROOT.iterdir() if top.is_dir() and not top.name.startswith(".") and top.name != "results"]
    for page in [*ROOT.glob("*.md"), *(page for top in [*tops, PUBLISHED] for page in top.rglob("*.md"))]:
        for block in test_site.blocks(page):
            lines = [line for line in block["text"].splitlines() if re.match(r"\s*(\.venv/bin/)?synth [a-z-]", line)]
            assert not lines or block["kind"] == "bash", (page, lines)
            for line in map(str.strip, lines):
                if page in site:
                    by = known.get(block["why"]) or str(block["why"]).removeprefix("run by ")
                else:
                    assert page in WITH_COMMANDS, page
                    by = elsewhere(line) or ("default" if line.split()[1] in RUN else "slow")
                run_by[by] += 1
    others = set(run_by) - set(known.values())
    assert all((ROOT / name).is_file() for name in others), others
    assert set(ELSEWHERE.values()) <= others
    assert run_by["default"] > 100
    run_by["slow"] += sum(len(lines[:MOST]) for lines in of_findings().values())
    assert run_by["slow"] > 200


def prepare(page: Path, folder: Path) -> None:
    """What a reader has: a checkout, and the files that the page names."""
    test_site.prepare(folder)
    samples = ROOT / "tests/exchange/machines/samples"
    shutil.copy(samples / "a100-topo.txt", folder / "a100.txt")
    shutil.copy(ROOT / "instances/bine/allocations/synthetic-jobs.csv", folder / "jobs.csv")
    for file in [
        *(ROOT / "instances/bine/allocations").glob("synthetic-*"),
        ROOT / "instances/harvest/steps/demand-6.csv",
    ]:
        shutil.copy(file, folder)
    shown = {block["title"]: block["text"] for block in test_site.blocks(page) if block["title"]}
    for name, text in (FILES | OTHER_FILES.get(page.relative_to(ROOT).as_posix(), {}) | shown).items():
        (folder / name).write_text(text)
    if "imported.json" in page.read_text():
        known = ["--only", "NV", "--bandwidth", "NV=25GB/s", "--latency", "0.7us"]
        command.run("import", "topo.txt", *known, "-o", "imported.json", cwd=folder)


def read(words: list[str], folder: Path) -> None:
    """The command line takes the words, methods are a family's, and what is shipped is there."""
    parsed = get_command(app)
    while hasattr(parsed, "commands"):
        parsed, words = parsed.commands[words[0]], words[1:]
    parsed.make_context("synth", list(words))
    known = {name for family in families() for name in family.methods}
    assert {words[i + 1] for i, word in enumerate(words) if word == "-m"} <= known
    for word in words:
        if word.startswith(("instances/", "results/published/")) and "*" not in word:
            assert (folder / word).exists() or any(
                (above / "records.jsonl").is_file() for above in (folder / word).parents
            ), word


@pytest.mark.parametrize("page", sorted((ROOT / "results/published").glob("*.md")), ids=lambda page: page.stem)
def test_a_page_of_results_names_the_command_that_made_it(page: Path, tmp_path: Path) -> None:
    test_site.prepare(tmp_path)
    if page.stem == "README":
        return
    made = re.search(r"Made by `([^`]+)`|Command: `([^`]+)`|`(synth library --make [^`]+)`", page.read_text())
    assert made, page
    words = shlex.split(next(filter(None, made.groups())))
    assert words[0] == "synth" or words[0] in NOT_OURS
    if words[0] == "synth":
        read(words[1:], tmp_path)
        assert page.stem in made[0] or page.stem == "library"


def test_a_wrong_option_method_or_file_is_seen(tmp_path: Path) -> None:
    test_site.prepare(tmp_path)
    for wrong in (
        "solve instances/xtree/ring-8-c1.json --time-limits 3s",
        "solve instances/xtree/ring-8-c1.json -m pul",
        "solve instances/xtree/no-such.json -m pull",
    ):
        with pytest.raises(Exception, match=r"No such option|assert"):
            read(shlex.split(wrong), tmp_path)
