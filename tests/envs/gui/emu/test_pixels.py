"""What the screen looks like, to the bit: pinned hashes; --write pins those of now, once you have looked."""

from __future__ import annotations

import hashlib
import json
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from gallery import Bench, known

from vlrl.envs.gui.actions import Key, OpenApp, Wait
from vlrl.envs.gui.emu.drawing.glyphs import FAMILIES as FONTS
from vlrl.envs.gui.emu.drawing.glyphs import SIZES, Font, face, shorten, text_width
from vlrl.envs.gui.emu.drawing.icons import ICONS, emblem, icon
from vlrl.envs.gui.emu.drawing.theme import PALETTES
from vlrl.envs.gui.emu.env import EmuEnv
from vlrl.envs.gui.emu.families import FAMILIES

PINNED = Path(__file__).with_name("pixels.json")
CONFIGS = Path(__file__).parents[4] / "configs"
LEARNED = ("quickstart_gui", "quickstart_lights")
LOOKS: dict[str, tuple[str, dict[str, Any]]] = {
    "daylight": ("first", {}),
    "midnight": ("second", {"theme": "midnight", "font": "serif", "wallpaper": "slope"}),
    "paper": ("third", {"theme": "paper", "font": "roman", "font_size": 14, "bar_side": "left"}),
    "slate": ("first", {"theme": "slate", "menus": "button", "bar_side": "top", "language": "de"}),
    "contrast": ("second", {"theme": "contrast", "wallpaper": "rays", "size": (1280, 800)}),
    "forest": ("first", {"theme": "forest", "scale": 125, "title_buttons": "left", "tools": "backward"}),
    "fluent": ("first", {"widgets": "fluent", "size": (800, 600)}),
    "fluent dark": ("second", {"widgets": "fluent", "theme": "midnight"}),
    "aqua": ("second", {"widgets": "aqua", "size": (800, 600)}),
    "aqua dark": ("first", {"widgets": "aqua", "theme": "midnight", "bar_side": "left"}),
    "adwaita": ("first", {"widgets": "adwaita", "size": (800, 600)}),
    "adwaita dark": ("second", {"widgets": "adwaita", "theme": "dusk", "title_buttons": "left"}),
    "phone": ("second", {"form": "mobile", "theme": "rose", "wallpaper": "glow", "language": "fr"}),
}


def pixels_of(name: str) -> str:
    page, options = LOOKS[name]
    desk = Bench(page, **options).do(OpenApp("settings"), Key(("alt", "tab")), Wait(0))
    return hashlib.sha256(desk.desktop.perform(Wait(0)).pixels.tobytes()).hexdigest()


def learned_pixels(config: str) -> str:
    """What a policy of this config sees first, of eight seeds."""
    given = yaml.safe_load((CONFIGS / f"{config}.yaml").read_text())
    options = given["data"]["train"]["options"]["options"]
    desktop, digest = EmuEnv(**{**options, "shown_size": None}).backend, hashlib.sha256()
    for seed in range(8):
        digest.update(desktop.reset({}, seed).pixels.tobytes())
    return digest.hexdigest()


@pytest.mark.parametrize("config", LEARNED)
def test_what_the_learning_proofs_train_on_stays_as_it_was(config: str) -> None:
    assert learned_pixels(config) == json.loads(PINNED.read_text())[config]


@pytest.mark.parametrize("name", LOOKS)
def test_the_pixels_are_those_that_were_looked_at(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    known(monkeypatch)
    assert pixels_of(name) == json.loads(PINNED.read_text())[name]


def test_every_icon_and_letter_is_drawn() -> None:
    for name in ICONS:
        for side in (12, 16, 32):
            assert (
                len(set(map(tuple, icon(side, side, name, (0, 0, 0), (200, 200, 250)).reshape(-1, 3)))) > 1
            ), name
        assert emblem(24, 24, name, (0, 0, 0))[..., 3].any(), name
    for family in FONTS:
        for size in SIZES:
            letters = face(Font(family, size))
            assert letters.coverage("Ägypten").shape == (letters.height, letters.width("Ägypten"))
            assert letters.width("中") == letters.width("□")


def test_a_text_that_does_not_fit_is_shortened() -> None:
    font = Font("sans", 13)
    for width in range(10, 120):
        assert text_width(font, shorten(font, "The quick brown fox", width)) <= max(
            width, text_width(font, "…")
        )
    assert shorten(font, "short", 200) == "short"


def test_text_can_be_read_on_every_theme() -> None:
    """Contrast of WCAG 2.1 (relative luminance), 4.5 and more for what is read."""

    def luminance(colour: tuple[int, int, int]) -> float:
        parts = [c / 255 for c in colour]
        linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    def contrast(one: tuple[int, int, int], other: tuple[int, int, int]) -> float:
        high, low = sorted((luminance(one), luminance(other)), reverse=True)
        return (high + 0.05) / (low + 0.05)

    for name, p in (((f, theme), FAMILIES[f].palette(theme)) for f in FAMILIES for theme in PALETTES):
        for ink, paper in ((p.text, p.window), (p.text, p.field), (p.text, p.button), (p.text, p.selected)):
            assert contrast(ink, paper) >= 4.5, name
        assert contrast(p.title_text, p.title) >= 4.5 and contrast(p.bar_text, p.bar) >= 4.5, name
        assert contrast(p.accent_text, p.accent) >= 3.0, name


if __name__ == "__main__":
    assert sys.argv[1:] == ["--write"], "run with --write"
    with pytest.MonkeyPatch.context() as patch:
        known(patch)
        pinned = {name: pixels_of(name) for name in LOOKS} | {name: learned_pixels(name) for name in LEARNED}
        PINNED.write_text(json.dumps(pinned, indent=2) + "\n")
