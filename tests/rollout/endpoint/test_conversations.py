"""Conversations through the real client: what was generated is in the ledgers once, under what was shown."""

from __future__ import annotations

import asyncio
import json
import shutil
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from builders import ScriptedPolicy, make_generation, open_tiny
from endpoints import CALL, GUESS, Served, data_url, generated_in, in_turn, result, served, spell, user

from vlrl.parsing.tool_calls import tools_prompt
from vlrl.rollout.session import Session
from vlrl.types import Generation, Sampling

# As Qwen3-VL's: tools in the system message, their results in a user's turn, several of them in one.
TOOL_TEMPLATE = (
    "{%- macro say(content) -%}{% if content is string %}{{ content }}{% else %}{% for part in content %}"
    "{% if part.type == 'image' %}<|vision_start|><|image_pad|><|vision_end|>{% else %}{{ part.text }}"
    "{% endif %}{% endfor %}{% endif %}{%- endmacro -%}"
    "{% if tools %}<|im_start|>system\n"
    "{% if messages[0].role == 'system' %}{{ say(messages[0].content) }}\n\n{% endif %}"
    "# Tools\n<tools>{% for tool in tools %}\n{{ tool | tojson }}{% endfor %}\n</tools><|im_end|>\n"
    "{% endif %}{% for message in messages %}{% if message.role == 'tool' %}"
    "{% if loop.first or messages[loop.index0 - 1].role != 'tool' %}<|im_start|>user{% endif %}"
    "\n<tool_response>\n{{ say(message.content) }}\n</tool_response>"
    "{% if loop.last or messages[loop.index0 + 1].role != 'tool' %}<|im_end|>\n{% endif %}"
    "{% elif not (tools and loop.first and message.role == 'system') %}"
    "<|im_start|>{{ message.role }}\n{{ say(message.content) }}<|im_end|>\n{% endif %}{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


@pytest.fixture(scope="module", params=["own template", "template with tools"])
def processor(request: pytest.FixtureRequest, tiny_model: Path, tmp_path_factory: Any) -> Any:
    if request.param == "own template":
        return open_tiny(tiny_model)
    folder = tmp_path_factory.mktemp("with_tools") / "model"
    shutil.copytree(tiny_model, folder)
    (folder / "chat_template.jinja").write_text(TOOL_TEMPLATE)
    return open_tiny(folder)


def run(play: Callable[[Served], Awaitable[Any]], answer: Any, processor: Any = None, **sections: Any) -> Any:
    """Play inside an open episode; what it returns."""

    async def main() -> Any:
        async with served(answer, processor, **sections) as episode:
            return await play(episode)

    return asyncio.run(main())


def test_a_talk_with_images_and_tools_is_what_the_template_writes(processor: Any) -> None:
    texts = [f"I will guess. {CALL}", f"{CALL}\n{CALL}", "<think>hm</think> It is 7."]
    policy = in_turn(*texts, processor=processor)
    system = {"role": "developer", "content": "Be brief."}

    async def play(episode: Served) -> list[int]:
        messages: list[Any] = [system, user("How many?", data_url(0), data_url(1, 84, 56))]
        counts = []
        while True:
            done = await episode.ask(messages, tools=[GUESS])
            counts.append(done.usage.prompt_tokens)
            said = done.choices[0].message
            messages.append(said)
            if not said.tool_calls:
                break
            assert done.choices[0].finish_reason == "tool_calls"
            for call in said.tool_calls:
                assert json.loads(call.function.arguments) == {"number": 7}
                messages.append(result(call, "lower"))
            messages += [user("Here it is nearer.", data_url(2))] if len(said.tool_calls) == 1 else []
        [ledger] = episode.record.ledgers
        assert counts == [turn.action[0] for turn in ledger.turns]

        told = GUESS if "# Tools" in spelled(processor, ledger) else None
        whole = {"role": "system", "content": "Be brief." + ("" if told else "\n\n" + tools_text())}
        parts: list[Any] = [
            {"type": "image", "image": data_url(0)},
            {"type": "image", "image": data_url(1, 84, 56)},
        ]
        talk = [
            whole,
            {"role": "user", "content": [*parts, {"type": "text", "text": "How many?"}]},
            {"role": "assistant", "content": texts[0]},
            {"role": "tool", "content": "lower"},
            {
                "role": "user",
                "content": [
                    {"type": "image", "image": data_url(2)},
                    {"type": "text", "text": "Here it is nearer."},
                ],
            },
            {"role": "assistant", "content": texts[1]},
            {"role": "tool", "content": "lower"},
            {"role": "tool", "content": "lower"},
        ]
        expected = processor.sample({"id": "whole", "messages": talk, "tools": [told] if told else []})
        end = ledger.turns[-1].action[0]
        assert ledger.token_ids[:end].tolist() == expected.prompt.token_ids.tolist()
        assert (ledger.position_ids[:, :end] == expected.prompt.position_ids).all()
        assert [m.sha256 for m in ledger.media] == [m.sha256 for m in expected.media]
        assert generated_in([ledger]) == [processor.encode_target(text).tolist() for text in texts]
        assert [turn.text for turn in ledger.turns] == texts
        assert ledger.loss_mask.sum() == sum(len(processor.encode_target(text)) for text in texts)
        return counts

    assert len(run(play, policy, processor)) == 3
    assert len(policy.asked) == 3


def spelled(processor: Any, ledger: Any) -> str:
    return str(processor.decode(ledger.token_ids))


def tools_text() -> str:
    return tools_prompt([GUESS])


def test_a_reply_is_recognised_however_a_scaffold_keeps_it() -> None:
    """A scaffold keeps it as the client's object, as its dictionary, or rebuilt from content and calls."""

    async def play(episode: Served) -> None:
        messages: list[Any] = [user("go")]
        for keep in ("object", "dictionary", "parts"):
            said = (await episode.ask(messages, tools=[GUESS])).choices[0].message
            assert said.content == "so" and len(said.tool_calls) == 1
            [call] = said.tool_calls
            kept: Any = said
            if keep == "dictionary":
                kept = said.model_dump(exclude_none=True)
            if keep == "parts":
                arguments = json.dumps(json.loads(call.function.arguments), indent=2)
                function = {"name": call.function.name, "arguments": arguments}
                kept = {"role": "assistant", "content": [{"type": "text", "text": said.content}]}
                kept["tool_calls"] = [{"id": call.id, "type": "function", "function": function}]
            messages += [kept, result(call, "no")]
        done = await episode.ask(messages, tools=[GUESS])
        assert (done.choices[0].message.content, done.choices[0].finish_reason) == ("end", "stop")
        [ledger] = episode.record.ledgers
        assert len(ledger.turns) == 4
        assert spell(ledger).count(CALL) == 3

    run(play, in_turn(*[f"so\n{CALL}\n"] * 3, "end"))


def test_malformed_calls_stay_in_the_text_and_without_tools_all_do() -> None:
    broken = "<tool_call>{'name'}</tool_call>"

    async def play(episode: Served) -> None:
        said = (await episode.ask([user("a")], tools=[GUESS])).choices[0].message
        assert (said.content, said.tool_calls) == (broken, None)
        said = (await episode.ask([user("a")])).choices[0].message
        assert (said.content, said.tool_calls) == (CALL, None)
        said = (await episode.ask([user("a")], tools=[GUESS], tool_choice="none")).choices[0].message
        assert (said.content, said.tool_calls) == (CALL, None)

    run(play, in_turn(broken, CALL, CALL))


def test_an_edited_history_and_other_tools_open_another_ledger() -> None:
    async def play(episode: Served) -> None:
        first = (await episode.ask([user("a")])).choices[0].message
        await episode.ask([user("a"), first, user("b")])
        await episode.ask([user("a"), {"role": "assistant", "content": "Z"}, user("b")])
        await episode.ask(
            [user("a"), first, user("b"), {"role": "assistant", "content": "2"}, user("c")], tools=[GUESS]
        )
        await episode.ask([user("a"), first, user("b"), {"role": "assistant", "content": "2"}, user("c")])
        spells = [spell(ledger) for ledger in episode.record.ledgers]
        assert spells[0] == "[user]a[assistant]Z[user]b[assistant]3"
        assert spells[1].startswith("[system]You can call these functions") and spells[1].endswith(
            "[assistant]4"
        )
        assert spells[2] == "[user]a[assistant]1[user]b[assistant]2[user]c[assistant]5"
        # What another ledger repeats of an action is context there.
        assert [ledger.loss_mask.sum() for ledger in episode.record.ledgers] == [1, 1, 3]
        assert generated_in(episode.record.ledgers) == [[ord(c)] for c in "34125"]

    run(play, in_turn(*"12345"))


def test_the_same_question_again_is_generated_again() -> None:
    async def play(episode: Served) -> None:
        texts = [(await episode.ask([user("a")])).choices[0].message.content for _ in range(2)]
        assert texts == ["1", "2"]
        assert [spell(ledger)[-1] for ledger in episode.record.ledgers] == ["1", "2"]
        seeds = {sampling.seed for _, sampling in episode.policy.asked}
        assert len(seeds) == 2

    run(play, in_turn(*"12"))


class Together(ScriptedPolicy):
    """Answers with the last letter it sees, when so many wait, in the order that the test wants."""

    def __init__(self, num_waiting: int, *, last_first: bool) -> None:
        super().__init__(lambda *_: [])
        self.num_waiting, self.last_first = num_waiting, last_first
        self.waiting: list[asyncio.Event] = []

    async def generate(self, session: Session, sampling: Sampling) -> Generation:
        self.asked.append((session, sampling))
        event = asyncio.Event()
        self.waiting.append(event)
        if len(self.waiting) == self.num_waiting:
            waiting, self.waiting = self.waiting, []
            for each in reversed(waiting) if self.last_first else waiting:
                each.set()
        await event.wait()
        return make_generation([ord("x")])


@pytest.mark.parametrize("last_first", [True, False])
def test_sub_agents_in_parallel_have_ledgers_of_their_own(last_first: bool) -> None:
    async def agent(episode: Served, name: str) -> None:
        messages: list[Any] = [{"role": "system", "content": name}, user("go")]
        for _ in range(3):
            said = (await episode.ask(messages)).choices[0].message
            messages += [said, user(name)]

    async def play(episode: Served) -> dict[str, list[int]]:
        await asyncio.gather(agent(episode, "P"), agent(episode, "Q"))
        ledgers = episode.record.ledgers
        assert {spell(ledger) for ledger in ledgers} == {
            f"[system]{n}[user]go[assistant]x[user]{n}[assistant]x[user]{n}[assistant]x" for n in "PQ"
        }
        assert all(ledger.loss_mask.sum() == 3 for ledger in ledgers)
        seeds: dict[str, list[int]] = {"P": [], "Q": []}
        for session, sampling in episode.policy.asked:
            seeds[session.conversation[0].message["content"][0]["text"]].append(sampling.seed)
        return seeds

    seeds = run(play, Together(2, last_first=last_first))
    assert len({*seeds["P"], *seeds["Q"]}) == 6
    # Whoever comes first, the seeds are the same.
    assert seeds == run(play, Together(2, last_first=not last_first))


def test_a_stream_says_the_same(tiny_model: Path) -> None:
    text = f"I guess {CALL}"

    async def play(episode: Served) -> None:
        options = {"tools": [GUESS], "stream": True, "stream_options": {"include_usage": True}}
        content, calls, reasons, usage = "", [], [], None
        async for chunk in await episode.ask([user("a")], **options):
            usage = chunk.usage or usage
            for choice in chunk.choices:
                content += choice.delta.content or ""
                calls += choice.delta.tool_calls or []
                reasons += [choice.finish_reason] if choice.finish_reason else []
        assert (content, reasons) == ("I guess", ["tool_calls"])
        [call] = calls
        assert (call.index, call.function.name) == (0, "guess")
        [ledger] = episode.record.ledgers
        assert usage.prompt_tokens == ledger.turns[0].action[0]
        assert usage.completion_tokens == len(text)
        function = {"name": "guess", "arguments": call.function.arguments}
        kept = {"role": "assistant", "content": content}
        kept |= {"tool_calls": [{"id": call.id, "type": "function", "function": function}]}
        async with episode.client.chat.completions.stream(
            model="any", messages=[user("a"), kept, result(call, "no")], tools=[GUESS]
        ) as stream:
            done = await stream.get_final_completion()
        assert done.choices[0].message.content == "end"
        assert len(episode.record.ledgers) == 1

    run(play, in_turn(text, "end"))


def test_a_context_policy_is_kept_under_what_it_showed(tiny_model: Path) -> None:
    processor = open_tiny(tiny_model)
    policy = in_turn("1", "2", processor=processor)

    async def play(episode: Served) -> None:
        first = (await episode.ask([user("a", data_url(0))])).choices[0].message
        await episode.ask([user("a", data_url(0)), first, user("b", data_url(1))])
        ledgers = episode.record.ledgers
        assert [len(ledger.media) for ledger in ledgers] == [1, 1]
        assert "(no longer shown)" in spelled(processor, ledgers[1])
        assert not np.array_equal(ledgers[0].media[0].frames, ledgers[1].media[0].frames)

    context = {"policy": "last_images", "num_images": 1, "left_out": "(no longer shown)"}
    run(play, policy, processor, episodes={"lockstep": False, "context": context})


def test_an_action_that_was_cut_says_so_and_goes_on() -> None:
    class Cut(ScriptedPolicy):
        async def generate(self, session: Session, sampling: Sampling) -> Generation:
            self.asked.append((session, sampling))
            return make_generation([ord("x")] * sampling.max_tokens, finished=False)

    async def play(episode: Served) -> None:
        done = await episode.ask([user("a")], max_completion_tokens=3, max_tokens=5)
        assert (done.choices[0].finish_reason, done.choices[0].message.content) == ("length", "xxx")
        done = await episode.ask([user("a"), done.choices[0].message, user("b")], max_tokens=1000)
        assert len(done.choices[0].message.content) == 64  # the run's own limit
        assert len(episode.record.ledgers) == 1

    run(play, Cut(lambda *_: []))
