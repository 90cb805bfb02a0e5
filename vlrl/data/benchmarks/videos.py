"""Videos: MVBench, Video-MME and Charades-STA.

MVBench: Li et al. 2024, arXiv 2311.17005; OpenGVLab/Ask-Anything, video_chat2/mvbench.ipynb. Video-MME: Fu et
al. 2024, arXiv 2405.21075; its prompt is that of the paper. Charades-STA: Gao et al. 2017, arXiv 1705.02101;
it has no prompt for a model that answers in words, so the one here is Time-R1's (arXiv 2503.13377) without
its thinking tags.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from string import ascii_uppercase
from typing import Any

from vlrl.data.benchmarks.files import open_published, published_files
from vlrl.data.benchmarks.rows import BenchmarkRows, asked, row, scorer, text_of, texts_of
from vlrl.data.readers.record import Record
from vlrl.errors import ConfigError, DataError
from vlrl.parsing.extract import Part

MVBENCH_FOLDERS: Mapping[str, str] = {
    "action_sequence": "star/Charades_v1_480",
    "action_prediction": "star/Charades_v1_480",
    "action_antonym": "ssv2_video",
    "fine_grained_action": "Moments_in_Time_Raw/videos",
    "unexpected_action": "FunQA_test/test",
    "object_existence": "clevrer/video_validation",
    "object_interaction": "star/Charades_v1_480",
    "object_shuffle": "perception/videos",
    "moving_direction": "clevrer/video_validation",
    "action_localization": "sta/sta_video",
    "scene_transition": "scene_qa/video",
    "action_count": "perception/videos",
    "moving_count": "clevrer/video_validation",
    "moving_attribute": "clevrer/video_validation",
    "state_change": "perception/videos",
    "fine_grained_pose": "nturgbd",
    "character_order": "perception/videos",
    "egocentric_navigation": "vlnqa",
    "episodic_reasoning": "tvqa/frames_fps3_hq",
    "counterfactual_inference": "clevrer/video_validation",
}
"""Task of MVBench → where its videos lie in video/; those of episodic_reasoning are folders of frames."""

FRAMES_PER_SECOND = 3
"""Frames of episodic_reasoning."""

MVBENCH_SYSTEM = (
    "Carefully watch the video and pay attention to the cause and sequence of events, the detail and "
    "movement of objects, and the action and pose of persons. Based on your observations, select the best "
    "option that accurately addresses the question.\n"
)
VIDEOMME_PROMPT = (
    "Select the best answer to the following multiple-choice question based on the video. Respond with only "
    "the letter (A, B, C, or D) of the correct option.\n{question}\n{options}\nThe best answer is:"
)
MOMENT_PROMPT = (
    'To accurately pinpoint the event "{event}" in the video, determine the precise time period of the event.'
    "\n\nProvide the start and end times (in seconds, precise to two decimal places) in the format "
    '"start time to end time". For example: "12.54 to 17.83".'
)
_MOMENT = re.compile(r"(\S+) ([0-9.]+) ([0-9.]+)##(.+)")


def mvbench(path: str, tasks: Sequence[str] | None = None, part: Part = "whole") -> BenchmarkRows:
    """MVBench: json/TASK.json and the unpacked archives in video/; all tasks that are there, or those named.

    Raises:
        ConfigError: for a task that MVBench does not have.
    """
    for task in tasks or ():
        if task not in MVBENCH_FOLDERS:
            raise ConfigError(
                f"mvbench: there is no task {task!r}; give some of {', '.join(MVBENCH_FOLDERS)}"
            )
    files = [
        file for task in tasks or MVBENCH_FOLDERS for file in sorted(Path(path).glob(f"**/{task}.json"))
    ] or published_files("mvbench", path, ("json/action_sequence.json",))
    records = [record for file in files for record in _listed(file, Path(path))]
    return BenchmarkRows(records, _clip_question, [scorer("mvbench", part=part)])


def _listed(file: Path, folder: Path) -> list[Record]:
    """The records of a file that is a list, each with its task."""
    try:
        listed = json.loads(file.read_text(encoding="utf-8"))
        return [
            Record({**each, "task": file.stem}, f"{file.name}[{n}]", folder) for n, each in enumerate(listed)
        ]
    except (ValueError, TypeError) as error:
        raise DataError(f"{file}: not a JSON list of objects ({error})") from error


def _clip_question(record: Record) -> dict[str, Any]:
    fields = record.fields
    task, candidates = fields["task"], texts_of(fields["candidates"], "candidates")
    options = [f"({letter}) {text}" for letter, text in zip(ascii_uppercase, candidates, strict=False)]
    answer = options[candidates.index(text_of(fields, "answer"))]
    question = f"Question: {text_of(fields, 'question')}\nOptions:\n" + "\n".join(options)
    video = f"video/{MVBENCH_FOLDERS[task]}/{text_of(fields, 'video')}"
    clip = {"start_s": fields["start"], "end_s": fields["end"]} if "start" in fields else {}
    medium: Any = video
    if task == "episodic_reasoning":
        assert record.root is not None
        medium, clip = _frames(record.root, video, clip), {"fps": FRAMES_PER_SECOND}
    turns = asked(f"{question}\nOnly give the best option.", videos=[medium], **clip)
    return row([{"role": "system", "content": MVBENCH_SYSTEM}, *turns], answer, task=task)


def _frames(root: Path, folder: str, clip: Mapping[str, float]) -> list[str]:
    """The frames of a folder that lie in a clip, by their numbers."""
    names = sorted(file.name for file in (root / folder).glob("*.jpg"))
    first = int(clip.get("start_s", 0) * FRAMES_PER_SECOND)
    last = int(clip["end_s"] * FRAMES_PER_SECOND) + 1 if clip else len(names)
    if not names[first:last]:
        raise ValueError(f"{folder} holds no frames from {first} to {last}")
    return [f"{folder}/{name}" for name in names[first:last]]


def videomme(path: str, split: str = "test", part: Part = "whole") -> BenchmarkRows:
    """Video-MME without subtitles: the hub's parquet, and the unpacked archives in data/."""
    reader = open_published("videomme", path, (f"{split}-*.parquet",))
    return BenchmarkRows(reader, _long_question, [scorer("option_letter", part=part)])


