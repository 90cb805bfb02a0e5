"""Where each benchmark is published: a dataset of the hub, or a page to fetch it from by hand."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Published:
    """Where the files of a benchmark are.

    Attributes:
        page: of its authors, for the licence and for what is not on the hub.
        repo: the hub's dataset; "" if it is on none.
        files: patterns of the files of the repo that are read.
        archives: whether some of them are archives, to be unpacked where they lie.
    """

    page: str
    repo: str = ""
    files: tuple[str, ...] = ("*.parquet",)
    archives: bool = False


PUBLISHED: Mapping[str, Published] = {
    "chartqa": Published("https://github.com/vis-nlp/ChartQA", "lmms-lab/ChartQA"),
    "docvqa": Published("https://www.docvqa.org", "lmms-lab/DocVQA", ("DocVQA/*.parquet",)),
    "ocrbench": Published("https://github.com/Yuliang-Liu/MultimodalOCR", "echo840/OCRBench"),
    "mathvista": Published("https://mathvista.github.io", "AI4Math/MathVista", ("data/testmini-*.parquet",)),
    "mathverse": Published("https://mathverse-cuhk.github.io", "AI4Math/MathVerse", ("testmini.parquet",)),
    "geometry3k": Published("https://lupantech.github.io/inter-gps", "hiyouga/geometry3k"),
    "refcoco": Published("https://github.com/lichengunc/refer", "lmms-lab/RefCOCO"),
    "refcoco_plus": Published("https://github.com/lichengunc/refer", "lmms-lab/RefCOCOplus"),
    "refcocog": Published("https://github.com/lichengunc/refer", "lmms-lab/RefCOCOg"),
    "ovdeval": Published(
        "https://github.com/om-ai-lab/OVDEval", "omlab/OVDEval", ("*.json", "*.tar.gz"), archives=True
    ),
    "mvbench": Published(
        "https://github.com/OpenGVLab/Ask-Anything", "OpenGVLab/MVBench", ("json/*", "video/*"), archives=True
    ),
    "videomme": Published(
        "https://video-mme.github.io", "lmms-lab/Video-MME", ("*.parquet", "videos_*.zip"), archives=True
    ),
    "charades_sta": Published("https://github.com/jiyanggao/TALL"),
    "screenspot": Published(
        "https://osatlas.github.io",
        "OS-Copilot/ScreenSpot-v2",
        ("*.json", "*.zip"),
        archives=True,
    ),
    "osworld_g": Published("https://github.com/xlang-ai/OSWorld-G"),
    "android_control": Published(
        "https://github.com/google-research/google-research/tree/master/android_control"
    ),
    "aitw": Published("https://github.com/google-research/google-research/tree/master/android_in_the_wild"),
    "mind2web": Published("https://osu-nlp-group.github.io/Mind2Web", "osunlp/Multimodal-Mind2Web"),
    "agentnet": Published(
        "https://opencua.xlang.ai", "xlangai/AgentNet", ("agentnet_*.jsonl", "*images*"), archives=True
    ),
}
"""Name of a benchmark → where it is."""
