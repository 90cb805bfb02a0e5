"""A realistic run folder, made by the writers a run uses, and the page it gives."""

import hashlib
import json
import math
import re
import xml.etree.ElementTree as ET
from html.parser import HTMLParser

import numpy as np
import pytest
import yaml
from PIL import Image

from vlrl.config import LoggingConfig, parse_config
from vlrl.envs.visual.digit_sum import INSTRUCTION, DigitSum
from vlrl.metrics import MetricSinks
from vlrl.records import rollout_records, write_rollouts
from vlrl.types import Group, Ledger, Media, Prompt, Sample, Score, Trajectory, Turn, VersionSpan
from vlrl.viewer.charts import Series, line_chart, short, smooth, thin, ticks
from vlrl.viewer.report import heldout_series, write_pictures, write_report
from vlrl.viewer.rollouts import build_cards, token_spans
from vlrl.viewer.run import load_run
from vlrl.viewer.verdict import verdict, wilson

NUM_STEPS, NUM_ROLLOUTS, NUM_PADS = 60, 16, 4

CONFIG = {
    "run": {"name": "digits", "seed": 3},
    "model": {"path": "models/tiny"},
    "data": {"train": {"name": "digit_sum"}},
    "rewards": [{"name": "exact"}, {"name": "format"}],
    "num_steps": NUM_STEPS,
    "eval": {"every": 20, "target_accuracy": 0.9},
}

SUMMARY = {
    "run": "digits",
    "seed": 3,
    "model_path": "models/tiny",
    "num_parameters": 1_620_000,
    "heldout_accuracy_before": 0.41,
    "heldout_accuracy_after": 0.947,
    "heldout_accuracy_before_greedy": 0.41,
    "heldout_accuracy_after_greedy": 0.947,
    "heldout_accuracy_before_sampled": 0.33,
    "heldout_accuracy_after_sampled": 0.925,
    "num_heldout": 360,
    "num_steps": NUM_STEPS,
    "target_accuracy": 0.9,
    "target_reached": True,
    "seconds_by_phase": {"installing": 95.2, "warm start": 71.0, "evaluating": 9.3, "GRPO": 141.8},
    "versions": {"torch": "2.13.0", "vllm": "0.32.0"},
    "device": "cpu, 2 cores",
}


class FakeProcessor:
    """Tokens are words and marks, numbered as they come."""

    def __init__(self):
        self.words = []

    def encode(self, text):
        pieces = re.findall(r"<\|\w+\|>|</?\w+>|\d|\n| ?\w+|[^\w]", text)
        self.words += [piece for piece in dict.fromkeys(pieces) if piece not in self.words]
        return np.array([self.words.index(piece) for piece in pieces])

    def token_texts(self, token_ids):
        return [self.words[i] for i in token_ids]


def make_sample(row, processor):
    images = [part["image"] for part in row["messages"][0]["content"] if part["type"] == "image"]
    media = tuple(
        Media(
            "image", hashlib.sha256(image.tobytes()).hexdigest(), image[None], (56, 56), (1, 4, 4), NUM_PADS
        )
        for image in images
    )
    pictures = ("<|vision_start|>" + NUM_PADS * "<|image_pad|>" + "<|vision_end|>") * len(media)
    ids = processor.encode(f"<|im_start|>user\n{pictures}{INSTRUCTION}<|im_end|>\n<|im_start|>assistant\n")
    prompt = Prompt(ids, ids, np.zeros((3, len(ids)), np.int64), len(ids))
    return Sample(row["id"], tuple(row["messages"]), media, prompt, answer=row["answer"])


