"""Whether a teacher or a critic can read what the policy's processor writes, known before any engine starts.

Both are given the policy's own tokens, positions and pixels (law 1): nothing is encoded for them again. Chat
templates may differ.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from vlrl.config import Config
from vlrl.errors import ConfigError
from vlrl.processors.auto import open_processor
from vlrl.protocols import Processor
from vlrl.storage.model_cache import local_model
from vlrl.types import Media


class Pair(NamedTuple):
    """What the two models are called."""

    other: str
    own: str

    @property
    def remedy(self) -> str:
        """What to do."""
        wanted = f"give a {self.other} of the {self.own}'s family, such as a larger one of it"
        return f"{wanted}, or another model.path"


TEACHER, CRITIC = Pair("teacher", "student"), Pair("critic", "policy")
SETTINGS = ("image_token_id", "video_token_id", "vision_config.tokens_per_second")
"""Keys of config.json that a processor goes by, beside what pixels and numbers of tokens show."""
PROBE_SIZES = ((93, 141), (224, 60))
"""(height, width) of images on which processors are compared, in pixels."""
PROBE_FRAMES = 6


def require_fitting_others(config: Config, processor: Processor) -> None:
    """Raise ConfigError if a teacher or a critic of the config needs other tokens or pixels than model.path.

    Args:
        config: the whole config.
        processor: of model.path.
    """
    algorithm = config.algorithm
    if algorithm.teacher is not None:
        _require_fitting(config, processor, algorithm.teacher.path, TEACHER)
    if algorithm.critic is not None and algorithm.critic.path is not None:
        _require_fitting(config, processor, algorithm.critic.path, CRITIC)


def _require_fitting(config: Config, student: Processor, path: str, words: Pair) -> None:
    remote, key = config.processor.trust_remote_code, f"algorithm.{words.other}.path={path!r}"
    pair = f"{key} and model.path={config.model.path!r}"
    try:
        teacher = open_processor(
            config.model_copy(update={"model": config.model.model_copy(update={"path": path})})
        )
        own, other = (_model_config(each, remote) for each in (config.model.path, path))
        tokens, its_tokens = (_vocabulary(each, remote) for each in (config.model.path, path))
    except ConfigError as error:
        raise ConfigError(f"{key}: {error}") from error
    if type(teacher) is not type(student):
        kinds = f"{type(teacher).__name__} and {type(student).__name__}"
        raise ConfigError(f"{pair} are of families with different processors, {kinds}; {words.remedy}")
    if difference := vocabulary_difference(tokens, its_tokens, words):
        raise ConfigError(f"{pair} have different tokenizers: {difference}; {words.remedy}")
    if (size := other.get_text_config().vocab_size) < (needed := own.get_text_config().vocab_size):
        raise ConfigError(
            f"{pair}: the {words.other}'s head has {size} entries, and the {words.own} may generate any of "
            f"{needed} tokens; give a {words.other} with at least as many (vocab_size in config.json)"
        )
    for key in SETTINGS:
        if (there := _setting(other, key)) != (here := _setting(own, key)):
            raise ConfigError(f"{pair} differ in {key}, {there} and {here}, in config.json; {words.remedy}")
    if difference := media_difference(student, teacher):
        raise ConfigError(
            f"{pair} differ in what they make of {difference} (preprocessor_config.json); the {words.other} "
            f"is given the {words.own}'s pixels, so {words.remedy}"
        )


def vocabulary_difference(
    student: Mapping[str, int], teacher: Mapping[str, int], words: Pair = TEACHER
) -> str:
    """Which of the student's tokens have another number, or none, in the teacher's; "" if none has."""
    others = [(token, number) for token, number in student.items() if teacher.get(token) != number]
    if not others:
        return ""
    token, number = min(others, key=lambda pair: pair[1])
    there = f"number {teacher[token]}" if token in teacher else "unknown"
    return (
        f"token {token!r} is number {number} to the {words.own} and {there} to the {words.other}, as are "
        f"{len(others)} of {len(student)} tokens"
    )


def media_difference(student: Processor, teacher: Processor) -> str:
    """What two processors of one class read otherwise: "an image", "a video", or "" for neither."""
    rng = np.random.default_rng(0)
    images = [rng.integers(0, 256, (*size, 3), dtype=np.uint8) for size in PROBE_SIZES]
    frames = [rng.integers(0, 256, (*PROBE_SIZES[0], 3), dtype=np.uint8) for _ in range(PROBE_FRAMES)]
    probes: dict[str, list[dict[str, Any]]] = {
        "an image": [{"type": "image", "image": image} for image in images]
    }
    if getattr(student, "takes_video", False):
        probes["a video"] = [{"type": "video", "video": frames, "fps": 2.0}]
    for name, parts in probes.items():
        own, other = (each.message("user", parts, name).media for each in (student, teacher))
        same = [_facts(medium) for medium in own] == [_facts(medium) for medium in other]
        if not same or not _equal(student.pixels(own), teacher.pixels(other)):
            return name
    return ""


def _facts(medium: Media) -> tuple[Any, ...]:
    return medium.sha256, medium.grid_thw, medium.num_tokens


def _equal(one: Mapping[str, Any], two: Mapping[str, Any]) -> bool:
    return one.keys() == two.keys() and all(np.array_equal(one[name], two[name]) for name in one)


def _model_config(path: str, remote: bool) -> Any:
    from transformers import AutoConfig

    return AutoConfig.from_pretrained(local_model(path), trust_remote_code=remote)


def _vocabulary(path: str, remote: bool) -> Mapping[str, int]:
    """Every token's number, special and added ones too, as the tokenizer's files have them."""
    from transformers import AutoTokenizer

    found = AutoTokenizer.from_pretrained(local_model(path), trust_remote_code=remote)
    return dict(found.get_vocab())


def _setting(config: Any, key: str) -> Any:
    for part in key.split("."):
        config = getattr(config, part, None)
    return config
