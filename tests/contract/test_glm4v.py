"""GLM's turns end with the header of the next one, whoever's it is."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from builders import family_config, make_generation, random_image, row
from tiny_families import build_glm4v, build_glm4v_moe

from vlrl.config.rollout import ContextConfig
from vlrl.errors import DataError
from vlrl.processors.auto import open_processor
from vlrl.rollout.session import Session
from vlrl.rollout.visible import visible


@pytest.mark.parametrize(("end", "role", "forks"), [
    ("<|observation|>", "tool", 0),
    ("<|user|>", "user", 0),
    ("<|user|>", "tool", 1),
    ("<|observation|>", "user", 0),
])  # fmt: skip
def test_a_header_that_the_policy_wrote_stands_once(
    tiny_family: Callable[[str], Path], end: str, role: str, forks: int
) -> None:
    """The wrong one is in the past as it is: what follows goes on behind it, or in a ledger of its own."""
    processor: Any = open_processor(family_config(tiny_family("glm4v")))
    session = Session(processor.sample(row("Which?", [random_image(64, 64)])), 0)
    said = processor.encode_target("twelve")[:-1].tolist()
    end_id = processor.stop_token_ids[(processor.end_of_turn, *processor.end_tokens).index(end)]
    processor.act(session, make_generation(np.asarray([*said, end_id])))
    session.append_message(processor.message(role, [{"type": "text", "text": "12"}], "r"), "12")
    processor.show(session, visible(session.conversation, ContextConfig()))
    text = "".join(processor.token_texts(np.asarray(session.token_ids)))
    header = "<|observation|>" if role == "tool" else "<|user|>"
    written = header if end == header or forks else end + header
    assert text.endswith(f"<|assistant|>\ntwelve{written}\n12<|assistant|>\n")
    processor.act(session, make_generation(processor.encode_target("three")))
    assert len(session.trajectory("", "ok", 0.0).ledgers) == forks + 1


@pytest.mark.parametrize("build", [build_glm4v, build_glm4v_moe])
def test_videos_of_glm_4_6v_are_refused(tmp_path: Path, build: Callable[[Path, str], Path]) -> None:
    """The small one, and the mixture of experts."""
    processor: Any = open_processor(family_config(build(tmp_path / "model", "Glm46V")))
    video = {"type": "video", "video": [random_image(64, 64)] * 4, "fps": 1.0}
    with pytest.raises(DataError, match="takes no video; give its frames as images"):
        processor.sample({"id": "r", "messages": [{"role": "user", "content": [video]}]})
