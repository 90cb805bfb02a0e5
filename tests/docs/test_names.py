"""What the docs name is there: files, tests, modules and what is in them, links and their anchors."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from vlrl.registry import BUILT_IN

ROOT = Path(__file__).parents[2]
TOP = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")]
PAGES = [*TOP, *sorted((ROOT / "docs").rglob("*.md"))]
FOLDERS = "vlrl|tests|docs|envs|rewards|processors|configs|deploy|examples|benchmarks|tools|requirements"
FILE = re.compile(rf"(?<![\w/.~-])(?:{FOLDERS})/[a-z_\d./*-]*\.(?:py|md|yaml|sh|jsonl|lock|in|js|toml)\b")
FOLDER = re.compile(rf"`((?:{FOLDERS})/(?:\w+/)*)`")
TEST = re.compile(r"`(tests/[\w/]+\.py)?::(\w+)`")
DOTTED = re.compile(r"(?<![\w/.])vlrl(?:\.[A-Za-z_]\w*)+")
BARE = re.compile(r"`([a-z]\w*\.py)`")
LINK = re.compile(r"\]\(([^)\s]+)\)")
GROUPS = {f"vlrl.{kind}" for kind in BUILT_IN}  # of entry points, which are names and no modules


def page_id(page: Path) -> str:
    """How pytest names a page."""
    return str(page.relative_to(ROOT))


@cache
def text_of(file: Path) -> str:
    """A file, read once."""
    return file.read_text(encoding="utf-8")


def names_in(statement: ast.stmt) -> Iterator[str]:
    """What a statement at a module's top level defines or imports."""
    match statement:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            yield name
        case ast.Import(names=names) | ast.ImportFrom(names=names):
            yield from (alias.asname or alias.name for alias in names)
        case ast.Assign() | ast.AnnAssign() | ast.If() | ast.Try():
            yield from (node.id for node in ast.walk(statement) if isinstance(node, ast.Name))


def resolves(dotted: str) -> bool:
    """Whether vlrl.a.b.name is a module, or a name in one (and the next, if any, a word of its file)."""
    parts = dotted.split(".")
    for length in range(len(parts), 0, -1):
        stem = ROOT.joinpath(*parts[:length])
        file = next((f for f in (stem.with_suffix(".py"), stem / "__init__.py") if f.is_file()), None)
        if file is None:
            continue
        rest = parts[length:]
        defined = {name for statement in ast.parse(text_of(file)).body for name in names_in(statement)}
        return not rest or (
            rest[0] in defined and all(re.search(rf"\b{word}\b", text_of(file)) for word in rest[1:])
        )
    return False


def anchors(page: Path) -> set[str]:
    """The anchors that a renderer makes of a page's headings."""
    titles = re.findall(r"^#+ (.+)$", text_of(page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("page", PAGES, ids=page_id)
def test_files_and_folders_exist(page: Path) -> None:
    named = {*FILE.findall(text_of(page)), *FOLDER.findall(text_of(page))}
    assert sorted(name for name in named if not list(ROOT.glob(name.rstrip("/")))) == []


@cache
def file_names() -> set[str]:
    """The names of all Python files, without their folders."""
    return {file.name for folder in FOLDERS.split("|") for file in (ROOT / folder).rglob("*.py")}


@pytest.mark.parametrize("page", PAGES, ids=page_id)
def test_a_file_named_without_its_folder_exists(page: Path) -> None:
    assert sorted(set(BARE.findall(text_of(page))) - file_names()) == []


@pytest.mark.parametrize("page", PAGES, ids=page_id)
def test_named_tests_exist(page: Path) -> None:
    for line in text_of(page).splitlines():
        file = ""
        for path, function in TEST.findall(line):
            file = path or file  # `::name` is in the file named before it
            assert file, f"{page.name}: `::{function}` follows no file"
            assert f"def {function}(" in text_of(ROOT / file), f"{page.name}: {file} has no {function}"


@pytest.mark.parametrize("page", PAGES, ids=page_id)
def test_dotted_names_resolve(page: Path) -> None:
    named = set(DOTTED.findall(text_of(page))) - GROUPS
    assert sorted(name for name in named if not resolves(name)) == []


@pytest.mark.parametrize("page", PAGES, ids=page_id)
def test_links_lead_somewhere(page: Path) -> None:
    wrong = []
    for link in LINK.findall(text_of(page)):
        if re.match(r"[a-z]+:", link):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        if not target.exists() or (anchor and anchor not in anchors(target)):
            wrong.append(link)
    assert wrong == []


def test_a_wrong_name_is_found() -> None:
    assert resolves("vlrl.types.Group")
    assert resolves("vlrl.rewards")
    assert not resolves("vlrl.types.Grupp")
    assert not resolves("vlrl.nothing.Group")
    assert FILE.findall("see `vlrl/mask.py` and tests/x/test_*.py") == ["vlrl/mask.py", "tests/x/test_*.py"]
    assert TEST.findall("`tests/test_seeds.py::test_x`, `::test_y`") == [
        ("tests/test_seeds.py", "test_x"),
        ("", "test_y"),
    ]


def test_the_glossary_has_words_once_with_a_file_each() -> None:
    rows = re.findall(
        r"^\| \*\*(.+?)\*\* \| (.+) \| `(\S+)` \|$", text_of(ROOT / "docs" / "glossary.md"), re.M
    )
    assert len(rows) == 30  # the page says so: a word that only one page uses is explained there
    words = [word for word, _, _ in rows]
    assert len(words) == len(set(words))
    assert [word for word, _, file in rows if not (ROOT / file).is_file()] == []
    assert [word for word, meaning, _ in rows if not meaning.endswith(".")] == []


def test_every_page_is_in_the_index() -> None:
    folder = ROOT / "docs"
    linked = {(folder / path).resolve() for path in LINK.findall(text_of(folder / "README.md"))}
    pages = {*folder.glob("*.md"), *(folder / "reference").glob("*.md")} - {folder / "README.md"}
    assert sorted(page.name for page in pages - linked) == []
