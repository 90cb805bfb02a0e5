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
    wording,
)
from vlrl.envs.gui.emu.tasks.documents import code, pdf, photos, slides
from vlrl.envs.gui.emu.tasks.files import folders, lookup, several
from vlrl.envs.gui.emu.tasks.mail import attachments, letters, writing
from vlrl.envs.gui.emu.tasks.web import browser, dense, forms, forum, orders, questions

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
    "orders",
    "paint",
    "pdf",
    "photos",
    "questions",
    "safety",
    "settings",
    "several",
    "sheet",
    "slides",
    "wording",
    "writing",
]
