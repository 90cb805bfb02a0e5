"""Videos: which frames are taken and when they are, decoding them, and the ways a file can be wrong."""

from __future__ import annotations

import math
import signal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image
from qwen_vl_utils.vision_process import _read_video_decord, calculate_video_frame_range, smart_nframes
from videos import cut_mp4, level, numbers, turn_mp4, write_audio, write_gif, write_video

from vlrl.config.data import MediaConfig, VideoConfig
from vlrl.errors import DataError
from vlrl.processors.media.store import MediaStore
from vlrl.processors.media.video import VideoInfo, VideoRequest, choose_frames

WHERE = "sample 'x'"


@pytest.fixture(scope="module")
def store() -> MediaStore:
    """A store without a cache, so that every test decodes; one worker process for the whole file."""
    return MediaStore(MediaConfig(cache_gib=0, max_source_pixels=500_000, max_video_s=60))


@pytest.fixture(scope="module")
def clip(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two seconds, 20 frames."""
    return write_video(tmp_path_factory.mktemp("videos") / "clip.mp4")


def ask(config: VideoConfig | None = None, **part: Any) -> VideoRequest:
    return VideoRequest.of(config or VideoConfig(min_frames=2), part, WHERE)


def choose(times: Any, rate: float, request: VideoRequest) -> VideoInfo:
    return choose_frames(times, rate, (48, 64), request, WHERE)


# Which frames.


@given(
    total=st.integers(1, 400),
    rate=st.sampled_from([1.0, 10.0, 24.0, 25.0, 30000 / 1001, 60.0]),
    fps=st.sampled_from([0.5, 1.0, 2.0, 3.0, 7.5, 30.0]),
    least=st.integers(2, 9),
    most=st.integers(9, 80),
)
def test_counts_and_rates_are_those_of_qwen_vl_utils(
    total: int, rate: float, fps: float, least: int, most: int
) -> None:
    request = ask(fps=fps, min_frames=least, max_frames=most)
    try:
        expected = smart_nframes(
            {"fps": fps, "min_frames": least, "max_frames": most}, total_frames=total, video_fps=rate
        )
    except ValueError:
        with pytest.raises(DataError, match=WHERE):
            choose(np.arange(total) / rate, rate, request)
        return
    info = choose(np.arange(total) / rate, rate, request)
    assert info.num_frames == expected
    assert info.fps == pytest.approx(expected / total * rate)
    assert info.indices == tuple(np.linspace(0, total - 1, expected).round().astype(int))


@given(
    gaps=st.lists(st.floats(0.01, 5), min_size=3, max_size=60),
    wanted=st.integers(2, 30),
    multiple=st.sampled_from([1, 2, 4]),
)
def test_at_a_variable_rate_frames_are_distinct_and_even_in_time(
    gaps: list[float], wanted: int, multiple: int
) -> None:
    times = np.concatenate([[0.0], np.cumsum(gaps)])
    rate = (len(times) - 1) / times[-1]
    request = VideoRequest(None, wanted, 2, 64, frame_multiple=multiple)
    count = max(round(wanted / multiple) * multiple, multiple)
    if count > len(times):
        with pytest.raises(DataError, match=rf"{count} frames are wanted .*the video has {len(times)}"):
            choose(times, rate, request)
        return
    info = choose(times, rate, request)
    assert info.num_frames == len(set(info.indices)) == count
    assert list(info.indices) == sorted(info.indices)
    assert np.allclose(info.timestamps_s, times[list(info.indices)], atol=1e-6)
    assert info.fps == pytest.approx(count / (len(times) / rate))


def test_a_long_still_does_not_take_all_frames() -> None:
    """100 frames in the first second, then one at 10 s: even in number would miss the end of the video."""
    times = np.concatenate([np.arange(100) / 100, [5.0, 10.0]])
    info = choose(times, 10.2, ask(num_frames=4))
    assert info.timestamps_s == (0.0, 0.99, 5.0, 10.0)


@given(start=st.integers(0, 150), length=st.integers(30, 300))
def test_a_span_is_cut_as_qwen_vl_utils_cuts_it(start: float, length: float) -> None:
    """Times are in hundredths of a second; a millionth is allowed for rounding here, and not there."""
    start, end = start / 100, (start + length) / 100
    first, last, count = calculate_video_frame_range({"video_start": start, "video_end": end}, 20, 10.0)
    info = choose(np.arange(20) / 10, 10.0, ask(fps=100, video_start=start, video_end=end))
    assert info.indices == tuple(np.linspace(first, last, count // 2 * 2).round().astype(int))
    assert all(start - 1e-6 <= time <= end + 1e-6 for time in info.timestamps_s)


def test_a_part_s_own_words_go_over_the_config() -> None:
    config = VideoConfig(fps=2, min_frames=4, max_frames=8)
    assert ask(config) == VideoRequest(2.0, None, 4, 8)
    assert ask(config, nframes=6) == ask(config, num_frames=6) == VideoRequest(None, 6, 4, 8)
    assert ask(config, fps=5, video_start=1, end_s=3) == VideoRequest(5.0, None, 4, 8, 1.0, 3.0)
    assert ask(config, max_frames=2) == VideoRequest(2.0, None, 2, 2)
    assert ask(config, min_frames=16) == VideoRequest(2.0, None, 16, 16)
    assert ask(VideoConfig(fps=None, num_frames=6), fps=1).num_frames is None


@pytest.mark.parametrize(
    ("part", "message"),
    [
        ({"fps": 0}, "fps=0 of a video part must be a number above 0"),
        ({"fps": "fast"}, "fps='fast'"),
        ({"nframes": -4}, "nframes=-4"),
        ({"start_s": -1}, "start_s=-1 .* of at least 0"),
        ({"end_s": math.nan}, "end_s=nan"),
        ({"fps": 1, "nframes": 4}, "both fps and num_frames"),
        ({"min_frames": 9, "max_frames": 3}, "min_frames=9 is above max_frames=3"),
        ({"timestamps_s": [0, 2, 1]}, "must rise"),
        ({"timestamps_s": 3}, "list of seconds"),
    ],
)
def test_a_wrong_wish_names_the_sample_and_the_key(part: dict[str, Any], message: str) -> None:
    with pytest.raises(DataError, match=rf"sample 'x'.*{message}"):
        ask(**part)


# Decoding.


@pytest.mark.parametrize("width", [34, 48, 50, 64])
def test_any_width_is_decoded(width: int, tmp_path: Path, store: MediaStore) -> None:
    """decord 0.6.0 fails at 48 pixels."""
    path = write_video(tmp_path / "a.mp4", size=(62, width), num_frames=4)
    assert numbers(store.video(path, ask(num_frames=4), (28, 28), WHERE).pixels) == [0, 1, 2, 3]


@pytest.mark.parametrize("name", ["a.mp4", "a.mkv", "a.webm", "a.avi"])
def test_the_frames_and_their_times_are_the_files_own(name: str, tmp_path: Path, store: MediaStore) -> None:
    path = write_video(tmp_path / name)
    for source in (path, str(path), path.read_bytes(), {"bytes": None, "path": str(path)}):
        request = ask(fps=4)
        info = store.video_info(source, request, WHERE)
        frames = store.video(source, request, (28, 56), WHERE)
        assert info.size == frames.original_size == (48, 64)
        assert info.indices == (0, 3, 5, 8, 11, 14, 16, 19)
        assert numbers(frames.pixels) == list(info.indices)
        assert frames.timestamps_s == info.timestamps_s == (0.0, 0.3, 0.5, 0.8, 1.1, 1.4, 1.6, 1.9)
        assert frames.fps == info.fps == pytest.approx(4.0)
        assert frames.pixels.shape == (8, 28, 56, 3)
        assert frames.kind == "video"


def test_decoding_is_qwen_vl_utils_decoding(tmp_path: Path, store: MediaStore) -> None:
    """Same frames, same pixels, same rate as its decord reader, at a rate that is not 2."""
    path = write_video(tmp_path / "a.mp4", num_frames=47, rate=Fraction(30000, 1001), corner=True)
    wanted = {"fps": 5, "min_frames": 4, "max_frames": 6, "video_start": 0.2, "video_end": 1.4}
    video, metadata, sample_fps = _read_video_decord({"video": str(path), **wanted})
    frames = store.video(path, ask(**wanted), (48, 64), WHERE)
    assert (frames.pixels == video.permute(0, 2, 3, 1).numpy()).all()
    assert frames.fps == pytest.approx(sample_fps)
    exact = [index * 1001 / 30000 for index in metadata["frames_indices"]]
    assert frames.timestamps_s == pytest.approx(exact, abs=1e-4)


@pytest.mark.parametrize("name", ["vfr.mp4", "vfr.mkv", "vfr.webm"])
def test_variable_rate_times_come_from_the_container(name: str, tmp_path: Path, store: MediaStore) -> None:
    times = [0, 0.1, 0.15, 0.18, 0.5, 1.0, 1.1, 1.12, 2.0, 3.0]
    frames = store.video(write_video(tmp_path / name, times_s=times), ask(num_frames=4), (28, 28), WHERE)
    assert frames.timestamps_s == (0.0, 1.0, 2.0, 3.0)
    assert numbers(frames.pixels) == [0, 5, 8, 9]
    assert frames.fps == pytest.approx(4 / 3.1)  # the last frame lasts 0.1 s


def test_a_gif_is_a_video_with_its_own_durations(tmp_path: Path, store: MediaStore) -> None:
    path = write_gif(tmp_path / "a.gif", [0.1, 0.1, 0.1, 1.0, 0.5, 0.2])
    frames = store.video(path, ask(num_frames=4), (28, 28), WHERE)
    assert frames.timestamps_s == (0.0, 0.3, 1.3, 1.8)
    assert numbers(frames.pixels) == [0, 3, 4, 5]
    assert frames.fps == pytest.approx(4 / 2.0)
    assert numbers(store.image(path, (28, 28), WHERE).pixels) == [0]  # as an image, its first frame


def test_a_codec_that_decord_does_not_know_is_decoded_all_the_same(tmp_path: Path, store: MediaStore) -> None:
    path = write_video(tmp_path / "a.mp4", codec="libsvtav1", size=(64, 96))
    frames = store.video(path, ask(num_frames=4), (28, 28), WHERE)
    assert numbers(frames.pixels) == [0, 6, 13, 19]
    turned = turn_mp4(
        tmp_path / "turned.mp4", write_video(tmp_path / "b.mp4", codec="libsvtav1", corner=True)
    )
    assert turned_corner(store, turned)


def test_a_turned_video_is_shown_upright(tmp_path: Path, store: MediaStore) -> None:
    source = write_video(tmp_path / "a.mp4", size=(48, 96), corner=True, num_frames=6)
    assert turned_corner(store, turn_mp4(tmp_path / "turned.mp4", source))


def turned_corner(store: MediaStore, path: Path) -> bool:
    """Whether a video with a black top left corner, turned clockwise, has it at the top right."""
    info = store.video_info(path, ask(num_frames=2), WHERE)
    frames = store.video(path, ask(num_frames=2), info.size, WHERE)
    first = frames.pixels[0].mean(-1)
    assert frames.pixels.shape[1:3] == info.size
    return bool(info.size[0] > info.size[1] and first[2, -3] < 10 < first[2, 2])


def test_what_an_edit_list_hides_is_not_shown(tmp_path: Path, store: MediaStore) -> None:
    """A lossless cut keeps the frames before it in the file; decord alone would show them."""
    cut = cut_mp4(tmp_path / "cut.mp4", write_video(tmp_path / "a.mp4"), 0.5)
    frames = store.video(cut, ask(num_frames=6), (28, 28), WHERE)
    assert numbers(frames.pixels) == [5, 8, 11, 13, 16, 19]
    assert frames.timestamps_s == pytest.approx((0.0, 0.3, 0.6, 0.8, 1.1, 1.4), abs=2e-3)


def test_a_list_of_frames_is_a_video(tmp_path: Path, store: MediaStore) -> None:
    images = [Image.new("L", (64, 48), level(i)) for i in range(5)]
    images[0].save(tmp_path / "0.png")
    mixed = [tmp_path / "0.png", np.asarray(images[1]), *images[2:]]
    frames = store.video(mixed, ask(VideoConfig()), (28, 28), WHERE)
    assert numbers(frames.pixels) == [0, 1, 2, 3, 4, 4]  # the last repeated, to an even number
    assert frames.timestamps_s == (0.0, 0.5, 1.0, 1.5, 2.0, 2.5)
    assert (frames.fps, frames.original_size) == (2.0, (48, 64))
    fewer = store.video(mixed, ask(num_frames=2), (28, 28), WHERE)
    assert (numbers(fewer.pixels), fewer.timestamps_s) == ([0, 4], (0.0, 2.0))
    timed = store.video(mixed, ask(timestamps_s=[0, 1, 2, 3, 7], max_frames=3), (28, 28), WHERE)
    assert timed.timestamps_s[:3] == (0.0, 2.0, 7.0)


@given(st.integers(1, 60), st.sampled_from([1.0, 2.0, 5.0]), st.integers(2, 20))
def test_a_list_keeps_its_rate_or_is_thinned_evenly(num_listed: int, rate: float, most: int) -> None:
    from vlrl.processors.media.video import choose_listed

    info = choose_listed(num_listed, (1, 1), ask(fps=rate, max_frames=most), WHERE)
    assert info.num_frames == len(info.indices) == len(info.timestamps_s)
    assert info.num_frames % 2 == 0
    assert info.num_frames - 1 <= max(min(num_listed, most), 1) <= info.num_frames
    assert info.fps == pytest.approx(rate * min(num_listed, most) / num_listed)
    assert np.allclose(np.array(info.timestamps_s[:-1]) * rate, info.indices[:-1])


# What is wrong with a file.


def test_a_video_shorter_than_asked_says_both_numbers(clip: Path, store: MediaStore) -> None:
    with pytest.raises(
        DataError, match=r"sample 'x': '.*clip\.mp4': 30 frames are wanted .*the video has 20"
    ):
        store.video(clip, ask(num_frames=30), (28, 28), WHERE)


def test_a_span_beyond_the_end_is_an_error(clip: Path, store: MediaStore) -> None:
    with pytest.raises(
        DataError, match=r"has 0 frames between start_s=5.0 and end_s=None .*the last at 1\.90 s"
    ):
        store.video_info(clip, ask(start_s=5), WHERE)


def test_one_frame_is_no_video(tmp_path: Path, store: MediaStore) -> None:
    path = write_video(tmp_path / "one.mp4", num_frames=1)
    with pytest.raises(DataError, match=r"has 1 frames .*at least 2; use an image"):
        store.video_info(path, ask(), WHERE)


def test_sound_alone_is_no_video(tmp_path: Path, store: MediaStore) -> None:
    with pytest.raises(DataError, match=r"sample 'x': '.*sound\.mp4' has no video track, only audio"):
        store.video_info(write_audio(tmp_path / "sound.mp4"), ask(), WHERE)


def test_limits_hold_before_anything_is_decoded(tmp_path: Path, clip: Path) -> None:
    def refused(**limits: Any) -> str:
        strict = MediaStore(MediaConfig(cache_gib=0, **limits))
        with pytest.raises(DataError) as caught:
            strict.video(clip, ask(), (28, 28), WHERE)
        return str(caught.value)

    assert "claims 64x48 pixels, more than media.max_source_pixels=1000" in refused(max_source_pixels=1000)
    assert "claims to last 2 s, more than media.max_video_s=1" in refused(max_video_s=1)
    assert "more than media.max_file_mib=0.0005" in refused(max_file_mib=0.0005)
    assert "took longer than media.timeout_s=0.01" in refused(timeout_s=0.01)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "not a video"),
        (b"#EXTM3U\n#EXT-X-TARGETDURATION:1\n#EXTINF:1,\nfile:///etc/passwd\n", "not a video"),
        (b"ffconcat version 1.0\nfile /etc/passwd\n", "not a video"),
        (b"\0\0\0\x18ftypmp42" + bytes(40), "is broken"),
        (b"\x1aE\xdf\xa3" + bytes(100), "is broken"),
        (b"GIF89a" + bytes(20), "is broken|is empty"),
    ],
)
def test_what_is_no_video_is_refused(data: bytes, message: str, store: MediaStore) -> None:
    """A playlist would make the decoder open other files and addresses."""
    with pytest.raises(DataError, match=rf"sample 'x'.*({message})"):
        store.video_info(data, ask(), WHERE)


@pytest.mark.parametrize("source", [np.zeros((4, 4, 3), np.uint8), Image.new("RGB", (4, 4)), 7, [], [[]]])
def test_what_is_no_source_of_video_is_refused(source: Any, store: MediaStore) -> None:
    with pytest.raises(DataError, match="sample 'x'"):
        store.video_info(source, ask(), WHERE)


def test_a_crash_of_the_decoder_is_an_error_and_the_next_video_is_fine(clip: Path) -> None:
    """The worker process is ended by the signal that a crash in a codec sends."""
    store = MediaStore(MediaConfig(cache_gib=0))
    before = set(psutil.Process().children())
    store.video_info(clip, ask(), WHERE)
    (worker,) = set(psutil.Process().children()) - before
    worker.send_signal(signal.SIGSEGV)
    with pytest.raises(DataError, match=r"clip\.mp4' makes its decoder crash \(exit -11\)"):
        store.video(clip, ask(), (28, 28), WHERE)
    assert numbers(store.video(clip, ask(num_frames=2), (28, 28), WHERE).pixels) == [0, 19]
    del store
    assert set(psutil.Process().children()) <= before  # nothing is left behind
