"""`vlrl chat` in the terminal."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from rich.console import Console
from rich.text import Text

from vlrl.chat.conversation import Conversation, content_of
from vlrl.chat.reward_view import RewardView, plain_messages
from vlrl.errors import VlrlError

HELP = """An image's path or URL in a line becomes the image, in its place; quote one with spaces.
/answer TEXT  what is right, for rewards that compare; /answer alone forgets it
/undo         forget the last question and answer
/clear        begin again
/quit         end (or Ctrl-D)"""


class TerminalChat:
    """Reads lines and shows answers as they come, with what rewards say of them."""

    def __init__(
        self,
        conversation: Conversation,
        rewards: RewardView | None,
        console: Console,
        read: Callable[[str], str] = input,
    ) -> None:
        """Keep what is talked with.

        Args:
            conversation: with the model.
            rewards: shown below each answer.
            console: to print on.
            read: prints a prompt and returns a line; raises EOFError at the end.
        """
        self._conversation, self._rewards = conversation, rewards
        self._console, self._read = console, read
        self._reference: str | None = None

    def run(self) -> None:
        """Talk until the end of the input."""
        self._console.print(Text(f"{self._conversation.endpoint.model}: /help shows the commands", "dim"))
        while True:
            try:
                line = self._read("> ").strip()
            except (EOFError, KeyboardInterrupt):
                self._console.print()
                return
            if line == "/quit":
                return
            if line.startswith("/") and self._command(*line.partition(" ")[::2]):
                continue
            if line:
                self._ask(line)

    def _command(self, name: str, rest: str) -> bool:
        """Do what a command says; False if it is none, as a path is."""
        if name == "/help":
            self._console.print(Text(HELP, "dim"))
        elif name == "/clear":
            self._conversation.messages.clear()
        elif name == "/undo":
            self._conversation.undo()
        elif name == "/answer":
            self._reference = rest.strip() or None
        else:
            return False
        return True

    def _ask(self, line: str) -> None:
        try:
            asyncio.run(self._show(content_of(line)))
        except VlrlError as error:
            self._console.print(Text.assemble(("error: ", "bold red"), str(error)))
        except KeyboardInterrupt:
            self._console.print(Text(" (stopped; not kept)", "dim"))

    async def _show(self, content: list[dict[str, Any]]) -> None:
        pieces = []
        async for piece in self._conversation.ask(content):
            pieces.append(piece)
            self._console.print(Text(piece), end="")
        self._console.print()
        if self._rewards is not None:
            before = plain_messages(self._conversation.messages[:-1])
            answer = "".join(pieces)
            for judged in await asyncio.to_thread(self._rewards.judge, before, answer, self._reference):
                self._console.print(Text(f"  {judged.line()}", "cyan"))
