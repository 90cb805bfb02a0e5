"""Media made ready for a group of n: once through vlrl's store, or at each use as Hugging Face does.

    python benchmarks/media.py --json

A group of n completions uses its image n times. Plain Hugging Face processing opens, resizes and cuts it
into patches at each use. vlrl decodes it once into the store and makes patches once for the group. Sides take
turns in one run; medians over rounds. Both sides' patches must be equal, number for number.

    plain  transformers' load_image and Qwen2VLImageProcessor, n times
    cold   an empty cache: header, decode, resize, hash, write; patches once
    warm   what a second epoch pays for the record: a new store over a full cache; of the file its header
    warm + patches   the same, and the patches made again, once
    floor  libjpeg alone: what no program that starts from the file can avoid
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from vlrl.config.data import MediaConfig, ProcessorConfig, VideoConfig
from vlrl.process.json_stdout import parse_with_json, print_json
from vlrl.processors.media.store import MediaStore
from vlrl.processors.media.video import VideoRequest
from vlrl.processors.media.video_decoder import VideoDecoder

PATCH, MERGE = 14, 2
LIMITS = ProcessorConfig()
SIZES = ((960, 1280), (1024, 1536), (1200, 1600), (1080, 1920))
"""(height, width) of the photos: 1.2 to 2.1 megapixels."""


def photo(index: int) -> Image.Image:
    """Gradients, edges and sensor noise: at quality 90 a JPEG of 0.4 to 0.9 MB."""
    rng = np.random.default_rng(index)
    height, width = SIZES[index % len(SIZES)]
    y, x = np.mgrid[0:height, 0:width]
    a, b, c = rng.uniform(40, 300, 3)
    pixels = np.stack(
        [128 + 90 * np.sin(x / a + y / b), 128 + 80 * np.cos(x / c - y / a), 255 * y / height], -1
    )
    for _ in range(30):
        top, left = int(rng.integers(height)), int(rng.integers(width))
        pixels[top : top + int(rng.integers(20, 300)), left : left + int(rng.integers(20, 300))] += (
            rng.normal(0, 40, 3)
        )
    return Image.fromarray((pixels + rng.normal(0, 8, pixels.shape)).clip(0, 255).astype(np.uint8))


def write_clip(path: Path, seconds: int, rate: int = 30, size: tuple[int, int] = (720, 1280)) -> None:
    """A panning, noisy h264 video."""
    import av

    base = np.asarray(photo(2).resize((size[1] + 2 * rate * seconds, size[0])))
    with av.open(str(path), "w") as container:
        stream = container.add_stream("libx264", rate=Fraction(rate))
        stream.height, stream.width, stream.pix_fmt = *size, "yuv420p"
        for index in range(rate * seconds):
            view = np.ascontiguousarray(base[:, 2 * index : 2 * index + size[1]])
            container.mux(stream.encode(av.VideoFrame.from_ndarray(view, format="rgb24")))
        container.mux(stream.encode())


def image_processor() -> Any:
    from transformers import Qwen2VLImageProcessor

    return Qwen2VLImageProcessor(
        patch_size=PATCH, merge_size=MERGE, min_pixels=LIMITS.min_pixels, max_pixels=LIMITS.max_pixels
    )


def fitted(height: int, width: int, min_pixels: int, max_pixels: int) -> tuple[int, int]:
    from qwen_vl_utils.vision_process import smart_resize

    return smart_resize(height, width, PATCH * MERGE, min_pixels, max_pixels)


class Images:
    """The sides for images; each call makes all of them ready for their groups."""

    def __init__(self, folder: Path, num_images: int, group_size: int) -> None:
        self.paths = [folder / f"{index}.jpg" for index in range(num_images)]
        for index, path in enumerate(self.paths):
            photo(index).save(path, quality=90)
        self.group_size = group_size
        self.processor = image_processor()
        self.num_caches = 0
        self.folder = folder

    def plain(self) -> list[Any]:
        from transformers.image_utils import load_image

        return [
            self.processor(images=[load_image(str(path))], return_tensors="pt")["pixel_values"]
            for path in self.paths
            for _ in range(self.group_size)
        ]

    def cold(self) -> list[Any]:
        self.num_caches += 1
        return [self._patches(frames) for frames in self.records()]

    def warm(self) -> list[Any]:
        return self.records()

    def warm_patches(self) -> list[Any]:
        return [self._patches(frames) for frames in self.records()]

    def floor(self) -> list[Any]:
        return [Image.open(path).load() for path in self.paths]

    def records(self) -> list[Any]:
        """Records out of a new store over the cache of the last cold start."""
        store = MediaStore(MediaConfig(cache_dir=self.folder / f"cache-{self.num_caches}"))
        found = []
        for path in self.paths:
            size = fitted(*store.image_size(path, "bench"), LIMITS.min_pixels, LIMITS.max_pixels)
            found.append(store.image(path, size, "bench"))
        return found

    def _patches(self, frames: Any) -> Any:
        pixels = np.array(frames.pixels[0])
        return self.processor(images=[pixels], do_resize=False, return_tensors="pt")["pixel_values"]


class Videos(Images):
    """The sides for one video at two frames a second; both take the same frames."""

    def __init__(self, folder: Path, seconds: int, group_size: int) -> None:
        from transformers import Qwen2VLVideoProcessor

        folder.mkdir(exist_ok=True)
        self.paths = [folder / "clip.mp4"]
        write_clip(self.paths[0], seconds)
        self.group_size = group_size
        self.num_caches = 0
        self.folder = folder
        self.decoder = VideoDecoder(MediaConfig())  # a run starts its decoding process once
        limits = VideoConfig()
        self.request = VideoRequest.of(limits, {}, "bench")
        self.info = MediaStore(MediaConfig(cache_gib=0)).video_info(self.paths[0], self.request, "bench")
        most = min(limits.max_pixels, limits.total_pixels // self.info.num_frames)
        self.size = fitted(*self.info.size, limits.min_pixels, most)
        self.processor = Qwen2VLVideoProcessor(
            patch_size=PATCH,
            merge_size=MERGE,
            min_pixels=limits.min_pixels,
            max_pixels=most,
            cap_pixels_per_frame=False,
        )

    def plain(self) -> list[Any]:
        from transformers.video_utils import load_video

        ready = []
        for _ in range(self.group_size):
            frames, _ = load_video(
                str(self.paths[0]), backend="decord", sample_indices_fn=lambda **_: list(self.info.indices)
            )
            ready.append(self._process(frames))
        return ready

    def floor(self) -> list[Any]:
        from decord import VideoReader

        return [VideoReader(str(self.paths[0])).get_batch(list(self.info.indices))]

    def records(self) -> list[Any]:
        config = MediaConfig(cache_dir=self.folder / f"video-cache-{self.num_caches}")
        store = MediaStore(config, videos=self.decoder)
        store.video_info(self.paths[0], self.request, "bench")
        return [store.video(self.paths[0], self.request, self.size, "bench")]

    def _patches(self, frames: Any) -> Any:
        return self._process(np.array(frames.pixels), do_resize=False)

    def _process(self, frames: Any, **options: Any) -> Any:
        out = self.processor(videos=[frames], do_sample_frames=False, return_tensors="pt", **options)
        return out["pixel_values_videos"]


SIDES = ("plain", "cold", "warm", "warm_patches", "floor")


def measure(media: Images, rounds: int) -> dict[str, Any]:
    """Median seconds of each side over `rounds`, in turn; one round before loads what is loaded once."""
    seconds: dict[str, list[float]] = {side: [] for side in SIDES}
    compare(media)
    for number in range(rounds + 1):
        for side in SIDES:
            run: Callable[[], list[Any]] = getattr(media, side)
            begin = time.perf_counter()
            ready = run()
            if number:
                seconds[side].append(time.perf_counter() - begin)
            del ready
    return summary({side: statistics.median(values) for side, values in seconds.items()}, media)


def compare(media: Images) -> None:
    """Stop unless both sides make the same patches: else their times mean nothing."""
    plain, cold = media.plain()[:: media.group_size], media.cold()
    if not all(np.array_equal(a.numpy(), b.numpy()) for a, b in zip(plain, cold, strict=True)):
        raise SystemExit("the two sides make different patches")


def summary(medians: dict[str, float], media: Images) -> dict[str, Any]:
    """Seconds, uses per second and how many times quicker than plain; `floor` is decoding once."""
    uses = len(media.paths) * media.group_size
    return {
        "seconds": medians,
        "uses_per_s": {side: uses / medians[side] for side in SIDES if side != "floor"},
        "times_quicker": {side: medians["plain"] / medians[side] for side in SIDES if side != "plain"},
        "cold_over_floor": medians["cold"] / medians["floor"],
    }


def peak_mib(side: str, group_size: int) -> float:
    """Growth of a fresh process's peak memory while it makes 4 groups' images ready and holds them."""
    code = f"import media; media.print_growth({side!r}, {group_size})"
    child = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=Path(__file__).parent
    )
    return float(child.stdout.split()[-1])


def print_growth(side: str, group_size: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        media = Images(Path(folder), 4, group_size)
        small = np.zeros((56, 56, 3), np.uint8)
        media.processor(images=[small], return_tensors="pt")
        MediaStore(MediaConfig(cache_gib=0)).image(small, (28, 28), "bench")
        before = memory_mib("VmRSS")
        Path("/proc/self/clear_refs").write_text("5")  # the peak counts from here
        held = getattr(media, side)()
        print(memory_mib("VmHWM") - before, flush=True)
        del held


def memory_mib(name: str) -> float:
    """A line of this process's status; getrusage would tell the peak of whoever started it."""
    (line,) = (line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith(name))
    return int(line.split()[1]) / 1024


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--images", type=int, default=12)
    parser.add_argument("--group-size", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--video-seconds", type=int, default=10)
    args = parse_with_json(parser)
    with tempfile.TemporaryDirectory() as folder:
        report = {
            "images": measure(Images(Path(folder), args.images, args.group_size), args.rounds),
            "video": measure(Videos(Path(folder) / "n", args.video_seconds, args.group_size), args.rounds),
            "video_one_use": measure(Videos(Path(folder) / "1", args.video_seconds, 1), args.rounds),
            "peak_mib": {side: peak_mib(side, args.group_size) for side in ("plain", "cold")},
        }
    if args.json:
        print_json(report)
        return
    for name in ("images", "video", "video_one_use"):
        for side, seconds in report[name]["seconds"].items():
            quicker = report[name]["times_quicker"].get(side, 1.0)
            print(f"{name:14} {side:13} {seconds:9.4f} s {quicker:9.1f} times plain")
    print(f"peak memory, MiB: {report['peak_mib']}")


if __name__ == "__main__":
    main()
