"""Plug-ins by name: built in, from a Python file, or from an installed package's entry points."""

from __future__ import annotations

import difflib
import hashlib
import importlib.util
import re
import sys
import threading
import traceback
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from vlrl import objects
from vlrl.errors import ConfigError
from vlrl.installed import Plugin, import_plugin, installed

BUILT_IN: Mapping[str, Mapping[str, str]] = {
    "rewards": {
        "answer_exact": "vlrl.rewards.text:answer_exact",
        "answer_normalized": "vlrl.rewards.text:answer_normalized",
        "yes_no": "vlrl.rewards.text:yes_no",
        "multiple_choice": "vlrl.rewards.choice:multiple_choice",
        "numeric": "vlrl.rewards.numeric:numeric",
        "numeric_closeness": "vlrl.rewards.numeric:numeric_closeness",
        "edit_similarity": "vlrl.rewards.overlap:edit_similarity",
        "anls": "vlrl.rewards.overlap:anls",
        "token_f1": "vlrl.rewards.overlap:token_f1",
        "rouge_l": "vlrl.rewards.overlap:rouge_l",
        "rouge_mean": "vlrl.rewards.overlap:rouge_mean",
        "math": "vlrl.rewards.math:math",
        "soft_overlong": "vlrl.rewards.length:soft_overlong",
        "cosine_length": "vlrl.rewards.length:cosine_length",
        "cosine_length_media": "vlrl.rewards.length:cosine_length_media",
        "repetition_penalty": "vlrl.rewards.repetition:repetition_penalty",
        "word_accuracy": "vlrl.rewards.ocr:word_accuracy",
        "character_accuracy": "vlrl.rewards.ocr:character_accuracy",
        "teds": "vlrl.rewards.table:teds",
        "box_iou": "vlrl.rewards.grounding:box_iou",
        "box_iou_threshold": "vlrl.rewards.grounding:box_iou_threshold",
        "box_giou": "vlrl.rewards.grounding:box_giou",
        "box_diou": "vlrl.rewards.grounding:box_diou",
        "point_in_box": "vlrl.rewards.grounding:point_in_box",
        "point_distance": "vlrl.rewards.grounding:point_distance",
        "polygon_iou": "vlrl.rewards.grounding:polygon_iou",
        "mask_iou": "vlrl.rewards.mask:mask_iou",
        "point_in_mask": "vlrl.rewards.mask:point_in_mask",
        "keypoint_oks": "vlrl.rewards.keypoints:keypoint_oks",
        "vlm_r1_rec": "vlrl.rewards.grounding:box_iou",
        "detection_f1": "vlrl.rewards.detection:detection_f1",
        "detection_completeness": "vlrl.rewards.detection:detection_completeness",
        "vlm_r1_weighted_sum": "vlrl.rewards.detection:vlm_r1_weighted_sum",
        "od_ap": "vlrl.rewards.detection:od_ap",
        "od_ap50": "vlrl.rewards.detection:od_ap50",
        "od_length": "vlrl.rewards.detection:od_length",
        "vlm_r1_ovd": "vlrl.rewards.detection:od_length",
        "action_type": "vlrl.rewards.gui:action_type",
        "click_in_box": "vlrl.rewards.gui:click_in_box",
        "click_distance": "vlrl.rewards.gui:click_distance",
        "argument_match": "vlrl.rewards.gui:argument_match",
        "step_match": "vlrl.rewards.gui:step_match",
        "gui_r1": "vlrl.rewards.gui:gui_r1",
        "ui_r1": "vlrl.rewards.gui:ui_r1",
        "codec_click_in_box": "vlrl.envs.gui.codec_rewards:codec_click_in_box",
        "codec_click_distance": "vlrl.envs.gui.codec_rewards:codec_click_distance",
        "image_ssim": "vlrl.rewards.image_similarity:image_ssim",
        "chart_code": "vlrl.rewards.rendered:chart_code",
        "page_code": "vlrl.rewards.rendered_page:page_code",
        "image_clip": "vlrl.rewards.image_similarity:image_clip",
        "temporal_iou": "vlrl.rewards.video:temporal_iou",
        "track_iou": "vlrl.rewards.track:track_iou",
        "depth_order": "vlrl.rewards.depth:depth_order",
        "event_order": "vlrl.rewards.video:event_order",
        "think_answer_format": "vlrl.rewards.format:think_answer_format",
        "tag_format": "vlrl.rewards.format:tag_format",
        "pattern_format": "vlrl.rewards.format:pattern_format",
        "episode_return": "vlrl.rewards.episode:episode_return",
        "success": "vlrl.rewards.episode:success",
        "judge": "vlrl.rewards.judge.scores:judge",
        "group_diversity": "vlrl.rewards.group:group_diversity",
        "group_length": "vlrl.rewards.group:group_length",
        "group_rank": "vlrl.rewards.group:group_rank",
        "turn_process": "vlrl.rewards.process:turn_process",
        "step_process": "vlrl.rewards.process:step_process",
        "classifier": "vlrl.rewards.classifier:classifier",
        "rubric": "vlrl.rewards.rubric:rubric",
        "judge_pairwise": "vlrl.rewards.judge.scores:judge_pairwise",
    },
    "datasets": {
        "digit_sum": "vlrl.envs.visual.digit_sum:DigitSum",
        "env": "vlrl.envs.tasks:EnvTasks",
        "gui_grounding": "vlrl.envs.gui.grounding:GuiGrounding",
        "screenspot": "vlrl.envs.gui.screenspot:ScreenSpot",
        "jsonl": "vlrl.data.text_files:JsonlReader",
        "json": "vlrl.data.text_files:JsonReader",
        "csv": "vlrl.data.text_files:CsvReader",
        "listing": "vlrl.data.listing:open_listing",
        "media_folder": "vlrl.data.media_folder:MediaFolder",
        "parquet": "vlrl.data.parquet:ParquetReader",
        "webdataset": "vlrl.data.webdataset:WebDatasetReader",
        "saved_dataset": "vlrl.data.hugging_face:open_saved",
        "hub": "vlrl.data.hugging_face:open_hub",
    },
    "shapes": {
        "vlrl": "vlrl.data.shapes:from_messages",
        "openai": "vlrl.data.shapes:from_messages",
        "llava": "vlrl.data.shapes:from_conversations",
        "trl": "vlrl.data.shapes:from_trl",
        "easy_r1": "vlrl.data.shapes:from_problem",
        "vlm_r1": "vlrl.data.shapes:from_vlm_r1",
    },
    "processors": {
        "qwen2_vl": "vlrl.processors.qwen_vl:QwenVLProcessor",
        "qwen2_5_vl": "vlrl.processors.qwen_vl:Qwen25VLProcessor",
        "qwen3_vl": "vlrl.processors.qwen_vl:Qwen3VLProcessor",
        "qwen3_vl_moe": "vlrl.processors.qwen_vl:Qwen3VLProcessor",
        "internvl": "vlrl.processors.internvl:InternVLProcessor",
        "smolvlm": "vlrl.processors.smolvlm:SmolVLMProcessor",
        "llava_onevision": "vlrl.processors.llava_onevision:LlavaOnevisionProcessor",
    },
    "filters": {
        "zero_variance": "vlrl.filters:zero_variance",
        "failed": "vlrl.filters:failed",
        "length": "vlrl.filters:length",
        "truncated": "vlrl.filters:truncated",
        "reward_range": "vlrl.filters:reward_range",
    },
    "masks": {
        "truncated": "vlrl.credit:truncated",
        "invalid": "vlrl.credit:invalid",
        "all_but_last": "vlrl.credit:all_but_last",
    },
    "envs": {
        "visual/frozen_lake": "vlrl.envs.visual.frozen_lake:FrozenLake",
        "visual/mazes": "vlrl.envs.visual.mazes:Mazes",
        "visual/sokoban": "vlrl.envs.visual.sokoban:SokobanEnv",
        "visual/sliding_puzzle": "vlrl.envs.visual.sliding_puzzle:SlidingPuzzleEnv",
        "visual/jigsaw": "vlrl.envs.visual.jigsaw:JigsawEnv",
        "visual/running_digits": "vlrl.envs.visual.running_digits:RunningDigits",
        "visual/search": "vlrl.envs.visual.search:Search",
        "visual/read_digits": "vlrl.envs.visual.read_digits:ReadDigits",
        "visual/event_order": "vlrl.envs.visual.event_order:EventOrder",
        "visual/count_over_time": "vlrl.envs.visual.count_over_time:CountOverTime",
        "visual/tracking": "vlrl.envs.visual.tracking:Tracking",
        "visual/counting": "vlrl.envs.visual.counting:Counting",
        "visual/referring": "vlrl.envs.visual.referring:Referring",
        "visual/detection": "vlrl.envs.visual.detection:Detection",
        "gymnasium": "vlrl.envs.adapters.gymnasium:Gymnasium",
        "gymnasium_vector": "vlrl.envs.adapters.gymnasium_vector:GymnasiumVector",
        "pettingzoo": "vlrl.envs.adapters.pettingzoo:open_pettingzoo",
        "trl": "vlrl.envs.adapters.trl:TrlEnv",
        "openenv": "vlrl.envs.adapters.openenv:OpenEnvEnv",
        "verifiers": "vlrl.envs.adapters.verifiers:VerifiersEnv",
        "visual/spatial": "vlrl.envs.visual.spatial:Spatial",
        "visual/clocks": "vlrl.envs.visual.clocks:Clocks",
        "visual/gauges": "vlrl.envs.visual.gauges:Gauges",
        "visual/geometry": "vlrl.envs.visual.geometry:Geometry",
        "visual/charts": "vlrl.envs.visual.charts:Charts",
        "visual/tables": "vlrl.envs.visual.tables:Tables",
        "tools": "vlrl.envs.tools.env:ToolEnv",
        "gui/emu": "vlrl.envs.gui.emu.env:EmuEnv",
        "gui/x11": "vlrl.envs.gui.x11.env:X11Env",
        "gui/miniwob": "vlrl.envs.gui.web.env:MiniWobEnv",
        "gui/web": "vlrl.envs.gui.web.env:WebEnv",
        "remote": "vlrl.envs.gui.remote.env:open_remote",
        "gui/osworld": "vlrl.envs.gui.remote.osworld:OSWorldEnv",
        "gui/osgym": "vlrl.envs.gui.remote.osgym:OSGymEnv",
        "gui/androidworld": "vlrl.envs.gui.remote.androidworld:AndroidWorldEnv",
    },
    "agents": {},
    "tools": {
        "crop": "vlrl.envs.tools.pictures:Crop",
        "zoom": "vlrl.envs.tools.pictures:Zoom",
        "rotate": "vlrl.envs.tools.pictures:rotate",
        "flip": "vlrl.envs.tools.pictures:flip",
        "draw": "vlrl.envs.tools.pictures:Draw",
        "calculator": "vlrl.envs.tools.calculator:calculator",
        "ocr": "vlrl.envs.tools.ocr:OCR",
        "python": "vlrl.envs.tools.python:Python",
    },
}
"""kind → name → "module:attribute"; a stranger's entry points in the group vlrl.<kind> read the same."""


