"""An agent's episode from the environment's start to the recording, with its page or in the terminal."""

from __future__ import annotations

import webbrowser
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import typer

from vlrl.chat.agent import AgentRun
from vlrl.chat.agent_page import AgentPage, Decisions
from vlrl.chat.conversation import ModelAddress
from vlrl.env_play.game import PlayedGame
from vlrl.process.event_loop import WAKE_S


@dataclass(frozen=True, slots=True)
class AgentOptions:
    """What an agent is to do.

    Attributes:
        env: the environment.
        options: its own.
        task: given to its reset.
        seed: of the episode.
        max_turns: most actions.
        confirm: always, never, or auto: if the environment cannot take an action back.
        fields: of every request, such as temperature.
        out: folder of the recording.
        port: of the page; None asks in the terminal.
        open_browser: open the page.
    """

    env: str
    options: Mapping[str, Any]
    task: Mapping[str, Any] = field(default_factory=dict)
    seed: int = 0
    max_turns: int = 50
    confirm: str = "auto"
    fields: Mapping[str, Any] = field(default_factory=dict)
    out: Path = Path("recordings")
    port: int | None = None
    open_browser: bool = False


def work(endpoint: ModelAddress, options: AgentOptions, tell: Callable[[str], None]) -> dict[str, Any]:
    """Play the episode, with Ctrl-C as a way to stop it, and record what was done.

    Args:
        endpoint: where the model answers.
        options: of the episode.
        tell: called with words for the person.

    Returns:
        state, num_turns, return, success, recording (None if nothing was done) and error.

    Raises:
        ConfigError: for an unknown environment, a wrong option or a wrong task.
        ResourceError: if the page's port is in use.
    """
    # Some libraries want all of an environment's calls from the thread that made it.
    with ThreadPoolExecutor(1, "environment") as thread:
        game = thread.submit(PlayedGame, options.env, options.options, options.task, options.seed).result()
        try:
            run = _prepared(game, endpoint, options)
            page = None
            if options.port is not None:
                page = AgentPage(run.agent, run.decisions, port=options.port)
                tell(f"{page.url}  (Ctrl-C stops the agent)")
                if options.open_browser:
                    webbrowser.open(page.url)
            try:
                _run_to_end(thread, run.agent)
                return _ended(run.agent, options, tell)
            finally:
                if page is not None:
                    page.shutdown()
        finally:
            thread.submit(game.close).result()


@dataclass(frozen=True, slots=True)
class _Prepared:
    agent: AgentRun
    decisions: Decisions


def _prepared(game: PlayedGame, endpoint: ModelAddress, options: AgentOptions) -> _Prepared:
    decisions = Decisions()
    asks = options.confirm == "always" or (options.confirm == "auto" and not game.can_undo)

    def confirm(text: str) -> bool:
        if options.port is not None:
            return decisions.wait(lambda: agent.is_stopped)
        return typer.confirm(f"{text}\ndo this?", err=True)

    agent = AgentRun(
        game, endpoint, options.fields, max_turns=options.max_turns, confirm=confirm if asks else None
    )
    return _Prepared(agent, decisions)


def _run_to_end(thread: ThreadPoolExecutor, agent: AgentRun) -> None:
    future, is_done = thread.submit(agent.run), False
    while not is_done:
        try:
            is_done = bool(wait([future], timeout=WAKE_S).done)
        except KeyboardInterrupt:
            agent.stop()
    future.result()


def _ended(agent: AgentRun, options: AgentOptions, tell: Callable[[str], None]) -> dict[str, Any]:
    game = agent.game
    recording = None
    if game.moves:
        recording = agent.record(options.out)
        tell(f"recorded: vlrl env replay {recording}")
    why = f"; {agent.error}" if agent.error else ""
    tell(f"{agent.state} after {len(game.moves)} actions, return {game.total:g}{why}")
    return {
        "state": agent.state,
        "num_turns": len(game.moves),
        "return": game.total,
        "success": game.success,
        "recording": None if recording is None else str(recording),
        "error": agent.error,
    }
