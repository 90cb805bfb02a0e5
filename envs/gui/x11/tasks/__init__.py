"""The templates of tasks, by name."""

from __future__ import annotations

from collections.abc import Mapping

from vlrl.envs.gui.x11.task import DesktopTask
from vlrl.envs.gui.x11.tasks import browser, editor, files, images, mail, many, office, terminal, texts

TASKS: Mapping[str, DesktopTask] = {
    task.name: task
    for tasks in (
        editor.TASKS,
        texts.TASKS,
        files.TASKS,
        many.TASKS,
        images.TASKS,
        terminal.TASKS,
        office.TASKS,
        browser.TASKS,
        mail.TASKS,
    )
    for task in tasks
}
