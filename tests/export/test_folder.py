"""What `vlrl export` writes is the run's model, as transformers and peft load it, with a card."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
import torch
import yaml
from PIL import Image

from vlrl.errors import CheckpointError, ConfigError
from vlrl.export.folder import export_run
from vlrl.export.provenance import read_provenance
from vlrl.run.manifest import write_manifest

PROMPT = torch.tensor([[3, 5, 8, 13]])


def logits_of(folder: Path) -> torch.Tensor:
    from transformers import AutoModelForImageTextToText

    model = AutoModelForImageTextToText.from_pretrained(folder)
    with torch.no_grad():
        return model(input_ids=PROMPT).logits


def header_of(folder: Path) -> dict:
    _, text, body = (folder / "README.md").read_text().split("---\n", 2)
    return yaml.safe_load(text) | {"body": body}


def test_shards_are_the_models_weights(trained_run: Path, tmp_path: Path) -> None:
    from transformers import AutoProcessor

    out = Path(export_run(trained_run, tmp_path / "model", max_shard_gib=0.001)["folder"])
    shards = sorted(path.name for path in out.glob("model-*.safetensors"))
    index = json.loads((out / "model.safetensors.index.json").read_text())
    assert len(shards) > 1 and sorted(set(index["weight_map"].values())) == shards
    assert max((out / name).stat().st_size for name in shards) < 0.0011 * 2**30
    assert torch.equal(logits_of(out), logits_of(trained_run / "model"))
    assert AutoProcessor.from_pretrained(out).chat_template


def test_the_card_says_where_the_model_comes_from(trained_run: Path, tmp_path: Path) -> None:
    out = Path(export_run(trained_run, tmp_path / "model")["folder"])
    header = header_of(out)
    assert (header["license"], header["license_name"]) == ("apache-2.0", "mine")
    assert header["library_name"] == "transformers" and "vlrl" in header["tags"]
    assert "base_model" not in header and "datasets" not in header  # folders and generated rows are on no hub
    body = header["body"]
    assert "| 60 (this model) | 0.750 |" in body and "| 0 | 0.250 |" in body
    assert "| `digit_sum` | train | 8 | feed |" in body and "cccccccccccc" in body
    assert "run `second` began with" in body and "run `first` began with" in body
    assert yaml.safe_load(body.split("```yaml")[1].split("```")[0])["num_steps"] == 60
    assert Image.open(out / "training_curves.png").width > 1000  # accuracy, reward, entropy, tokens
    images = {word.removeprefix("![image](").rstrip(")") for word in body.split() if "](images/" in word}
    assert len(images) >= 4 and all(Image.open(out / name).width == 56 for name in images)
    assert "<answer>" in body and "Reference: `" in body


def test_a_hub_base_and_hub_rows_are_named_in_the_header(trained_run: Path) -> None:
    from vlrl.export.card import header

    config = {"data": {"train": [{"name": "org/rows"}, {"name": "digit_sum"}, {"name": "org/rows"}]}}
    found = header({"config": config}, "org/Base-3B", is_adapter=True)
    assert found["base_model"] == "org/Base-3B" and found["base_model_relation"] == "adapter"
    assert found["datasets"] == ["org/rows"] and "license" not in found and found["library_name"] == "peft"


def test_the_best_is_that_of_keep_best(trained_run: Path, tmp_path: Path) -> None:
    run = shutil.copytree(trained_run, tmp_path / "run")
    (run / "heldout.jsonl").unlink()
    with pytest.raises(ConfigError, match="no held-out accuracy of a step whose weights are kept"):
        export_run(run, tmp_path / "out", checkpoint="best")
    (run / "best").symlink_to(Path("checkpoints", "step_000040", "model"))
    assert export_run(run, tmp_path / "out", checkpoint="best")["step"] == 40


def test_the_best_or_a_numbered_checkpoint(trained_run: Path, tmp_path: Path) -> None:
    best = export_run(trained_run, tmp_path / "best", checkpoint="best")
    assert best["step"] == 40  # 1.0 held out, against 0.75 at the end
    assert export_run(trained_run, tmp_path / "end", checkpoint="60")["step"] == 60
    with pytest.raises(ConfigError, match="has the steps 40, 60; give one of them, or best"):
        export_run(trained_run, tmp_path / "none", checkpoint="50")


def test_a_damaged_checkpoint_is_not_exported(trained_run: Path, tmp_path: Path) -> None:
    checkpoint = trained_run / "checkpoints" / "step_000040"
    (checkpoint / "state").mkdir()
    (checkpoint / "state" / "rank").write_bytes(b"x")
    write_manifest(checkpoint, {})
    config = checkpoint / "model" / "config.json"
    whole = config.read_text()
    try:
        config.write_text(whole + " ")
        with pytest.raises(CheckpointError, match=r"model/config.json has .* bytes"):
            export_run(trained_run, tmp_path / "out", checkpoint="40")
        assert not (tmp_path / "out").exists()
    finally:
        config.write_text(whole)


def test_only_an_earlier_export_is_replaced(trained_run: Path, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").write_text("years")
    with pytest.raises(ConfigError, match="is no exported model"):
        export_run(trained_run, tmp_path / "mine")
    assert (tmp_path / "mine" / "thesis.tex").read_text() == "years"
    out = tmp_path / "model"
    export_run(trained_run, out, checkpoint="40")
    export_run(trained_run, out)
    said = read_provenance(out)
    assert said is not None and said["step"] == 60
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


def test_an_adapter_on_its_base_is_the_merged_model(lora_run: tuple[Path, Path], tmp_path: Path) -> None:
    from peft import PeftModel
    from transformers import AutoModelForImageTextToText

    run, base = lora_run
    merged = Path(export_run(run, tmp_path / "merged")["folder"])
    alone = Path(export_run(run, tmp_path / "alone", as_adapter=True)["folder"])
    assert not (merged / "adapter").exists() and not list(alone.glob("model*.safetensors"))
    assert json.loads((alone / "adapter_config.json").read_text())["base_model_name_or_path"] == str(base)
    model = PeftModel.from_pretrained(AutoModelForImageTextToText.from_pretrained(base), alone)
    with torch.no_grad():
        adapted = model(input_ids=PROMPT).logits
    assert (adapted - logits_of(base)).abs().max() > 0.01
    assert torch.allclose(adapted, logits_of(merged), atol=1e-4)
    assert f"for `{base}`" in header_of(alone)["body"]


def test_an_adapter_is_refused_where_there_is_none(trained_run: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="leave out --adapter"):
        export_run(trained_run, tmp_path / "out", as_adapter=True)
