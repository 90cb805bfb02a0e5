"""Web environments of the tests share one browser, and pages that a test writes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from vlrl.envs.gui.web.chromium import browser
from vlrl.envs.gui.web.folder import WebFolder

TASK = """({
  goal: "Do it.",
  verdict: (plan, said) => ({
    milestones: { done: document.body.dataset.done === "yes" },
    ended: document.body.dataset.over === "yes",
  }),
})"""


@pytest.fixture(scope="module", autouse=True)
def no_browser_left() -> Iterator[None]:
    yield
    browser.close_idle()


@pytest.fixture
def open_page(tmp_path: Path) -> Iterator[Callable[..., WebFolder]]:
    """Write a page (body, or a whole document) as the only task of a folder, and show it."""
    opened: list[WebFolder] = []

    def open_page(html: str, task: str = TASK, seed: int = 0, **options: Any) -> WebFolder:
        (tmp_path / "page.html").write_text(f"<!DOCTYPE html>{html}")
        (tmp_path / "page.task.js").write_text(task)
        backend = WebFolder(str(tmp_path), size=(320, 240), **options)
        opened.append(backend)
        backend.reset({}, seed)
        return backend

    yield open_page
    for backend in opened:
        backend.close()
