"""The layouts of other projects, read as they would read them; what is wrong is said with its place."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vlrl.config.data import DatasetConfig
from vlrl.data import open_dataset
from vlrl.data.markers import place_media
from vlrl.errors import ConfigError, DataError

DATA_URL = "data:image/png;base64,AAAA"
EASY_R1_TEMPLATE = (
    "{{ content | trim }} You FIRST think about the reasoning process as an internal monologue and then "
    "provide the final answer. The final answer MUST BE put in \\boxed{}."
)


def source(folder: Path, shape: str) -> DatasetConfig:
    return DatasetConfig(name=str(folder / "rows.jsonl"), shape=shape, template="{{ content }}")


def spelled(content: str | list[dict[str, Any]]) -> list[str]:
    """Content as a list of texts and of media's file names."""
    if isinstance(content, str):
        return [content]
    return [p["text"] if p["type"] == "text" else f"<{Path(p[p['type']]).name}>" for p in content]


def test_vlrls_own_shape_is_kept(read: Any) -> None:
    content = [
        {"type": "video", "video": "v.mp4", "fps": 1.0, "start_s": 2},
        {"type": "text", "text": "<image>?"},
    ]
    record = {
        "id": "own",
        "messages": [{"role": "user", "content": content}],
        "answer": [1],
        "metadata": {"a": 1},
    }
    (row,) = read({**record, "b": 2})
    assert (row["id"], row["answer"], row["metadata"]) == ("own", [1], {"a": 1, "b": 2})
    video, text = row["messages"][0]["content"]
    assert (video["fps"], video["start_s"], Path(video["video"]).name) == (1.0, 2, "v.mp4")
    assert text == {"type": "text", "text": "<image>?"}  # mere text: the row says itself where its media are


@pytest.mark.parametrize("as_text", [False, True])
def test_a_row_s_form_is_its_own_field(read: Any, as_text: bool) -> None:
    """Every shape keeps it, and it is no metadata."""
    form = {"choice": ["a", "b"]}
    given = {"structured_outputs": json.dumps(form) if as_text else form}
    (own,) = read({"messages": [{"role": "user", "content": "?"}], **given})
    (of_trl,) = read({"prompt": "?", "answer": 1, **given})
    for row in (own, of_trl):
        assert json.loads(row["structured_outputs"]) == form
        assert "structured_outputs" not in row["metadata"]


def test_a_row_s_form_that_is_none_is_named_with_its_place(read: Any) -> None:
    said = [{"role": "user", "content": "?"}]
    rows = [{"messages": said}, {"messages": said, "structured_outputs": {"regex": "[0-9"}}]
    with pytest.raises(DataError, match=r"rows\.jsonl:2: structured_outputs\.regex: .*; correct it"):
        read(*rows)


def test_openai_messages(read: Any) -> None:
    image = {"type": "image_url", "image_url": {"url": DATA_URL, "detail": None}}
    video = {"type": "video_url", "video_url": {"url": "https://host/v.mp4"}}
    messages = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": [{"type": "text", "text": "What is"}, image, video]},
        {"role": "assistant", "content": "a cat"},
    ]
    (row,) = read({"messages": messages}, shape="openai", system="not used: there is one")
    assert [m["role"] for m in row["messages"]] == ["system", "user"]
    assert row["messages"][1]["content"][1:] == [
        {"type": "image", "image": DATA_URL},
        {"type": "video", "video": "https://host/v.mp4"},
    ]
    assert (row["target"], row["answer"]) == ("a cat", "a cat")


def test_messages_with_media_in_columns(read: Any) -> None:
    """LLaMA-Factory writes them with markers, TRL with parts that name no image."""
    marked = {
        "messages": [{"role": "user", "content": "a<image>b<video>"}],
        "images": ["1.png"],
        "videos": ["v.mp4"],
    }
    slots = [{"type": "image"}, {"type": "text", "text": "b"}, {"type": "image"}]
    parts = {"messages": [{"role": "user", "content": slots}], "images": ["1.png", "2.png"]}
    first, second = read(marked, parts)
    assert spelled(first["messages"][0]["content"]) == ["a", "<1.png>", "b", "<v.mp4>"]
    assert spelled(second["messages"][0]["content"]) == ["<1.png>", "b", "<2.png>"]


def test_llava_conversations(read: Any) -> None:
    turns = [("human", "<image>\nWhat is it?"), ("gpt", "A cat."), ("human", "Sure?"), ("gpt", "Yes.")]
    conversations = [{"from": speaker, "value": text} for speaker, text in turns]
    (row,) = read({"id": 7, "image": "coco/1.jpg", "conversations": conversations, "system": "S"})
    assert [m["role"] for m in row["messages"]] == ["system", "user", "assistant", "user"]
    assert spelled(row["messages"][1]["content"]) == ["<1.jpg>", "\nWhat is it?"]
    assert row["messages"][2]["content"] == "A cat."
    assert (row["id"], row["target"], row["answer"]) == (7, "Yes.", "Yes.")


