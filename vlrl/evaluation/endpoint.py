"""A model behind an OpenAI-compatible server as a policy, so that it is evaluated as one of vlrl's own."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Any

import httpx2
import numpy as np

from vlrl.chat_client.client import Chat, ChatFailure, RequestStats
from vlrl.chat_client.images import data_url, sound_part
from vlrl.config import Config
from vlrl.config.chat import ChatEndpoint
from vlrl.data.run_data import RunData, TellFn
from vlrl.protocols import Processor
from vlrl.rollout.session import MediaMessage, Session
from vlrl.run.players.player import Player, open_data_player
from vlrl.run.players.rollouts import InProcess
from vlrl.tracking.timeline import Timeline
from vlrl.types import Generation, Sampling, VersionSpan

OPTION = "eval.endpoint"


class EndpointPolicy:
    """Sends a session's conversation with its images, and spells the reply in the processor's tokens.

    Log-probabilities are not known and are zero: the tokens are for pages and lengths, not for training.
    """

    def __init__(self, endpoint: ChatEndpoint, processor: Processor, client: httpx2.AsyncClient) -> None:
        """Send nothing yet.

        Raises:
            ConfigError: if the key is not in the environment.
        """
        self._endpoint, self._processor, self.stats = endpoint, processor, RequestStats()
        self._slots = asyncio.Semaphore(endpoint.max_concurrency)
        self._chat = Chat(
            endpoint, client, role="model", option=OPTION, stats=self.stats, failure=ChatFailure
        )

    async def generate(self, session: Session, sampling: Sampling) -> Generation:
        """Ask for the assistant's next message.

        Raises:
            ChatFailure: if the server gives none.
        """
        async with self._slots:
            messages = await asyncio.to_thread(openai_messages, session.conversation, self._endpoint)
            fields = {
                "temperature": sampling.temperature,
                "max_tokens": sampling.max_tokens,
                "seed": sampling.seed % 2**31,
            }
            reply = await self._chat.complete(messages, fields, f"{session.sample.id} {sampling.seed}")
        tokens = self._processor.encode_target(reply.text, session.opened)
        if not reply.is_finished and len(tokens) > 1:
            tokens = tokens[:-1]  # the token that ends a message
        logprobs = np.zeros(len(tokens), np.float32)
        return Generation(tokens, logprobs, (VersionSpan(0, 0, len(tokens)),), reply.is_finished)


def openai_messages(conversation: Sequence[MediaMessage], endpoint: ChatEndpoint) -> list[dict[str, Any]]:
    """A conversation in OpenAI's form: images, frames of videos and sounds, encoded in their places.

    Args:
        conversation: with the media as the processor has resized them.
        endpoint: says in which format images are sent.
    """
    messages = []
    for said in conversation:
        content, media, parts = said.message["content"], iter(said.media), list[dict[str, Any]]()
        for part in [{"type": "text", "text": content}] if isinstance(content, str) else content:
            if part["type"] == "text":
                parts.append({"type": "text", "text": part["text"]})
            elif (medium := next(media)).kind == "audio":
                parts.append(sound_part(medium))
            else:
                urls = [data_url(frame, endpoint) for frame in medium.frames]
                parts += [{"type": "image_url", "image_url": {"url": url}} for url in urls]
        only_text = [part["text"] for part in parts if part["type"] == "text"]
        said_plainly = len(only_text) == len(parts)
        messages.append(
            {"role": said.message["role"], "content": "".join(only_text) if said_plainly else parts}
        )
    return messages


@dataclass(frozen=True, slots=True)
class AtEndpoint:
    """All that an evaluation at an endpoint needs.

    Attributes:
        data: the rows.
        player: answers and scores them.
        rollouts: likewise, in this process.
    """

    data: RunData
    player: Player
    rollouts: InProcess


@asynccontextmanager
async def at_endpoint(config: Config, processor: Processor, tell: TellFn) -> AsyncIterator[AtEndpoint]:
    """Open rows, rewards and environments for the model at eval.endpoint; no engine is started.

    Args:
        config: whose model.path has the processor that prepares the rows.
        processor: that one.
        tell: called with an event's name and a sentence.
    """
    assert config.eval.endpoint is not None
    limits = httpx2.Limits(max_connections=None, max_keepalive_connections=64)  # the policy's own hold
    async with AsyncExitStack() as stack:
        client = await stack.enter_async_context(httpx2.AsyncClient(timeout=None, limits=limits))
        policy = EndpointPolicy(config.eval.endpoint, processor, client)
        player, data = open_data_player(
            config, policy, Timeline(), stack, owns=lambda position: False, tell=tell, policy_of=None
        )
        yield AtEndpoint(data, player, InProcess(player))
