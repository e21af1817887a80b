"""Every notebook runs from top to bottom in a Jupyter kernel, from any folder, and is stored without outputs.

``python tests/test_notebooks.py`` strips the outputs of all notebooks.
"""

from __future__ import annotations

from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

from synth.family import family_names

NOTEBOOKS = sorted((Path(__file__).resolve().parents[1] / "notebooks").glob("*.ipynb"))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook_runs(path, tmp_path):
    notebook = nbformat.read(path, as_version=4)
    NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(tmp_path)}}).execute()
    outputs = [output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs]
    shown = [kind for output in outputs for kind in output.get("data", {})]
    assert "image/png" in shown, "no figure is shown"
    assert not any(output.output_type == "stream" and output.name == "stderr" for output in outputs)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook_is_stored_without_outputs(path):
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert cells
    assert not any(cell.outputs or cell.execution_count for cell in cells)
    assert "pyplot" not in path.read_text(), "figures come from the package's plotting functions"


def test_there_is_a_tour_and_one_per_paper():
    held = {path.stem for path in NOTEBOOKS}
    assert "tour" in held
    assert held <= {"tour", *family_names()}
    assert {"xtree", "mlfm", "optree", "bine"} <= held


def strip(path: Path) -> None:
    """Remove outputs and execution counts in place."""
    notebook = nbformat.read(path, as_version=4)
    for cell in notebook.cells:
        cell.metadata = {}
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
    notebook.metadata = {"kernelspec": notebook.metadata["kernelspec"], "language_info": {"name": "python"}}
    nbformat.write(notebook, path)


if __name__ == "__main__":
    for notebook_path in NOTEBOOKS:
        strip(notebook_path)
