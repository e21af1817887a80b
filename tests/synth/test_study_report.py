"""A study's report in a real headless browser."""

import os
import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner

from synth.cli.main import app

STUDY = """
name = "page"
instances = ["{root}/xtree/equimesh-2x3-c1.json", "{root}/xtree/ring-8-c1.json", "{root}/optree/ring-16-w2.json",
             "{root}/bine/groups-8-8-16-broadcast.json", "{root}/mlfm/d3-n2l4m3.json",
             "{root}/harvest/recursive-doubling-8-p1.json"]
[[run]]
methods = ["bound", "pull", "xtree", "relay", "tree_ilp", "bine", "shift", "greedy"]
"""


@pytest.fixture(scope="module")
def browser():
    playwright = pytest.importorskip("playwright.sync_api")
    chrome = next(
        (path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name))), None
    )
    with playwright.sync_playwright() as started:
        try:
            browser = started.chromium.launch(executable_path=chrome, args=["--no-sandbox"])
        except playwright.Error as error:
            if os.environ.get("SYNTH_NEEDS_BROWSER"):
                raise
            pytest.skip(f"no browser: {str(error).splitlines()[0]}")
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def page(browser, tmp_path_factory):
    folder = tmp_path_factory.mktemp("page")
    path = folder / "page.toml"
    path.write_text(STUDY.format(root=Path("instances").resolve()))
    result = CliRunner().invoke(app, ["study", str(path), "--results", str(folder), "--jobs", "2"])
    assert result.exit_code == 0, result.output
    opened = browser.new_context(offline=True).new_page()
    problems = []
    opened.on(
        "console", lambda message: problems.append(message.text) if message.type in ("error", "warning") else None
    )
    opened.on("pageerror", lambda error: problems.append(str(error)))
    opened.on("requestfailed", lambda request: problems.append(request.url))
    opened.goto((folder / "page" / "report.html").as_uri())
    yield opened
    assert problems == []


def column(page, number):
    return page.locator(f"#runs tbody tr td:nth-child({number})").all_inner_texts()


def test_sorting(page):
    heads = page.locator("#runs thead th").all_inner_texts()
    at = heads.index("value") + 1
    page.locator(f"#runs thead th:nth-child({at}) button").click()
    up = [text for text in column(page, at) if text != "–"]
    assert [float(text) for text in up] == sorted(float(text) for text in up)
    assert "–" in column(page, at)[-1]  # runs without a value stay last
    page.locator(f"#runs thead th:nth-child({at}) button").click()
    down = [text for text in column(page, at) if text != "–"]
    assert [float(text) for text in down] == sorted((float(text) for text in down), reverse=True)
    assert "–" in column(page, at)[-1]
    assert len(set(up)) > 2
    names = heads.index("instance") + 1
    page.locator(f"#runs thead th:nth-child({names}) button").click()
    assert column(page, names)[0] == "d3-n2l4m3"


def test_filter(page):
    every = page.locator("#runs tbody tr:visible").count()
    page.locator("#filter").fill("ring-8 pull")
    assert page.locator("#runs tbody tr:visible").count() == 1
    page.locator("#filter").fill("")
    assert page.locator("#runs tbody tr:visible").count() == every
    page.locator("#only-failed").check()
    assert page.locator("#runs tbody tr:visible").count() == 0
    page.locator("#only-failed").uncheck()


def test_slider_steps_through_every_family(page):
    instances = page.locator("#instance option").all_inner_texts()
    assert len(instances) == 6
    for index, name in enumerate(instances):
        page.locator("#instance").select_option(str(index))
        last = int(page.locator("#slider").get_attribute("max"))
        assert last >= 2, name
        page.locator("#slider").fill("0")
        assert page.locator("#stage .move").count() == 0
        holders = []
        for step in range(1, last + 1):
            page.locator("#slider").fill(str(step))
            assert page.locator("#stage .move").count() > 0, (name, step)
            assert f"step {step} of " in page.locator("#step").inner_text()
            holders.append(page.locator("#stage .node.holds").count())
        assert holders == sorted(holders)
        on_links = "equimesh" in name or name.startswith("ring-8")  # circuits and messages go over no single link
        assert ("links used" in page.locator("#step").inner_text()) == on_links
        if "equimesh" in name or "ring" in name:  # an allgather ends with everything everywhere
            assert holders[-1] == page.locator("#stage .node").count()
    page.locator("#forth").click()
    page.locator("#back").click()


def test_link_use_is_counted_by_hand(page):
    """Ring of 8, one chunk: 56 transfers over 16 links in 4 steps; the last step carries 8 chunks."""
    names = page.locator("#instance option").all_inner_texts()
    page.locator("#instance").select_option(str([name.startswith("ring-8") for name in names].index(True)))
    used = []
    for step in range(1, 5):
        page.locator("#slider").fill(str(step))
        text = page.locator("#step").inner_text()
        used.append(int(text.split("; ")[1].removesuffix(" of 16 links used")))
    assert sum(used) == 56
    assert max(used) == 16
    hover = page.locator("#stage .move title").first.text_content()
    assert "over this link, 75 %" in hover or "over this link, 100 %" in hover


def test_figures_are_in_the_page(page):
    assert page.locator("#figures-section figure svg").count() >= 2
