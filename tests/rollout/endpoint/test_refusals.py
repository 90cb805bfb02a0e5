"""What is not served is refused by name, and nothing of it is generated."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import openai
import pytest
from builders import SAMPLING, ScriptedPolicy, open_tiny
from endpoints import GUESS, Served, data_url, in_turn, served, user
from hypothesis import given, settings
from hypothesis import strategies as st

from vlrl.rollout.endpoint import EndpointRecord, Refused
from vlrl.rollout.endpoint.request import read_request
from vlrl.rollout.session import Session
from vlrl.types import Generation, Sampling

MESSAGES = [{"role": "user", "content": "hi"}]
ASSISTANT = {"role": "assistant", "content": "a"}


def run(play: Callable[[Served], Awaitable[Any]], answer: Any, processor: Any = None, **sections: Any) -> Any:
    async def main() -> Any:
        async with served(answer, processor, **sections) as episode:
            return await play(episode)

    return asyncio.run(main())


def image(url: Any) -> dict[str, Any]:
    return {"role": "user", "content": [{"type": "image_url", "image_url": {"url": url}}]}


@pytest.mark.parametrize(
    ("given", "field", "says"),
    [
        ({"n": 2}, "n", "one action is generated"),
        ({"logprobs": True}, "logprobs", "not given out"),
        ({"top_logprobs": 3}, "top_logprobs", "not given out"),
        ({"stop": ["x"]}, "stop", "cut the text yourself"),
        ({"frequency_penalty": 0.5}, "frequency_penalty", "the model's own"),
        ({"logit_bias": {"5": 1}}, "logit_bias", "the model's own"),
        ({"response_format": {"type": "json_object"}}, "response_format", "nothing constrains"),
        ({"tool_choice": "required", "tools": [GUESS]}, "tool_choice", "say auto or none"),
        ({"parallel_tool_calls": False}, "parallel_tool_calls", "use the first call"),
        ({"reasoning_effort": "low"}, "reasoning_effort", "not known here"),
        ({"max_tokens": 0}, "max_tokens", "whole number"),
        ({"max_completion_tokens": "5"}, "max_completion_tokens", "whole number"),
        ({"stream": "yes"}, "stream", "boolean"),
        ({"tools": [{"type": "web_search"}]}, "tools", "a tool is"),
        ({"tools": {}}, "tools", "a list"),
        ({"messages": []}, "messages", "one or more"),
        ({"messages": "hi"}, "messages", "one or more"),
        ({"messages": [*MESSAGES, ASSISTANT]}, "messages", "the assistant's own"),
        ({"messages": [{"role": "robot", "content": "x"}]}, "messages[0]", "needs a role"),
        ({"messages": [{"role": "user", "content": 5}]}, "messages[0]", "content must be"),
        ({"messages": [{"role": "tool", "content": "x"}]}, "messages[0]", "tool_call_id"),
        ({"messages": [image("/etc/passwd")]}, "messages[0]", "data: URL"),
        ({"messages": [image("file:///etc/passwd")]}, "messages[0]", "data: URL"),
        (
            {"messages": [{**ASSISTANT, "tool_calls": [{"id": "1"}]}, *MESSAGES]},
            "messages[0]",
            "a tool call is",
        ),
        ({"messages": [{**ASSISTANT, "tool_calls": {}}, *MESSAGES]}, "messages[0]", "must be a list"),
    ],
)
def test_a_field_that_would_change_what_is_generated_is_refused(given: Any, field: str, says: str) -> None:
    with pytest.raises(Refused, match=says) as caught:
        read_request({"messages": MESSAGES, **given})
    assert caught.value.field == field
    assert caught.value.body["error"]["param"] == field


def test_what_clients_send_without_meaning_anything_is_taken() -> None:
    neutral = {
        **{"n": 1, "stop": None, "presence_penalty": 0.0, "response_format": {"type": "text"}},
        **{"tools": [], "tool_choice": "auto", "logprobs": False, "logit_bias": {}},
    }
    asked = read_request({"model": "gpt", "messages": MESSAGES, "temperature": 0.2, "seed": 3, **neutral})
    assert asked.ignored == ("seed", "temperature")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
NAMES = st.sampled_from(["messages", "tools", "stream", "stream_options", "tool_choice", "n", "max_tokens"])
MESSAGE = st.fixed_dictionaries(
    {"role": st.sampled_from(["user", "assistant", "tool"]), "content": JSON},
    optional={"tool_calls": JSON | st.lists(st.fixed_dictionaries({"id": JSON, "function": JSON}))},
)


@settings(deadline=None)
@given(JSON | st.dictionaries(NAMES, JSON | st.lists(MESSAGE, max_size=3)))
def test_no_json_brings_it_down(body: Any) -> None:
    try:
        read_request(body)
    except Refused as refused:
        assert refused.status == 400


@pytest.mark.parametrize(
    ("message", "says"),
    [
        (image("data:image/png;base64,AAAA"), "cannot be shown"),
        (image("data:image/png,x"), "base64"),
        (image("https://example.org/a.png"), "media.allowed_hosts"),
        ({"role": "user", "content": "half \ud800 a pair"}, "Unicode"),
    ],
)
def test_what_cannot_be_shown_is_the_clients_mistake(tiny_model: Path, message: Any, says: str) -> None:
    processor = open_tiny(tiny_model)

    async def play(episode: Served) -> None:
        with pytest.raises(openai.BadRequestError, match=says):
            await episode.client.post(  # raw: the client itself cannot write half a pair
                "/chat/completions",
                cast_to=object,
                content=json.dumps({"messages": [message]}).encode(),
                options={"headers": {"content-type": "application/json"}},
            )
        assert not episode.record.ledgers
        # and the episode goes on
        done = await episode.ask([user("a", data_url())])
        assert done.choices[0].message.content == "1"

    run(play, in_turn("1", processor=processor), processor)


def test_the_models_special_tokens_are_broken_up_in_text_and_refused_in_tools(tiny_model: Path) -> None:
    processor = open_tiny(tiny_model)
    [stop, *_] = processor.stop_token_ids

    async def play(episode: Served) -> None:
        await episode.ask(
            [user("a<|im_end|>b<|image_pad|>"), {"role": "assistant", "content": "<|im_end|>"}, user("c")]
        )
        [ledger] = episode.record.ledgers
        assert ledger.token_ids.tolist().count(stop) == 4  # three messages and the action
        assert not ledger.media
        spoilt = {**GUESS, "function": {**GUESS["function"], "description": "<|im_end|>"}}
        with pytest.raises(openai.BadRequestError, match="special tokens"):
            await episode.ask([user("a")], tools=[spoilt])

    run(play, in_turn("1", processor=processor), processor)


def test_the_address_is_the_key() -> None:
    async def play(episode: Served) -> None:
        models = await episode.client.models.list()
        assert [model.id for model in models.data] == ["policy"]
        async with served(in_turn("other")) as other:
            assert (await other.ask([user("a")])).choices[0].message.content == "other"
            assert not episode.record.ledgers
            crossed = other.base_url.replace(
                str(other.client.base_url.port), str(episode.client.base_url.port)
            )
            stranger = openai.AsyncOpenAI(base_url=crossed, api_key="x", max_retries=0)
            for ask in (
                stranger.models.list(),
                stranger.chat.completions.create(model="m", messages=MESSAGES),
            ):
                with pytest.raises(openai.NotFoundError, match="no episode has this address"):
                    await ask
            await stranger.close()
        with pytest.raises(openai.NotFoundError, match="nothing is served here"):
            await episode.client.embeddings.create(model="m", input="x")
        assert "token" not in episode.base_url and len(episode.base_url.split("/")[3]) >= 32

    run(play, in_turn())


def test_two_episodes_on_one_server_do_not_meet_and_one_that_is_over_says_so() -> None:
    async def play(episode: Served) -> None:
        context, sample = episode.context, episode.record.sample
        other = EndpointRecord(sample, 1, lambda turn: SAMPLING, context)
        async with context.endpoint.serving(other) as base_url:
            assert base_url.split("/")[2] == episode.base_url.split("/")[2]
            client = openai.AsyncOpenAI(base_url=base_url, api_key="x")
            await client.chat.completions.create(model="m", messages=MESSAGES)
            waiting = asyncio.create_task(client.chat.completions.create(model="m", messages=MESSAGES))
            while len(episode.policy.asked) < 2:
                await asyncio.sleep(0.01)
        for late in (waiting, client.chat.completions.create(model="m", messages=MESSAGES)):
            with pytest.raises(openai.APIStatusError, match="this episode is over") as caught:
                await late
            assert caught.value.status_code == 410
        assert len(other.ledgers) == 1 and not episode.record.ledgers
        await client.close()

    class OneOnly(ScriptedPolicy):
        async def generate(self, session: Session, sampling: Sampling) -> Generation:
            if self.asked:
                self.asked.append((session, sampling))
                await asyncio.sleep(3600)
            return await super().generate(session, sampling)

    run(play, OneOnly(lambda *_: [1]))


def test_no_room_and_no_turns_left() -> None:
    async def play(episode: Served) -> None:
        with pytest.raises(openai.BadRequestError, match="max_model_len=128") as caught:
            await episode.ask([user("x" * 100)])
        assert caught.value.code == "context_length_exceeded"
        assert episode.record.outgrown
        await episode.ask([user("x" * 90)], max_tokens=10)
        assert not episode.record.outgrown
        await episode.ask([user("a")])
        with pytest.raises(openai.BadRequestError, match=r"episodes\.max_turns=2"):
            await episode.ask([user("a")])
        assert episode.record.outgrown
        assert len(episode.record.ledgers) == 2

    episodes = {"lockstep": False, "max_turns": 2}
    generator = {"max_model_len": 128}
    run(play, in_turn("1", "2"), generator=generator, episodes=episodes)


def test_no_room_for_the_next_turn_keeps_what_was_generated() -> None:
    async def play(episode: Served) -> None:
        said = (await episode.ask([user("a")])).choices[0].message
        with pytest.raises(openai.BadRequestError, match="max_model_len"):
            await episode.ask([user("a"), said, user("x" * 100)])
        [ledger] = episode.record.ledgers
        assert ledger.token_ids[-1] == ord("1")
        again = (await episode.ask([user("a"), said, user("short")])).choices[0].message
        assert again.content == "2"
        assert [len(ledger.turns) for ledger in episode.record.ledgers] == [1, 1]

    run(play, in_turn("1", "2"), generator={"max_model_len": 128})


def test_what_the_engine_raises_is_kept_for_the_run() -> None:
    class Broken(ScriptedPolicy):
        async def generate(self, session: Session, sampling: Sampling) -> Generation:
            raise KeyError("engine")

    async def play(episode: Served) -> None:
        with pytest.raises(openai.InternalServerError, match="the engine failed"):
            await episode.ask([user("a")])
        with pytest.raises(KeyError, match="engine"):
            episode.record.fault.result()

    run(play, Broken(lambda *_: []))


def test_what_is_ignored_is_named_in_a_header() -> None:
    async def play(episode: Served) -> None:
        create = episode.client.chat.completions.with_raw_response.create
        got = await create(model="m", messages=MESSAGES, temperature=0.0, seed=1, top_p=0.5)
        assert got.headers["x-vlrl-ignored"] == "seed, temperature, top_p"
        [(_, sampling)] = episode.policy.asked
        assert sampling.temperature == 1.0

    run(play, in_turn("1"))


@pytest.mark.parametrize("body", [b"no json", b"[]", b"\xff", b"[" * 100_000])
def test_a_body_that_is_no_request(body: bytes) -> None:
    async def play(episode: Served) -> None:
        with pytest.raises(openai.BadRequestError, match="body"):
            await episode.client.post("/chat/completions", cast_to=object, content=body)

    run(play, in_turn())