def make_group(row, completion, processor, rng, outcome="ok"):
    sample = make_sample(row, processor)
    drawn = processor.encode(completion + "<|im_end|>")
    start, count = len(sample.prompt.token_ids), len(drawn)
    right = f"<answer>{row['answer']}</answer>" in completion
    logprobs = -rng.exponential(0.4, count) * (rng.random(count) < 0.4)
    trajectory = Trajectory(
        sample=sample,
        group_index=0,
        ledgers=(
            Ledger(
                token_ids=np.concatenate([sample.prompt.token_ids, drawn]),
                position_ids=np.zeros((3, start + count), np.int64),
                loss_mask=np.arange(start + count) >= start,
                sampler_logprobs=np.concatenate([np.zeros(start), logprobs]).astype(np.float32),
                version_spans=(VersionSpan(0, start, start + count),),
                turns=(Turn((0, start), (start, start + count), num_media=len(sample.media)),),
                media=sample.media,
            ),
        ),
        completion=completion,
        outcome=outcome,
        score=Score(right + 0.1, {"exact": float(right), "format": 0.1}),
    )
    return Group([trajectory])


def write_phase(run_dir, phase, step, completions):
    processor, rng, rows = FakeProcessor(), np.random.default_rng(step), DigitSum("heldout", num_rows=20)
    groups = [
        make_group(rows[i], text, processor, rng, "truncated" if "…" in text else "ok")
        for i, text in enumerate(completions)
    ]
    records = rollout_records(groups, processor, phase=phase, step=step)
    write_rollouts(
        run_dir / "rollouts" / f"{phase}.jsonl", records, [m for g in groups for m in g.trajectories[0].media]
    )


def step_metrics(step, rng):
    skill, noise = 1 / (1 + math.exp(-(step - 22) / 8)), rng.normal(0, 0.025)
    times = {"generate": 0.62, "reward": 0.004, "train": 0.48, "sync": 0.09, "wait": 0.02}
    times = {name: t * rng.uniform(0.9, 1.2) for name, t in times.items()}
    return {
        "reward/mean": 0.43 + 0.53 * skill + noise,
        "reward/std": 0.5 - 0.3 * skill,
        "reward/exact": 0.33 + 0.58 * skill + noise,
        "reward/format": 0.1,
        "reward/zero_variance_groups": 0.1 + 0.6 * skill,
        "completion/num_tokens_mean": 17 - 2 * skill + noise,
        "completion/truncated_fraction": 0.02 * (1 - skill),
        "policy/entropy": 0.6 - 0.45 * skill + noise / 3,
        "policy/kl": math.nan if step == 7 else 2e-7 * rng.uniform(0.5, 2),
        "policy/clip_fraction": 0.01 * rng.random(),
        "optim/grad_norm": 0.9 * rng.uniform(0.6, 1.3),
        "throughput/tokens_per_s": 1100 * rng.uniform(0.9, 1.1),
        "parity/max_abs_logprob_diff": 4e-6 * rng.uniform(0.5, 2),
        **{f"time_s/{name}": t for name, t in times.items()},
        "time_s/step": sum(times.values()) + 0.03,
    }


@pytest.fixture
def run_dir(tmp_path):
    run_dir, rng = tmp_path / "digits", np.random.default_rng(0)
    with MetricSinks(run_dir, LoggingConfig(tensorboard=False)) as sinks:
        for step in range(NUM_STEPS):
            sinks.log(step, step_metrics(step, rng))
            if step in (20, 40):
                sinks.log(step, {"heldout/accuracy_greedy": 0.5 + step / 100})
    config = parse_config(CONFIG).model_dump(mode="json")
    (run_dir / "config.yaml").write_text(yaml.safe_dump(config, sort_keys=False))
    (run_dir / "summary.json").write_text(json.dumps(SUMMARY))
    rows = [row for row in (DigitSum("heldout", num_rows=20)[i] for i in range(18))]
    after = [row["target"] for row in rows]
    guesses = [f"<think>{i % 10}+3</think><answer>{i % 10 + 3}</answer>" for i in range(18)]
    before = [after[i] if i % 3 == 1 else guesses[i] for i in range(18)]
    before[2], before[5] = "<think>4+4+4+4+4+4+4…", "3 + 5 is <answer></answer>\n\n8"
    write_phase(run_dir, "before", 0, before)
    write_phase(run_dir, "after", NUM_STEPS, after)
    return run_dir


