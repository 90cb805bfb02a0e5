"""The environments gui/miniwob and gui/web."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from vlrl.envs.gui.env import GuiEnv
from vlrl.envs.gui.screen import Form
from vlrl.envs.gui.web.chromium.chrome import Sandbox
from vlrl.envs.gui.web.folder import WebFolder
from vlrl.envs.gui.web.miniwob.pages import MiniWob


class MiniWobEnv(GuiEnv):
    """The tasks of MiniWoB++; by default the reward is the page's own, -1 to 1, not scaled by time."""

    def __init__(
        self,
        tasks: Sequence[str] | str | None = None,
        scale: int = 3,
        step_ms: int = 48,
        settle_ms: int = 640,
        limit_s: float = 30.0,
        sandbox: Sandbox = "require",
        reward: str = "raw",
        **rules: Any,
    ) -> None:
        """See `MiniWob` and `GuiRules`."""
        backend = MiniWob(tasks, scale, step_ms, settle_ms, limit_s, sandbox)
        super().__init__(backend, reward=reward, **rules)


class WebEnv(GuiEnv):
    """The tasks of a folder of one's own."""

    def __init__(
        self,
        folder: str,
        tasks: Sequence[str] | str | None = None,
        size: Sequence[int] = (640, 480),
        scale: float = 1.0,
        form: Form = "desktop",
        step_ms: int = 48,
        settle_ms: int = 640,
        limit_s: float = 30.0,
        sandbox: Sandbox = "require",
        **rules: Any,
    ) -> None:
        """See `WebFolder` and `GuiRules`."""
        backend = WebFolder(folder, tasks, size, scale, form, step_ms, settle_ms, limit_s, sandbox)
        super().__init__(backend, **rules)
