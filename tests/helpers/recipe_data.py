"""Small sets in the very format of the recipes' data, in the folders that docs/recipes.md names."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from PIL import Image, ImageDraw
from videos import write_video

COLOURS = {"red": (200, 30, 30), "green": (30, 160, 60), "blue": (40, 60, 210), "grey": (128, 128, 128)}
Boxes = dict[str, list[float]]
OVD_QUESTION = """Please carefully check the image and detect the following objects: {asked}. Output the \
bbox coordinates of detected objects in JSON format in <answer></answer>. The bbox coordinate format should \
be:
```json
[{{"bbox_2d": [x1, y1, x2, y2], "label": "object name"}}]
```
. If no targets are detected in the image, simply respond with "None"."""


def scene(seed: int, num_objects: int) -> tuple[Image.Image, Boxes]:
    """Rectangles of different colours on noise, in an image whose sides the model's grid does not divide."""
    rng = np.random.default_rng(seed)
    width, height = (int(rng.integers(5, 8)) * 28 + 9 for _ in range(2))
    image = Image.fromarray(rng.integers(200, 256, (height, width, 3), dtype=np.uint8))
    draw, boxes = ImageDraw.Draw(image), {}
    for number, (colour, rgb) in enumerate(list(COLOURS.items())[:num_objects]):
        left = number * width / num_objects + 3.25
        top = float(rng.integers(4, height // 3))
        box = [left, top, left + width / num_objects - 6.5, float(rng.integers(height // 2, height - 4))]
        draw.rectangle([round(n) for n in box], fill=rgb)
        boxes[f"{colour} block"] = box
    return image, boxes


def png(image: Image.Image) -> bytes:
    file = io.BytesIO()
    image.save(file, "PNG")
    return file.getvalue()


def write_lines(path: Path, rows: list[dict[str, Any]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def write_rec(data: Path) -> None:
    """Write what omlab/VLM-R1 unpacks to: each file as a list, and as lines of conversations with the box."""
    images, annotations = data / "vlm_r1" / "train2014", data / "vlm_r1" / "rec_jsons_processed"
    images.mkdir(parents=True)
    for number, name in enumerate(("refcoco_train", "refcocop_train", "refcocog_train", "refcoco_val")):
        rows = []
        for index in range(3):
            image, boxes = scene(10 * number + index, 2)
            file = f"COCO_train2014_{10 * number + index:012d}.png"
            image.save(images / file)
            phrase, box = list(boxes.items())[index % 2]
            rows.append(
                {
                    "height": image.height,
                    "width": image.width,
                    "id": index,  # counted again in every file
                    "dataset_name": name.split("_")[0],
                    "bbox_list": [box],
                    "text_type": "caption",
                    "image": f"train2014/{file}",
                    "problem": "Please provide the bounding box coordinate of the region this sentence "
                    f"describes: the {phrase}.",
                    "normal_caption": f"the {phrase}",
                    "solution": box,
                    "normalized_solution": [int(n) for n in box],
                }
            )
        annotations.mkdir(exist_ok=True)
        (annotations / f"{name}.json").write_text(json.dumps(rows, indent=4))
        lines = []
        for row in rows:
            asked = {"from": "human", "value": f"<image>{row['problem']}"}
            turns = [asked, {"from": "gpt", "value": row["solution"]}]
            lines.append({"id": row["id"], "image": row["image"], "conversations": turns})
        write_lines(annotations / f"{name}.jsonl", lines)


def write_ovd(data: Path) -> None:
    """Conversations that ask for several phrases, not all of which are there; sometimes none is."""
    (data / "ovd" / "images").mkdir(parents=True)
    for name, seeds in (("train", range(100, 108)), ("heldout", range(200, 204))):
        rows = []
        for seed in seeds:
            image, boxes = scene(seed, 1 + seed % 3)
            image.save(data / "ovd" / "images" / f"{seed}.png")
            found = [{"bbox_2d": [int(n) for n in box], "label": label} for label, box in boxes.items()]
            asked = [*boxes, "grey block", "person holding a torch"]
            if seed % 4 == 0:
                found, asked = [], asked[-2:]
            question = OVD_QUESTION.format(asked=asked)
            said = f"```json\n{json.dumps(found)}\n```" if found else "None"
            turns = [{"from": "human", "value": question}, {"from": "gpt", "value": said}]
            rows.append({"id": seed, "image": f"{seed}.png", "conversations": turns})
        write_lines(data / "ovd" / f"{name}.jsonl", rows)


def write_geometry3k(data: Path) -> None:
    """images, problem, answer, as in hiyouga/geometry3k."""
    answers = ["3", r"\frac{12}{5}", r"3\sqrt{5}", "6.4", r"27\pi", "x = 4", "110", r"2\sqrt{21}"]
    for number, split in enumerate(("train", "test")):
        rows = []
        for index, answer in enumerate(answers[: 8 - 4 * number]):
            image, _ = scene(300 + 10 * number + index, 1 + index % 4)
            images = [{"bytes": png(image), "path": None}]
            rows.append({"images": images, "problem": f"<image>Find x{index}.", "answer": answer})
        write_parquet(data / "geometry3k" / f"{split}-00000-of-00001.parquet", rows)


def write_clevr(data: Path) -> None:
    """image, problem, solution, as in leonardPKU/clevr_cogen_a_train."""
    for number, split in enumerate(("train", "test")):
        rows = []
        for index in range(8 - 4 * number):
            pixels, boxes = scene(400 + 10 * number + index, 1 + index % 4)
            image = {"bytes": png(pixels), "path": f"CLEVR_trainA_{index:06d}.png"}
            solution = f"<answer> {len(boxes)} </answer>"
            rows.append(
                {"image": image, "problem": "How many items are there in the image?", "solution": solution}
            )
        write_parquet(data / "clevr" / f"{split}-00000-of-00001.parquet", rows)


def write_charts(data: Path) -> None:
    """image, query, label, human_or_machine, as in HuggingFaceM4/ChartQA."""
    for number, split in enumerate(("train", "test")):
        rows = []
        for index in range(8 - 4 * number):
            pixels, boxes = scene(500 + 10 * number + index, 1 + index % 4)
            query = f"How many bars does chart {index} have?"
            answer = {"label": [str(len(boxes))], "human_or_machine": index % 2}
            rows.append({"image": {"bytes": png(pixels), "path": None}, "query": query, **answer})
        write_parquet(data / "chartqa" / "data" / f"{split}-00000-of-00001.parquet", rows)


def write_documents(data: Path) -> None:
    """The challenge's train_v1.0_withQT.json and val_v1.0_withQT.json, and pages in documents/."""
    folder = data / "docvqa"
    (folder / "documents").mkdir(parents=True)
    for number, split in enumerate(("train", "val")):
        rows = []
        for index in range(8 - 4 * number):
            pixels, boxes = scene(600 + 10 * number + index, 1 + index % 4)
            name = f"documents/page_{number}_{index}.png"
            pixels.save(folder / name)
            rows.append(
                {
                    "questionId": 10 * number + index,
                    "question": f"How many blocks does page {index} have?",
                    "question_types": ["layout"],
                    "image": name,
                    "answers": [str(len(boxes))],
                }
            )
        text = json.dumps({"dataset_name": "SP-DocVQA", "dataset_split": split, "data": rows})
        (folder / f"{split}_v1.0_withQT.json").write_text(text)


def write_moments(data: Path) -> None:
    """charades_sta_train.txt and charades_sta_test.txt, and short videos in Charades_v1_480/."""
    folder = data / "charades"
    (folder / "Charades_v1_480").mkdir(parents=True)
    for number, split in enumerate(("train", "test")):
        lines = []
        for index in range(8 - 4 * number):
            name = f"{split.upper()}{index}"
            write_video(folder / "Charades_v1_480" / f"{name}.mp4", num_frames=40 + 10 * number + index)
            lines.append(f"{name} {0.1 * index:.1f} {2.0 + 0.2 * index:.1f}##person number {index} walks.")
        (folder / f"charades_sta_{split}.txt").write_text("\n".join(lines) + "\n")


def write_video_questions(data: Path) -> None:
    """Rows as in Video-R1-260k.json, and a task of MVBench."""
    videos, bench = data / "video_qa" / "videos", data / "mvbench"
    task = bench / "video" / "perception" / "videos"
    for folder in (videos, task, bench / "json"):
        folder.mkdir(parents=True)
    rows = []
    for index in range(8):
        write_video(videos / f"{index}.mp4", num_frames=20 + index)
        asked = {"problem_id": index, "problem": f"How many seconds are in video {index}?"}
        kind = {"data_type": "video", "problem_type": "multiple choice", "process": ""}
        options = {"options": ["A. 2", "B. 4", "C. 9"], "solution": "<answer>A</answer>"}
        rows.append({**asked, **kind, **options, "path": f"./videos/{index}.mp4"})
    write_lines(data / "video_qa" / "train.jsonl", rows)
    rows = []
    for index in range(4):
        write_video(task / f"{index}.mp4", num_frames=30 + index)
        question = {"question": f"How many seconds are in video {index}?", "candidates": ["2", "3", "4"]}
        rows.append({"video": f"{index}.mp4", **question, "answer": "3"})
    (bench / "json" / "action_count.json").write_text(json.dumps(rows))


def write_pairs(path: Path, num_rows: int) -> None:
    """prompt, chosen, rejected as messages of parts, and images, as in HuggingFaceH4/rlaif-v_formatted."""

    def turn(role: str, *parts: dict[str, Any]) -> list[dict[str, Any]]:
        return [{"role": role, "content": [{"text": None, **part} for part in parts]}]

    rows = []
    for index in range(num_rows):
        pixels, boxes = scene(700 + 100 * num_rows + index, 1 + index % 4)
        asked = turn("user", {"type": "image"}, {"type": "text", "text": f"How many blocks, {index}?"})
        said = [turn("assistant", {"type": "text", "text": f"There are {n}."}) for n in (len(boxes), 9)]
        images = [{"bytes": png(pixels), "path": None}]
        rows.append({"prompt": asked, "chosen": said[0], "rejected": said[1], "images": images})
    write_parquet(path, rows)


def write_parquet(path: Path, rows: list[dict[str, Any]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.Table.from_pylist(rows), path)
