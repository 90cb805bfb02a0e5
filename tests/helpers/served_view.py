"""`vlrl view` of some runs in Debian's headless browser."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from browser_page import BrowserPage

from vlrl.viewer.browse.answers import ViewAnswers
from vlrl.viewer.browse.server import ViewServer

AXE = Path(__file__).parent / "vendor" / "axe.min.js"
RULES = ("wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "best-practice")


@contextmanager
def served(run_dirs: Sequence[Path], **options: Any) -> Iterator[ViewServer]:
    """A server in a thread."""
    with ViewServer(ViewAnswers(run_dirs), **options) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


class ViewPage(BrowserPage):
    """The page, with its addresses."""

    def start(self) -> None:
        """Wait for the first page."""
        self.until("document.body && document.body.dataset.ready")

    def until(self, script: str) -> Any:
        """Wait until an expression is true; an element is."""
        return super().until(f"Boolean({script})")

    def go(self, address: str) -> None:
        """Open #address and wait until it is drawn."""
        if self.value("location.hash") != address:
            self.value(f"document.body.dataset.ready = ''; location.hash = {json.dumps(address)}")
        self.until("document.body.dataset.ready")

    def screen(self, width: int, height: int, *, theme: str = "light") -> None:
        """Take another size and theme."""
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=width < 500,
        )
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": theme}])

    def text(self, selector: str) -> str:
        """What an element says; "" if there is none."""
        found = self.value(f"(document.querySelector({json.dumps(selector)}) || {{}}).textContent")
        return str(found or "")

    def texts(self, selector: str) -> list[str]:
        """What all elements say."""
        found: list[str] = self.value(
            f"[...document.querySelectorAll({json.dumps(selector)})].map(e => e.textContent)"
        )
        return found

    def press(self, selector: str) -> None:
        """Click the middle of an element, as a person does."""
        script = (
            f"(e => {{ e.scrollIntoView({{block: 'center'}}); const b = e.getBoundingClientRect();"
            f" return [b.left + b.width / 2, b.top + b.height / 2]; "
            f"}})(document.querySelector({json.dumps(selector)}))"
        )
        x, y = self.value(script)
        self.click(x, y)

    def choose(self, selector: str, value: str) -> None:
        """Take an option of a select, or type into a field."""
        self.value(
            f"(e => {{ e.value = {json.dumps(value)}; for (const name of ['input', 'change'])"
            f" e.dispatchEvent(new Event(name, {{bubbles: true}})); "
            f"}})(document.querySelector({json.dumps(selector)}))"
        )

    def violations(self) -> list[str]:
        """What axe finds wrong: contrast, names, roles."""
        if not self.value("typeof axe === 'object'"):
            self.call("Runtime.evaluate", expression=AXE.read_text(encoding="utf-8"))
        found = self.value(
            f"axe.run(document, {{runOnly: {json.dumps(RULES)}}}).then(r => r.violations.map(v => "
            f"v.id + ': ' + v.help +"
            " ' | ' + v.nodes.slice(0, 3).map(n => n.html.slice(0, 200) + ' ' + (n.any[0] ? "
            "n.any[0].message : '')).join(' | ')))"
        )
        assert isinstance(found, list)
        return found
