"""The notebook, executed as a reader would: it runs offline, comes to what it says, and draws what it shows."""

import ast
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import nbformat
import pytest

NOTEBOOK = Path(__file__).parents[2] / "examples" / "ingest_and_retrieve.ipynb"
PATIENCE = 180  # seconds
PNG = "iVBORw0KGgo"  # what every such picture begins with, in base64

# What a cell at the end is asked of the state that the notebook left behind.
PROBE = """
import json
json.dumps({
    "notes": [len(before), len(after)],
    "steps": [[step.kept.key, *(each.key for each in step.retired)] for step in report.steps],
    "signals": names,
    "budgets": [[each.budget, each.tokens] for each in contexts],
    "checks": checks,
    "map": flat.shape,
})
"""


@pytest.fixture
def notebook() -> Any:
    return nbformat.read(NOTEBOOK, as_version=4)


def execute(notebook: Any, folder: Path) -> Any:
    """The notebook as it is after Jupyter has run it in a folder, without the user's own settings of Jupyter."""
    place = folder / "notebook"
    place.mkdir()
    path = place / NOTEBOOK.name
    nbformat.write(notebook, path)
    homes = ("IPYTHONDIR", "JUPYTER_CONFIG_DIR", "JUPYTER_RUNTIME_DIR", "JUPYTER_DATA_DIR")
    environment = {name: value for name, value in os.environ.items() if name != "MPLBACKEND"}
    environment |= {name: str(folder / "jupyter") for name in homes}
    command = [sys.executable, "-c", "from nbclient.cli import main; main()", "--inplace", str(path)]
    run = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert run.returncode == 0, run.stderr
    assert [each.name for each in place.iterdir()] == [NOTEBOOK.name]  # nothing is left behind
    return nbformat.read(path, as_version=4)


def outputs(notebook: Any) -> list[Any]:
    return [output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs]


def printed(notebook: Any) -> str:
    return "".join(output.text for output in outputs(notebook) if output.output_type == "stream")


def test_it_is_kept_without_what_a_run_leaves_behind(notebook: Any) -> None:
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert len(cells) >= 10
    assert all(cell.outputs == [] and cell.execution_count is None and cell.metadata == {} for cell in cells)
    assert NOTEBOOK.read_text("utf-8") == f"{nbformat.writes(notebook)}\n"


def test_every_cell_is_short_and_told_about(notebook: Any) -> None:
    assert notebook.cells[0].cell_type == "markdown"
    assert max(len(cell.source.splitlines()) for cell in notebook.cells) <= 30
    told = sum(len(cell.source) for cell in notebook.cells if cell.cell_type == "markdown")
    assert told > 1500


def test_it_runs_and_comes_to_what_it_says(notebook: Any, tmp_path: Path) -> None:
    notebook.cells.append(nbformat.v4.new_code_cell(PROBE))
    executed = execute(notebook, tmp_path)

    assert not [each for each in outputs(executed) if each.output_type == "error" or each.get("name") == "stderr"]
    pictures = [each.data["image/png"] for each in outputs(executed) if "image/png" in each.get("data", {})]
    assert len(pictures) == 4
    assert all(picture.startswith(PNG) and len(picture) > 5000 for picture in pictures)
    assert "5 steps done: 14 notes became 9" in printed(executed)
    assert "<memories>\n[m1] (2026-01-20) Ann has a peanut allergy." in printed(executed)
    assert printed(executed).count("✓") == 9

    found = json.loads(ast.literal_eval(executed.cells[-1].outputs[-1].data["text/plain"]))
    assert found["notes"] == [14, 9]
    assert sorted(found["steps"]) == [
        ["note-10", "note-7"],
        ["note-12", "note-11"],
        ["note-14", "note-13"],
        ["note-4", "note-2"],
        ["note-5", "note-1"],
    ]
    assert {"text", "vector", "substance"} <= set(found["signals"])
    assert [budget for budget, _ in found["budgets"]] == [80, 160, 320]
    assert all(budget / 2 < tokens <= budget for budget, tokens in found["budgets"])
    assert all(found["checks"].values())
    assert found["map"] == [21, 2]
