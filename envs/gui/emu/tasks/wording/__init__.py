"""What goals say in each language, beside the tasks that say it; importing this makes all of it known."""

from vlrl.envs.gui.emu.tasks.wording import (
    colours,
    documents,
    files,
    forms,
    images,
    mail,
    numbers,
    pdf,
    people,
    safety,
    shell,
    times,
    web,
)

__all__ = [
    "colours",
    "documents",
    "files",
    "forms",
    "images",
    "mail",
    "numbers",
    "pdf",
    "people",
    "safety",
    "shell",
    "times",
    "web",
]
