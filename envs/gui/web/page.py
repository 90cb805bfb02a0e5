"""One page of one episode: loaded through the gate, driven by its own clock, shown as pixels."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from vlrl.envs.gui.actions import Action, SystemButton
from vlrl.envs.gui.web.chromium.browser import Browser
from vlrl.envs.gui.web.chromium.drawing import Drawing
from vlrl.envs.gui.web.chromium.gate import ORIGIN, Gate
from vlrl.envs.gui.web.chromium.pipe import Answer, BrowserFailure, Deadline, Overdue, is_answered
from vlrl.envs.gui.web.inputs import BrowserInput, CommandBatch
from vlrl.envs.gui.web.look import Look, set_up_commands
from vlrl.types import ByteArray

LOADING_LIMIT_S = 5.0
"""What is still loading after so much real time is not waited for."""
MOST_IMAGES = 4
INPUT_S = 0.01
"""An input that has not been taken in after so much real time waits for a frame."""
_HELD_WITHIN = "window[Symbol.for('vlrl')].heldWithin()"
_IF_QUIET = "window[Symbol.for('vlrl')].isQuiet(%d) ? [(%s)] : null"
_SETTLE = "window[Symbol.for('vlrl')].settle(%d,%d)"
_NAVIGATED = re.compile(
    r"context was destroyed|navigated or closed|Cannot find context|undefined \(reading 'settle'\)"
)


class Page:
    """A page. One call at a time, from any thread.

    Attributes:
        input: where the agent's pointer is, and which buttons and keys it holds.
        settled: whether it had come to rest when it was last waited for.
    """

    def __init__(
        self,
        browser: Browser,
        context: str,
        url: str,
        gate: Gate,
        look: Look,
        seed: int,
        on_hang: Callable[[], None] = lambda: None,
    ) -> None:
        """Open a page and wait until it has loaded; `on_hang` is called if it later does not answer in time.

        Raises:
            BrowserFailure: if the browser died or the page did not load in time.
        """
        self._browser, self._gate, self._look, self._on_hang = browser, gate, look, on_hang
        self._changed = threading.Condition()
        self._loading: set[str] = {"page"}
        self._drag: Mapping[str, Any] | None = None
        self._is_carrying = False
        self._held_within: Sequence[float] | None = None
        self._gone = ""
        self.settled = True
        width, height = look.image_size
        self.input = BrowserInput(look.scale, look.form, (width // 2, height // 2))
        deadline = Deadline(look.limit_s)
        self.target, self._session = browser.open_target(url, context, look.size, deadline)
        self._drawing = Drawing(browser, self._session, look.image_size)
        browser.pipe.listen(self._session, self._hear)
        sent = [(self._send(*command), command[0]) for command in set_up_commands(look, seed)]
        for answer, method in sent:
            deadline.wait(answer, method)
        self._arrive(deadline)

    def perform(self, action: Action) -> None:
        """Do it, and wait until the page has come to rest or `settle_ms` of its time are over."""
        with self._limited() as deadline:
            if self._look.form == "mobile":
                # A page that names no width of its own is shown smaller, or zoomed.
                self.input.scale = self._look.scale * self._value("visualViewport.scale", deadline, None)
            if action == SystemButton("back"):
                self._back(deadline)
            for batch in self.input.batches(action):
                self._send_batch(batch, deadline)
            self._rest(deadline)

    def evaluate(self, expression: str, *, isolated: bool = False) -> Any:
        """The value of an expression, in the page's own world or in one that shares only its document.

        Raises:
            BrowserFailure: if it throws.
        """
        with self._limited() as deadline:
            return self._value(expression, deadline, self._world(deadline) if isolated else None)

    def image(self, expression: str = "null") -> tuple[ByteArray, Any]:
        """What it looks like, [height, width, 3] uint8, and then an expression's value in its own world.

        The image is taken again if drawing it has set something off.

        Raises:
            BrowserFailure: if the expression throws.
        """
        with self._limited() as deadline:
            for _ in range(MOST_IMAGES - 1):
                pixels = self._drawing.pixels(deadline)
                if not self.settled:
                    break
                asked = _IF_QUIET % (self._look.settle_ms, expression)
                if (values := self._value(asked, deadline, None)) is not None:  # one command for both
                    return pixels, values[0]
                self._rest(deadline)
            else:
                pixels = self._drawing.pixels(deadline)
            return pixels, None if expression == "null" else self._value(expression, deadline, None)

    @contextmanager
    def _limited(self) -> Iterator[Deadline]:
        """The time that a call has."""
        try:
            yield Deadline(self._look.limit_s)
        except Overdue:
            self._on_hang()
            raise

    def _take_in(self, inputs: Sequence[Answer], deadline: Deadline) -> None:
        """Wait until the page has had them: what moves is taken in when a frame begins.

        A page that computes for ever takes no frame either; all others would wait for it.
        """
        for answer in inputs:
            while deadline.left_s and not is_answered(answer, INPUT_S):
                alive = self._send("Runtime.evaluate", {"expression": "0"})
                if not is_answered(alive, deadline.left_s):
                    break
                if not answer.done():  # not only late, as where many pages share few cores
                    self._drawing.frame(deadline)
            deadline.wait(answer, "an input")

    def rest(self) -> None:
        """Wait until it has come to rest."""
        with self._limited() as deadline:
            self._rest(deadline)

    @property
    def gone(self) -> str:
        """Why there is no page any more; empty while there is one."""
        return self._gone or self._browser.pipe.ended

    def forget_stored(self) -> None:
        """Empty the cookies and stores of its origin; what is opened afterwards finds none."""
        self._send("Storage.clearDataForOrigin", {"origin": ORIGIN, "storageTypes": "all"})

    def sweep(self) -> None:
        """Free what the closed pages of its process have left."""
        self._send("HeapProfiler.collectGarbage", {})

    def close(self) -> None:
        """Close it; nothing is waited for."""
        self._browser.pipe.listen(self._session, None)
        self._browser.pipe.send("Target.closeTarget", {"targetId": self.target})

    def _back(self, deadline: Deadline) -> None:
        history = deadline.wait(self._send("Page.getNavigationHistory", {}), "its history")
        if history["currentIndex"] > 0:
            entry = history["entries"][history["currentIndex"] - 1]["id"]
            self._note(add="page")
            deadline.wait(self._send("Page.navigateToHistoryEntry", {"entryId": entry}), "going back")
            self._await_network(deadline)

    def _send_batch(self, batch: CommandBatch, deadline: Deadline) -> None:
        drag, sent = self._drag, []
        for method, params in batch.commands:
            if method != "Input.dispatchMouseEvent":
                sent.append(self._send(method, params))
            elif drag is not None:
                sent += self._carry(drag, params)
            else:
                sent.append(self._send(method, self._kept_within(params)))
        self._take_in(sent, deadline)
        kinds = [params.get("type") for _, params in batch.commands]
        if "mouseReleased" in kinds:
            self._held_within = None
        elif "mousePressed" in kinds:
            self._held_within = self._value(_HELD_WITHIN, deadline, None)
        if batch.pause_ms:
            self._pass(batch.pause_ms, batch.pause_ms, deadline)

    def _kept_within(self, params: Mapping[str, Any]) -> Mapping[str, Any]:
        if self._held_within is None:
            return params
        left, top, right, bottom = self._held_within
        x, y = min(max(params["x"], left), right), min(max(params["y"], top), bottom)
        return {**params, "x": x, "y": y}

    def _carry(self, drag: Mapping[str, Any], params: Mapping[str, Any]) -> list[Answer]:
        """A move or a release while a thing of the page is dragged: the browser leaves that to its driver."""
        where = {key: params[key] for key in ("x", "y", "modifiers")} | {"data": drag}
        kinds = ["dragOver"] if self._is_carrying else ["dragEnter", "dragOver"]
        self._is_carrying = params["type"] != "mouseReleased"
        sent = [self._send("Input.dispatchDragEvent", {"type": kind, **where}) for kind in kinds]
        if params["type"] == "mouseReleased":
            self._drag = None
            sent += [
                self._send("Input.dispatchDragEvent", {"type": "drop", **where}),
                self._send("Input.dispatchMouseEvent", params),
            ]
        return sent

    def _rest(self, deadline: Deadline) -> None:
        self.settled = self._pass(self._look.step_ms, self._look.settle_ms, deadline)

    def _pass(self, least_ms: int, most_ms: int, deadline: Deadline) -> bool:
        """Let the page's time pass; true if it came to rest."""
        try:
            settled = self._value(_SETTLE % (least_ms, most_ms), deadline, None)
        except BrowserFailure as failure:
            if self._gone or not _NAVIGATED.search(str(failure)):
                raise
            self._arrive(deadline)  # the action led to another page
            return self.settled
        if self._is_loading:
            self._await_network(deadline)
            return self._pass(0, most_ms, deadline)
        return bool(settled)

    def _arrive(self, deadline: Deadline) -> None:
        self._await_network(deadline)
        self._rest(deadline)

    @property
    def _is_loading(self) -> bool:
        with self._changed:
            return bool(self._loading)

    def _await_network(self, deadline: Deadline) -> None:
        """Wait for the page, which has to come, and for what it loads, which may not."""
        with self._changed:
            self._changed.wait_for(lambda: "page" not in self._loading or bool(self.gone), deadline.left_s)
            limit_s = min(LOADING_LIMIT_S, deadline.left_s)
            self._changed.wait_for(lambda: not self._loading or bool(self.gone), limit_s)
            arrived = "page" not in self._loading
            self._loading.clear()
        if self.gone:
            raise BrowserFailure(self.gone)
        if not arrived:
            raise Overdue(f"the page did not load within {deadline.limit_s:g} s")

    def _world(self, deadline: Deadline) -> int:
        frame = deadline.wait(self._send("Page.getFrameTree", {}), "its frames")["frameTree"]["frame"]["id"]
        world = self._send("Page.createIsolatedWorld", {"frameId": frame, "worldName": "vlrl"})
        return int(deadline.wait(world, "a world of its own")["executionContextId"])

    def _value(self, expression: str, deadline: Deadline, world: int | None) -> Any:
        what = {"expression": expression, "returnByValue": True, "awaitPromise": True}
        if world is not None:
            what["contextId"] = world
        answer = deadline.wait(self._send("Runtime.evaluate", what), "a script")
        if "exceptionDetails" in answer:
            thrown = answer["exceptionDetails"].get("exception", {})
            raise BrowserFailure(f"a script of the page threw {thrown.get('description', 'something')[:500]}")
        return answer["result"].get("value")

    def _send(self, method: str, params: Mapping[str, Any]) -> Answer:
        return self._browser.pipe.send(method, params, self._session)

    def _hear(self, method: str, params: Mapping[str, Any]) -> None:
        """An event, in the thread that reads: nothing may be waited for here."""
        match method:
            case "Fetch.requestPaused":
                command, reply = self._gate.answer(params["request"])
                self._send(command, {"requestId": params["requestId"], **reply})
            case "Network.requestWillBeSent" if params["request"]["url"].startswith("http"):
                self._note(add=params["requestId"])
            case "Network.responseReceived" if params["type"] == "Fetch":
                self._note(drop=params["requestId"])  # nobody has to read its body
            case "Network.loadingFinished" | "Network.loadingFailed":
                self._note(drop=params["requestId"])
            case "Page.frameStartedNavigating" | "Page.frameStartedLoading":
                self._note(add=f"frame {params['frameId']}")
            case "Page.frameStoppedLoading" | "Page.frameDetached":
                self._note(drop=f"frame {params['frameId']}")
            case "Page.loadEventFired":
                self._note(drop="page")
            case "Page.javascriptDialogOpening":
                accept = params["type"] in ("alert", "beforeunload")
                self._send("Page.handleJavaScriptDialog", {"accept": accept})
            case "Input.dragIntercepted":
                self._drag = params["data"]
            case "Inspector.targetCrashed":
                self._gone = "the page's process died"
                self._browser.pipe.forget(self._session, self._gone)
                self._note()

    def _note(self, add: str = "", drop: str = "") -> None:
        with self._changed:
            if add:
                self._loading.add(add)
            self._loading.discard(drop)
            self._changed.notify_all()
