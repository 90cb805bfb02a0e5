"""Goals in the language of the screen: every one is there, says all that the English says, and no English."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np
import pytest

from vlrl.envs.gui.emu.env import EmuEnv
from vlrl.envs.gui.emu.strings import LANGUAGES, speak
from vlrl.envs.gui.emu.task import TEMPLATES, Draw, Setup
from vlrl.envs.gui.emu.variation import Variation
from vlrl.envs.gui.emu.wording import SENTENCES, add_sentences, chained, listed, quoted, worded
from vlrl.errors import ConfigError

OTHERS = LANGUAGES[1:]
QUOTES = {"en": r"“([^“”]*)”", "de": r"„([^„“]*)“", "fr": r"“([^“”]*)”", "es": r"“([^“”]*)”"}
VALUE = r"[\w./@-]*\w[./@]\w+|\d[\d:.-]*\d|\d"
"""File names and paths, addresses, numbers and times."""


@pytest.fixture(autouse=True)
def english_again() -> Iterator[None]:
    yield
    speak("en")


def made(name: str, level: int, form: str, seed: int, language: str, goals: str = "screen") -> Setup:
    """A task on a screen in a language."""
    looks = {**Variation({"language": language}).draw(seed), "form": form}
    speak(language, goals)
    return TEMPLATES[name].make(Draw(np.random.default_rng(seed), level, looks))


def english_left(goal: str, english: str) -> set[str]:
    """Stretches of four English words, no names, outside of quotes, that a goal in another language has."""

    def runs(text: str) -> set[str]:
        words = re.sub("|".join((QUOTES["en"], QUOTES["de"], VALUE)), " | ", text).split()
        stretches = zip(*(words[n:] for n in range(4)), strict=False)
        return {" ".join(run) for run in stretches if sum(word[0].islower() for word in run) > 2}

    return runs(goal) & runs(english)


@pytest.mark.parametrize("name", sorted(TEMPLATES))
def test_goals_are_in_every_language_and_name_the_same_things(name: str) -> None:
    template = TEMPLATES[name]
    for number, level in enumerate(template.levels):
        for seed in range(2):
            form = template.forms[(seed + number) % len(template.forms)]
            for language in OTHERS:
                english = made(name, level, form, seed, language, "en").goal
                goal = made(name, level, form, seed, language).goal
                assert goal != english and "{" not in goal and "  " not in goal, goal
                assert not english_left(goal, english), (goal, english)
                quotes = re.findall(QUOTES["en"], english)
                values = re.findall(VALUE, english)
                lost = [value for value in (*quotes, *values) if value not in goal]
                assert not lost, (goal, english, lost)


@pytest.mark.parametrize("name", sorted(TEMPLATES))
def test_the_language_of_goals_changes_nothing_else(name: str) -> None:
    level, form = TEMPLATES[name].levels[-1], TEMPLATES[name].forms[0]
    setups = [made(name, level, form, 1, "de", goals) for goals in ("screen", *LANGUAGES)]
    assert len({one.goal for one in setups}) == 4 and setups[0].goal == setups[2].goal
    assert len({one.answer for one in setups}) == 1
    worlds = [repr((one.files, one.settings, one.data, one.windows, one.changes)) for one in setups]
    assert len(set(worlds)) == 1
    assert (
        len({tuple(one.milestones) for one in setups}) == 1 and len({len(one.oracle) for one in setups}) == 1
    )


def test_translations_have_the_quotes_and_ends_of_their_language() -> None:
    assert len(SENTENCES) > 300
    for english in SENTENCES:
        check_signs(english)


def check_signs(english: str) -> None:
    count = english.count("“")
    assert count == english.count("”")
    german, french, spanish = SENTENCES[english]
    for text, language in ((german, "de"), (french, "fr"), (spanish, "es")):
        assert not re.search(r"""["«»]|(?<!l)'""", text), text
        pairs = re.findall(QUOTES[language], text)
        assert len(pairs) >= count, text  # a translation may quote what the English does not
        ends = "„“" if language == "de" else "“”"
        assert all(text.count(sign) == len(pairs) for sign in ends), text
        assert ("”" not in text) if language == "de" else ("„" not in text), text
    assert "? " not in french.replace(" ? ", "  ") and "¿" not in german + french
    assert spanish.count("?") == spanish.count("¿")
    ends = {text.rstrip(")")[-1] in ".?" for text in (english.partition("|")[0], *SENTENCES[english])}
    assert len(ends) == 1, SENTENCES[english]


