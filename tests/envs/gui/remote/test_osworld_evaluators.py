"""OSWorld's own evaluators, in an interpreter that has its package: scores, refusals, what is no score."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from ecosystem import ROOT, free_port, python
from faulty_http import Asked, FaultyServer, HttpReply
from gui_servers import OSWorld
from machine_tasks import PRINTS, QUICK, SIZE, TASK, say

from vlrl.environment.host.failure import EnvFailure
from vlrl.envs.gui import actions as a
from vlrl.envs.gui.remote.evaluators.package import described
from vlrl.envs.gui.remote.evaluators.table import evaluators_table
from vlrl.envs.gui.remote.osworld import OSWorldEnv
from vlrl.envs.gui.remote.osworld_rows import osworld_rows
from vlrl.errors import ConfigError

HOME = "/home/user"
DATA = [{"type": "sheet_data", "sheet_idx0": 0, "sheet_idx1": "EI0"}]
DONE_JSON = [{"key": ["editor", "fontSize"], "method": "eq", "ref": 20}]
FONT: dict[str, Any] = {
    "func": "check_json",
    "result": {"type": "vm_file", "path": f"{HOME}/settings.json", "dest": "settings.json"},
    "expected": {"type": "rule", "rules": {"expect": DONE_JSON}},
}
COUNT = {"sql": "select count(*) from mails where starred"}
PHOTO = "check_brightness_decrease_and_structure_sim"


@pytest.fixture(scope="module", autouse=True)
def imported() -> None:
    """The package, imported once for all: it takes seconds."""
    assert described(python())["version"] == "1.0.2"


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Real files of each kind, in done/ and in untouched/."""
    folder = tmp_path_factory.mktemp("files")
    subprocess.run([python(), str(ROOT / "tests/helpers/osworld_files.py"), str(folder)], check=True)
    return folder


@pytest.fixture(scope="module")
def web(files: Path) -> Iterator[FaultyServer]:
    """Where tasks download what they compare with: the files as they should be."""

    def answer(asked: Asked) -> HttpReply:
        file = files / asked.path.lstrip("/")
        return HttpReply(200, "", file.read_bytes()) if file.is_file() else HttpReply(404, "", b"")

    with FaultyServer(answer) as server:
        yield server


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[OSWorld]:
    machine = OSWorld(tmp_path / "machine")
    with machine.server:
        yield machine


class Task:
    """Plays one task after the other on a machine."""

    def __init__(self, machine: OSWorld, files: Path, downloads: Path, **options: Any) -> None:
        self.machine, self.files = machine, files
        given = {"urls": [machine.server.url], "revert": [], "size": SIZE, "settle_s": 0.0, **options}
        self.env = OSWorldEnv(
            evaluators=python(), downloads=str(downloads), password="secret", deadlines=QUICK, **given
        )

    def ends(self, evaluator: Any, left: str = "", *, success: bool = True, config: Any = ()) -> float:
        """The reward where the agent leaves the files done, untouched, or none."""
        self.env.reset({**TASK, "evaluator": evaluator, "config": config}, 0)
        if left:
            home = self.machine.disk(HOME)
            shutil.copytree(self.files / left, home, dirs_exist_ok=True)
        return float(say(self.env, a.Finish(success)).reward)


@pytest.fixture
def task(machine: OSWorld, files: Path, tmp_path: Path) -> Iterator[Task]:
    task = Task(machine, files, tmp_path / "downloads")
    yield task
    task.env.close()


def vm_file(name: str) -> dict[str, Any]:
    return {"type": "vm_file", "path": f"{HOME}/{name}", "dest": name}


def like(web: FaultyServer, name: str) -> dict[str, Any]:
    return {"type": "cloud_file", "path": f"{web.url}/done/{name}", "dest": f"expected_{name}"}


def rule(rules: Any) -> dict[str, Any]:
    return {"type": "rule", "rules": rules}


COMPARED = [
    ("compare_table", "prices.xlsx", {"rules": DATA}),
    ("compare_docx_files", "report.docx", {}),
    ("compare_pptx_files", "talk.pptx", {}),
    ("compare_csv", "table.csv", {}),
    ("compare_text_file", "note.txt", {}),
    ("compare_zip_files", "all.zip", {}),
]
RULED: list[tuple[str, str, Any]] = [
    ("check_pdf_pages", "paper.pdf", {"relation": "eq", "ref_value": 3}),
    ("check_json", "settings.json", FONT["expected"]["rules"]),
    ("check_csv", "table.csv", {"expect": [{"a": "1"}]}),
    ("run_sqlite3", "mail.sqlite", COUNT),
]