class Page(HTMLParser):
    """Tags with their attributes, and the text; fails on a tag that is not closed in order."""

    VOID = ("meta", "img", "br", "line", "rect", "circle", "polyline")

    def __init__(self, text):
        super().__init__()
        self.tags, self.stack, self.text = [], [], ""
        self.feed(text)
        assert self.stack == []

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self.stack.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.stack.pop() == tag, f"</{tag}> closes something else"

    def handle_data(self, data):
        self.text += data

    def of_class(self, name):
        return [attrs for _, attrs in self.tags if name in attrs.get("class", "").split()]


def page_of(run_dir):
    return Page(write_report(run_dir).read_text(encoding="utf-8"))


def edit_summary(run_dir, **changes):
    (run_dir / "summary.json").write_text(json.dumps(SUMMARY | changes))


def test_the_page_shows_the_headline_the_charts_and_16_rollouts(run_dir):
    page = page_of(run_dir)
    for words in ("0.410 →", "0.947", "0.330 →", "0.925", "digit_sum", "models/tiny", "1.6 M", "vllm"):
        assert words in page.text
    assert "Target reached" in page.text and "5 min 17 s" in page.text and "installing" in page.text
    assert len(page.of_class("card")) == NUM_ROLLOUTS
    assert len(page.of_class("attempt")) == 2 * NUM_ROLLOUTS
    headings = [t for t in ("Reward in training", "Held-out accuracy", "policy/entropy", "Seconds per step")]
    assert all(heading in page.text for heading in headings)


def test_nothing_is_fetched_and_nothing_runs(run_dir):
    page = page_of(run_dir)
    assert {tag for tag, _ in page.tags}.isdisjoint({"script", "link", "iframe", "object", "base", "form"})
    links = [v for _, attrs in page.tags for k, v in attrs.items() if k in ("src", "href", "srcset", "data")]
    assert len(links) == 2 * NUM_ROLLOUTS and all(link.startswith("data:image/png;base64,") for link in links)
    text = (run_dir / "report.html").read_text()
    assert not re.search(r"https?://|url\(|@import", text)
    policy = next(attrs["content"] for tag, attrs in page.tags if attrs.get("http-equiv"))
    assert policy.startswith("default-src 'none'") and "script" not in policy


def test_model_output_is_shown_and_never_markup(run_dir):
    evil = "<script>alert(1)</script><img src=x onerror=alert(2)>\"'&{{ 7*7 }}\x00\x1b\u202e"
    records = [json.loads(line) for line in (run_dir / "rollouts/after.jsonl").read_text().splitlines()]
    first = records[0]
    (ledger,) = first["ledgers"]
    ledger["token_texts"][-1] = first["answer"] = first["sample_id"] = first["outcome"] = evil
    first["parts"] = {evil: 1.0}
    first["messages"] = [{"role": "user", "content": evil}]
    (run_dir / "rollouts/before.jsonl").write_text(json.dumps(first) + "\n")
    with MetricSinks(run_dir, LoggingConfig(tensorboard=False), resume_step=NUM_STEPS) as sinks:
        sinks.log(NUM_STEPS, {f"reward/{evil}": 1.0, evil: 2.0})
    edit_summary(run_dir, run=evil, device=evil, versions={evil: evil})
    (run_dir / "config.yaml").write_text(yaml.safe_dump({"data": {"train": {"name": evil}}}))
    page = page_of(run_dir)
    assert not {"script"} & {tag for tag, _ in page.tags}
    assert not [attrs for _, attrs in page.tags if any(name.startswith("on") for name in attrs)]
    assert all(attrs["src"].startswith("data:") for tag, attrs in page.tags if tag == "img")
    assert "<script>alert(1)</script>" in page.text and "{{ 7*7 }}" in page.text
    assert "␀␛" in page.text and "\x1b" not in "".join(span.text for span in token_spans(ledger, 0))


