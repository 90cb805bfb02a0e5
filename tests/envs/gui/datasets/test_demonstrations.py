"""AndroidControl, Android in the Wild, Mind2Web and AgentNet: miniatures in the published layouts."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from published import Opened, media_of, medium, opened, text_of, write_image, write_json, write_table
from tf_records import forest, write_records

from vlrl.errors import ConfigError, DataError
from vlrl.rewards.benchmarks.gui import android_control

WIDTH, HEIGHT = 400, 800
PHONE = medium(WIDTH, HEIGHT)


def screenshot(shade: int, size: tuple[int, int] = (WIDTH, HEIGHT)) -> bytes:
    file = io.BytesIO()
    Image.new("RGB", size, (shade, shade, shade)).save(file, "png")
    return file.getvalue()


def episode(number: int, *actions: dict[str, Any]) -> dict[str, Any]:
    """An example of AndroidControl: one screenshot more than there are actions."""
    count = len(actions) + 1
    tree = forest(((0, 0, WIDTH, HEIGHT), True), ((100, 200, 300, 300), True), ((150, 220, 200, 240), False))
    return {
        "episode_id": [number],
        "goal": [b"Turn on the light"],
        "screenshots": [screenshot(40 * n) for n in range(count)],
        "accessibility_trees": [tree] * count,
        "screenshot_widths": [WIDTH] * count,
        "screenshot_heights": [HEIGHT] * count,
        "actions": [json.dumps(action).encode() for action in actions],
        "step_instructions": [f"do step {n}".encode() for n in range(len(actions))],
    }


ACTIONS = (
    {"action_type": "open_app", "app_name": "Home"},
    {"action_type": "scroll", "direction": "down"},
    {"action_type": "click", "x": 160, "y": 230},
    {"action_type": "type", "text": "a", "x": 1, "y": 1},  # a click, a text and enter at once
    {"action_type": "input_text", "text": "lamp"},
    {"action_type": "click", "x": 10, "y": 700},
    {"action_type": "navigate_back"},
    {"action_type": "wait"},
)


@pytest.fixture(scope="module")
def phones(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("android_control")
    write_records(folder / "android_control-00000-of-00002", episode(3, *ACTIONS), episode(5, ACTIONS[0]))
    write_records(folder / "android_control-00001-of-00002", episode(4, ACTIONS[6]))
    write_json(folder / "splits.json", {"train": [5], "validation": [], "test": [3, 4]})
    return folder


def stream(name: str, folder: Path, **options: Any) -> Opened:
    return opened(name, folder, limit=100, **options)


def test_each_step_of_an_episode_is_a_row_with_target_and_answer(phones: Path) -> None:
    found = stream("android_control", phones, codec="androidworld")
    assert [row["metadata"]["action_type"] for row in found.rows] == [
        *("open_app", "scroll", "click", "input_text", "click", "navigate_back", "wait"),
        "navigate_back",
    ]
    assert [row["answer"] for row in found.rows[:6]] == [
        {"action": "open_app", "text": "Home"},
        {"action": "scroll", "direction": "down"},
        {"action": "click", "bbox": [100, 200, 300, 300]},  # the smallest that responds, not the text in it
        {"action": "type", "text": "lamp"},
        {"action": "click", "coordinate": [10, 700]},  # only the page is there
        {"action": "back"},
    ]
    assert found.rows[2]["target"] == 'Action: {"action_type": "click", "x": 160, "y": 230}'
    assert text_of(found.rows[2]) == (
        "Task: Turn on the light\nWhat has been done:"
        '\n1. Action: {"action_type": "open_app", "app_name": "Home"}'
        '\n2. Action: {"action_type": "scroll", "direction": "down"}'
    )
    assert len(media_of(found.rows[2])) == 1
    low = stream("android_control", phones, level="low").rows
    assert text_of(low[0]) == "Task: Turn on the light\nNext step: do step 0"
    assert [len(stream("android_control", phones, split=s).rows) for s in ("train",)] == [1]


@pytest.mark.parametrize("codec", ["androidworld", "qwen3_mobile_use@per_1000", "plain", "uitars"])
def test_the_target_is_paid_in_full_whatever_the_codec(codec: str, phones: Path) -> None:
    found = stream("android_control", phones, codec=codec)
    assert found.rows
    assert [found.total(n, row["target"], PHONE) for n, row in enumerate(found.rows)] == [1] * len(found.rows)


def test_a_tap_is_right_in_the_box_or_near_the_point(phones: Path) -> None:
    found = stream("android_control", phones, codec="androidworld")

    def tapped(number: int, x: int, y: int) -> float:
        return found.total(number, f'Action: {{"action_type": "click", "x": {x}, "y": {y}}}', PHONE)

    assert [tapped(2, *at) for at in ((101, 201), (299, 299), (310, 250), (200, 190))] == [1, 1, 0, 0]
    assert [tapped(4, *at) for at in ((60, 700), (10, 800 - 1), (75, 700), (10, 580))] == [1, 1, 0, 0]
    assert found.total(3, 'Action: {"action_type": "input_text", "text": " LAMP"}', PHONE) == 1
    assert found.total(3, 'Action: {"action_type": "input_text", "text": "lam"}', PHONE) == 0
    assert found.total(1, 'Action: {"action_type": "scroll", "direction": "up"}', PHONE) == 0
    assert found.total(1, "no action", PHONE) == 0


def test_a_swipe_is_the_scroll_that_it_causes() -> None:
    answer = {"action": "scroll", "direction": "down"}
    for start, end, paid in (
        ((200, 600), (200, 200), 1),
        ((200, 200), (200, 600), 0),
        ((300, 5), (100, 9), 0),
    ):
        said = f"<action>swipe {start[0]} {start[1]} {end[0]} {end[1]} 300</action>"
        assert android_control(said, answer, canvases=[PHONE], codec="plain") == paid


def test_history_as_turns_shows_the_last_screenshots(phones: Path) -> None:
    found = stream("android_control", phones, codec="androidworld", history="turns", images=2)
    messages = found.rows[2]["messages"]
    assert [message["role"] for message in messages] == [
        "system",
        "user",
        "assistant",
        "user",
        "assistant",
        "user",
    ]
    kinds = [[part["type"] for part in message["content"]] for message in messages]
    assert kinds == [["text"], ["text"], ["text"], ["image"], ["text"], ["image"]]
    assert messages[1]["content"][0]["text"] == "Task: Turn on the light\n(an earlier screenshot)"
    shown = [
        np.asarray(Image.open(io.BytesIO(source["bytes"])))[0, 0, 0] for source in media_of(found.rows[2])
    ]
    assert shown == [40, 80]
    four = stream("android_control", phones, codec="androidworld", images=4).rows
    assert [len(media_of(row)) for row in four] == [1, 2, 3, 4, 4, 4, 4, 1]
    with pytest.raises(ConfigError, match="images=0"):
        stream("android_control", phones, images=0)
    with pytest.raises(ConfigError, match="no split 'tset'; there are train, validation, test"):
        stream("android_control", phones, split="tset")


def test_a_file_that_is_cut_off_is_named(tmp_path: Path, phones: Path) -> None:
    whole = (phones / "android_control-00000-of-00002").read_bytes()
    (tmp_path / "android_control-00000-of-00001").write_bytes(whole[: len(whole) // 2])
    write_json(tmp_path / "splits.json", {"test": [3]})
    with pytest.raises(DataError, match=r"android_control-00000-of-00001: not a TFRecord file"):
        stream("android_control", tmp_path)


def aitw_step(
    number: int, kind: int, touch: tuple[float, float], lift: tuple[float, float], typed: str = ""
) -> Any:
    return {
        "episode_id": [b"77"],
        "step_id": [number],
        "goal_info": [b"Open settings"],
        "image/height": [80],
        "image/width": [40],
        "image/channels": [3],
        "image/encoded": [bytes(80 * 40 * 3)],
        "image/ui_annotations_positions": [0.5, 0.5, 0.1, 0.2],
        "results/action_type": [kind],
        "results/type_action": [typed.encode()],
        "results/yx_touch": list(touch),
        "results/yx_lift": list(lift),
    }


def test_aitw_matches_actions_as_its_script_does(tmp_path: Path) -> None:
    none = (-1.0, -1.0)
    write_records(
        tmp_path / "general-00000-of-00321",
        aitw_step(0, 4, (0.55, 0.6), (0.55, 0.61)),
        aitw_step(1, 4, (0.8, 0.5), (0.2, 0.45)),
        aitw_step(2, 3, none, none, "wifi"),
        aitw_step(3, 7, none, none),
        aitw_step(4, 10, none, none),
    )
    write_json(tmp_path / "splits" / "general.json", {"test": ["77"], "train": ["78"]})
    found = stream("aitw", tmp_path, codec="plain", splits=str(tmp_path / "splits" / "general.json"))
    image = medium(40, 80)
    assert [row["answer"]["action"] for row in found.rows] == ["click", "swipe", "type", "enter", "finish"]
    assert [found.total(n, row["target"], image) for n, row in enumerate(found.rows)] == [1] * 5

    def said(number: int, words: str) -> float:
        return found.total(number, f"<action>{words}</action>", image)

    assert said(0, "click 29 44") == 1  # 0.125 of the width away
    # The box (y 0.5, x 0.5, 0.1 by 0.2), enlarged, is y 0.43 to 0.67 and x 0.36 to 0.84.
    assert said(0, "click 15 36") == 1
    assert said(0, "click 13 36") == 0
    assert said(0, "swipe 24 44 24 10 300") == 0
    assert said(1, "swipe 20 10 20 70 300") == 1  # the same axis is enough
    assert said(1, "swipe 5 40 35 40 300") == 0
    assert said(2, "type something else") == 1  # the type alone is compared
    assert said(4, "fail") == 0
    assert stream("aitw", tmp_path, splits=str(tmp_path / "splits" / "general.json")).rows
    with pytest.raises(ConfigError, match="has no split 'dev'"):
        stream("aitw", tmp_path, split="dev", splits=str(tmp_path / "splits" / "general.json"))


def test_mind2web_points_at_the_elements_box(tmp_path: Path) -> None:
    candidate = {"tag": "a", "attributes": json.dumps({"bounding_box_rect": "10,20,30,40", "class": "x"})}
    row = {
        "action_uid": "u",
        "operation": json.dumps({"original_op": "CLICK", "value": "", "op": "CLICK"}),
        "pos_candidates": [json.dumps(candidate)],
        "website": "exploretock",
        "domain": "Travel",
        "confirmed_task": "Check for pickup",
        "screenshot": {"bytes": screenshot(9, (100, 300)), "path": None},
        "action_reprs": ["[combobox] Reservation -> SELECT: Pickup", "[svg]  -> CLICK"],
        "target_action_index": "1",
    }
    write_table(tmp_path / "data" / "test_task-00000-of-00001.parquet", row)
    found = opened("mind2web", tmp_path)
    (shown,) = found.rows
    assert text_of(shown) == (
        "Task: Check for pickup\nWhat has been done:\n1. [combobox] Reservation -> SELECT: Pickup"
    )
    assert shown["answer"] == {"action": "click", "bbox": [10, 20, 40, 60]}
    assert (shown["metadata"]["op"], shown["metadata"]["website"]) == ("CLICK", "exploretock")
    assert found.total(0, shown["target"], medium(100, 300)) == 1
    write_table(tmp_path / "data" / "test_task-00000-of-00001.parquet", {**row, "pos_candidates": []})
    with pytest.raises(DataError, match="pos_candidates is empty"):
        opened("mind2web", tmp_path)


def test_agentnets_code_is_read_and_never_run(tmp_path: Path) -> None:
    codes = [
        ("pyautogui.click(x=0.5, y=0.25)", True),
        ("pyautogui.moveTo(x=0.1, y=0.2)\npyautogui.dragTo(x=0.3, y=0.4, button='left')", True),
        ("pyautogui.hotkey(['ctrl', 'c'])", True),
        ("__import__('os').system('touch owned')", True),
        ("pyautogui.write(message='hello')", False),  # a reviewer found it wrong
        ("computer.terminate(status='success')", True),
    ]
    traj = [
        {"index": n, "image": f"{n}.png", "value": {"code": code, "last_step_correct": right}}
        for n, (code, right) in enumerate(codes)
    ]
    line = {"task_id": "t", "instruction": "i", "natural_language_task": "Copy the text", "traj": traj}
    (tmp_path / "agentnet_ubuntu_5k.jsonl").write_text(json.dumps(line) + "\n")
    for n in range(len(codes)):
        write_image(tmp_path / "images" / f"{n}.png", (200, 100))
    found = opened("agentnet", tmp_path, codec="plain", images_folder=str(tmp_path / "images"))
    assert [row["target"] for row in found.rows] == [
        "<action>click 100 25</action>",
        "<action>drag 20 20 60 40</action>",
        "<action>key ctrl+c</action>",
        "<action>done</action>",
    ]
    assert found.rows[0]["answer"] == {"action": "click", "coordinate": [100, 25]}
    assert "4. <action>type hello</action>" in text_of(found.rows[3])  # it was done all the same
    assert [found.total(n, row["target"], medium(200, 100)) for n, row in enumerate(found.rows)] == [1] * 4
    (tmp_path / "images" / "0.png").unlink()
    with pytest.raises(DataError, match=r"agentnet_ubuntu_5k\.jsonl:1, step 0: there is no image"):
        opened("agentnet", tmp_path, images_folder=str(tmp_path / "images"))


def test_osworld_g_has_boxes_polygons_and_refusals(tmp_path: Path) -> None:
    shared = {"image_path": "a.png", "image_size": [200, 100], "GUI_types": ["Icon"]}
    write_json(
        tmp_path / "OSWorld-G.json",
        [
            {
                **shared,
                "id": "1",
                "instruction": "Close",
                "box_type": "bbox",
                "box_coordinates": [10, 20, 30, 40],
            },
            {
                **shared,
                "id": "2",
                "instruction": "Select the triangle",
                "box_type": "polygon",
                "box_coordinates": [0, 0, 100, 0, 0, 100],
            },
            {
                **shared,
                "id": "3",
                "instruction": "Fly",
                "box_type": "refusal",
                "box_coordinates": [-1, -1, -1, -1],
            },
        ],
    )
    write_image(tmp_path / "images" / "a.png", (200, 100))
    found = opened("osworld_g", tmp_path, codec="plain")
    image = medium(200, 100)
    assert [row["metadata"]["box_type"] for row in found.rows] == ["bbox", "polygon", "refusal"]

    def said(number: int, words: str) -> float:
        return found.total(number, f"<action>{words}</action>", image)

    assert [said(0, w) for w in ("click 39 59", "click 41 40", "fail")] == [1, 0, 0]
    assert [said(1, w) for w in ("click 40 40", "click 60 60", "click 120 10")] == [1, 0, 0]
    assert [said(2, w) for w in ("fail", "done", "click 1 1")] == [1, 0, 0]
