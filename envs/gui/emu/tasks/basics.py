"""The first tasks: a button, a text, a setting."""

from __future__ import annotations

from vlrl.envs.gui.emu.oracle.intents import choose, click, key, menu, open_app, slide, type_into
from vlrl.envs.gui.emu.strings import tr
from vlrl.envs.gui.emu.task import Draw, Setup, template
from vlrl.envs.gui.emu.tasks.content.words import LINES, STEMS
from vlrl.envs.gui.emu.wording import worded

CHOICES = {
    "save": "Save",
    "delete": "Delete",
    "discard": "Discard",
    "cancel": "Cancel",
    "yes": "Yes",
    "no": "No",
}
FILES, SENTENCES = STEMS[:6], LINES[:6]


@template("basics/click_button", levels=(1, 2, 3))
def click_button(draw: Draw) -> Setup:
    """A dialog with two to four buttons, one of which is to be pressed; another one ends it."""
    buttons = draw.picks(tuple(CHOICES), draw.level + 1)
    wanted = draw.pick(buttons)
    return Setup(
        goal=worded("Press the button “{text}”.", text=tr(CHOICES[wanted])),
        windows=[("dialog.message", "\x1f".join((draw.pick(SENTENCES), "info", "", *buttons)))],
        milestones={"pressed": lambda world: world.store.get("dialog.message") == wanted},
        over=lambda world: not world.windows,
        changes=["data:dialog.message"],
        oracle=[click(wanted)],
        max_steps=5,
    )


@template("editor/replace_text", levels=(1, 2))
def replace_text(draw: Draw) -> Setup:
    """A text is to be replaced and saved; at level 2 its file is to be opened first."""
    name, (before, after) = draw.pick(FILES), draw.picks(SENTENCES, 2)
    path = f"/Documents/{name}.txt"
    opening = [open_app("editor"), menu("file", "open"), type_into("name", f"{name}.txt"), click("accept")]
    return Setup(
        goal=worded(
            "Replace all of the text of {file} in Documents by “{text}” and save the file.",
            file=f"{name}.txt",
            text=after,
        ),
        files={path: before, "/Documents/other.txt": draw.pick(SENTENCES)},
        windows=[("editor", path)] if draw.level == 1 else [],
        milestones={
            "typed": lambda world: (editor := world.app("editor")) is not None and editor.text == after,
            "saved": (2, lambda world: world.read(path) == after),
        },
        changes=[f"file:{path}"],
        oracle=[*(opening if draw.level == 2 else []), type_into("text", after), key("ctrl+s")],
    )


@template("settings/volume", levels=(1, 2))
def volume(draw: Draw) -> Setup:
    """The volume is to be set; at level 2 the sound is muted, too, and is to be heard again."""
    wanted, muted = 5 * draw.number(0, 20), draw.level == 2
    before = (wanted + 5 * draw.number(3, 12)) % 105
    goal = "Set the volume to {volume} in the settings" + (" and unmute the sound." if muted else ".")
    return Setup(
        goal=worded(goal, volume=wanted),
        settings={"volume": before, "muted": muted},
        milestones={
            "volume": (2, lambda world: world.settings["volume"] == wanted),
            **({"heard": lambda world: world.settings["muted"] is False} if muted else {}),
        },
        changes=["setting:volume", "setting:muted"] if muted else ["setting:volume"],
        oracle=[
            open_app("settings"),
            choose("page", "sound"),
            slide("volume", wanted),
            *([click("muted")] if muted else []),
        ],
    )