def test_vlm_r1(read: Any) -> None:
    """Its three forms: problem and solution, boxes as the solution, conversations with several images."""
    problem = {"problem": "Where is it?", "solution": "<answer>3</answer>", "image": "1.jpg"}
    boxes = {
        "problem": "<image>Box?",
        "solution": [1, 2, 30, 40],
        "image": ["1.jpg"],
        "accu_reward_method": "mcq",
    }
    conversations = [{"from": "human", "value": "<image><image>Same?"}, {"from": "gpt", "value": "no"}]
    rows = read(problem, boxes, {"image": ["1.jpg", "2.jpg"], "conversations": conversations}, shape="vlm_r1")
    assert [spelled(row["messages"][0]["content"]) for row in rows] == [
        ["<1.jpg>", "Where is it?"],
        ["<1.jpg>", "Box?"],
        ["<1.jpg>", "<2.jpg>", "Same?"],
    ]
    assert [row["answer"] for row in rows] == ["3", [1, 2, 30, 40], "no"]
    assert rows[1]["metadata"] == {"accu_reward_method": "mcq"}


@pytest.mark.parametrize(
    ("solution", "answer"),
    [
        ([10.5, 20, 30.25, 40], [10.5, 20, 30.25, 40]),  # refcoco_train.jsonl
        ("<answer>\n [10, 20, 30, 40] </answer>", "[10, 20, 30, 40]"),
        ('```json\n[{"bbox_2d": [1, 2, 3, 4], "label": "a cat"}]\n```',) * 2,
        ("3 <answer>", "3 <answer>"),
        (7, 7),
    ],
)
def test_vlm_r1s_last_turn_is_what_is_scored_against(read: Any, solution: Any, answer: Any) -> None:
    turns = [{"from": "human", "value": "<image>Box?"}, {"from": "gpt", "value": solution}]
    (row,) = read({"id": 3, "image": "1.jpg", "conversations": turns, "width": 640}, shape="vlm_r1")
    assert (row["answer"], row["metadata"]) == (answer, {"width": 640})
    assert "target" not in row
    assert spelled(row["messages"][0]["content"]) == ["<1.jpg>", "Box?"]


def test_easy_r1_with_its_format_prompt(read: Any) -> None:
    record = {"problem": "  <image>Find x. ", "answer": "3", "images": ["1.png"], "videos": None}
    (row,) = read(record, template=EASY_R1_TEMPLATE)
    image, text = row["messages"][0]["content"]
    assert image["type"] == "image"
    assert text["text"].startswith("Find x. You FIRST think")
    assert text["text"].endswith("\\boxed{}.")
    assert row["answer"] == "3"


def test_plain_columns(read: Any) -> None:
    record = {"question": "How many?", "label": 4, "photo": "a.png", "source_id": "x"}
    columns = {"problem": "question", "answer": "label", "image": "photo"}
    (row,) = read(record, columns=columns)
    assert spelled(row["messages"][0]["content"]) == ["<a.png>", "How many?"]
    assert (row["answer"], row["metadata"]) == (4, {"source_id": "x"})
    with pytest.raises(DataError, match=r"rows\.jsonl:1: no column 'label'.*question"):
        read({"question": "?"}, columns=columns)
    with pytest.raises(
        ConfigError, match=r"data\.train\.columns: no field is named 'anwser'; did you mean 'answer'"
    ):
        read(record, columns={"anwser": "label"})


def test_a_strangers_shape(read: Any, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        "def qa(fields):\n"
        "    return {'messages': [{'role': 'user', 'content': fields.pop('q')}], 'answer': fields.pop('a')}\n"
    )
    shape = f"{tmp_path / 'mine.py'}:qa"
    (row,) = read({"q": "2+2?", "a": 4, "level": 1}, shape=shape)
    assert (row["messages"], row["answer"]) == ([{"role": "user", "content": "2+2?"}], 4)
    assert row["metadata"] == {"level": 1}
    copy = pickle.loads(pickle.dumps(open_dataset(source(tmp_path, shape), "s")))
    assert copy[0] == row
    with pytest.raises(DataError, match=r"rows\.jsonl:1: not a row of shape .*KeyError: 'a'"):
        read({"q": "2+2?"}, shape=shape)
    with pytest.raises(ConfigError, match="no shape is named 'lava'; did you mean 'llava'"):
        read({"q": "2+2?"}, shape="lava")


