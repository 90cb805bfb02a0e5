"""How fast `vlrl view` opens and scrolls a run of many rollouts, in Debian's headless Chromium.

    python benchmarks/view.py                # 10,000 rollouts, each group with its own image
    python benchmarks/view.py --rollouts 50000

It writes a made-up run (`--keep` keeps it), opens the page with the rollouts in a new browser, and prints the
seconds from the start of navigation until the list and the first rollout are shown, until all rows are there,
and the frames per second while the list scrolls from one end to the other. Nothing is in a cache.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import time
from itertools import pairwise
from pathlib import Path

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "tests" / "helpers"))

from served_view import ViewPage, served  # noqa: E402
from viewed_run import RunWriter  # noqa: E402

SCROLL = """new Promise(done => {
  const list = document.querySelector('.list'), times = [], seconds = %s;
  const end = list.scrollHeight - list.clientHeight;
  let start = null;
  const step = now => {
    start ??= now;
    times.push(now);
    list.scrollTop = end * Math.min(1, (now - start) / (1000 * seconds));
    if (now - start < 1000 * seconds) requestAnimationFrame(step);
    else done(times);
  };
  requestAnimationFrame(step);
})"""


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rollouts", type=int, default=10_000)
    parser.add_argument("--group-size", type=int, default=8)
    parser.add_argument(
        "--scroll-s", type=float, default=8.0, help="seconds from one end of the list to the other"
    )
    parser.add_argument("--keep", type=Path, help="folder of the run; used again if it is there")
    args = parser.parse_args()
    folder = args.keep or Path(tempfile.mkdtemp()) / "run"
    try:
        if not folder.exists():
            write_run(folder, args.rollouts, args.group_size)
        measure(folder, args.scroll_s)
    finally:
        if args.keep is None:
            shutil.rmtree(folder.parent)


def write_run(folder: Path, num_rollouts: int, group_size: int) -> None:
    start, groups_per_step = time.perf_counter(), 12
    writer = RunWriter(folder, group_size=group_size)
    num_groups = num_rollouts // group_size
    for step, first in enumerate(range(0, num_groups, groups_per_step)):
        numbers = range(first, min(first + groups_per_step, num_groups))
        writer.step(step, [writer.question(number, min(0.9, step / 60)) for number in numbers])
    writer.close()
    seconds = time.perf_counter() - start
    size = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file()) / 2**20
    print(f"run of {num_groups * group_size} rollouts, {num_groups} images, {size:.0f} MiB: {seconds:.0f} s")


def measure(folder: Path, scroll_s: float) -> None:
    start = time.perf_counter()
    with served([folder]) as server, tempfile.TemporaryDirectory() as profile:
        print(f"server listens after {time.perf_counter() - start:.2f} s")
        with ViewPage("about:blank", Path(profile), size=(1280, 900)) as page:
            page.call("Page.navigate", url=f"{server.url}#rollouts")
            start = time.perf_counter()
            page.until("document.querySelectorAll('.list .row').length > 5")
            print(f"list is shown after {time.perf_counter() - start:.2f} s")
            page.until(
                "[...document.querySelectorAll('.list img')].slice(0, 6).every(e => e.complete "
                "&& e.naturalWidth)"
            )
            page.until("document.querySelector('.rollout .frame img')?.complete")
            print(f"its images and the first rollout after {time.perf_counter() - start:.2f} s")
            page.until("vlrl.rowsOf(vlrl.runs[0].key).isWhole")
            print(f"all rows are loaded after {time.perf_counter() - start:.2f} s")
            time.sleep(1)
            for view in ("", "rollouts"):
                page.go(f"#rollouts?view={view}" if view else "#rollouts")
                time.sleep(0.5)
                told(view or "groups", page.value(SCROLL % scroll_s))
            assert not page.errors, page.errors
            heap = page.value("performance.memory.usedJSHeapSize") / 2**20
            print(
                f"JavaScript heap: {heap:.0f} MiB; rows in the page: "
                f"{page.value('document.querySelectorAll(`.list .row`).length')}"
            )


def told(view: str, times: list[float]) -> None:
    gaps = sorted(b - a for a, b in pairwise(times))
    mean = 1000 * len(gaps) / sum(gaps)
    late = gaps[int(0.95 * len(gaps))]
    print(
        f"scrolling {view}: {mean:.0f} frames/s on average, 95 % within {late:.0f} ms, longest "
        f"{gaps[-1]:.0f} ms"
    )


if __name__ == "__main__":
    main()
