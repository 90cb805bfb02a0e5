"""Scored rollouts as rows: the best of each prompt, or a pair of the best and the worst."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from builders import make_sample, make_trajectory, text_prompt
from PIL import Image

from vlrl.config.data import DatasetConfig
from vlrl.data import open_dataset
from vlrl.errors import DataError
from vlrl.tracking.rollouts.records import images_of, rollout_records, write_rollouts
from vlrl.types import EnvTask, Group, Media, Row

ASKED = (
    {"role": "user", "content": [{"type": "image"}, {"type": "text", "text": "Which?"}, {"type": "image"}]},
)


class Spelled:
    """All that is asked of a processor."""

    def token_texts(self, token_ids: Any) -> list[str]:
        return [str(i) for i in token_ids]


def an_image(shade: int) -> Media:
    frames = np.full((1, 28, 28, 3), shade, np.uint8)
    return Media("image", f"sha{shade}", frames, (28, 28), (1, 2, 2), 1)


def group(sample_id: str, *answers: tuple[str, float | None], **fields: Any) -> Group:
    """Completions of one prompt with their rewards; it shows one image twice."""
    image = an_image(7)
    defaults: dict[str, Any] = {
        "id": sample_id, "messages": ASKED, "media": (image, image), "prompt": text_prompt([1, 2, 3]),
        "answer": "b", "metadata": {"level": 3},
    }  # fmt: skip
    sample = make_sample(**{**defaults, **fields})
    return Group(
        [
            make_trajectory(sample, [5, 6], index=i, reward=reward, completion=text)
            for i, (text, reward) in enumerate(answers)
        ]
    )


@pytest.fixture
def rows(tmp_path: Path) -> Any:
    path = tmp_path / "run" / "rollouts" / "out.jsonl"

    def read(*groups: Group, **options: Any) -> list[Row]:
        records = rollout_records(groups, Spelled(), phase="rollout", step=0)  # type: ignore[arg-type]
        write_rollouts(path, records, images_of(groups))
        source = DatasetConfig(name="rollouts", options={"path": str(path), **options})
        return list(open_dataset(source, "data.train"))

    return read


FIRST = group("s1", ("a", 0.0), ("b", 1.0), ("b", 1.0), ("c", 0.5))
SECOND = group("s2", ("d", 0.2), ("e", None), ("f", 0.2))


def test_the_best_of_each_prompt_is_its_target(rows: Any) -> None:
    found = rows(FIRST, SECOND)
    assert [(row["id"], row["target"], row["answer"]) for row in found] == [
        ("s1", "b", "b"),
        ("s2", "d", "b"),
    ]
    assert found[0]["metadata"] == {"level": 3, "reward": 1.0}
    first, text, second = found[0]["messages"][0]["content"]
    assert text["text"] == "Which?"
    assert first["image"] == second["image"]
    assert np.asarray(Image.open(first["image"])).tolist() == an_image(7).frames[0].tolist()


def test_how_many_and_how_good(rows: Any) -> None:
    assert [row["target"] for row in rows(FIRST, SECOND, best_of=2)] == ["b", "c", "d", "f"]
    assert [row["target"] for row in rows(FIRST, SECOND, best_of=None, min_reward=0.5)] == ["b", "c"]
    with pytest.raises(DataError, match="of 6 complete and scored rollouts none is kept by min_reward=2"):
        rows(FIRST, SECOND, min_reward=2)


def test_the_best_and_the_worst_are_a_pair(rows: Any) -> None:
    (row,) = rows(FIRST, SECOND, give="pairs")  # of the second prompt all are equal
    assert (row["target"], row["rejected"]) == ("b", "a")
    with pytest.raises(DataError, match="none is kept"):
        rows(FIRST, give="pairs", min_reward=1.5)


def test_what_was_cut_is_no_example(rows: Any) -> None:
    cut = group("s3", ("long", 1.0), ("short", 0.1))
    cut.trajectories[0].outcome = "truncated"
    assert [row["target"] for row in rows(cut)] == ["short"]


def test_episodes_are_refused(rows: Any) -> None:
    with pytest.raises(DataError, match="'s4': it has several turns"):
        rows(group("s4", ("left", 1.0), env=EnvTask("visual/mazes")))