class Ignored(NamedTuple):
    """An installed plug-in that its name does not lead to, and why."""

    name: str
    plugin: Plugin
    reason: str


def resolve(kind: str, name: str) -> Any:
    """Find a plug-in.

    Args:
        kind: one of BUILT_IN's.
        name: a registered name, "package.module:attribute", "path/to/file.py:attribute", or what
            `vlrl.objects` made of an object.

    Raises:
        ConfigError: naming the nearest name, or what is wrong with the file or the package.
    """
    if ".py:" in name:
        path, attribute = name.rsplit(":", 1)
        return _attribute(_load_file(Path(path), kind), attribute, name)
    if objects.SUFFIX in name:
        return objects.find(name)
    table = available(kind)
    if name not in table and _MODULE.fullmatch(name):
        module, _, attribute = name.partition(":")
        return _attribute(import_plugin(module, f"plug-in {name!r}"), attribute, name)
    if name not in table:
        near = difflib.get_close_matches(name, table, n=1, cutoff=0.4)
        hint = f"did you mean {near[0]!r}?" if near else f"known: {', '.join(sorted(table)) or 'none'}."
        raise ConfigError(
            f"no {kind.removesuffix('s')} is named {name!r}; {hint} A file is given as ./file.py:attribute, "
            "a module as package.module:attribute"
        )
    what = f"plug-in {name!r} ({table[name]})"
    if name not in BUILT_IN[kind]:
        owners = installed(kind)[name]
        what = f"plug-in {name!r} ({table[name]}) of {owners[0].package}"
        if len(owners) > 1:
            each = " and ".join(f"{owner.package} ({owner.target})" for owner in owners)
            raise ConfigError(f"{name!r} is registered by {each}: name the module:attribute that you mean")
    module, _, attribute = table[name].partition(":")
    return _attribute(import_plugin(module, what), attribute, name)


