"""`vlrl data show`: the page shows what the model gets, and only that."""

from __future__ import annotations

import base64
import io
import json
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import builders
import pytest
import videos
from PIL import Image

ROOT = Path(__file__).parents[2]
IMAGE = (140, 210)  # (height, width); the tiny model sees 140×196 … 140×224 depending on its fit
EVIL = "<script>alert(1)</script><img src=x onerror=alert(2)>"


class Page(HTMLParser):
    """Elements with their attributes and their own text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str], list[str]]] = []
        self._open: list[int] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, {k: v or "" for k, v in attrs}, []))
        if tag not in ("meta", "img", "br", "input"):
            self._open.append(len(self.elements) - 1)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, {k: v or "" for k, v in attrs}, []))

    def handle_endtag(self, tag: str) -> None:
        while self._open and self.elements[self._open.pop()][0] != tag:
            pass

    def handle_data(self, data: str) -> None:
        for index in self._open:
            self.elements[index][2].append(data)

    def all(self, tag: str, css: str = "") -> list[tuple[dict[str, str], str]]:
        """(attributes, text) of every element of a tag that has this class."""
        return [
            (attrs, "".join(text))
            for name, attrs, text in self.elements
            if name == tag and (not css or css in attrs.get("class", "").split())
        ]

    def tokens(self, css: str) -> list[str]:
        """Texts of the tokens of a class, the legend's apart."""
        return [text for attrs, text in self.all("label", css) if "data-tip" in attrs]


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    Image.fromarray(builders.random_image(*IMAGE)).save(tmp_path / "a.png")
    Image.fromarray(builders.random_image(56, 56, seed=1)).save(tmp_path / "b.png")

    def ask(*parts: Any) -> dict[str, Any]:
        content = [
            {"type": "text", "text": p} if not p.endswith("png") else {"type": "image", "image": p}
            for p in parts
        ]
        return {"role": "user", "content": content}

    lines: list[dict[str, Any]] = [
        {
            "id": "boxes",
            "messages": [ask("a.png", "Where?")],
            "answer": [{"bbox_2d": [14, 28, 98, 84], "label": "x"}],
            "target": "At [14, 28, 98, 84].",
            "metadata": {"click_point": [56, 70], "size": [1, 2, 3, 4]},
        },
        {
            "id": "turns",
            "messages": [
                ask("a.png", "What is it?"),
                {"role": "assistant", "content": "A cat."},
                ask("And this? ", "b.png", " Say."),
            ],
            "target": "A dog.",
        },
        {"id": EVIL, "messages": [ask("b.png", EVIL)], "target": EVIL, "metadata": {EVIL: EVIL}},
        {"id": "gone", "messages": [ask("gone.png", "?")], "target": "x"},
        {
            "id": "far",
            "messages": [ask("a.png", "?")],
            "target": "x",
            "metadata": {"bbox": [10, 10, 900, 70]},
        },
    ]
    file = tmp_path / "rows.jsonl"
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return file


@pytest.fixture
def show(vlrl: Any, tmp_path: Path) -> Any:
    def run(*arguments: object, code: int = 0) -> Page:
        result = vlrl("data", "show", *arguments, "--out", "page.html", "--json")
        assert result.code == code, result.err
        return Page((tmp_path / "page.html").read_text(encoding="utf-8"))

    return run


def test_an_image_is_shown_at_the_models_size_with_its_boxes(show: Any, rows: Path, tiny_model: Path) -> None:
    page = show(rows, "--model", tiny_model, "--rows", "0")
    (canvas,) = [attrs for attrs, _ in page.all("img") if "width" in attrs]
    height, width = int(canvas["height"]), int(canvas["width"])
    assert height % 28 == width % 28 == 0
    with Image.open(io.BytesIO(base64.b64decode(canvas["src"].partition(",")[2]))) as image:
        assert image.size == (width, height)
    boxes = [attrs for attrs, _ in page.all("rect", "over-line")]
    assert [[float(b[k]) for k in ("x", "y", "width", "height")] for b in boxes] == [[14, 28, 84, 56]]
    (point,) = [attrs for attrs, _ in page.all("circle", "over-line")]
    assert (float(point["cx"]), float(point["cy"])) == (56, 70)
    (pads,) = page.tokens("pads")
    num_tokens = height * width // 28**2
    assert pads == f"<|image_pad|> ×{num_tokens}"
    assert f"{num_tokens} tokens" in "".join(text for _, text in page.all("figcaption"))


