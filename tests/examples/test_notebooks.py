"""The notebooks of examples/ run from the first cell to the last, in a kernel, as Jupyter runs them."""

from __future__ import annotations

from pathlib import Path

import pytest

NOTEBOOKS = sorted((Path(__file__).parents[2] / "examples" / "notebooks").glob("*.ipynb"))
CELL_LIMIT_S = 1500


@pytest.mark.slow
@pytest.mark.timeout(2400)
@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_it_runs(notebook: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import nbformat
    from nbclient import NotebookClient

    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    cells = nbformat.read(notebook, as_version=4)
    client = NotebookClient(
        cells, timeout=CELL_LIMIT_S, kernel_name="python3", resources={"metadata": {"path": str(tmp_path)}}
    )
    client.execute()  # raises what a cell raises
    outputs = [output for cell in cells.cells if cell.cell_type == "code" for output in cell.outputs]
    assert any("image/png" in output.get("data", {}) for output in outputs) or "reward" in notebook.stem
    text = "".join(output.get("text", "") for output in outputs)
    assert "✓ GRPO" in text, "what the run shows is seen in the notebook"
    assert (tmp_path / "runs" / "grpo" / "model" / "config.json").is_file()
