"""The apps; importing this makes all of them known, in the order of the start menu."""

from vlrl.envs.gui.emu.apps import (
    board,
    browser,
    calculator,
    calendar,
    clock,
    contacts,
    editor,
    folders,
    mail,
    paint,
    settings,
    spreadsheet,
)
from vlrl.envs.gui.emu.apps.code import app as code
from vlrl.envs.gui.emu.apps.documents import pdf, photos, slides
from vlrl.envs.gui.emu.windows import dialogs

__all__ = [
    "board",
    "browser",
    "calculator",
    "calendar",
    "clock",
    "code",
    "contacts",
    "dialogs",
    "editor",
    "folders",
    "mail",
    "paint",
    "pdf",
    "photos",
    "settings",
    "slides",
    "spreadsheet",
]