def test_boxes_are_drawn_through_their_frame(show: Any, rows: Path, tiny_model: Path) -> None:
    page = show(rows, "--model", tiny_model, "--rows", "0", "--frame", "per_1000")
    (canvas,) = [attrs for attrs, _ in page.all("img") if "width" in attrs]
    (box,) = [attrs for attrs, _ in page.all("rect", "over-line")]
    assert float(box["x"]) == pytest.approx(14 / 1000 * int(canvas["width"]))
    assert float(box["height"]) == pytest.approx(56 / 1000 * int(canvas["height"]))
    page = show(rows, "--model", tiny_model, "--rows", "4")
    (lost,) = page.all("span", "lost")
    assert "outside resized_pixels" in lost[1]
    (box,) = [attrs for attrs, _ in page.all("rect", "over-line")]  # what is inside is still drawn
    assert float(box["x"]) == 10


@pytest.mark.parametrize(
    ("train_on", "trained"), [("assistant", "A cat.<|im_end|>A dog.<|im_end|>"), ("last", "A dog.<|im_end|>")]
)
def test_the_mask_is_that_of_training(
    show: Any, rows: Path, tiny_model: Path, train_on: str, trained: str
) -> None:
    page = show(rows, f"sft.train_on={train_on}", "--model", tiny_model, "--rows", "1", "--mask")
    assert "".join(page.tokens("learn")) == trained
    everything = "".join(text for attrs, text in page.all("label", "t") if "data-tip" in attrs)
    assert "What is it?" in everything and "And this? " in everything
    assert len(page.tokens("pads")) == 2
    assert page.all("span", "learn")[0][1] == "underlined on blue"  # the legend says it in words


def test_in_reinforcement_no_token_of_a_row_is_trained(show: Any, tiny_model: Path) -> None:
    config = ROOT / "configs" / "quickstart.yaml"
    page = show(config, f"model.path={tiny_model}", "--mask", "--limit", "2")
    assert page.tokens("learn") == ["what the model generates"] * 2
    assert len([attrs for attrs, _ in page.all("img") if "width" in attrs]) == 4


def test_rows_are_data(show: Any, rows: Path, tiny_model: Path, tmp_path: Path) -> None:
    page = show(rows, "--model", tiny_model, "--rows", "2", "--mask")
    assert not page.all("script")
    assert all(attrs["src"].startswith("data:image/") for attrs, _ in page.all("img"))
    assert all("onerror" not in attrs for _, attrs, _ in page.elements)
    assert any(EVIL in text for _, text in page.all("h2"))
    assert any("default-src 'none'" in attrs.get("content", "") for attrs, _ in page.all("meta"))
    assert "http" not in "".join(v for _, attrs, _ in page.elements for k, v in attrs.items() if k != "src")


def test_a_bad_row_does_not_hide_the_others(show: Any, rows: Path, tiny_model: Path) -> None:
    page = show(rows, "--model", tiny_model, "--rows", "2-4")
    ((_, problem),) = page.all("p", "problem")
    assert "gone.png" in problem
    assert [text for _, text in page.all("h2")] == [EVIL, "gone", "far"]


def test_without_a_model_media_are_shown_as_they_are(show: Any, vlrl: Any, rows: Path) -> None:
    page = show(rows, "--rows", "0", "--frame", "original_pixels")
    (canvas,) = [attrs for attrs, _ in page.all("img") if "width" in attrs]
    assert (int(canvas["height"]), int(canvas["width"])) == IMAGE
    assert not page.tokens("t")
    assert len(page.all("rect", "over-line")) == 1
    result = vlrl("data", "show", rows, "--mask", "--json")
    assert any("give --model, or --frame" in note for note in result.json["notes"])
    assert any("none without a model" in note for note in result.json["notes"])


def test_a_videos_frames_have_their_times(show: Any, tiny_model: Path, tmp_path: Path) -> None:
    videos.write_video(tmp_path / "v.mp4", num_frames=24, rate=8, size=(84, 112))
    content = [{"type": "video", "video": "v.mp4", "fps": 2}, {"type": "text", "text": "What moves?"}]
    row = {"id": "v", "messages": [{"role": "user", "content": content}], "target": "Nothing."}
    (tmp_path / "videos.jsonl").write_text(json.dumps(row))
    page = show("videos.jsonl", "--model", tiny_model, "--mask")
    times = [text for _, text in page.all("span", "when")]
    assert len(times) == 6
    assert times[0] == "0.00 s"
    assert times == sorted(times)
    assert page.tokens("pads")[0].startswith("<|video_pad|> ×")
    assert "".join(page.tokens("learn")) == "Nothing.<|im_end|>"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--rows", "1,x"], "such as 0,5,7-9"),
        (["--rows", "3-9"], "there are 5 rows"),
        (["--rows", "3-1"], "there are 5 rows"),
        (["--frame", "per_100"], "per_1000"),
    ],
)
def test_wrong_usage_is_2(vlrl: Any, rows: Path, arguments: list[str], words: str) -> None:
    result = vlrl("data", "show", rows, *arguments)
    assert result.code == 2
    assert words in result.err