def test_files_as_they_should_be_and_as_they_were(task: Task, web: FaultyServer) -> None:
    for func, name, options in COMPARED:
        evaluator = {"func": func, "result": vm_file(name), "expected": like(web, name), "options": options}
        assert (task.ends(evaluator, "done"), task.ends(evaluator, "untouched")) == (1.0, 0.0), func
    for func, name, rules in RULED:
        evaluator = {"func": func, "result": vm_file(name), "expected": rule(rules)}
        assert (task.ends(evaluator, "done"), task.ends(evaluator, "untouched")) == (1.0, 0.0), func
    assert web.count("/done/prices.xlsx") == 1, "a download is kept"
    assert task.ends(TASK["evaluator"], success=False) == 0.0, "who gives up has not done it"


def test_darker_photos_and_states_of_the_machine(task: Task, web: FaultyServer, files: Path) -> None:
    before = {"type": "cloud_file", "path": f"{web.url}/untouched/photo.png", "dest": "before.png"}
    darker = {"func": PHOTO, "result": vm_file("photo.png"), "expected": before}
    assert (task.ends(darker, "done"), task.ends(darker, "untouched")) == (1.0, 0.0)
    task.machine.tree = '<desktop-frame><document-web name="Done"/></desktop-frame>'
    tree = {"func": "check_accessibility_tree", "result": {"type": "accessibility_tree"}}
    found = [
        task.ends({**tree, "expected": rule([{"selectors": [f"[name={name}]"]}])})
        for name in ("Done", "Other")
    ]
    assert found == [1.0, 0.0]
    config = task.machine.disk(f"{HOME}/.config/GIMP/2.10/gimprc")
    config.parent.mkdir(parents=True)
    config.write_text("(theme dark)\n")
    gimp = {"type": "gimp_config_file", "file_name": "gimprc", "dest": "gimprc"}
    wanted = [rule({"type": "key-value", "key": "theme", "value": value}) for value in ("dark", "light")]
    found = [task.ends({"func": "check_config_status", "result": gimp, "expected": each}) for each in wanted]
    assert found == [1.0, 0.0]


def test_several_metrics_stand_together_as_in_osworld(task: Task) -> None:
    prints = {"func": "exact_match", "result": PRINTS}
    yes, no = rule({"expected": "ready"}), rule({"expected": "other"})
    both = {
        "func": [prints["func"]] * 2,
        "result": [PRINTS] * 2,
        "expected": [yes, no],
        "options": [{}, None],
    }
    assert (task.ends(both), task.ends({**both, "conj": "or"})) == (0.0, 1.0)
    missing = {**both, "expected": [yes, yes], "result": [PRINTS, vm_file("none")]}
    assert (task.ends(missing), task.ends({**missing, "conj": "or"})) == (0.0, 1.0)
    cannot_run = {**PRINTS, "command": ["no-such-program"]}
    assert task.ends({**prints, "result": cannot_run, "expected": yes}) == 0.0, "a state, not a failure"


def test_what_is_missing_or_no_such_file_is_the_agents_result(
    task: Task, web: FaultyServer, files: Path
) -> None:
    table = {"func": "compare_table", "result": vm_file("prices.xlsx"), "options": {"rules": DATA}}
    pages = {"func": "check_pdf_pages", "result": vm_file("paper.pdf")}
    pages = {**pages, "expected": rule({"relation": "eq", "ref_value": 3})}
    slides = {
        "func": "compare_pptx_files",
        "result": vm_file("talk.pptx"),
        "expected": like(web, "talk.pptx"),
    }
    database = {"func": "run_sqlite3", "result": vm_file("mail.sqlite"), "expected": rule(COUNT)}
    evaluators = [{**table, "expected": like(web, "prices.xlsx")}, slides, pages, database]
    assert [task.ends(each) for each in evaluators] == [0.0] * 4, "nothing is there"
    for name in ("prices.xlsx", "talk.pptx", "paper.pdf", "mail.sqlite"):
        file = task.machine.disk(f"{HOME}/{name}")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(b"no such file, but long enough to be taken for one" * 10)
    assert [task.ends(each) for each in evaluators] == [0.0] * 4, "something else is there"
    (files / "done" / "page.pptx").write_bytes(b"<html>Log in</html>")
    with pytest.raises(EnvFailure, match="compare_pptx_files raised"):
        task.ends({**slides, "expected": like(web, "page.pptx")}, "untouched")


