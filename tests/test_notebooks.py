"""Every notebook runs from top to bottom in a Jupyter kernel, from any folder, without another's names. The tour keeps
its outputs, and they are those of this run; the others are stored without.

``python tests/test_notebooks.py`` makes the tour's outputs again and strips the others.
"""

from __future__ import annotations

import base64
import io
import re
import sys
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import nbformat
import pytest
from jupyter_client.manager import AsyncKernelManager
from nbclient import NotebookClient
from nbclient.util import run_sync
from nbformat.v4 import new_code_cell, new_notebook
from PIL import Image  # matplotlib needs it

from synth.family import family_names

FOLDER = Path(__file__).resolve().parents[1] / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))
TOUR = FOLDER / "tour.ipynb"
MOST_PICTURE_BYTES, MOST_PICTURES = 60_000, 2
names = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)


@cache
def executed(path: Path) -> Any:
    """The notebook with the outputs of a run in an empty folder and an empty namespace."""
    notebook = nbformat.read(path, as_version=4)
    with tempfile.TemporaryDirectory() as folder:
        client = NotebookClient(notebook, timeout=300, km=the_kernel())
        with client.setup_kernel():
            aside(client, f"%reset -f\n%cd -q {folder}")
            client.reset_execution_trackers()
            client.execute()
            aside(client, "%cd -q /")  # before the folder goes
        client.kc.stop_channels()
    return notebook


def aside(client: NotebookClient, code: str) -> None:
    """Run this in the client's kernel as no cell of the notebook."""
    cell = new_code_cell(code)
    notebook, client.nb = client.nb, new_notebook(cells=[cell])
    client.execute_cell(cell, 0, store_history=False)
    client.nb = notebook


@cache
def the_kernel() -> AsyncKernelManager:
    """One Jupyter kernel for all notebooks: what one imports and compiles is there for the next."""
    return AsyncKernelManager()


@pytest.fixture(scope="module", autouse=True)
def _ends_the_kernel() -> Iterator[None]:
    yield
    if the_kernel().has_kernel:
        run_sync(the_kernel().shutdown_kernel)(now=True)


def code_cells(notebook: Any) -> list[Any]:
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def texts(cell: Any) -> list[tuple[str, str]]:
    """What a cell shows: its plain texts in order; pictures and HTML, the form of libraries, by their kind."""
    printed = "".join(output.text for output in cell.outputs if output.output_type == "stream")
    found = [("stream", printed)] if printed else []
    for output in cell.outputs:
        data = output.get("data", {})
        found += [(kind, data[kind] if kind == "text/plain" else "") for kind in sorted(data)]
    return found


def pictures(notebook: Any) -> list[bytes]:
    return [
        base64.b64decode(output.data["image/png"])
        for cell in code_cells(notebook)
        for output in cell.outputs
        if "image/png" in output.get("data", {})
    ]


@pytest.mark.slow  # `.ci/run` runs it
@names
def test_notebook_runs(path):
    notebook = executed(path)
    assert pictures(notebook), "no figure is shown"
    outputs = [output for cell in code_cells(notebook) for output in cell.outputs]
    assert not any(output.output_type == "stream" and output.name == "stderr" for output in outputs)


@names
def test_notebook_is_as_its_readers_would_write_it(path):
    text = path.read_text()
    nbformat.validate(nbformat.read(path, as_version=4))
    assert "pyplot" not in text, "figures come from the package's plotting functions"
    assert "get_family" not in text, "records draw and describe themselves"


@names
def test_only_the_tour_is_stored_with_outputs(path):
    cells = code_cells(nbformat.read(path, as_version=4))
    assert cells
    if path != TOUR:
        assert not any(cell.outputs or cell.execution_count for cell in cells)


@pytest.mark.slow  # `.ci/run` runs it
def test_the_stored_outputs_of_the_tour_are_those_of_a_run():
    stored = nbformat.read(TOUR, as_version=4)
    assert [cell.source for cell in stored.cells] == [cell.source for cell in executed(TOUR).cells]
    for number, (then, now) in enumerate(zip(code_cells(stored), code_cells(executed(TOUR)), strict=True)):
        assert texts(then) == texts(now), f"code cell {number}: run python tests/test_notebooks.py"
    assert 1 <= len(pictures(stored)) <= MOST_PICTURES
    assert max(map(len, pictures(stored))) < MOST_PICTURE_BYTES


def test_nothing_in_the_tour_changes_from_run_to_run():
    """No places of this machine or this process, and no times of a clock."""
    for cell in code_cells(nbformat.read(TOUR, as_version=4)):
        shown = [output.get("data", {}).get("text/html", "") for output in cell.outputs]
        for text in (*shown, *(text for _, text in texts(cell))):
            assert not re.search(r"/(tmp|home|work|root)/| at 0x|\b\d+(\.\d+)? (s|ms|us|min)\b|seconds", text)


def test_there_is_a_tour_and_one_per_paper():
    held = {path.stem for path in NOTEBOOKS}
    assert "tour" in held
    assert held <= {"tour", *family_names()}
    assert {"xtree", "mlfm", "optree", "bine"} <= held


def small(picture: str) -> str:
    """A picture with few colours."""
    held = io.BytesIO()
    Image.open(io.BytesIO(base64.b64decode(picture))).convert("RGB").quantize(128).save(held, "PNG", optimize=True)
    return base64.b64encode(held.getvalue()).decode()


def tidy(notebook: Any, keeps_outputs: bool) -> Any:
    """The notebook without what changes from run to run, and without outputs unless it keeps them."""
    for cell in notebook.cells:
        cell.metadata = {}
        if cell.cell_type == "code" and not keeps_outputs:
            cell.outputs, cell.execution_count = [], None
        for output in cell.get("outputs", []):
            if "metadata" in output:
                output.metadata = {}
            if "image/png" in output.get("data", {}):
                output.data["image/png"] = small(output.data["image/png"])
    notebook.metadata = {"kernelspec": notebook.metadata["kernelspec"], "language_info": {"name": "python"}}
    return notebook


if __name__ == "__main__":
    for notebook_path in NOTEBOOKS:
        if notebook_path == TOUR:
            made = tidy(executed(TOUR), keeps_outputs=True)
            print(f"{TOUR}: pictures of {', '.join(str(len(one)) for one in pictures(made))} bytes", file=sys.stderr)
        else:
            made = tidy(nbformat.read(notebook_path, as_version=4), keeps_outputs=False)
        nbformat.write(made, notebook_path)
