"""What `synth cite` prints is BibTeX that states nothing that the sources do not."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from synth.cli.main import app
from synth.family import Family, families, get_family
from synth.findings.page import stated
from synth.records.bibtex import OURS, YEAR, Entry, as_text, escaped, of_family, of_method, of_record, papers, parsed
from synth_papers.fabric.findings import FINDINGS

ROOT = Path(__file__).resolve().parents[3]
PAPERS = ROOT.parent / "shared/papers"
RECORD = "results/published/xtree/equimesh-3x3-c2/pull.json"


NEEDED = {  # without which BibTeX's plain style warns
    "article": ("author", "title", "journal", "year"),
    "inproceedings": ("author", "title", "booktitle", "year"),
    "misc": ("title",),
}


def entries(text: str) -> dict[str, dict[str, str]]:
    """A strict reader of BibTeX: braces balanced, one field a line and each once, keys told apart, ASCII alone, nothing
    missing that an entry's type needs, an author or a key to sort by."""
    assert text.isascii()
    depth = 0
    for sign, escaped_sign in zip(text, " " + text, strict=False):
        if escaped_sign != "\\":
            depth += (sign == "{") - (sign == "}")
        assert depth >= 0
    assert depth == 0
    found: dict[str, dict[str, str]] = {}
    for kind, key, body in re.findall(r"@(\w+)\{([A-Za-z0-9-]+),\n(.*?)\n\}", text, re.DOTALL):
        assert key not in found
        lines = [re.fullmatch(r"  (\w+) = \{(.*)\},", line) for line in body.splitlines()]
        assert all(lines)
        found[key] = {line[1]: line[2] for line in lines if line}
        assert len(found[key]) == len(lines)
        assert {*NEEDED[kind]} <= {*found[key]}, key
        assert {"author", "key"} & {*found[key]}, key
        assert not {"methods", "states"} & {*found[key]}, key
    assert len(found) == text.count("\n@") + 1
    return found


def cited(*words: str) -> dict[str, dict[str, str]]:
    done = CliRunner().invoke(app, ["cite", *words])
    assert done.exit_code == 0, done.output
    return entries(done.output)


def test_a_record_is_cited_with_its_paper_its_instance_and_the_toolkit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    found = cited(RECORD)
    paper, instance, toolkit = found.values()
    assert paper["author"] == "Cui, Junwei and Qin, Le and Cai, Weilin and Huang, Jiayi"
    assert "XTree on EquiMesh" in paper["title"]
    assert "year" not in paper  # nobody states it here
    assert "equimesh-3x3-c2" in instance["title"]
    assert re.search(r"sha256 [0-9a-f]{64}", instance["note"])
    assert toolkit["author"] == "{The synth authors}"
    assert re.fullmatch(r"20\d\d", toolkit["year"])


def test_the_source_of_the_method_is_first_then_the_instances_paper_then_ours(tmp_path: Path) -> None:
    """Of Patarasu and Yuan's ring on a machine of TE-CCL's; of a schedule that was taken over, also who made it."""
    from synth import make, read, solve

    file = tmp_path / "dgx1.json"
    file.write_text(make("fabric", machine="dgx1", collective="allgather", bytes="1MiB").to_json())
    record = solve(read(file), "ring", results=tmp_path)
    [path] = tmp_path.rglob("ring.json")
    assert [key.partition("-dgx1")[0] for key in cited(str(path))] == [
        "patarasuk-yuan", "te-ccl", "instance", f"synth-{record['toolkit_version'].replace('.', '-')}",
    ]  # fmt: skip
    record.data["method"], record.data["made_by"] = "together", ["together", "bruck", "ring"]
    assert [entry.key for entry in of_record(record)][:2] == ["bruck", "patarasuk-yuan"]


@pytest.mark.parametrize("family", list(families()), ids=lambda family: family.name)
def test_every_method_has_a_source(family: Family) -> None:
    """Those of others a paper, the toolkit's own the toolkit; and no paper is of a method that does not exist."""
    own = {name for name, method in family.methods.items() if method.origin is None}
    own |= {"epochs", "steps"} if family.name == "fabric" else set()
    file = (ROOT / "models/synth_models" / family.name / "papers.bib").read_text()
    named = {name for entry in parsed(file) for name in entry.fields.get("methods", "").split(", ") if name}
    assert named == own
    for name in own:
        keys = [entry.key for entry in of_method(family, name)]
        assert keys, name
        assert keys != [OURS] or name not in family.published, f"{name} is published: by whom?"


def test_an_accent_is_one_for_every_bibtex() -> None:
    assert escaped("Träff, Šimon, François") == r"Tr{\"a}ff, {\v{S}}imon, Fran{\c{c}}ois"
    [paper] = [entry for entry in of_method(get_family("fabric"), "double_tree") if entry.key == "double-tree"]
    assert r"Tr{\"a}ff" in paper.text()


def test_every_finding_can_be_cited() -> None:
    for group in stated().values():
        for finding in group:
            found = cited(finding.name)
            assert any(finding.name in fields["title"] for fields in found.values())
            assert len(found) >= 3