def test_a_machine_that_fails_gives_no_score(task: Task) -> None:
    assert task.ends(FONT, "untouched") == 0.0
    for fault, match in (("drop", "POST .*/file: ConnectionError"), ("500", "/file: status 500")):
        task.machine.server.faults = [("/file", fault)]  # type: ignore[list-item]
        with pytest.raises(EnvFailure, match=match):
            task.ends(FONT, "done")
    assert task.ends(FONT, "done") == 1.0


def test_a_download_that_fails_gives_no_score(task: Task, web: FaultyServer, files: Path) -> None:
    text = {"func": "compare_text_file", "result": vm_file("note.txt"), "expected": like(web, "note.txt")}
    for fault in ("500", "drop", "cut"):
        web.faults = [("/done/note.txt", fault)]  # type: ignore[list-item]
        with pytest.raises(EnvFailure, match="cloud_file raised"):
            task.ends(text, "done")
    assert task.ends(text, "done") == 1.0, "no half of a file was kept"
    nowhere = {**text, "expected": {**like(web, "x"), "path": "http://127.0.0.1:9/x"}}
    with pytest.raises(EnvFailure, match="cloud_file raised ConnectionError"):
        task.ends(nowhere, "done")


def test_a_metric_that_raises_gives_no_score(task: Task) -> None:
    pages = {"func": "check_pdf_pages", "result": vm_file("paper.pdf"), "expected": rule({"relation": "no"})}
    with pytest.raises(EnvFailure, match="check_pdf_pages raised AttributeError"):
        task.ends(pages, "done")
    chrome = {"func": "is_expected_tabs", "result": {"type": "open_tabs_info"}, "expected": rule({})}
    with pytest.raises(EnvFailure, match="Chrome's debugging port cannot be reached"):
        task.ends(chrome)


@pytest.fixture
def chrome(tmp_path: Path) -> Iterator[int]:
    """The debugging port of a browser."""
    port = free_port()
    program = ["chromium-headless-shell", f"--remote-debugging-port={port}", "--no-sandbox"]
    program += [f"--user-data-dir={tmp_path / 'profile'}", "about:blank"]
    # The program is a script that starts the browser: both are of one group.
    with subprocess.Popen(program, stderr=subprocess.DEVNULL, start_new_session=True) as process:
        while True:
            assert process.poll() is None
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.05)
        yield port
        os.killpg(process.pid, signal.SIGKILL)


def test_tabs_are_opened_and_verified_in_a_real_browser(
    machine: OSWorld, files: Path, web: FaultyServer, tmp_path: Path, chrome: int
) -> None:
    address = f"127.0.0.1:{machine.server.server_address[1]}:{chrome}:1:1"
    task = Task(machine, files, tmp_path / "downloads", urls=[address])
    pages = [f"{web.url}/done/note.txt", f"{web.url}/done/table.csv"]
    config = [{"type": "chrome_open_tabs", "parameters": {"urls_to_open": pages}}]
    tabs = {"func": "is_expected_tabs", "result": {"type": "open_tabs_info"}}
    shown = {**tabs, "expected": rule({"type": "url", "urls": pages})}
    assert task.ends(shown, config=config) == 1.0
    assert task.ends({**tabs, "expected": rule({"type": "url", "urls": pages[:1]})}) == 0.0
    task.env.close()


def test_what_the_agent_wrote_is_never_run(task: Task, tmp_path: Path) -> None:
    favourites = {"func": "check_gnome_favorite_apps", "expected": rule({"expected": ["a.desktop"]})}
    command = {"type": "vm_command_line", "command": ["printf", "%s", "['a.desktop']"]}
    assert task.ends({**favourites, "result": command}) == 1.0
    hostile = f"__import__('pathlib').Path({str(tmp_path / 'PWNED')!r}).touch()"
    with pytest.raises(EnvFailure, match="check_gnome_favorite_apps raised ValueError"):
        task.ends({**favourites, "result": {**command, "command": ["printf", "%s", hostile]}})
    assert not (tmp_path / "PWNED").exists()