def _long_question(record: Record) -> dict[str, Any]:
    fields = record.fields
    options = "\n".join(texts_of(fields["options"], "options"))
    prompt = VIDEOMME_PROMPT.format(question=text_of(fields, "question"), options=options)
    more = {key: fields.get(key) for key in ("duration", "domain", "sub_category", "task_type")}
    turns = asked(prompt, videos=[f"data/{text_of(fields, 'videoID')}.mp4"])
    return row(turns, text_of(fields, "answer"), **more)


def charades_sta(
    path: str, split: str = "test", videos: str = "Charades_v1_480", part: Part = "whole"
) -> BenchmarkRows:
    """Charades-STA: charades_sta_SPLIT.txt, and Charades' videos in the folder `videos` beside it."""
    (file, *_) = published_files("charades_sta", path, (f"charades_sta_{split}.txt",))
    records = []
    for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
        if not line.strip():
            continue
        match = _MOMENT.fullmatch(line.strip())
        if match is None:
            raise DataError(f"{file}:{number}: {line!r:.80} is not VIDEO START END##SENTENCE")
        video, start, end, event = match.groups()
        fields = {"video": f"{videos}/{video}.mp4", "event": event, "span": [float(start), float(end)]}
        records.append(Record(fields, f"{file.name}:{number}", file.parent))
    return BenchmarkRows(records, _moment, [scorer("temporal_grounding", part=part)])


def _moment(record: Record) -> dict[str, Any]:
    fields = record.fields
    return row(asked(MOMENT_PROMPT.format(event=fields["event"]), videos=[fields["video"]]), fields["span"])