@pytest.mark.parametrize(
    ("record", "words"),
    [
        ({}, "columns .none. fit no known shape"),
        ({"question": "?", "label": 1}, "'question', 'label'.*columns: {problem: question"),
        ({"messages": 3}, "must be a list of objects"),
        ({"messages": []}, "no turns"),
        ({"messages": ["hi"]}, "must be a list of objects"),
        ({"messages": [{"role": "user"}]}, "KeyError: 'content'"),
        ({"messages": [{"role": 1, "content": ""}]}, "'role' must be text"),
        ({"messages": [{"role": "user", "content": [{"type": "image"}]}]}, "1 <image> markers .*0 images"),
        ({"messages": [{"role": "user", "content": [{"type": "image", "image": 3}]}]}, "3 is not an image"),
        ({"messages": [{"role": "user", "content": [{"type": "sound"}]}]}, "'sound' is not one of text"),
        ({"messages": [{"role": "user", "content": [{"type": "text", "text": 3}]}]}, "must be text, not int"),
        ({"messages": [{"role": "system", "content": "S"}]}, "no user turn"),
        ({"messages": [{"role": "assistant", "content": "S"}]}, "no user turn"),
        ({"messages": [{"role": "user", "content": ""}, {"role": "assistant", "content": ""}], "target": "t"},
         "leave one of them out"),
        ({"messages": [{"role": "user", "content": ""}, {"role": "tool", "content": [{"type": "image"}]}]},
         "None is not an image"),
        ({"problem": 3, "answer": 3}, "'problem' must be text"),
        ({"problem": "<image> or <image>", "image": "1.png"}, "2 <image> markers .* for 1 images"),
        ({"problem": "<video>", "image": "1.png"}, "1 <video> markers .* for 0 videos"),
        ({"conversations": [{"from": "tool", "value": ""}]}, "'from' .one of human, .*not 'tool'"),
        ({"conversations": [{"from": "human", "value": 3}]}, "not 'human' and int"),
        ({"conversations": "[{"}, "JSONDecodeError"),
        ({"problem": "?", "answer": 1, "metadata": "x"}, "'metadata' must be an object, not str"),
    ],
)  # fmt: skip
def test_a_wrong_row_is_named_with_what_is_wrong(read: Any, record: Any, words: str) -> None:
    with pytest.raises(DataError, match=rf"rows\.jsonl:1: .*{words}"):
        read(record)


def test_the_first_row_tells_the_shape(read: Any) -> None:
    with pytest.raises(DataError, match=r"rows\.jsonl:2: not a row of shape 'easy_r1' .*'problem'"):
        read({"problem": "a", "answer": 1}, {"conversations": [{"from": "human", "value": "q"}]})


@given(
    texts=st.lists(st.text("ab \n<", max_size=4), min_size=2, max_size=6),
    kinds=st.lists(st.sampled_from(["image", "video", "audio"]), min_size=6, max_size=6),
)
def test_markers_are_filled_where_they_stand(texts: list[str], kinds: list[str]) -> None:
    """Any interleaving: text unchanged, media of each kind in order, spread over two turns."""
    kinds = kinds[: len(texts) - 1]
    whole = "".join(f"{text}<{kind}>" for text, kind in zip(texts, kinds, strict=False)) + texts[-1]
    counts = {
        kind: [f"{kind}{i}" for i in range(2 * kinds.count(kind))] for kind in ("image", "video", "audio")
    }
    messages = [{"role": "user", "content": whole}] * 2
    placed = place_media(messages, counts, "here")
    parts = [part for turn in placed for part in turn["content"]]
    assert "".join(p["text"] if p["type"] == "text" else f"<{p['type']}>" for p in parts) == whole * 2
    for kind, media in counts.items():
        assert [p[kind] for p in parts if p["type"] == kind] == media


def test_media_without_markers_go_before_the_first_user_text(read: Any) -> None:
    record = {
        "problem": "What <video> shows?",
        "answer": "",
        "images": ["1.png", "2.png"],
        "videos": ["v.mp4"],
    }
    (row,) = read(record, system="S")
    assert row["messages"][0] == {"role": "system", "content": "S"}
    assert spelled(row["messages"][1]["content"]) == ["<1.png>", "<2.png>", "What ", "<v.mp4>", " shows?"]


