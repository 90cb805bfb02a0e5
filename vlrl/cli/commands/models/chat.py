"""`vlrl chat`."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.console import Console

from vlrl.cli.shared import DebugOption, JsonOption, options_of, print_result


def command(
    model: Annotated[
        str, typer.Argument(help="What `vlrl serve` takes, or the address of a server (http…/v1).")
    ],
    serve_options: Annotated[
        list[str] | None,
        typer.Argument(help="After --: options of `vlrl serve`.", metavar="[-- OPTION…]"),
    ] = None,
    reward: Annotated[
        list[str] | None,
        typer.Option(help="A reward that is shown beside each answer; may be repeated.", show_default=False),
    ] = None,
    option: Annotated[
        list[str] | None,
        typer.Option("--option", help="An option of the rewards: key=value; may be repeated."),
    ] = None,
    temperature: Annotated[float, typer.Option(min=0, help="0 is greedy, as in `vlrl eval`.")] = 0.0,
    max_tokens: Annotated[
        int | None, typer.Option(min=1, help="Longest answer; as in training by default.", show_default=False)
    ] = None,
    page: Annotated[bool, typer.Option("--page", help="Serve a page to this machine instead.")] = False,
    port: Annotated[int, typer.Option(min=0, max=65535, help="Of the page; 0: any free one.")] = 0,
    open_browser: Annotated[bool, typer.Option("--open/--no-open", help="Open the page.")] = True,
    json: JsonOption = False,
    debug: DebugOption = False,
) -> None:
    """Talk to a model, with images and rewards: `vlrl chat runs/digits --reward answer_exact`.

    A path or URL of an image in a line becomes the image. /answer TEXT says what is right, for rewards that
    compare.
    """
    from contextlib import nullcontext

    from vlrl.chat.conversation import Conversation
    from vlrl.chat.opened import opened
    from vlrl.chat.page import serve_page
    from vlrl.chat.reward_view import RewardView
    from vlrl.chat.terminal import TerminalChat
    from vlrl.scoring.functions import find_reward

    given = options_of(option, "--option ")
    rewards = RewardView([find_reward(name, given) for name in reward]) if reward else None
    console = Console(highlight=False, soft_wrap=True, stderr=json)
    fields = {"temperature": temperature} | ({"max_tokens": max_tokens} if max_tokens else {})
    with (
        rewards or nullcontext(),
        opened(model, serve_options or (), lambda words: typer.echo(words, err=True)) as endpoint,
    ):
        conversation = Conversation(endpoint, fields)
        if page:
            serve_page(conversation, rewards, port=port, open_browser=open_browser)
        else:
            TerminalChat(conversation, rewards, console).run()
    print_result({"model": endpoint.model, "messages": conversation.messages}, json)
