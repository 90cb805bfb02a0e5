"""The timeline of a run: what is noted, how it is read again, and the image that is made of it."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from builders import ScriptedPolicy, TextProcessor, make_config, make_context, text_prompt
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from vlrl.rollout.groups import rollout_groups
from vlrl.tracking.clock import Clock
from vlrl.tracking.timeline import TIMELINE_FILE, Span, Timeline, overlap_s, read_timeline
from vlrl.types import EnvTask, Sample
from vlrl.viewer.gantt import COLORS, Panel, draw_gantt, draw_run, slots_of

FILE = Path(__file__).parents[1] / "helpers" / "episodes.py"

spans_strategy = st.lists(
    st.tuples(st.integers(0, 30), st.integers(0, 9)).map(
        lambda pair: Span("request", "generate", float(pair[0]), float(sum(pair)))
    )
)


def sample_of(name: str) -> Sample:
    message = {"role": "user", "content": [{"type": "text", "text": "2"}]}
    prompt = text_prompt([ord(c) for c in "[user]2[assistant]"])
    return Sample(name, (message,), (), prompt, env=EnvTask(f"{FILE}:Countdown", {}, {"start": 2}, seed=7))


def played(path: Path | None, seed_path: tuple[int, ...] = (0, 5), **sections: Any) -> list[Span]:
    """The spans of two groups of two episodes of two turns."""
    config = make_config(rollout={"group_size": 2, "max_tokens": 8}, **sections)
    policy = ScriptedPolicy(lambda session, sampling: [ord("-")])

    async def run() -> None:
        timeline = Timeline(path)
        setting = make_context(policy, TextProcessor(), config)
        setting = replace(setting, timeline=timeline)
        with setting.host:
            await rollout_groups([sample_of("a"), sample_of("b")], setting, seed_path=seed_path)
        timeline.close()

    asyncio.run(run())
    return read_timeline(path) if path else []


@pytest.mark.parametrize("lockstep", [True, False])
def test_episodes_and_their_requests_are_noted(tmp_path: Path, lockstep: bool) -> None:
    spans = played(tmp_path / TIMELINE_FILE, episodes={"lockstep": lockstep})
    episodes = {(s.details["sample"], s.details["group_index"]): s for s in spans if s.lane == "episode"}
    assert set(episodes) == {("a", 0), ("a", 1), ("b", 0), ("b", 1)}
    assert {s.details["batch"] for s in episodes.values()} == {5}
    requests = [s for s in spans if s.lane == "request"]
    assert len(requests) == 2 * 4
    for request in requests:
        episode = episodes[request.details["sample"], request.details["group_index"]]
        assert episode.start_s <= request.start_s <= request.end_s <= episode.end_s


def test_an_episode_of_no_batch_has_none(tmp_path: Path) -> None:
    spans = played(tmp_path / TIMELINE_FILE, seed_path=())
    assert {s.details["batch"] for s in spans if s.lane == "episode"} == {None}


def test_without_a_file_nothing_is_noted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert played(None) == []
    assert list(tmp_path.iterdir()) == []


def test_a_resumed_run_goes_on_and_a_new_one_begins_anew(tmp_path: Path) -> None:
    for append, expected in ((False, ["a"]), (True, ["a", "b"]), (False, ["c"])):
        timeline = Timeline(tmp_path / TIMELINE_FILE, append=append)
        timeline.ended("generator", "paused", 0.1, version=expected[-1])
        timeline.close()
        timeline.ended("generator", "paused", 0.1, version="after the end")
        found = read_timeline(tmp_path / TIMELINE_FILE)
        assert [span.details["version"] for span in found] == expected
        assert all(span.end_s - span.start_s == pytest.approx(0.1, abs=1e-4) for span in found)


def test_a_line_cut_short_by_a_kill_is_skipped(tmp_path: Path) -> None:
    path = tmp_path / TIMELINE_FILE
    Clock(Timeline(path).recorder("trainer", step=3)).split("generate", {})
    timeline = Timeline(path)
    with Clock(timeline.recorder("trainer", step=3)).measure("train"):
        pass
    timeline.close()
    [whole] = read_timeline(path)
    assert (whole.lane, whole.what, whole.details) == ("trainer", "train", {"step": 3})
    path.write_text(path.read_text() + path.read_text()[:20])
    assert read_timeline(path) == [whole]
    assert read_timeline(tmp_path / "missing") == []


@given(spans_strategy, st.integers(0, 40), st.integers(0, 40))
def test_seconds_in_which_any_went_on(spans: list[Span], one: int, other: int) -> None:
    start, end = sorted((one, other))
    covered = {s for span in spans for s in range(int(span.start_s), int(span.end_s))} & set(
        range(start, end)
    )
    assert overlap_s(sorted(spans, key=lambda s: s.start_s), start, end) == len(covered)


@given(spans_strategy)
def test_rows_of_the_image_hold_no_two_episodes_at_once(spans: list[Span]) -> None:
    rows = slots_of(spans)
    assert sorted(map(id, (s for row in rows for s in row))) == sorted(map(id, spans))
    assert all(a.end_s <= b.start_s for row in rows for a, b in pairwise(row))
    most = max((sum(s.start_s <= t < s.end_s for s in spans) for t in range(40)), default=0)
    assert len(rows) >= most


def share_of(image: Path, color: str) -> float:
    """Share of the pixels that are about of this colour."""
    pixels = np.asarray(Image.open(image).convert("RGB"), dtype=int)
    wanted = [int(color[i : i + 2], 16) for i in (1, 3, 5)]
    return float((np.abs(pixels - wanted).max(axis=2) < 12).mean())


def test_the_image_shows_who_was_busy(tmp_path: Path) -> None:
    spans = [
        Span("trainer", "train", 10.0, 14.0, {"step": 0}),
        Span("request", "generate", 10.0, 12.0, {"sample": "a", "group_index": 0}),
        Span("episode", "play", 10.0, 15.0, {"sample": "a", "group_index": 0, "batch": 0}),
    ]
    draw_gantt(tmp_path / "without.png", [Panel("one", spans)])
    paused = Span("generator", "paused", 12.0, 13.0, {"version": 1})
    draw_gantt(tmp_path / "with.png", [Panel("one", [*spans, paused])])
    red = [share_of(tmp_path / f"{name}.png", COLORS["paused"]) for name in ("without", "with")]
    assert red[1] > 2 * red[0]
    train = [share_of(tmp_path / "with.png", COLORS[name]) for name in ("train", "generate")]
    assert train[0] > 1.5 * train[1]  # 4 s against 2


def test_the_last_steps_of_a_run_are_drawn(tmp_path: Path) -> None:
    assert draw_run(tmp_path) is None
    timeline = Timeline(tmp_path / TIMELINE_FILE)
    for step in range(3):
        timeline.record("trainer", "train", step, step + 0.5, step=step)
    timeline.close()
    assert draw_run(tmp_path, num_steps=2) == tmp_path / "timeline.png"
    assert (tmp_path / "timeline.png").stat().st_size > 0