def test_a_goal_in_each_language() -> None:
    goals = {language: made("calendar/move", 3, "desktop", 1, language).goal for language in LANGUAGES}
    assert goals == {
        "en": "Move “Museum tour” from 22 May 2026 to 26 May 2026 at 12:00.",
        "de": "Verschiebe „Museum tour“ vom 22. Mai 2026 auf den 26. Mai 2026 um 12:00.",
        "fr": "Déplace “Museum tour” du 22 mai 2026 au 26 mai 2026 à 12:00.",
        "es": "Mueve “Museum tour” del 22 de mayo de 2026 al 26 de mayo de 2026 a las 12:00.",
    }


def test_the_option_says_the_language_of_goals_and_nothing_of_the_world() -> None:
    texts, worlds = {}, []
    for goals in ("screen", "en", "fr"):
        env = EmuEnv(tasks="settings/volume", difficulty=1, language="de", goal_language=goals)
        texts[goals] = env.reset({}, 4).text.split()[1]
        worlds.append(env.backend.world)  # type: ignore[attr-defined]
    assert texts == {"screen": "Stelle", "en": "Set", "fr": "Règle"}
    assert worlds[0] == worlds[1] == worlds[2] and "goal_language" not in worlds[0].settings


def test_the_option_may_be_a_list_and_is_refused_by_name() -> None:
    assert Variation({}).draw(3)["goal_language"] == "screen"
    sampled = {Variation({"goal_language": ["screen", "en"]}).draw(n)["goal_language"] for n in range(9)}
    assert sampled == {"screen", "en"}
    with pytest.raises(ConfigError, match=r"goal_language='it'; choose from screen, en, de, fr, es"):
        EmuEnv(goal_language="it")


@pytest.mark.parametrize("name", ["paint/question", "photos/question"])
def test_a_colour_may_be_said_in_the_language_of_the_screen_or_in_english(name: str) -> None:
    env = EmuEnv(tasks=name, difficulty=1, language="de")
    said: dict[str, bool] = {}
    for seed in range(8):
        env.reset({}, seed)
        setup = env.backend.setup  # type: ignore[attr-defined]
        if not setup.also_right:  # a question for a number
            continue
        english = setup.also_right[0]
        assert setup.answer == worded(english)  # what a demonstration answers
        for word in (setup.answer, *setup.also_right):
            env.reset({}, seed)
            said[word] = env.step(f"<action>answer {word}</action>").info["success"]
    assert len(said) > 4 and all(said.values()), said


def test_things_in_a_row() -> None:
    speak("en")
    assert listed(["a", "b", "c"]) == "a and b and c" and listed(["a", "b"], ", ") == "a, b"
    speak("de")
    assert listed(["a", "b", "c"]) == "a, b und c" and listed(["a"]) == "a" and quoted("a") == "„a“"
    assert chained("{first}, then {next}", ["a", "b", "c"]) == "a, dann b, dann c"
    speak("es")
    assert listed(["agua", "“Invoice”"]) == "agua e “Invoice”" and listed(["a", "hielo"]) == "a y hielo"


def test_a_sentence_needs_all_translations_with_the_same_fields() -> None:
    with pytest.raises(LookupError, match=r"'Do {that}\.' have no translations; give them to add_sentences"):
        worded("Do {that}.", that="it")
    with pytest.raises(ValueError, match="need lines that begin with de:, fr: and es:"):
        add_sentences("Do it.\nde: Tu es.\nfr: Fais-le.")
    with pytest.raises(ValueError, match="has other fields"):
        add_sentences("Do {it}.\nde: Tu {it}.\nfr: Fais {it}.\nes: Haz {that}.")
    with pytest.raises(ValueError, match="translated twice"):
        add_sentences("Empty the trash.\nde: Leeren.\nfr: Vide.\nes: Vacía.")