def available(kind: str) -> dict[str, str]:
    """Every registered name of a kind with its "module:attribute"; built-ins win over entry points.

    Raises:
        ConfigError: for an unknown kind.
    """
    if kind not in BUILT_IN:
        raise ConfigError(f"no plug-ins of kind {kind!r}; kinds are {', '.join(BUILT_IN)}")
    return {**{name: owners[0].target for name, owners in installed(kind).items()}, **BUILT_IN[kind]}


def ignored(kind: str) -> list[Ignored]:
    """Installed plug-ins that are named like a built-in, or like another package's."""
    found = []
    for name, owners in sorted(installed(kind).items()):
        for owner in owners if name in BUILT_IN[kind] else owners[1:]:
            rival = "a built-in" if name in BUILT_IN[kind] else owners[0].package
            reason = f"{owner.package} registers {name!r} too, and is not heard: {rival} has the name"
            found.append(Ignored(name, owner, f"{reason}. Use it as {owner.target}"))
    return found


_MODULE = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*:[A-Za-z_]\w*")


_LOADING = threading.RLock()
"""Environments are made in threads: none may find a module that another is still running."""


def _load_file(path: Path, kind: str) -> Any:
    with _LOADING:
        return _loaded(path, kind)


def _loaded(path: Path, kind: str) -> Any:
    if not path.is_file():
        raise ConfigError(f"plug-in file {path} does not exist (looked in {Path.cwd()})")
    # A stable module name: loading twice must give the same classes, also in worker processes.
    digest = hashlib.sha256(str(path.resolve()).encode()).hexdigest()[:12]
    name = f"vlrl_plugin_{kind}_{path.stem}_{digest}"
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ConfigError(f"plug-in file {path} cannot be loaded as a Python module")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:  # a stranger's code: half a module must not stay behind
        del sys.modules[name]
        raise ConfigError(f"plug-in file {path}: {_blame(error, path)}") from error
    return module


def _blame(error: BaseException, path: Path) -> str:
    """What a plug-in file raised, and the last of its lines that took part."""
    if isinstance(error, SyntaxError):
        return f"line {error.lineno}: SyntaxError: {error.msg}"
    lines = [f.lineno for f in traceback.extract_tb(error.__traceback__) if Path(f.filename) == path]
    place = f"line {lines[-1]}: " if lines else ""
    return f"{place}{type(error).__name__}: {error}"


def _attribute(module: Any, attribute: str, name: str) -> Any:
    if not hasattr(module, attribute):
        public = [a for a in dir(module) if not a.startswith("_")]
        near = difflib.get_close_matches(attribute, public, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise ConfigError(f"plug-in {name!r}: the module has no {attribute!r}{hint}")
    return getattr(module, attribute)