def test_the_mask_is_shown_as_it_is(run_dir):
    (record,) = json.loads((run_dir / "rollouts/after.jsonl").read_text().splitlines()[0])["ledgers"]
    spans = token_spans(record, 0)
    assert sum("act" in span.kind for span in spans) == sum(record["loss_mask"])
    context = record["loss_mask"].count(0) - 2 * (NUM_PADS - 1)
    assert sum("ctx" in span.kind for span in spans) == context
    assert [span.text for span in spans if "pads" in span.kind] == [f"▦\N{MULTIPLICATION SIGN}{NUM_PADS}"] * 2
    # The class comes from the mask, not from the text: a drawn placeholder stays a drawn token.
    flipped = record | {"loss_mask": [1] * len(record["loss_mask"])}
    assert all("act" in span.kind for span in token_spans(flipped, 0))


@pytest.mark.parametrize(
    ("logprob", "kind", "tip"),
    [
        (0.0, "act p0", "p 100.0%"),
        (-0.5, "act p2", "p 60.7%"),
        (-5.0, "act p4", "p 0.7%"),
        (None, "act p4", "unknown"),
    ],
)
def test_a_token_is_shaded_by_its_probability(logprob, kind, tip):
    record = {"token_texts": ["7"], "token_ids": [12], "loss_mask": [1], "sampler_logprobs": [logprob]}
    (span,) = token_spans(record, 0)
    assert span.kind == kind and tip in span.tip and "id 12" in span.tip and "trained" in span.tip


def test_a_long_run_of_tokens_is_folded():
    n = 5000
    record = {
        "token_texts": ["a"] * n,
        "token_ids": [*range(n)],
        "loss_mask": [1] * n,
        "sampler_logprobs": [0.0] * n,
    }
    spans = token_spans(record, 0)
    assert len(spans) == 601 and "4400 tokens" in spans[300].text


def test_pictures_outside_the_run_folder_are_not_read(run_dir, tmp_path):
    Image.new("RGB", (4, 4)).save(tmp_path / "secret.png")
    paths = ["../secret.png", str(tmp_path / "secret.png"), "media/gone.png"]
    record = {"sample_id": "a", "media": [{"path": p, "width": 4, "height": 4} for p in paths]}
    (card,) = build_cards(run_dir, [("before", [record])], 1)
    assert [picture.uri for picture in card.pictures] == ["", "", ""]


@pytest.mark.parametrize(
    "missing",
    [
        "summary.json",
        "config.yaml",
        "metrics.jsonl",
        "rollouts/before.jsonl",
        "rollouts/after.jsonl",
        "media",
    ],
)
def test_a_missing_file_still_gives_a_page(run_dir, missing):
    target = run_dir / missing
    target.rename(run_dir / "elsewhere")
    assert page_of(run_dir).of_class("verdict")


def test_an_empty_folder_gives_a_page_that_says_so(tmp_path):
    page = page_of(tmp_path)
    assert "No summary.json" in page.text and not page.of_class("card") and tmp_path.name in page.text


def test_without_evaluation_the_training_rollouts_are_shown(run_dir):
    (run_dir / "rollouts/after.jsonl").rename(run_dir / "rollouts/train.jsonl")
    (run_dir / "rollouts/before.jsonl").unlink()
    page = page_of(run_dir)
    assert f"in training, step {NUM_STEPS}" in page.text and len(page.of_class("attempt")) == NUM_ROLLOUTS


@pytest.mark.parametrize(
    ("changes", "tone", "words"),
    [
        ({}, "good", "Target reached: greedy held-out accuracy rose from 0.410 to 0.947 on 360 samples"),
        ({"heldout_accuracy_after_greedy": 0.82}, "bad", "Target missed"),
        ({"heldout_accuracy_after_greedy": 0.82, "target_reached": True}, "bad", "below the target of 0.9"),
        ({"target_accuracy": 0}, "good", "rose from 0.410 to 0.947"),
        ({"num_steps": 12}, "good", "It stopped after 12 of 60 steps"),
    ],
)
def test_the_verdict_is_what_the_numbers_say(run_dir, changes, tone, words):
    edit_summary(run_dir, **changes)
    assert verdict(load_run(run_dir))[0] == tone
    assert words in verdict(load_run(run_dir))[1]


