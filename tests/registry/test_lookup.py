"""Plug-ins by name, by file and by entry point, and what a wrong name is answered with."""

from __future__ import annotations

import importlib.metadata
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from vlrl.check.catalog.rewards import list_rewards
from vlrl.errors import ConfigError
from vlrl.registry import BUILT_IN, available, ignored, resolve
from vlrl.registry import installed as installed_packages


@pytest.fixture
def plugin(tmp_path: Path) -> Iterator[Path]:
    path = tmp_path / "my_reward.py"
    path.write_text("class Mine:\n    pass\n\ndef score(completion, answer):\n    return 1.0\n")
    before = set(sys.modules)
    yield path
    for name in set(sys.modules) - before:
        del sys.modules[name]


@pytest.mark.parametrize(("kind", "name"), [(kind, name) for kind in BUILT_IN for name in BUILT_IN[kind]])
def test_every_built_in_can_be_had(kind: str, name: str) -> None:
    assert callable(resolve(kind, name))


def test_a_typo_names_the_nearest() -> None:
    with pytest.raises(ConfigError, match=r"no reward is named 'anser_exact'; did you mean 'answer_exact'\?"):
        resolve("rewards", "anser_exact")


def test_a_name_like_no_other_lists_what_there_is() -> None:
    with pytest.raises(
        ConfigError, match=r"known: .*answer_exact, .*think_answer_format.*\. A file is given as"
    ):
        resolve("rewards", "zzzzzz")


def test_an_unknown_kind_lists_the_kinds() -> None:
    with pytest.raises(
        ConfigError, match=r"kind 'reward'; kinds are rewards, datasets, shapes, processors, filters, masks, "
    ):
        resolve("reward", "answer_exact")


def test_a_file_loaded_twice_gives_the_same_class(plugin: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = resolve("rewards", f"{plugin}:Mine")
    assert resolve("rewards", f"{plugin}:Mine") is first
    monkeypatch.chdir(plugin.parent)
    assert resolve("rewards", "./my_reward.py:Mine") is first
    assert resolve("rewards", "my_reward.py:Mine") is first


def test_files_of_one_name_in_two_folders_are_two(plugin: Path) -> None:
    other = plugin.parent / "other" / plugin.name
    other.parent.mkdir()
    other.write_text("def score(completion, answer):\n    return 2.0\n")
    assert resolve("rewards", f"{plugin}:score")("", "") == 1.0
    assert resolve("rewards", f"{other}:score")("", "") == 2.0


def test_a_missing_file_or_attribute_is_named(plugin: Path) -> None:
    with pytest.raises(ConfigError, match=r"nope\.py does not exist \(looked in "):
        resolve("rewards", "./nope.py:score")
    with pytest.raises(ConfigError, match=r"has no 'scor'; did you mean 'score'\?"):
        resolve("rewards", f"{plugin}:scor")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("x = 1\ndef score(:\n", "line 2: SyntaxError"),
        ("x = 1\n\nx.nothing\n", "line 3: AttributeError: 'int' object has no attribute 'nothing'"),
        ("import no_such_package\n", "line 1: ModuleNotFoundError: No module named 'no_such_package'"),
    ],
)
def test_a_file_that_cannot_be_imported_names_the_line(plugin: Path, text: str, words: str) -> None:
    plugin.write_text(text)
    with pytest.raises(ConfigError) as caught:
        resolve("rewards", f"{plugin}:score")
    assert str(plugin) in str(caught.value)
    assert words in str(caught.value)
    plugin.write_text("def score(completion, answer):\n    return 3.0\n")
    assert resolve("rewards", f"{plugin}:score")("", "") == 3.0, "half a module stayed behind"


