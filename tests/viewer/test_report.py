"""The page that a realistic run folder gives."""

import json
import re
from html.parser import HTMLParser

import pyarrow.parquet as pq
import pytest
import yaml
from digit_run import NUM_PADS, NUM_ROLLOUTS, NUM_STEPS, edit_summary
from kept_rollouts import FakeProcessor, make_group
from PIL import Image

from vlrl.config.options import LoggingConfig
from vlrl.tracking.rollouts.paths import train_file
from vlrl.tracking.rollouts.table import RolloutPlace, rollout_table
from vlrl.tracking.sinks import MetricSinks
from vlrl.viewer.pages.report import write_report
from vlrl.viewer.rollouts import RolloutColumn, build_cards, token_spans


class Page(HTMLParser):
    """Tags with their attributes, and the text; fails on a tag that is not closed in order."""

    VOID = ("meta", "img", "br", "input", "line", "rect", "circle", "polyline", "path")

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


def test_the_page_shows_the_headline_the_charts_and_16_rollouts(run_dir):
    page = page_of(run_dir)
    for words in ("0.410 →", "0.947", "0.330 →", "0.925", "digit_sum", "models/tiny", "1.6 M", "vllm"):
        assert words in page.text
    assert "Target reached" in page.text and "5 min 17 s" in page.text and "installing" in page.text
    assert len(page.of_class("card")) == NUM_ROLLOUTS
    assert len(page.of_class("attempt")) == 2 * NUM_ROLLOUTS
    headings = [t for t in ("Reward in training", "Held-out accuracy", "policy/entropy", "Seconds per step")]
    assert all(heading in page.text for heading in headings)


def test_rollouts_are_filtered_by_what_changed_and_failed(run_dir):
    before, after = (
        [json.loads(line) for line in (run_dir / f"rollouts/{name}.jsonl").read_text().splitlines()]
        for name in ("before", "after")
    )
    for record, reward in zip(before[:4], (0.0, 1.0, 1.0, 0.5), strict=True):
        record["reward"] = reward
    for record, reward in zip(after[:4], (1.0, 1.0, 1.0, None), strict=True):
        record["reward"] = reward
    after[2]["outcome"] = "truncated"
    for name, records in (("before", before[:4]), ("after", after[:4])):
        (run_dir / f"rollouts/{name}.jsonl").write_text("\n".join(map(json.dumps, records)) + "\n")
    page = page_of(run_dir)
    picked = [
        {"changed", "failed"} & set(attrs["class"].split()) for tag, attrs in page.tags if tag == "article"
    ]
    assert picked == [{"changed"}, set(), {"failed"}, {"changed", "failed"}]
    assert "all 4" in page.text and "changed 2" in page.text and "failed 2" in page.text


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


def test_images_outside_the_run_folder_are_not_read(run_dir, tmp_path):
    Image.new("RGB", (4, 4)).save(tmp_path / "secret.png")
    paths = ["../secret.png", str(tmp_path / "secret.png"), "media/gone.png"]
    record = {"sample_id": "a", "media": [{"path": p, "width": 4, "height": 4} for p in paths]}
    (card,) = build_cards([RolloutColumn("before", run_dir, [record])], 1)
    assert [image.uri for image in card.images] == ["", "", ""]


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
    for name in ("before", "after"):
        (run_dir / f"rollouts/{name}.jsonl").unlink()
    for step in (8, 9):
        table = rollout_table([make_group()], [RolloutPlace(step, step, 0)], FakeProcessor())
        train_file(run_dir, step).parent.mkdir(exist_ok=True)
        pq.write_table(table, train_file(run_dir, step))
    page = page_of(run_dir)
    assert "in training, step 9" in page.text and len(page.of_class("attempt")) == 1


def test_a_supervised_run_shows_its_loss(tmp_path):
    with MetricSinks(tmp_path, LoggingConfig(tensorboard=False)) as sinks:
        for step in range(5):
            sinks.log(step, {"sft/loss": 2.0 / (step + 1), "optim/grad_norm": 1.0, "time_s/step": 0.1})
    text = page_of(tmp_path).text
    assert "Mean negative log-likelihood" in text and "Reward in training" not in text


def test_a_resumed_run_gives_the_same_page(run_dir):
    whole = write_report(run_dir).read_text()
    lines = (run_dir / "metrics.jsonl").read_text().splitlines()
    with MetricSinks(run_dir, LoggingConfig(tensorboard=False), resume_step=50) as sinks:
        for line in map(json.loads, lines):
            if line["step"] >= 50:
                sinks.log(line["step"], line)
    assert write_report(run_dir).read_text() == whole
