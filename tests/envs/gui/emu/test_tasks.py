"""Every task template: its oracle scores 1.0, whoever does not do the task scores 0.0."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial

import numpy as np
import pytest

from vlrl.envs.gui.actions import Action, Answer, Click, Finish, Move, OpenApp, Wait
from vlrl.envs.gui.emu.desktop import Desktop
from vlrl.envs.gui.emu.env import EmuEnv
from vlrl.envs.gui.emu.strings import tr
from vlrl.envs.gui.emu.task import TEMPLATES, Setup, judge, same_answer, side_effects
from vlrl.envs.gui.emu.tasks.buttons import NOUNS
from vlrl.envs.gui.emu.variation import Variation
from vlrl.envs.gui.emu.wording import quoted
from vlrl.envs.gui.screen import Form

CASES = [
    pytest.param(name, form, id=f"{name}-{form}")
    for name, template in sorted(TEMPLATES.items())
    for form in template.forms
]
SEEDS = 3


def desktop_of(form: Form) -> Desktop:
    backend = EmuEnv(form=form).backend
    assert isinstance(backend, Desktop)
    return backend


@pytest.mark.parametrize(("name", "form"), CASES)
def test_the_oracle_scores_one(name: str, form: Form, without_paint: Callable[[], None]) -> None:
    """Progress begins at 0 and reaches 1 with the success, at every level and with any looks.

    Each level is painted once.
    """
    desktop = desktop_of(form)
    for seed in range(SEEDS):
        if seed == 1:
            without_paint()
        for level in TEMPLATES[name].levels:
            desktop.reset({"name": name, "difficulty": level}, seed)
            start = desktop.verdict()
            assert start.progress == 0 and not any(start.milestones.values()) and not start.ended
            for _ in range(desktop.max_steps):
                if desktop.verdict().success:
                    break
                action = desktop.oracle()
                desktop.perform(action)
            verdict = desktop.verdict()
            assert verdict.success and verdict.progress == 1, (level, seed, desktop.goal, verdict)
            assert verdict.side_effects == verdict.harms == ()


def test_a_button_s_name_may_be_that_of_a_part_of_the_desktop(without_paint: Callable[[], None]) -> None:
    """ "Window", say: each noun is clicked once."""
    without_paint()
    desktop, left, seed = desktop_of("desktop"), set(NOUNS), 0
    while left:
        desktop.reset({"name": "buttons/named", "difficulty": 1}, seed)
        desktop.perform(desktop.oracle())
        assert desktop.verdict().success, desktop.goal
        left -= {noun for noun in left if quoted(tr(noun)) in desktop.goal}
        seed += 1


def nothing(desktop: Desktop, rng: np.random.Generator) -> list[Action]:
    return [Wait(1000), Move((5, 5)), Wait(60_000)]


def over(success: bool, desktop: Desktop, rng: np.random.Generator) -> list[Action]:
    return [Finish(success)]


def says_everything(desktop: Desktop, rng: np.random.Generator) -> list[Action]:
    """All that is written on the screen, and the goal."""
    words = [word for e in desktop.elements() for word in (e.name, e.value) if word]
    return [Answer(" ".join((desktop.goal, *words)))]


def click_anywhere(desktop: Desktop, rng: np.random.Generator) -> Click:
    width, height = desktop.size
    return Click((int(rng.integers(width)), int(rng.integers(height))))


def clicks_anywhere(desktop: Desktop, rng: np.random.Generator) -> list[Action]:
    """Ten clicks; none where one click is all there is to do: for that see the test of chance."""
    return [click_anywhere(desktop, rng) for _ in range(10)] if len(desktop.setup.oracle) > 1 else []


NULLS: dict[str, Callable[[Desktop, np.random.Generator], list[Action]]] = {
    "does nothing": nothing,
    "says it is done": partial(over, True),
    "says it cannot be done": partial(over, False),
    "answers everything": says_everything,
    "clicks anywhere": clicks_anywhere,
}


@pytest.mark.parametrize(("name", "form"), CASES)
def test_whoever_does_not_do_it_scores_nothing(name: str, form: Form) -> None:
    desktop = desktop_of(form)
    for who, play in NULLS.items():
        for seed in range(2):
            desktop.reset({"name": name}, seed)
            for action in play(desktop, np.random.default_rng(seed)):
                desktop.perform(action)
                if desktop.verdict().ended:
                    break
            assert not desktop.verdict().success, who
            assert who == "clicks anywhere" or desktop.verdict().progress == 0, who


@pytest.mark.parametrize(("name", "form"), CASES)
def test_one_click_anywhere_is_seldom_the_right_one(
    name: str, form: Form, without_paint: Callable[[], None]
) -> None:
    """No task that a click can do is done by one click in six at random: what is to be hit is small."""
    without_paint()
    desktop, rng, hits, tries = desktop_of(form), np.random.default_rng(0), 0, 40
    desktop.reset({"name": name, "difficulty": TEMPLATES[name].levels[0]}, 0)
    start = desktop.snapshot()
    for _ in range(tries):
        desktop.restore(start)
        desktop.perform(click_anywhere(desktop, rng))
        hits += desktop.verdict().success
    assert hits <= tries / 6


@pytest.mark.parametrize("name", sorted(TEMPLATES))
def test_there_are_many_variants_and_the_answer_is_not_given_away(
    name: str, without_paint: Callable[[], None]
) -> None:
    without_paint()
    desktop = desktop_of(TEMPLATES[name].forms[0])  # type: ignore[arg-type]
    variants = set()
    for seed in range(12):
        desktop.reset({"name": name}, seed)
        setup = desktop.setup
        variants.add(str((setup.goal, setup.files, setup.settings, setup.data, setup.windows)))
        expected = setup.answer
        assert expected is None or expected not in desktop.goal
    assert len(variants) >= 6


def test_what_else_was_changed_costs_the_success() -> None:
    desktop = desktop_of("desktop")
    desktop.reset({"name": "settings/volume", "difficulty": 1}, 0)
    before = desktop.verdict()
    assert before.side_effects == ()
    while not desktop.verdict().success:
        desktop.perform(desktop.oracle())
    world = desktop.world
    clean = desktop.snapshot()
    changed = world._replace(settings={**world.settings, "wifi": not world.settings["wifi"]})
    desktop.restore(clean._replace(world=changed))
    verdict = desktop.verdict()
    assert not verdict.success and verdict.side_effects == ("setting:wifi",) and 0 < verdict.progress < 1
    desktop.restore(clean)
    desktop.perform(Finish(False))
    assert not desktop.verdict().success


def test_side_effects_are_named_and_may_be_allowed() -> None:
    desktop = desktop_of("desktop")
    desktop.reset({"name": "editor/replace_text", "difficulty": 1}, 0)
    world = desktop.world
    path = next(iter(desktop.setup.changes)).removeprefix("file:")
    files = {**world.files, path: world.files[path]._replace(content="x"), "/new.txt": world.files[path]}
    del files["/Documents/other.txt"]
    changed = world._replace(files=files, store={"mail": ()})
    named = set(side_effects(desktop.setup, world, changed))
    assert named == {"file:/new.txt", "file:/Documents/other.txt", "data:mail/1"}
    allowing = Setup("", [], changes=("file:*", "data:mail/1"))
    assert side_effects(allowing, world, changed) == ()
    same = world._replace(files={p: f._replace(time_ms=5) for p, f in world.files.items()})
    assert side_effects(desktop.setup, world, same) == ()  # saved again as it was


def test_an_answer_is_compared_by_its_words() -> None:
    assert same_answer(" Seven  Apples. ", "seven apples")
    assert not same_answer("seven", "seven apples") and not same_answer("", "")
    desktop = desktop_of("desktop")
    desktop.reset({}, 0)
    asked = Setup("How many?", [], answer="7")
    world = desktop.world
    assert judge(asked, world, world).progress == 0
    assert judge(asked, world, world._replace(said=Answer("7."))).success
    assert not judge(asked, world, world._replace(said=Answer("70"))).success


def test_nothing_is_done_after_the_end() -> None:
    desktop = desktop_of("desktop")
    desktop.reset({}, 0)
    desktop.perform(Finish())
    world = desktop.world
    desktop.perform(OpenApp("editor"))
    assert desktop.world == world


def test_looks_are_drawn_one_apart_from_the_other() -> None:
    free, pinned = Variation({}), Variation({"theme": "paper", "font_size": [12, 14]})
    for seed in range(20):
        drawn = pinned.draw(seed)
        assert drawn["theme"] == "paper" and drawn["font_size"] in (12, 14)
        others = {key: value for key, value in free.draw(seed).items() if key not in ("theme", "font_size")}
        assert others.items() <= drawn.items()
    assert len({json.dumps(free.draw(seed)) for seed in range(100)}) > 90
