"""Episodes as film strips, in the page that a run gets."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from vlrl.environment.plain import PlainEnv
from vlrl.protocols import Observation
from vlrl.tracking.rollouts.records import rollout_records, write_rollouts
from vlrl.types import (
    Credit,
    EnvTask,
    Group,
    Ledger,
    Media,
    Prompt,
    Sample,
    Score,
    Trajectory,
    Turn,
    VersionSpan,
)
from vlrl.viewer.pages.report import write_report
from vlrl.viewer.rollouts import RolloutColumn, build_cards
from vlrl.viewer.room import SizeBudget
from vlrl.viewer.strips import MAX_FRAMES, build_strip, split_deed

ODD = str(Path(__file__).parents[2] / "examples" / "odd_one_out.py") + ":OddOneOut"
CONTEXT, PAD = 12, 4


class Spell:
    """Context is words; an action is one token a character."""

    def token_texts(self, token_ids: Any) -> list[str]:
        return [chr(i) if i >= 32 else "<|image_pad|>" if i == 1 else "·" for i in token_ids]


def medium(image: Any) -> Media:
    frame = np.asarray(image)[None]
    return Media(
        "image", hashlib.sha256(frame.tobytes()).hexdigest(), frame, frame.shape[1:3], (1, 8, 8), PAD
    )


def play(env: PlainEnv, spec: EnvTask, policy: Callable[[PlainEnv, int], str], index: int = 0) -> Trajectory:
    """An episode as the rollout would hand it over, tokens made up."""
    observation: Observation = env.reset(spec.task, spec.seed)
    ids: list[int] = []
    turns: list[Turn] = []
    media: list[Media] = []
    done, info = False, {}
    while not done and len(turns) < 12:
        seen = [medium(image) for image in observation.images]
        start = len(ids)
        ids += [0] * CONTEXT + [1] * PAD * len(seen)
        media += seen
        text = policy(env, len(turns))
        result = env.step(text)
        action = (len(ids), len(ids) + len(text))
        ids += map(ord, text)
        turns.append(
            Turn(
                (start, action[0]),
                action,
                text=text,
                reward=result.reward,
                invalid=bool(result.info["invalid"]),
                num_media=len(seen),
            )
        )
        observation, done, info = result.observation, result.terminated or result.truncated, result.info
    mask = np.zeros(len(ids), bool)
    for turn in turns:
        mask[slice(*turn.action)] = True
    logprobs = np.where(mask, -0.3, 0).astype(np.float32)
    spans = (VersionSpan(0, 0, len(ids)),)
    ledger = Ledger(
        np.array(ids), np.zeros((3, len(ids)), np.int64), mask, logprobs, spans, tuple(turns), tuple(media)
    )
    message = {"role": "user", "content": [{"type": "image"}, {"type": "text", "text": "Which one is it?"}]}
    first = tuple(media[: turns[0].num_media])
    prompt = Prompt(ledger.token_ids[:2], ledger.token_ids[:2], np.zeros((3, 2), np.int64), 2)
    sample = Sample(f"{spec.name}/{spec.seed}", (message,), first, prompt, env=spec)
    score = Score(sum(turn.reward for turn in turns), {"env": 1.0})
    outcome = "ok" if done else "truncated"
    return Trajectory(
        sample, index, (ledger,), turns[-1].text, outcome, score, info={"success": float(info["success"])}
    )  # type: ignore[arg-type]


def clumsy(env: PlainEnv, turn: int) -> str:
    """Says nothing sensible, misses, then hits; it thinks aloud."""
    if turn == 0:
        return "I would click it."
    thought = "<think>The others are all alike, so it is this one.</think>"
    return thought + (
        env.call("random_action", np.random.default_rng(turn)) if turn < 3 else env.call("oracle")
    )


def write_phase(
    run_dir: Path, phase: str, policy: Callable[[PlainEnv, int], str], seeds: Sequence[int]
) -> None:
    groups = []
    for seed in seeds:
        spec = EnvTask(ODD, {"cells": 5}, {}, seed)
        with PlainEnv(spec.name, spec.options) as env:
            trajectory = play(env, spec, policy)
        (ledger,) = trajectory.ledgers
        advantages = np.where(ledger.loss_mask, 0.75, 0).astype(np.float32)
        groups.append(Group([trajectory], [Credit((advantages,), (ledger.loss_mask,))]))
    records = rollout_records(groups, Spell(), phase=phase, step=0)  # type: ignore[arg-type]
    write_rollouts(
        run_dir / "rollouts" / f"{phase}.jsonl", records, [m for g in groups for m in g.trajectories[0].media]
    )


@pytest.fixture
def run_dir(tmp_path: Path) -> Path:
    write_phase(tmp_path, "before", clumsy, [0, 1])
    write_phase(tmp_path, "after", lambda env, turn: env.call("oracle"), [0, 1])
    return tmp_path


def records_of(run_dir: Path, phase: str = "before") -> list[dict[str, Any]]:
    return [json.loads(line) for line in (run_dir / f"rollouts/{phase}.jsonl").read_text().splitlines()]


class Page(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.classes: list[str] = []
        self.sources: list[str] = []
        self.names: set[str] = set()
        self.text = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.names.add(tag)
        values = dict(attrs)
        self.classes += (values.get("class") or "").split()
        self.sources += [values["src"]] if "src" in values else []

    def handle_data(self, data: str) -> None:
        self.text += data


def page_of(run_dir: Path) -> Page:
    return Page(write_report(run_dir).read_text(encoding="utf-8"))


def test_every_turn_is_a_frame(run_dir: Path) -> None:
    records = [*records_of(run_dir), *records_of(run_dir, "after")]
    page = page_of(run_dir)
    assert page.classes.count("film") == 4
    assert page.classes.count("frame") == sum(len(record["turns"]) for record in records)
    assert "script" not in page.names
    assert all(source.startswith("data:image/") for source in page.sources)
    assert "I would click it." in page.text
    assert page.classes.count("mark") == 2  # the first turn of either was not an action


def test_a_frame_tells_what_was_seen_done_and_earned(run_dir: Path) -> None:
    (record, _) = records_of(run_dir)
    strip = build_strip(run_dir, record, SizeBudget(20).image)
    first, *_, last = strip.frames
    assert [len(frame.images) for frame in strip.frames] == [1] * len(record["turns"])
    assert (first.deed, first.thought, first.reward) == ("I would click it.", "", "")
    assert [words for words, _ in first.marks] == ["invalid"]
    assert (last.reward, last.tone, last.advantage) == ("+1", "good", "+0.75")
    assert last.thought.startswith("<think>The others")
    assert "<action>" not in last.deed
    assert strip.solved is True
    assert strip.facts == [("turns", str(len(record["turns"]))), ("return", "1")]


@pytest.mark.parametrize(
    ("text", "thought", "deed"),
    [
        ("<action>up</action>", "", "up"),
        ("Up then.\n<action>up</action>\n", "Up then.", "up"),
        ("<action>up</action> no: <action>left</action>", "<action>up</action> no:", "left"),
        ("<think>2</think><answer> 4 </answer>", "<think>2</think>", "4"),
        ('<tool_call>\n{"name": "zoom"}\n</tool_call>', "", '{"name": "zoom"}'),
        ("<action>up</action> and more", "", "<action>up</action> and more"),
        ("<action><action>up</action>", "<action>", "up"),
        ("", "", ""),
    ],
)
def test_the_action_is_told_from_the_thought(text: str, thought: str, deed: str) -> None:
    assert split_deed(text) == (thought, deed)


def test_a_text_that_opens_many_tags_takes_no_time() -> None:
    text = "<action>" * 20_000
    assert split_deed(text) == ("", text)


def test_where_the_context_was_written_anew_only_what_is_new_is_drawn(run_dir: Path) -> None:
    (record, _) = records_of(run_dir)
    turns = record["turns"]
    seen = [turn["media"] for turn in turns]
    turns[2] = turns[2] | {"ledger": 1, "media": [*seen[0], *seen[2]]}
    frames = build_strip(run_dir, record, SizeBudget(20).image).frames
    assert len(frames[2].images) == 1
    assert ("context again" in [words for words, _ in frames[2].marks]) is True
    turns[2]["media"] = seen[0]  # nothing new: what was shown last
    assert len(build_strip(run_dir, record, SizeBudget(20).image).frames[2].images) == 1


def test_a_long_episode_keeps_its_two_ends(run_dir: Path) -> None:
    (record, _) = records_of(run_dir)
    record["turns"] = record["turns"][:1] * 200
    frames = build_strip(run_dir, record, SizeBudget(20).image).frames
    assert len(frames) == MAX_FRAMES
    assert sum(frame.left_out for frame in frames) == 200 - MAX_FRAMES
    assert (frames[0].number, frames[-1].number) == (1, 200)


def test_a_video_is_a_few_of_its_frames(run_dir: Path) -> None:
    (record, _) = records_of(run_dir)
    frames = np.concatenate([np.full((40, 50, 3), 20 * i, np.uint8) for i in range(10)], axis=1)
    Image.fromarray(frames).save(run_dir / "media" / "v.png")
    times = [i / 2 for i in range(10)]
    video = {"path": "media/v.png", "width": 500, "height": 40, "num_frames": 10, "timestamps_s": times}
    record["media"].append(video)
    record["turns"][1]["media"] = [len(record["media"]) - 1]
    images = build_strip(run_dir, record, SizeBudget(20).image).frames[1].images
    assert [image.caption for image in images] == ["0.0 s", "1.5 s", "3.0 s", "4.5 s"]
    assert {(image.width, image.height) for image in images} == {(50, 40)}


def test_a_failed_episode_says_why_and_a_lost_image_is_missed(run_dir: Path) -> None:
    records = records_of(run_dir)
    evil = "<script>alert(1)</script>"
    records[0] |= {"failure": f"step raised ValueError: {evil}", "outcome": "env_error", "reward": None}
    records[0]["turns"][0]["text"] = evil
    records[0]["media"][0]["path"] = "../secret.png"
    (run_dir / "rollouts/before.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    page = page_of(run_dir)
    assert "script" not in page.names
    assert page.text.count(evil) == 2
    assert "an image is missing" in page.text
    assert "not scored" in page.text


def test_single_turns_are_no_episode(run_dir: Path) -> None:
    (card, _) = build_cards([RolloutColumn("after", run_dir, records_of(run_dir, "after"))], 2)
    assert not card.is_episode
    assert card.attempts[0].strip is None
    assert len(card.images) == 1


def test_an_episode_without_a_single_turn_has_a_card(run_dir: Path) -> None:
    (record, _) = records_of(run_dir)
    record |= {"turns": [], "ledgers": [], "media": [], "outcome": "env_error", "failure": "reset raised"}
    (card,) = build_cards([RolloutColumn("before", run_dir, [record])], 1)
    assert (card.attempts[0].num_tokens, card.attempts[0].failure) == (0, "reset raised")
    assert not card.is_episode
