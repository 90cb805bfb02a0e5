"""Every task: its script reaches the goal, agents that do nothing of use get nothing, variants differ."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from vlrl.envs.gui.actions import Answer, Click, Finish
from vlrl.envs.gui.x11.backend import X11Backend
from vlrl.envs.gui.x11.desktop import Machine
from vlrl.envs.gui.x11.env import answerable, installed
from vlrl.envs.gui.x11.sandbox.home import FOLDER, OTHER
from vlrl.envs.gui.x11.task import Setup, judge, optional_apps
from vlrl.envs.gui.x11.tasks import TASKS
from vlrl.errors import ConfigError
from vlrl.seeds import derive_seed

SIZE = (1024, 768)
GUESSES = ("", "yes", "no", "0", "1", "42", "done", "txt", "the answer")


LARGE = sorted(name for name, task in TASKS.items() if optional_apps([task]))
LIGHT = sorted(TASKS.keys() - set(LARGE))
SOME = LIGHT[::4]


def of_tasks(names: list[str], play: Callable[[X11Backend, str], str]) -> None:
    """Play tasks, several at once; `play` says what is wrong, or nothing."""
    apps = optional_apps(TASKS[name] for name in names)
    # On a busy machine four apps that start at once take their time.
    patient = Machine(SIZE, settle_s=30.0, apps=apps)
    backends = [X11Backend(patient, TASKS, pool=1) for _ in range(4)]
    with ThreadPoolExecutor(len(backends)) as pool:
        shares = [names[number :: len(backends)] for number in range(len(backends))]
        played = pool.map(lambda backend, share: [play(backend, name) for name in share], backends, shares)
        wrong = [text for texts in played for text in texts if text]
    for backend in backends:
        backend.close()
    assert not wrong, "\n".join(wrong)


def by_script(backend: X11Backend, name: str, level: int, seed: int) -> str:
    backend.reset({"name": name, "difficulty": level}, seed)
    for _ in range(backend.max_steps):
        action = backend.oracle()
        screen = backend.perform(action)
        verdict = backend.verdict()
        if verdict.success or isinstance(action, Answer | Finish):
            break
    good = verdict.success and verdict.progress == 1.0 and screen.settled
    return "" if good else f"{name}, difficulty {level}: {action} {verdict}"


def test_there_are_forty_tasks() -> None:
    assert len(TASKS) >= 40


def test_the_script_of_a_task_scores_1() -> None:
    of_tasks(SOME, lambda backend, name: by_script(backend, name, 1, 11))


@pytest.mark.slow
@pytest.mark.parametrize("level", [1, 2, 3])
def test_the_script_of_every_task_scores_1(level: int) -> None:
    of_tasks(sorted(TASKS), lambda backend, name: by_script(backend, name, level, 20 + level))


@pytest.mark.parametrize(
    "names", [SOME, pytest.param(sorted(TASKS), marks=pytest.mark.slow)], ids=["some", "all"]
)
def test_agents_that_do_nothing_of_use_score_0(names: list[str]) -> None:
    def play(backend: X11Backend, name: str) -> str:
        backend.reset({"name": name}, 12)
        scores = [backend.verdict().progress]
        rng = np.random.default_rng(derive_seed("null", name))
        for _ in range(3):
            backend.perform(Click((int(rng.integers(SIZE[0])), int(rng.integers(SIZE[1])))))
            scores.append(backend.verdict().progress)
        for action in (Finish(True), Finish(False), *map(Answer, GUESSES)):
            backend.perform(action)
            verdict = backend.verdict()
            scores += [verdict.progress, float(verdict.success)]
        return f"{name}: {scores}" if any(scores) else ""

    of_tasks(names, play)


@pytest.mark.parametrize("name", sorted(TASKS))
def test_variants_differ_and_repeat(name: str) -> None:
    def variant(seed: int) -> str:
        setup = TASKS[name].make(np.random.default_rng(seed), 1)
        return f"{setup.goal} {setup.files}"

    assert variant(5) == variant(5)
    assert len({variant(seed) for seed in range(20)}) > 15


@pytest.mark.parametrize("name", sorted(TASKS))
def test_what_has_to_be_typed_is_in_the_goal_and_the_answer_is_not(name: str) -> None:
    for seed in range(21):
        setup = TASKS[name].make(np.random.default_rng(seed), seed % 3 + 1)
        assert setup.answer is None or setup.answer not in setup.goal


BEFORE = {"a.txt": b"one", "b.txt": b"two"}
COPY = Setup(
    "Copy a to c.",
    [],
    milestones={
        "there is a c": lambda tree: "c.txt" in tree,
        "it is right": lambda t: t.get("c.txt") == b"one",
    },
    changed=["c.txt"],
)


@pytest.mark.parametrize(
    ("after", "success", "progress"),
    [
        (BEFORE, False, 0.0),
        ({**BEFORE, "c.txt": b"on"}, False, 0.5),
        ({**BEFORE, "c.txt": b"one"}, True, 1.0),
        ({"a.txt": b"one", "b.txt": b"gone", "c.txt": b"one"}, False, 0.5),
        ({"a.txt": b"one", "c.txt": b"one"}, False, 0.5),
        ({**BEFORE, "c.txt": b"one", "d": FOLDER}, False, 0.5),
        ({**BEFORE, "c.txt": OTHER}, False, 0.5),
        ({"a.txt": b"one", "c.txt": b"on"}, False, 0.25),  # half of it, with damage: half of that
    ],
)
def test_milestones_count_and_what_else_was_changed_costs_the_success(
    after: dict[str, bytes], success: bool, progress: float
) -> None:
    verdict = judge(COPY, BEFORE, after, None)
    assert (verdict.success, verdict.progress) == (success, progress)


def test_giving_up_is_no_success_whatever_the_files_say() -> None:
    verdict = judge(COPY, BEFORE, {**BEFORE, "c.txt": b"one"}, Finish(False))
    assert (verdict.success, verdict.progress) == (False, 0.0)


def test_an_answer_counts_whatever_its_case_and_spaces() -> None:
    setup = Setup("Which?", [], answer="Walnut.txt")
    assert judge(setup, {}, {}, Answer(" walnut.TXT\n")).success
    assert not judge(setup, {}, {}, Answer("walnut.txt or pepper.txt")).success


def test_a_grammar_without_a_word_for_answers_is_asked_nothing() -> None:
    asking = {
        name for name, task in TASKS.items() if task.make(np.random.default_rng(1), 1).answer is not None
    }
    assert asking and set(answerable(TASKS, "uitars")) == set(TASKS)
    assert set(answerable(TASKS, "gui_r1")) == set(TASKS) - asking
    with pytest.raises(ConfigError, match="'gui_r1' has no word for"):
        answerable({name: TASKS[name] for name in asking}, "gui_r1")


def test_tasks_whose_apps_are_missing_are_left_out_with_the_command_that_installs_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("shutil.which", lambda program: None if program == "soffice" else program)
    some = {name: TASKS[name] for name in ("calc_total", "files_move")}
    with pytest.warns(RuntimeWarning, match=r"leaves out calc_total.*apt-get install .*libreoffice-calc"):
        assert installed(some).keys() == {"files_move"}
    with pytest.raises(ConfigError, match=r"calc_total need apps .*libreoffice-calc"):
        installed({"calc_total": TASKS["calc_total"]})
