"""The tasks; importing this makes all of them known."""

from vlrl.envs.gui.emu.tasks import (
    across,
    basics,
    buttons,
    calculator,
    calendar,
    clock,
    contacts,
    desktop,
    editor,
    notices,
    paint,
    safety,
    settings,
    sheet,
)
from vlrl.envs.gui.emu.tasks.documents import code, pdf, photos, slides
from vlrl.envs.gui.emu.tasks.files import folders, lookup, several
from vlrl.envs.gui.emu.tasks.mail import attachments, letters
from vlrl.envs.gui.emu.tasks.web import browser, dense, forms, forum

__all__ = [
    "across",
    "attachments",
    "basics",
    "browser",
    "buttons",
    "calculator",
    "calendar",
    "clock",
    "code",
    "contacts",
    "dense",
    "desktop",
    "editor",
    "folders",
    "forms",
    "forum",
    "letters",
    "lookup",
    "notices",
    "paint",
    "pdf",
    "photos",
    "safety",
    "settings",
    "several",
    "sheet",
    "slides",
]
