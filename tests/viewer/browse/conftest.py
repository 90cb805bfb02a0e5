from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from served_view import ViewPage, served
from viewed_run import write_summary, write_viewed_run

from vlrl.viewer.browse.server import ViewServer


@pytest.fixture(scope="session")
def run_dirs(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Two seeds of a run that have ended, and one that trains at another rate."""
    folder = tmp_path_factory.mktemp("runs")
    for seed in (0, 1):
        run_dir = folder / f"grpo_s{seed}"
        write_viewed_run(run_dir, 40, seed=seed, collapse_at=28 if seed else None).close()
        write_summary(run_dir, seed=seed)
    write_viewed_run(folder / "faster", 12, seed=2, lr=1e-5).close()
    return [folder / name for name in ("grpo_s0", "grpo_s1", "faster")]


@pytest.fixture(scope="module")
def server(run_dirs: list[Path]) -> Iterator[ViewServer]:
    with served(run_dirs) as running:
        yield running


@pytest.fixture(scope="module")
def browser(server: ViewServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ViewPage]:
    with ViewPage(server.url, tmp_path_factory.mktemp("profile"), size=(1280, 900)) as page:
        page.start()
        yield page


@pytest.fixture
def page(browser: ViewPage) -> Iterator[ViewPage]:
    """The page on its first address, wide and light; no script of it may have failed."""
    browser.screen(1280, 900)
    browser.go("#curves")
    yield browser
    assert not browser.errors
