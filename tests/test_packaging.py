"""What a user installs is whole: one top level, every module, through sdist and wheel."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

import vlrl

ROOT = Path(__file__).parent.parent
LINKED = ("processors", "rewards", "envs")
NOT_SHIPPED = shutil.ignore_patterns(".*", "__pycache__", "*.egg-info", "build", "dist", "runs")


def run(*command: object, cwd: Path) -> str:
    done = subprocess.run([*map(str, command)], cwd=cwd, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def package_files() -> set[str]:
    """What the wheel must hold: every module, the type marker, templates, pages' scripts, scans, facts."""
    folders = [ROOT / "vlrl", *(ROOT / "vlrl" / name for name in LINKED)]
    files = [file for folder in folders for file in folder.rglob("*.py")]
    files += [ROOT / "vlrl" / "py.typed", *(ROOT / "vlrl" / "viewer" / "templates").glob("*")]
    files += (ROOT / "vlrl" / "export" / "templates").glob("*")
    files += [ROOT / "vlrl" / "machine" / "locks.json", *(ROOT / "vlrl" / "plan" / "models").glob("*/*.json")]
    page = ROOT / "vlrl" / "viewer" / "browse" / "page"
    files += [file for file in page.rglob("*") if file.is_file()]
    gui = ROOT / "vlrl" / "envs" / "gui"
    files += [*(gui / "emu" / "drawing").glob("glyphs.[!p]*"), *(gui / "web").glob("*.js")]
    files += [ROOT / "vlrl" / "envs" / "visual" / "questions" / "digit_scans.npz"]
    return {str(file.relative_to(ROOT)) for file in files}


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the sdist of a copy of this tree and the wheel built from that sdist."""
    folder = tmp_path_factory.mktemp("build")
    shutil.copytree(ROOT, folder / "tree", symlinks=True, ignore=NOT_SHIPPED)
    run(sys.executable, "-m", "build", "--no-isolation", "--outdir", folder, folder / "tree", cwd=folder)
    return folder


def test_wheel_from_sdist_has_one_top_level_and_every_module(built: Path) -> None:
    (wheel,) = built.glob("*.whl")
    names = {name for name in zipfile.ZipFile(wheel).namelist() if not name.endswith("/")}
    information = f"vlrl-{vlrl.__version__}.dist-info"
    assert {name.split("/")[0] for name in names} == {"vlrl", information}
    assert {name for name in names if not name.startswith(information)} == package_files()
    assert f"{information}/licenses/LICENSE" in names


def test_sdist_holds_the_linked_folders_as_files(built: Path) -> None:
    """A link in an archive breaks where the archive is unpacked without links."""
    (sdist,) = built.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        members = {member.name.partition("/")[2]: member for member in archive.getmembers()}
    for name in LINKED:
        assert members[f"vlrl/{name}/__init__.py"].isfile()


def test_the_wheel_works_away_from_the_checkout(built: Path, tmp_path: Path) -> None:
    (wheel,) = built.glob("*.whl")
    zipfile.ZipFile(wheel).extractall(tmp_path)
    modules = ", ".join(f"vlrl.{name}" for name in ("types", *LINKED))
    code = (
        f"import sys; sys.path.insert(0, {str(tmp_path)!r}); import {modules}; print(vlrl.rewards.__file__)"
    )
    printed = run(sys.executable, "-c", code, cwd=tmp_path)
    assert printed.strip() == str(tmp_path / "vlrl" / "rewards" / "__init__.py")


def test_version_is_the_same_everywhere(built: Path) -> None:
    (wheel,) = built.glob("*.whl")
    metadata = zipfile.ZipFile(wheel).read(f"vlrl-{vlrl.__version__}.dist-info/METADATA").decode()
    assert f"\nVersion: {vlrl.__version__}\n" in metadata
    assert "\nLicense-Expression: Apache-2.0\n" in metadata


@pytest.mark.parametrize("name", LINKED)
def test_a_linked_folder_is_imported_by_its_full_name_only(name: str) -> None:
    link = ROOT / "vlrl" / name
    assert link.is_symlink(), f"{link} must be a symlink to ../{name}; is core.symlinks off in this clone?"
    assert link.resolve() == ROOT / name
    run(sys.executable, "-c", f"import vlrl.{name}", cwd=ROOT)
    wrong = subprocess.run([sys.executable, "-c", f"import {name}"], cwd=ROOT, capture_output=True, text=True)
    assert f"ImportError: import vlrl.{name}" in wrong.stderr


def test_import_is_light() -> None:
    """`import vlrl` costs nothing: no torch, no engine."""
    heavy = "{'torch', 'vllm', 'ray', 'deepspeed', 'transformers', 'numpy'}"
    code = f"import sys, vlrl; print(*({heavy} & set(sys.modules)))"
    assert run(sys.executable, "-c", code, cwd=ROOT).split() == []


@pytest.mark.parametrize("lock", ["cpu", "cuda", "dev"])
def test_lock_pins_every_direct_need(lock: str) -> None:
    """Each line of a lock is one exact version, and each direct need is there."""
    folder = ROOT / "requirements"
    lines = (folder / f"{lock}.lock").read_text().splitlines()
    pins = [line for line in lines if line and not line.startswith("#")]
    assert all("==" in pin and " " not in pin for pin in pins)
    pinned = {pin.split("=")[0] for pin in pins}
    sources = [f"{lock}.in"] if lock == "dev" else [f"{lock}.in", "common.in"]
    for line in (line for source in sources for line in (folder / source).read_text().splitlines()):
        if line and not line.startswith(("#", "-r")):
            name = re.split(r"[=<>\[]", line)[0].strip().lower()
            assert name in pinned, f"{lock}.lock lacks {name}: run `make lock`"