@pytest.mark.parametrize(
    ("after", "tone", "words"),
    [
        (0.43, "open", "within the noise of 360 samples"),
        (0.20, "bad", "fell from 0.410"),
        (0.41, "open", "stayed at"),
    ],
)
def test_without_a_target_noise_is_no_progress(run_dir, after, tone, words):
    edit_summary(run_dir, heldout_accuracy_after_greedy=after, target_accuracy=None)
    assert verdict(load_run(run_dir))[0] == tone
    assert words in verdict(load_run(run_dir))[1]


def test_held_out_points_lie_where_their_weights_were(run_dir):
    greedy, sampled = heldout_series(load_run(run_dir))
    assert greedy.points == [(0, 0.41), (21, 0.7), (41, 0.9), (NUM_STEPS, 0.947)]
    assert sampled.points == [(0, 0.33), (NUM_STEPS, 0.925)]


def test_a_supervised_run_shows_its_loss(tmp_path):
    with MetricSinks(tmp_path, LoggingConfig(tensorboard=False)) as sinks:
        for step in range(5):
            sinks.log(step, {"sft/loss": 2.0 / (step + 1), "optim/grad_norm": 1.0, "time_s/step": 0.1})
    text = page_of(tmp_path).text
    assert "Mean negative log-likelihood" in text and "Reward in training" not in text


def test_the_interval_is_wilsons():
    # Newcombe 1998, table I: 81 of 263 gives 0.2553 to 0.3662.
    assert wilson(81 / 263, 263) == pytest.approx((0.2553, 0.3662), abs=5e-5)


def test_charts_are_well_formed_and_gaps_break_the_line():
    svg = ET.fromstring(line_chart([Series("a<b", [(0, 1.0), (1, 2.0), (2, None), (3, 1.5), (4, 1.0)])]))
    assert len(svg.findall("polyline")) == 2
    assert [t.text for t in svg.iter("title")][2] == "step 2: a<b \N{EN DASH}"


@pytest.mark.parametrize("points", [[], [(0, None)], [(0, 5.0)], [(0, 0.0), (1, 0.0)], [(5, 1e-9), (6, 2e9)]])
def test_charts_of_odd_data_have_finite_coordinates(points):
    text = line_chart([Series("a", points)])
    ET.fromstring(text)
    assert "nan" not in text and "inf" not in text


def test_smoothing_looks_back_only_and_thinning_keeps_the_mean():
    points = [(0, 1.0), (1, None), (2, 3.0), (3, 100.0)]
    assert smooth(points, 3)[:3] == [(0, 1.0), (1, 1.0), (2, 2.0)]
    many = [(float(x), float(x)) for x in range(1000)]
    few = thin(many, 100)
    assert len(few) == 100 and sum(y for _, y in few) / 100 == pytest.approx(499.5)


def test_ticks_are_round_and_numbers_short():
    assert ticks(0.13, 0.97, 4) == [0.2, 0.4, 0.6, 0.8]
    assert [short(v) for v in (None, 0, 0.94712, 1234.5, 2.5e-7, 3e8)] == [
        "\N{EN DASH}", "0", "0.947", "1,234", "2.5e-7", "3e8",
    ]  # fmt: skip


def test_a_resumed_run_gives_the_same_page(run_dir):
    whole = write_report(run_dir).read_text()
    lines = (run_dir / "metrics.jsonl").read_text().splitlines()
    with MetricSinks(run_dir, LoggingConfig(tensorboard=False), resume_step=50) as sinks:
        for line in map(json.loads, lines):
            if line["step"] >= 50:
                sinks.log(line["step"], line)
    assert write_report(run_dir).read_text() == whole


def test_the_learning_curve_is_exported_as_a_picture(run_dir, tmp_path):
    (path,) = write_pictures(run_dir, tmp_path / "pictures")
    assert path.name == "learning_curve.png"
    picture = np.asarray(Image.open(path).convert("RGB"))
    assert picture.shape[1] > 1000 and len(np.unique(picture.reshape(-1, 3), axis=0)) > 50