def packages(site: Path, **points: str) -> None:
    """Packages with one entry point each, installed as pip leaves them: package-name → "name = target"."""
    for package, point in points.items():
        info = site / f"{package}-1.2.dist-info"
        info.mkdir(parents=True)
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.2\n")
        (info / "entry_points.txt").write_text(f"[vlrl.rewards]\n{point}\n")


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder of installed packages."""
    (tmp_path / "site").mkdir()
    monkeypatch.syspath_prepend(tmp_path / "site")
    installed_packages.installed.cache_clear()
    yield tmp_path / "site"
    installed_packages.installed.cache_clear()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("raise RuntimeError('no licence')", "RuntimeError: no licence"),
        ("import sys; sys.exit(3)", "SystemExit: 3"),
        ("def score(:", r"line 1: SyntaxError"),
        ("import no_such_package", "No module named 'no_such_package'"),
        ("1 / 0", "ZeroDivisionError: division by zero"),
    ],
)
def test_one_broken_package_is_named_and_the_rest_works(site: Path, text: str, words: str) -> None:
    packages(site, broken="bad = broken_rewards:score", fine="good = fine_rewards:score")
    (site / "broken_rewards.py").write_text(text)
    (site / "fine_rewards.py").write_text("def score(completion, answer):\n    return 0.5\n")
    with pytest.raises(ConfigError, match=r"'bad' \(broken_rewards:score\) of package broken 1.2") as caught:
        resolve("rewards", "bad")
    assert words in str(caught.value)
    assert str(site / "broken_rewards.py") in str(caught.value)
    rows = {row["name"]: row for row in list_rewards()}
    assert "broken 1.2" in rows["bad"]["problem"] and words in rows["bad"]["problem"]
    assert "problem" not in rows["good"] and rows["good"]["target"] == "fine_rewards:score"
    assert sum("problem" in row for row in rows.values()) == 1
    assert resolve("rewards", "good")("", "") == 0.5


def test_plug_ins_that_are_not_heard_are_named(site: Path) -> None:
    packages(site, b_shadow="numeric = fine_rewards:score", c_twin="twin = fine_rewards:score")
    packages(site, d_twin="twin = other_rewards:score", e_twin="lone = fine_rewards:score")
    (site / "fine_rewards.py").write_text("def score(completion, answer):\n    return 0.5\n")
    assert resolve("rewards", "numeric").__module__ == "vlrl.rewards.text.numeric"
    assert [(name, plugin.package) for name, plugin, _ in ignored("rewards")] == [
        ("numeric", "package b_shadow 1.2"),
        ("twin", "package d_twin 1.2"),
    ]
    with pytest.raises(ConfigError, match=r"c_twin 1.2 \(fine.*\) and package d_twin 1.2 \(other.*name the"):
        resolve("rewards", "twin")
    problems = [row["problem"] for row in list_rewards() if "problem" in row]
    assert len(problems) == 3
    assert any("b_shadow 1.2 registers 'numeric' too" in problem for problem in problems)
    assert resolve("rewards", "fine_rewards:score")("", "") == resolve("rewards", "lone")("", "") == 0.5
    assert ignored("envs") == []


def test_a_module_is_a_name(site: Path) -> None:
    """The files of an installed package import their neighbours, which a file by its path could not."""
    (site / "their").mkdir()
    (site / "their" / "__init__.py").touch()
    (site / "their" / "shared.py").write_text("half = 0.5\n")
    text = "from .shared import half\n\n\ndef score(completion, answer):\n    return half\n"
    (site / "their" / "scores.py").write_text(text)
    assert resolve("rewards", "their.scores:score")("", "") == 0.5
    with pytest.raises(ConfigError, match="has no 'scor'; did you mean 'score'"):
        resolve("rewards", "their.scores:scor")
    with pytest.raises(ConfigError, match=r"'their.scoring:score' cannot be imported: No module named"):
        resolve("rewards", "their.scoring:score")
    with pytest.raises(ConfigError, match=r"no reward is named 'their.scores'; .*package.module:attribute"):
        resolve("rewards", "their.scores")


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch, plugin: Path) -> Iterator[dict[str, str]]:
    """Entry points of a stranger's package, by name; tests fill it before they ask."""
    monkeypatch.syspath_prepend(plugin.parent)
    points: dict[str, str] = {}

    def entry_points(group: str) -> list[importlib.metadata.EntryPoint]:
        return [
            importlib.metadata.EntryPoint(n, v, group) for n, v in points.items() if group == "vlrl.rewards"
        ]

    monkeypatch.setattr(installed_packages, "entry_points", entry_points)
    installed_packages.installed.cache_clear()
    yield points
    installed_packages.installed.cache_clear()


def test_installed_packages_are_asked_once(
    installed: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It costs milliseconds, and an environment is resolved for every episode."""
    asked, entry_points = [], installed_packages.entry_points

    def counted(group: str) -> list[importlib.metadata.EntryPoint]:
        asked.append(group)
        return entry_points(group)  # type: ignore[return-value]

    monkeypatch.setattr(installed_packages, "entry_points", counted)
    for _ in range(3):
        resolve("rewards", "answer_exact")
        available("envs")
    assert sorted(asked) == ["vlrl.envs", "vlrl.rewards"]


def test_an_entry_point_is_found_like_a_built_in(installed: dict[str, str]) -> None:
    installed["mine"] = "my_reward:score"
    assert resolve("rewards", "mine")("", "") == 1.0
    assert set(available("rewards")) == {*BUILT_IN["rewards"], "mine"}
    assert "mine" not in available("datasets")


def test_a_stranger_cannot_replace_a_built_in(installed: dict[str, str]) -> None:
    installed["answer_exact"] = "my_reward:score"
    assert resolve("rewards", "answer_exact").__module__ == "vlrl.rewards.text.exact"


def test_a_broken_entry_point_is_named(installed: dict[str, str]) -> None:
    installed |= {"gone": "no_such_package:score", "half": "my_reward"}
    with pytest.raises(
        ConfigError, match=r"'gone' \(no_such_package:score\) of .* cannot be imported: No module"
    ):
        resolve("rewards", "gone")
    with pytest.raises(ConfigError, match="'half'"):
        resolve("rewards", "half")


def test_threads_that_want_a_file_at_once_all_find_it_whole(tmp_path: Path) -> None:
    file = tmp_path / "slow.py"
    file.write_text("import time\ntime.sleep(0.2)\n\n\ndef late():\n    return 1\n")
    with ThreadPoolExecutor(8) as executor:
        found = list(executor.map(lambda _: resolve("envs", f"{file}:late"), range(8)))
    assert [each() for each in found] == [1] * 8