def test_a_template_sees_the_columns_and_keeps_each_mediums_options(read: Any, tmp_path: Path) -> None:
    (tmp_path / "p.jinja").write_text("{{ content }}\n{% for c in choices %}- {{ c }}\n{% endfor %}")
    video = {"type": "video", "video": "v.mp4", "fps": 1.0}
    parts = [{"type": "text", "text": "In "}, video, {"type": "text", "text": "?"}]
    (row,) = read(
        {
            "messages": [{"role": "user", "content": "first"}, {"role": "user", "content": parts}],
            "choices": [1, 2],
        },
        template=str(tmp_path / "p.jinja"),
    )
    assert row["messages"][0]["content"] == "first"
    assert spelled(row["messages"][1]["content"]) == ["In ", "<v.mp4>", "?\n- 1\n- 2\n"]
    assert row["messages"][1]["content"][1]["fps"] == 1.0


@pytest.mark.parametrize(
    ("template", "words"),
    [
        ("{{ nothing }}", r"'nothing' is undefined \(variables: content, problem, answer\)"),
        ("{{ answer + 1 }}", "TypeError"),
        ("{{ content.__class__.__mro__ }}", "SecurityError"),
        ("{{ ''.__class__.__bases__ }}", "SecurityError"),
        ("{{ content * 2 }} <image>", "1 <image> markers"),
    ],
)
def test_a_template_that_fails_is_named(read: Any, template: str, words: str) -> None:
    with pytest.raises(DataError, match=rf"rows\.jsonl:1: .*{words}"):
        read({"problem": "?", "answer": "x"}, template=template)


def test_a_template_that_is_none_is_named(read: Any) -> None:
    with pytest.raises(ConfigError, match=r"data\.train\.template: not a jinja template"):
        read({"problem": "?", "answer": "x"}, template="{{ content")
    with pytest.raises(ConfigError, match=r"gone\.jinja does not exist"):
        read({"problem": "?", "answer": "x"}, template="gone.jinja")


def test_trl_prompts_are_text_or_messages(read: Any) -> None:
    """TRL's GRPO rows: a prompt, images in a column, and what rewards need in others."""
    parts = [{"type": "image", "text": None}, {"type": "text", "text": "How many?"}]
    plain, marked, spoken, asked = read(
        {"prompt": "How many?", "image": "a.png", "solution": "<answer> 3 </answer>"},
        {"prompt": "<image> and <image>?", "images": ["a.png", "b.png"], "answer": 2, "difficulty": "easy"},
        {"prompt": [{"role": "system", "content": "Brief."}, {"role": "user", "content": parts}],
         "images": ["a.png"], "solution": "3", "answer": "three"},
        {"prompt": [{"role": "user", "content": "2+2"}], "answer": "4"},
    )  # fmt: skip
    assert spelled(plain["messages"][0]["content"]) == ["<a.png>", "How many?"]
    assert (plain["answer"], "target" in plain) == ("3", False)
    assert spelled(marked["messages"][0]["content"]) == ["<a.png>", " and ", "<b.png>", "?"]
    assert (marked["answer"], marked["metadata"]) == (2, {"difficulty": "easy"})
    assert [m["role"] for m in spoken["messages"]] == ["system", "user"]
    assert spelled(spoken["messages"][1]["content"]) == ["<a.png>", "How many?"]
    assert (spoken["answer"], spoken["metadata"]) == ("three", {"solution": "3"})
    assert asked["messages"] == [{"role": "user", "content": "2+2"}]


@pytest.mark.parametrize("as_messages", [False, True])
def test_trl_completions_are_targets(read: Any, as_messages: bool) -> None:
    """TRL's prompt-completion rows, which its SFT reads."""
    prompt: Any = "What is it?"
    completion: Any = "a cat"
    if as_messages:
        prompt, completion = (
            [{"role": "user", "content": prompt}],
            [{"role": "assistant", "content": completion}],
        )
    row, scored = read(
        {"prompt": prompt, "completion": completion, "image": "a.png"},
        {"prompt": prompt, "completion": completion, "answer": "cat"},
    )
    assert (row["target"], row["answer"]) == ("a cat", "a cat")
    assert spelled(row["messages"][0]["content"]) == ["<a.png>", "What is it?"]
    assert (scored["target"], scored["answer"]) == ("a cat", "cat")


def test_trl_rows_that_are_wrong_name_their_place(read: Any) -> None:
    for record, words in (
        ({"prompt": 3}, "'prompt' must be a list of objects"),
        ({"prompt": [{"role": "user"}]}, "content"),
        ({"prompt": "<image>?", "images": []}, "1 <image> markers"),
        ({"prompt": "a", "completion": [{"role": "user", "content": "b"}], "target": "c"}, None),
    ):
        if words is None:
            assert read(record)[0]["target"] == "c"
            continue
        with pytest.raises(DataError, match=r"rows\.jsonl:1.*") as caught:
            read(record)
        assert words in str(caught.value)