@pytest.mark.parametrize(
    ("evaluator", "match"),
    [
        (
            {"func": "compare_image_text", "result": PRINTS},
            r"'compare_image_text' needs .*easyocr .*pip install",
        ),
        ({"func": "check_python_file_by_test_suite", "result": PRINTS}, "runs Python .* on this host"),
        ({"func": "compare_tables", "result": PRINTS}, "no evaluator 'compare_tables'"),
        ({"func": "exact_match", "result": {"type": "vm_files"}}, "no getter 'vm_files'"),
        ({"func": "exact_match", "result": {"type": "googledrive_file"}}, "needs .*pydrive"),
        ({"func": "exact_match"}, "evaluator is not one"),
        ({"func": ["exact_match"] * 2, "result": [PRINTS]}, "evaluator is not one"),
        ({"func": "infeasible", "postconfig": [{"type": "replay"}]}, "no set-up step 'replay'"),
    ],
)
def test_what_cannot_be_verified_is_refused_before_anything_is_played(
    task: Task, evaluator: Any, match: str
) -> None:
    with pytest.raises(ConfigError, match=match):
        task.ends(evaluator)
    assert task.machine.server.acted == []


def test_an_interpreter_without_the_package_is_named(machine: OSWorld) -> None:
    env = OSWorldEnv([machine.server.url], revert=[], size=SIZE, evaluators=sys.executable)
    with pytest.raises(ConfigError, match=r"has no desktop_env.*docs/gui_remote\.md"):
        env.reset(TASK, 0)


def test_the_docs_count_the_evaluators_of_the_package() -> None:
    counts, _, lacking = evaluators_table(described(python())).split("\n\n")
    assert counts in (ROOT / "docs" / "gui_remote.md").read_text()
    assert "| metrics | compare_image_text | easyocr |" in lacking


def test_rows_are_what_the_interpreter_can_verify(tmp_path: Path) -> None:
    evaluators = [FONT, {**FONT, "func": "compare_image_text"}, {"func": "infeasible"}]
    for number, evaluator in enumerate(evaluators):
        (tmp_path / f"{number}.json").write_text(
            json.dumps({**TASK, "id": str(number), "evaluator": evaluator})
        )
    (tmp_path / "3.json").write_text(json.dumps({**TASK, "evaluator": FONT, "config": [{"type": "proxy"}]}))
    rows, survey = osworld_rows(tmp_path, {"evaluators": python()}, infeasible_share=1.0)
    assert [row["id"] for row in rows] == ["0", "2"] and survey.verified == 2
    assert osworld_rows(tmp_path, {}, infeasible_share=1.0)[1].verified == 1


def test_set_up_steps(task: Task, files: Path) -> None:
    machine = task.machine
    upload = {"local_path": str(files / "done" / "note.txt"), "path": f"{HOME}/Desktop/note.txt"}
    kept = {"command": ["printf", "%s", "{CLIENT_PASSWORD} {SCREEN_WIDTH_HALF}"], "stdout": "said.txt"}
    counted = {"command": "echo >> count; wc -l < count", "shell": True, "until": {"stdout": "3"}}
    config = [
        {"type": "upload_file", "parameters": {"files": [upload]}},
        {"type": "execute", "parameters": kept},
        {
            "type": "command",
            "parameters": {**counted, "command": f"cd {machine.folder}; {counted['command']}"},
        },
        {"type": "close_window", "parameters": {"window_name": "not there"}},
        {"type": "launch", "parameters": {"command": "google-chrome --new-window"}},
    ]
    said = {"type": "cache_file", "path": "said.txt"}
    evaluator = {"func": "diff_text_file", "result": said, "expected": said}
    gone = {"type": "execute", "parameters": {"command": ["no-such-program"]}}
    assert task.ends({**evaluator, "postconfig": [gone]}, config=config) == 1.0
    assert machine.disk(upload["path"]).read_text() == "Hello, world\n"
    assert (machine.folder / "count").read_text() == "\n" * 3
    launched = [asked.body for asked in machine.server.acted if asked.path == "/setup/launch"]
    assert b'["google-chrome","--new-window"]' in launched[0].replace(b" ", b"")
    with pytest.raises(EnvFailure, match="no-such-program"):
        task.ends(evaluator, config=[gone])
    with pytest.raises(EnvFailure, match="chrome_open_tabs"):
        opened = {"type": "chrome_open_tabs", "parameters": {"urls": []}}
        task.ends(evaluator, config=[opened])


def test_an_evaluator_that_takes_too_long_is_ended(task: Task) -> None:
    task.env.reset({**TASK, "evaluator": FONT}, 0)
    backend: Any = task.env.backend
    backend.deadlines = type(backend.deadlines)(verify_s=0.5)
    task.machine.server.faults = [("/file", "slow")]
    with pytest.raises(EnvFailure, match=r"no answer to score in 0\.") as failed:
        say(task.env, a.Finish())
    assert failed.value.kind == "hung"