def test_a_wrong_name_is_answered_with_the_nearest() -> None:
    done = CliRunner().invoke(app, ["cite", "xtree-errate"])
    assert "xtree-errata" in str(done.exception)


@pytest.mark.parametrize("family", list(families()), ids=lambda family: family.name)
def test_every_paper_has_authors_and_a_title(family: Family) -> None:
    """That of MLFM names none: beside it stands the poster that has its abstract. Authors are read, not reordered."""
    found = of_family(family)
    assert len({entry.key for entry in found}) == len(found) == {"fabric": 6, "mlfm": 2}.get(family.name, 1)
    assert [entry.key for entry in found if "author" not in entry.fields] == ["mlfm"] * (family.name == "mlfm")
    for entry in found:
        assert entry.fields["title"]
        authors = entry.fields.get("author", "A, B").removesuffix(" and others").split(" and ")
        assert all(re.fullmatch(r"[^,]+, [^,]+", name) for name in authors)
        assert re.fullmatch(r"(19|20)\d\d", entry.fields.get("year", "2026"))
        assert re.fullmatch(r"\d{4}\.\d{5}", entry.fields.get("eprint", "0000.00000"))


@pytest.mark.skipif(not PAPERS.is_dir(), reason="needs the papers (../shared)")
def test_authors_are_those_that_the_papers_print() -> None:
    for family, file in (("xtree", "xtree-equimesh"), ("optree", "optree"), ("harvest", "harvest")):
        [paper] = of_family(get_family(family))
        head = (PAPERS / f"{file}.txt").read_text()[:1500].lower()
        for name in paper.fields["author"].split(" and "):
            assert " ".join(reversed(name.lower().split(", "))) in head, name


def test_what_is_written_is_read() -> None:
    entry = Entry("article", "key-1", {"author": "A, B and C, D", "year": "2024"})
    assert parsed(as_text([entry, Entry("misc", "other", {"note": "x"})])) == [
        entry, Entry("misc", "other", {"note": "x", "key": "other"}),
    ]  # fmt: skip


def test_a_finding_cites_the_one_paper_of_several_that_it_is_about() -> None:
    for finding, keys in (("te-ccl", ["te-ccl"]), ("taccl", ["taccl"]), ("mlfm-rule", ["mlfm", "mlfm-poster"])):
        assert list(cited(finding))[:-2] == keys


def test_without_a_file_of_papers_nothing_of_a_citation_is_made_up() -> None:
    """Every word of every field stands in the citation."""
    for citation in ("Cui, Qin: On Trees", "De Sensi et al.: Bine Trees", "A title alone", "Machines: A (NSDI 2023)"):
        for entry in papers(citation):
            for name, value in entry.fields.items():
                words = [word for word in value.split() if not (name == "author" and word in ("and", "others"))]
                assert all(word in citation for word in words), entry


def test_a_list_of_papers_is_an_entry_each() -> None:
    found = papers("the peers: SCCL (PPoPP 2021), ForestColl (2024), direct-connect (NSDI 2025)")
    assert [(one.fields["title"], one.fields.get("booktitle"), one.fields["year"]) for one in found] == [
        ("SCCL", "PPoPP", "2021"), ("ForestColl", None, "2024"), ("direct-connect", "NSDI", "2025"),
    ]  # fmt: skip


def test_citations_name_the_venue_and_year_of_the_papers_file() -> None:
    """``papers.bib`` is what says where a paper is published; a list of papers in a family's texts agrees with it."""
    family = get_family("fabric")
    text = (ROOT / "models/synth_models/fabric/papers.bib").read_text()
    held = {
        key: dict(re.findall(r"  (\w+) = \{(.*)\},", body))
        for key, body in re.findall(r"@\w+\{([\w-]+),(.*?)\n\}", text, re.S)
    }
    texts = [family.citation, *(page.citation for page in family.more_pages), *(one.paper for one in FINDINGS)]
    named = {one.groups() for text in texts for one in re.finditer(r"([\w-]+) \((?:([A-Za-z]+) )?(\d{4})\)", text)}
    named = {one for one in named if one[0].lower() in held}
    assert len(named) == 7
    for name, venue, year in named:
        assert (f"{venue} '{year[2:]}" if venue else "arXiv") == held[name.lower()].get("booktitle", "arXiv")
        assert held[name.lower()]["year"] == year


@given(st.text(max_size=60))
def test_any_text_is_a_field(text: str) -> None:
    """Names of submitters come out of files: no text ends a field or an entry early."""
    written = as_text([Entry("misc", "key", {"author": text, "title": "x"})])
    fields = entries(written.encode("ascii", "replace").decode())["key"]
    assert list(fields) == ["author", "title"]
    assert "\n" not in escaped(text)


def test_project_data_agree() -> None:
    """One version everywhere; no licence is stated; addresses only where the repository knows one."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert citation["version"] == project["version"]
    assert str(citation["date-released"]).startswith(YEAR)
    assert [author["name"] for author in citation["authors"]] == [author["name"] for author in project["authors"]]
    assert not {"license", "license-url"} & {*project, *citation}
    assert not any("License" in classifier for classifier in project["classifiers"])
    hooks = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())["repos"]
    assert {repo["repo"] for repo in hooks} == {"local"}
