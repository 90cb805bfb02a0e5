"""The environments gui/miniwob and gui/web."""

from __future__ import annotations

import inspect
from typing import Any

from vlrl.envs.gui.env import GuiEnv
from vlrl.envs.gui.web.backend import WebBackend
from vlrl.envs.gui.web.folder import WebFolder
from vlrl.envs.gui.web.miniwob.pages import MiniWob


class MiniWobEnv(GuiEnv):
    """The tasks of MiniWoB++; by default the reward is the page's own, -1 to 1, not scaled by time."""

    def __init__(self, reward: str = "raw", **options: Any) -> None:
        """See `MiniWob` and `GuiRules`."""
        backend = MiniWob(**_taken(options, MiniWob))
        super().__init__(backend, reward=reward, **options)


class WebEnv(GuiEnv):
    """The tasks of a folder of one's own."""

    def __init__(self, folder: str, **options: Any) -> None:
        """See `WebFolder` and `GuiRules`."""
        backend = WebFolder(folder, **_taken(options, WebFolder))
        super().__init__(backend, **options)


def _taken(options: dict[str, Any], backend: type[WebBackend]) -> dict[str, Any]:
    """Take a backend's own options out of all; what is left is the rules'."""
    return {name: options.pop(name) for name in inspect.signature(backend).parameters if name in options}
