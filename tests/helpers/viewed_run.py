"""Run folders to look at: questions about images, videos, episodes on a screen, hostile text; no model."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import yaml
from PIL import Image, ImageDraw

from vlrl.batch import TokenValues
from vlrl.config.options import LoggingConfig
from vlrl.ledger import Credit, Ledger, Turn, VersionSpan
from vlrl.tracking.rollouts.paths import train_file
from vlrl.tracking.rollouts.records import images_of, write_images
from vlrl.tracking.rollouts.table import RolloutPlace, rollout_table
from vlrl.tracking.sinks import MetricSinks
from vlrl.types import EnvTask, Group, Media, Prompt, Sample, Score, Trajectory

PIECES = re.compile(r"<\|\w+\|>|</?\w+>|\d|\n| ?\w+|[^\w]")
COLORS = ("#0b6fb8", "#c45a00", "#00795c", "#a4478f", "#806c00", "#444b55")
HOSTILE = (
    "<script>window.hacked = 1</script><img src=x onerror='window.hacked = 1'>"
    "javascript:window.hacked=1 \u202egnp.exe\u202c \u200b\x1b[31m\x00 ${window.hacked=1} {{7*7}} "
    + "long"
    * 20_000
)


class WordProcessor:
    """Tokens are words and marks, numbered as they come."""

    def __init__(self) -> None:
        self.numbers: dict[str, int] = {}
        self.words: list[str] = []

    def encode(self, text: str) -> Any:
        out = []
        for piece in PIECES.findall(text):
            if piece not in self.numbers:
                self.numbers[piece] = len(self.words)
                self.words.append(piece)
            out.append(self.numbers[piece])
        return np.array(out, np.int64)

    def token_texts(self, token_ids: Any) -> list[str]:
        return [self.words[i] for i in token_ids]


class RunWriter:
    """Writes the steps of a made-up run, one after the other."""

    def __init__(
        self,
        run_dir: Path,
        *,
        seed: int = 0,
        group_size: int = 4,
        collapse_at: int | None = None,
        lr: float = 1e-6,
    ) -> None:
        self.run_dir, self.seed, self.group_size, self.collapse_at = run_dir, seed, group_size, collapse_at
        self.rng = np.random.default_rng(seed)
        self.processor = WordProcessor()
        self.images: dict[str, Media] = {}
        run_dir.mkdir(parents=True, exist_ok=True)
        config = {
            "run": {"name": run_dir.name, "seed": seed},
            "model": {"path": "models/tiny"},
            "algorithm": {"name": "grpo"},
            "data": {"train": [{"name": "shapes"}]},
            "rewards": [{"name": "answer_exact"}, {"name": "./format.py:tags", "weight": 0.1}],
            "rollout": {"prompts_per_step": 6, "group_size": group_size},
            "optim": {"lr": lr},
        }
        (run_dir / "config.yaml").write_text(yaml.safe_dump(config))
        self._sinks = MetricSinks(run_dir, LoggingConfig(tensorboard=False))

    def step(self, step: int, groups: Sequence[Group]) -> None:
        """Log a step and keep its rollouts."""
        places = [RolloutPlace(step, step * len(groups) + number, number) for number in range(len(groups))]
        table = rollout_table(groups, places, self.processor, self._values(groups))
        file = train_file(self.run_dir, step)
        file.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(table, file.with_suffix(".part"), compression="zstd")
        write_images(self.run_dir, [m for m in images_of(groups) if m.has_frames])
        file.with_suffix(".part").rename(file)
        self.log(step)

    def log(self, step: int) -> None:
        """The metrics of a step."""
        skill, noise = 1 / (1 + np.exp(-(step - 22) / 8)), self.rng.normal(0, 0.025)
        collapsed = self.collapse_at is not None and step >= self.collapse_at
        times = {"generate": 0.62, "reward": 0.04, "train": 0.48, "sync": 0.09, "wait": 0.02}
        times = {name: t * self.rng.uniform(0.9, 1.2) for name, t in times.items()}
        values = {
            "reward/mean": 0.2 + 0.7 * skill + noise,
            "reward/answer_exact": 0.15 + 0.7 * skill + noise,
            "reward/tags": 0.1 * skill,
            "reward/zero_variance_groups": 0.1 + (0.75 if collapsed else 0.3) * skill,
            "completion/num_tokens_mean": 47 - 12 * skill + 20 * noise,
            "policy/entropy": 0.01 if collapsed else 0.6 - 0.35 * skill + noise / 3,
            "policy/kl_reference": 0.02 + 0.05 * skill + abs(noise) / 10 + (1.1 if step == 31 else 0),
            "policy/clip_fraction": 0.01 * self.rng.random(),
            "optim/grad_norm": 0.9 * self.rng.uniform(0.6, 1.3),
            "throughput/tokens_per_s": 1100 * self.rng.uniform(0.9, 1.1),
            **{f"time_s/{name}": t for name, t in times.items()},
            "time_s/step": sum(times.values()) + 0.03,
        }
        if step % 10 == 9:
            fall = 0.4 * max(0, step - (self.collapse_at or step)) / 30
            values["heldout/accuracy_greedy"] = 0.3 + 0.55 * skill - fall
        self._sinks.log(step, {name: float(value) for name, value in values.items()})

    def close(self) -> None:
        self._sinks.close()

    def question(self, number: int, skill: float, *, text: str = "", failing: bool = False) -> Group:
        """A group that counts shapes in an image."""
        rng = np.random.default_rng((7, number))
        image, count, color = self._shapes(number, rng)
        messages = [
            {"role": "system", "content": "Answer in <answer> tags."},
            {
                "role": "user",
                "content": [{"type": "image"}, {"type": "text", "text": f"How many {color} shapes?"}],
            },
        ]
        prompt = f"<|im_start|>user\n{'<|image_pad|>' * 12}How many {color} shapes?<|im_end|>\n"
        sample = self._sample(f"shapes-{number:05d}", messages, (image,), prompt, str(count), source="shapes")
        members = []
        for index in range(self.group_size):
            said = count if self.rng.random() < skill else int(self.rng.integers(0, 9))
            thought = " and ".join(f"one at {self.rng.integers(9)}" for _ in range(min(said, 5))) or "none"
            words = f"<think>I count {thought}, so {said}.</think>\n<answer>{said}</answer>{text}"
            parts = {"answer_exact": float(said == count), "tags": 0.1}
            members.append(
                self._member(sample, index, [(prompt, words, 1, {}, 0.0)], (image,), parts, failing)
            )
        return self._credited(members)

    def video(self, number: int) -> Group:
        """A group about a video of eight frames."""
        medium = _medium(f"video {number}", _clip(), kind="video", times=tuple(i * 0.5 for i in range(8)))
        prompt = f"<|im_start|>user\n{'<|video_pad|>' * 32}Which way does the ball go?<|im_end|>\n"
        messages = [
            {
                "role": "user",
                "content": [{"type": "video"}, {"type": "text", "text": "Which way does the ball go?"}],
            }
        ]
        sample = self._sample(f"clip-{number:03d}", messages, (medium,), prompt, "right", source="clips")
        members = []
        for index in range(self.group_size):
            said = "right" if index % 2 else "left"
            parts = {"answer_exact": float(said == "right"), "tags": 0.1}
            words = f"<think>It moves {said}.</think><answer>{said}</answer>"
            members.append(self._member(sample, index, [(prompt, words, 1, {}, 0.0)], (medium,), parts))
        return self._credited(members)

    def screen(self, number: int) -> Group:
        """A group of episodes of four turns on a screen: a click, a drag, a scroll, typed text."""
        screens = tuple(
            _medium(f"screen {number} {i}", _screen(i)[None], original=(600, 800)) for i in range(5)
        )
        deeds = (
            (
                "Click(point=(160, 120), count=2)",
                "160,120",
                {"widget": "button Open", "widget_box": "110,100,210,140"},
            ),
            (
                "Drag(path=((200, 300), (520, 380)))",
                "200,300 300,310 420,360 520,380",
                {"widget": "slider", "widget_box": "180,280,560,400"},
            ),
            ("Scroll(point=(400, 300), dx=0, dy=300)", "400,300", {}),
            ("TypeText(text='hello world')", "", {}),
        )
        task = f"<|im_start|>user\n{'<|image_pad|>' * 20}Open the file and move the slider.<|im_end|>\n"
        messages = [
            {
                "role": "user",
                "content": [
                    {"type": "image"},
                    {"type": "text", "text": "Open the file and move the slider."},
                ],
            }
        ]
        sample = self._sample(
            f"desk-{number:03d}",
            messages,
            (screens[0],),
            task,
            None,
            source="desk",
            env=EnvTask("gui/desk", {}, {"level": 2}, number),
        )
        members = []
        for index in range(self.group_size):
            turns = []
            for turn, (action, points, more) in enumerate(deeds):
                seen = task if turn == 0 else f"<|im_start|>user\n{'<|image_pad|>' * 20}<|im_end|>\n"
                info = {"gui_action": action, "point": points, **more} if points else {"gui_action": action}
                said = f"<think>Next I {action.split('(')[0].lower()}.</think>\n<action>{action}</action>"
                turns.append((seen, said, 1, info, 1.0 if turn == 3 and index % 2 == 0 else 0.0))
            parts = {"success": float(index % 2 == 0)}
            member = self._member(
                sample, index, turns, screens[:4], parts, failing=index == 3, end=screens[4:]
            )
            members.append(member)
        return self._credited(members)

    def _sample(
        self, name: str, messages: Any, media: Any, prompt: str, answer: Any, source: str, env: Any = None
    ) -> Sample:
        ids = self.processor.encode(prompt)
        asked = Prompt(ids, ids, np.zeros((3, len(ids)), np.int64), len(ids))
        return Sample(name, tuple(messages), media, asked, answer=answer, source=source, env=env)

    def _member(
        self,
        sample: Sample,
        index: int,
        said: Any,
        media: Any,
        parts: Mapping[str, float],
        failing: bool = False,
        end: Any = (),
    ) -> Trajectory:
        ids, mask, turns = np.zeros(0, np.int64), np.zeros(0, bool), []
        for context, action, num_media, info, reward in said:
            seen, done = self.processor.encode(context), self.processor.encode(action + "<|im_end|>")
            start = len(ids) + len(seen)
            spans = (len(ids), start), (start, start + len(done))
            turns.append(Turn(*spans, text=action, num_media=num_media, info=info, reward=reward))
            ids = np.concatenate([ids, seen, done])
            mask = np.concatenate([mask, np.zeros(len(seen), bool), np.ones(len(done), bool)])
        logprobs = -self.rng.exponential(0.5, len(ids)) * mask * (self.rng.random(len(ids)) < 0.5)
        middle = int((turns[0].action[0] + len(ids)) / 2)
        versions = (VersionSpan(3, turns[0].action[0], middle), VersionSpan(4, middle, len(ids)))
        ledger = Ledger(
            ids,
            np.zeros((3, len(ids)), np.int64),
            mask,
            logprobs.astype(np.float32),
            versions,
            tuple(turns),
            tuple(media),
        )
        return Trajectory(
            sample,
            index,
            (ledger,),
            turns[-1].text,
            "env_error" if failing else "ok",
            score=None
            if failing
            else Score(sum(parts.values()), dict(parts), (), {"tags": "<b>one</b> tag"}),
            failure="the environment's process died: exit code 139" if failing else "",
            duration_s=float(self.rng.uniform(0.4, 3)),
            info={"success": parts["success"]} if "success" in parts else {},
            end_media=tuple(end),
        )

    def _credited(self, members: Sequence[Trajectory]) -> Group:
        rewards = np.array([m.score.total if m.score else np.nan for m in members])
        mean = np.nanmean(rewards) if np.isfinite(rewards).any() else 0.0
        credits = []
        for member, reward in zip(members, rewards, strict=True):
            value = 0.0 if np.isnan(reward) else reward - mean
            arrays = tuple(np.full(len(ledger.token_ids), value, np.float32) for ledger in member.ledgers)
            credits.append(Credit(arrays, tuple(ledger.loss_mask for ledger in member.ledgers)))
        return Group(members, credits)

    def _values(self, groups: Sequence[Group]) -> TokenValues:
        origins, trainer = [], []
        for number, group in enumerate(groups):
            for member in group.trajectories:
                ledger = member.ledgers[0]
                (places,) = np.nonzero(ledger.loss_mask)
                origins += [(number, member.group_index, 0, place) for place in places.tolist()]
                trainer += ledger.sampler_logprobs[places].tolist()
        noise = self.rng.normal(0, 0.15, len(trainer)) * (self.rng.random(len(trainer)) < 0.3)
        return TokenValues(
            np.array(origins, np.int64).reshape(-1, 4),
            (np.array(trainer) + noise).astype(np.float32),
            self.rng.gamma(0.4, 0.6, len(trainer)).astype(np.float32),
        )

    def _shapes(self, number: int, rng: Any) -> tuple[Media, int, str]:
        image = Image.new("RGB", (336, 252), "#f3f1ea")
        brush, count = ImageDraw.Draw(image), int(rng.integers(1, 9))
        color = int(rng.integers(len(COLORS)))
        for each in range(count + 4):
            x, y, r = rng.integers(20, 300), rng.integers(20, 220), rng.integers(8, 24)
            shape: Callable[..., None] = brush.ellipse if each % 2 else brush.rectangle
            fill = COLORS[color] if each < count else COLORS[(color + 1 + each) % len(COLORS)]
            shape((x - r, y - r, x + r, y + r), fill=fill)
        name = ("blue", "orange", "green", "purple", "olive", "grey")[color]
        return _medium(f"shapes {number}", np.asarray(image)[None]), count, name


def write_viewed_run(run_dir: Path, num_steps: int = 40, **options: Any) -> RunWriter:
    """A run of some steps: six groups each, among them a video and a screen, every prompt again and again."""
    writer = RunWriter(run_dir, **options)
    for step in range(num_steps):
        skill = 1 / (1 + np.exp(-(step - 0.5 * num_steps) / (0.2 * num_steps)))
        numbers = [(step * 3 + i) % 12 for i in range(3)]
        groups = [writer.question(number, skill) for number in numbers]
        groups.append(writer.question(100, skill, text=HOSTILE if step == num_steps - 1 else ""))
        writer.step(step, [*groups, writer.video(step % 4), writer.screen(step % 3)])
    _write_timeline(run_dir, num_steps)
    return writer


def write_summary(run_dir: Path, **more: Any) -> None:
    """What a run leaves when it ends."""
    summary = {"run": run_dir.name, "seed": 0, "model_path": "models/tiny", "num_parameters": 1_620_000}
    scores = {
        "heldout_accuracy_before_greedy": 0.31,
        "heldout_accuracy_after_greedy": 0.84,
        "num_heldout": 360,
    }
    (run_dir / "summary.json").write_text(json.dumps({**summary, **scores, **more}))


def _write_timeline(run_dir: Path, num_steps: int) -> None:
    lines, start = [], 1000.0
    for step in range(num_steps):
        lines.append(
            {"lane": "trainer", "what": "generate", "start_s": start, "end_s": start + 0.6, "step": step}
        )
        lines.append(
            {"lane": "trainer", "what": "train", "start_s": start + 0.6, "end_s": start + 1.1, "step": step}
        )
        lines.append(
            {"lane": "trainer", "what": "sync", "start_s": start + 1.1, "end_s": start + 1.2, "step": step}
        )
        lines.append(
            {
                "lane": "generator",
                "what": "paused",
                "start_s": start + 1.1,
                "end_s": start + 1.2,
                "version": step,
            }
        )
        for i in range(4):
            who = {"sample": f"shapes-{i}", "group_index": i}
            lines.append(
                {
                    "lane": "episode",
                    "what": "play",
                    "start_s": start + 0.02 * i,
                    "end_s": start + 0.3 + 0.09 * i,
                    "batch": step,
                    **who,
                }
            )
            lines.append(
                {
                    "lane": "request",
                    "what": "generate",
                    "start_s": start + 0.03 * i,
                    "end_s": start + 0.2 + 0.08 * i,
                    **who,
                }
            )
        start += 1.25
    (run_dir / "timeline.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))


def _medium(
    name: str,
    frames: Any,
    *,
    kind: Any = "image",
    times: tuple[float, ...] = (),
    original: tuple[int, int] | None = None,
) -> Media:
    height, width = frames.shape[1:3]
    sha256 = hashlib.sha256(name.encode()).hexdigest()
    return Media(
        kind,
        sha256,
        np.ascontiguousarray(frames, np.uint8),
        original or (height, width),
        (1, 4, 4),
        12,
        times,
        2.0 if times else None,
    )


def _clip() -> Any:
    frames = []
    for i in range(8):
        image = Image.new("RGB", (224, 168), "#dfe7ef")
        ImageDraw.Draw(image).ellipse((20 + 22 * i, 70, 50 + 22 * i, 100), fill="#c45a00")
        frames.append(np.asarray(image))
    return np.stack(frames)


def _screen(turn: int) -> Any:
    image = Image.new("RGB", (800, 600), "#e9ebee")
    brush = ImageDraw.Draw(image)
    brush.rectangle((0, 0, 800, 36), fill="#30363d")
    brush.text((16, 11), "Files", fill="white")
    brush.rectangle((60, 60, 740, 540), fill="white", outline="#b9bec5")
    brush.rectangle((110, 100, 210, 140), fill="#0b6fb8" if turn == 0 else "#7fb4dd")
    brush.text((145, 114), "Open", fill="white")
    brush.rectangle((180, 330, 560, 340), fill="#b9bec5")
    brush.ellipse((190 + 80 * turn, 322, 214 + 80 * turn, 348), fill="#c45a00")
    brush.text((120, 440), f"{turn} of 4 done", fill="#444")
    return np.asarray(image)
