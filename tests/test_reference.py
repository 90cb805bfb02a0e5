"""docs/reference/ is what the code says: every page is made again and compared byte for byte."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from vlrl.cli.app import run
from vlrl.cli.reference.markdown import anchor, docstring_of, escape
from vlrl.cli.reference.options import options_page
from vlrl.cli.reference.pages import PAGES, write_pages
from vlrl.config import field_paths
from vlrl.config.names import ALIASES
from vlrl.registry import BUILT_IN
from vlrl.tracking.metrics import METRICS

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "docs" / "reference"


@pytest.fixture(scope="module")
def pages() -> dict[str, str]:
    return {name: make() for name, make in PAGES.items()}


def test_the_folder_has_these_pages_and_no_other() -> None:
    assert {path.name for path in FOLDER.iterdir()} == set(PAGES)


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_fresh(pages: dict[str, str], name: str) -> None:
    assert (FOLDER / name).read_text(encoding="utf-8") == pages[name], "the code has changed: make reference"


def test_pages_do_not_depend_on_the_machine(pages: dict[str, str], tmp_path: Path) -> None:
    """Another home, folder, terminal, locale and hash seed; no path of this machine in the text."""
    script = "import sys, pathlib; from vlrl.cli.reference.pages import write_pages\n"
    script += "write_pages(pathlib.Path(sys.argv[1]))"
    environment = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": str(ROOT),
        "HOME": str(tmp_path),
        "COLUMNS": "40",
    }
    environment |= {"PYTHONHASHSEED": "7", "TERM": "dumb", "NO_COLOR": "1", "LC_ALL": "C", "PYTHONUTF8": "0"}
    made = tmp_path / "made"
    command = [sys.executable, "-c", script, str(made)]
    child = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True)
    assert child.returncode == 0, child.stderr
    assert {path.name: path.read_text(encoding="utf-8") for path in made.iterdir()} == pages
    for text in pages.values():
        assert str(ROOT) not in text and str(Path.home()) not in text and " at 0x" not in text


def test_the_command_prints_the_same_options(capfd: pytest.CaptureFixture[str]) -> None:
    assert run(["config", "schema", "--markdown"]) == 0
    assert capfd.readouterr().out == options_page()


def test_everything_has_its_place(pages: dict[str, str]) -> None:
    def headings(name: str) -> set[str]:
        return set(re.findall(r"^#{2,3} (.+)$", pages[name], re.MULTILINE))

    assert set(BUILT_IN["rewards"]) <= headings("rewards.md")
    assert set(BUILT_IN["envs"]) <= headings("envs.md")
    assert {f"vlrl {name}" for name in ("train", "env check", "reward test", "doctor")} <= headings("cli.md")
    assert {f"| `{name}` |" for name in METRICS} <= set(
        re.findall(r"^\| `[^`]+` \|", pages["metrics.md"], re.M)
    )


def test_every_option_has_its_row() -> None:
    rows = set(re.findall(r"^\| `([A-Za-z_.0-9]+)` \|", options_page(), re.MULTILINE))
    titles = set(re.findall(r"^## ([A-Za-z_.]+)$", options_page(), re.MULTILINE))
    listed_once = re.compile(r"data\.(train|eval)\.rewards\.")  # as `rewards`
    missing = {key for key in field_paths() if not listed_once.match(key)} - rows - titles
    assert missing == set()


def test_other_projects_words_are_there() -> None:
    for there, here in ALIASES.items():
        assert f"| `{there}` | `{here}` |" in options_page()


@pytest.mark.parametrize("name", PAGES)
def test_tables_are_whole_and_links_lead_somewhere(pages: dict[str, str], name: str) -> None:
    text = re.sub(r"^```.*?^```", "", pages[name], flags=re.DOTALL | re.MULTILINE)
    for block in re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE):
        widths = {len(re.split(r"(?<!\\)\|", line)) for line in block.splitlines()}
        assert len(widths) == 1, block
    anchors = {anchor(title) for title in re.findall(r"^#+ (.+)$", text, re.MULTILINE)}
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        file, _, fragment = target.partition("#")
        assert (FOLDER / file).exists() if file else fragment in anchors, target


def test_options_have_meanings() -> None:
    for line in options_page().splitlines():
        cells = re.split(r"(?<!\\)\|", line)[1:-1]
        if line.startswith("| `") and len(cells) == 4:
            assert all(cell.strip() for cell in cells), line


def test_a_docstring_is_taken_apart() -> None:
    doc = docstring_of(
        """Say what it is,
        on two lines.

        More of it.

        Args:
            x: first,
                and its second line.
            **rest: others.

        Raises:
            ValueError: if x is.
        """
    )
    assert doc.purpose == "Say what it is, on two lines."
    assert doc.body == "More of it."
    assert doc.arguments == {"x": "first, and its second line.", "rest": "others."}
    assert doc.errors == {"ValueError": "if x is."}


def test_markdown_shows_the_text_as_it_is() -> None:
    assert escape("a <b> * `c*<d>` |e| ```x") == r"a \<b> \* `c*<d>` \|e\| \`\`\`x"


def test_pages_are_written(tmp_path: Path) -> None:
    paths = write_pages(tmp_path / "new")
    assert [path.name for path in paths] == list(PAGES)
    assert all(path.stat().st_size > 1000 for path in paths)
