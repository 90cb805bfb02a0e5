import io
import json
import subprocess
import sys
import threading
import time

import pytest
from rich.console import Console

from vlrl.tracking.console import HEADING_EVERY, SILENCE_S, TrainConsole, duration

STEP = {
    "reward/mean": 0.512,
    "reward/exact": 0.4,
    "reward/std": 0.3,
    "completion/num_tokens_mean": 21.5,
    "policy/sampler_mismatch": 1.2e-6,
    "policy/entropy": 0.81,
    "policy/clip_fraction": 0.012,
    "optim/grad_norm": 0.7,
    "throughput/tokens_per_s": 1730.0,
    "time_s/step": 1.25,
    "time_s/generate": 0.6,
    "time_s/reward": 0.01,
    "time_s/train": 0.5,
    "time_s/sync": 0.1,
    "time_s/wait": 0.04,
}


class Clock:
    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


def run(total, steps, terminal=False, values=STEP, seconds=2.0):
    out, clock = io.StringIO(), Clock()
    console = Console(file=out, force_terminal=terminal, width=80, highlight=False, color_system=None)
    with TrainConsole("digits", total, console=console, clock=clock) as display:
        display.phase("GRPO")
        for step in steps:
            clock.now += seconds
            display.step(step, values)
    return out.getvalue()


def test_plain_output_has_an_unbroken_line_by_time_and_the_last_steps_from_one():
    lines = [line for line in run(25, range(25)).splitlines() if "/25" in line]  # 2 s a step
    assert [line.split()[0] for line in lines] == ["1/25", "6/25", "11/25", "16/25", "21/25", "25/25"]
    assert "\x1b" not in "".join(lines)


def test_slow_steps_have_a_line_each():
    lines = [line for line in run(4, range(4), seconds=25.0).splitlines() if "/4" in line]
    assert [line.split()[0] for line in lines] == ["1/4", "2/4", "3/4", "4/4"]


def test_a_log_is_never_silent_for_longer_than_half_a_minute():
    out, clock = io.StringIO(), Clock()
    with TrainConsole("t", 9, console=Console(file=out), clock=clock) as display:
        display.phase("starting engines")
        for _ in range(3):
            clock.now += SILENCE_S
            display.break_silence()
            display.break_silence()  # said already
        display.phase("GRPO", 9)
        clock.now += 5.0
        display.step(0, STEP)
        clock.now += 29.0
        display.break_silence()
        clock.now += 1.0
        display.break_silence()
    said = [line for line in out.getvalue().splitlines() if line.startswith("… ")]
    assert said == [
        "… starting engines, for 30.0 s",
        "… starting engines, for 1 min 00 s",
        "… starting engines, for 1 min 30 s",
        "… GRPO, step 2/9, for 30.0 s",
    ]


def test_a_thread_sees_to_it_and_ends_with_the_display(monkeypatch):
    monkeypatch.setattr("vlrl.tracking.console.SILENCE_S", 0.1)
    out = io.StringIO()
    with TrainConsole("t", 9, console=Console(file=out)) as display:
        display.phase("starting engines")
        deadline = time.monotonic() + 60
        while out.getvalue().count("… starting engines, for") < 2 and time.monotonic() < deadline:
            time.sleep(0.01)
    assert out.getvalue().count("… starting engines, for") >= 2
    for thread in [thread for thread in threading.enumerate() if thread.name == "console"]:
        thread.join(60)
        assert not thread.is_alive()


def test_the_line_shows_reward_parts_and_the_split_of_the_time():
    lines = run(5, range(1)).splitlines()
    heading, line = next((lines[i], lines[i + 1]) for i, text in enumerate(lines) if "reward" in text)
    words = "step reward exact tokens mismatch entropy clip |grad| tok/s step s"
    words += " = gen + reward + train + sync + wait"
    assert heading.split() == words.split()
    numbers = "1/5 0.512 0.400 21.5 1.2e-06 0.810 1.2% 0.700 1730 1.25 0.60 0.01 0.50 0.10 0.04"
    assert line.split()[: len(numbers.split())] == numbers.split()
    assert "std" not in heading


def test_the_time_left_is_the_median_step_times_what_remains():
    assert "8.0 s left" in run(5, range(1))
    clock = Clock()
    with TrainConsole("t", 10, console=Console(file=io.StringIO()), clock=clock) as display:
        display.phase("GRPO")
        assert display.seconds_left(0) is None
        for step, seconds in enumerate([1.0, 1.0, 60.0]):
            clock.now += seconds
            display.step(step, {})
        assert display.seconds_left(2) == 7.0


def test_a_phase_between_steps_does_not_count_as_a_step():
    clock = Clock()
    with TrainConsole("t", 10, console=Console(file=io.StringIO()), clock=clock) as display:
        display.phase("GRPO")
        clock.now += 1.0
        display.step(0, {})
        display.phase("evaluating")
        clock.now += 500.0
        display.phase("GRPO")
        clock.now += 1.0
        display.step(1, {})
        assert display.seconds_left(1) == 8.0


def test_a_terminal_shows_every_step_and_repeats_the_heading():
    text = run(60, range(60), terminal=True)
    assert sum("/60 " in line and "0.512" in line for line in text.splitlines()) == 60
    assert text.count("|grad|") == -(-60 // HEADING_EVERY)


def test_phases_end_with_their_seconds_and_a_failed_one_says_so():
    assert "✓ GRPO  10.0 s" in run(5, range(5))
    out = io.StringIO()
    with pytest.raises(RuntimeError), TrainConsole("t", 1, console=Console(file=out)) as display:
        display.phase("warm start")
        raise RuntimeError
    assert "✗ warm start" in out.getvalue()


def test_a_title_that_was_announced_is_not_repeated():
    out = io.StringIO()
    display = TrainConsole("digits", 1, console=Console(file=out, force_terminal=True))
    display.announce()
    assert "digits" in out.getvalue()
    assert "\x1b[?25l" not in out.getvalue(), (
        "the cursor is hidden, which a signal during an import leaves so"
    )
    with display:
        display.note("here")
    assert out.getvalue().split("here")[0].count("digits\x1b[0m\n") == 1


def test_failed_rewards_are_said():
    assert "2 could not be scored" in run(1, range(1), values=STEP | {"failures/reward": 2.0})
    assert "could not be scored" not in run(1, range(1), values=STEP | {"failures/reward": 0.0})


def test_json_mode_leaves_stdout_to_the_result():
    script = (
        "import json; from vlrl.tracking.console import TrainConsole\n"
        "with TrainConsole('digits', 2, json_mode=True) as c:\n"
        "    c.phase('GRPO'); c.step(0, {'reward/mean': 1.0}); c.note('saved [x]')\n"
        "    print(json.dumps({'a': 1}))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == {"a": 1}
    assert "GRPO" in done.stderr and "saved [x]" in done.stderr


def test_json_mode_does_not_draw_the_result_on_a_terminal(capsys):
    generated = io.StringIO()
    console = Console(file=generated, force_terminal=True)
    with TrainConsole("digits", 1, json_mode=True, console=console) as display:
        display.phase("GRPO")
        print('{"a": 1}')
    assert capsys.readouterr().out == '{"a": 1}\n' and '"a"' not in generated.getvalue()


@pytest.mark.parametrize(
    ("seconds", "words"), [(4.21, "4.2 s"), (185, "3 min 05 s"), (59.96, "1 min 00 s"), (7800, "2 h 10 min")]
)
def test_durations_are_written_for_people(seconds, words):
    assert duration(seconds) == words


def test_kl_is_said_of_the_reference_alone():
    plain = run(1, range(1))
    assert "mismatch" in plain and "KL" not in plain
    held = run(1, range(1), values={**STEP, "policy/kl_reference": 0.02})
    heading, line = (text.split() for text in held.splitlines()[-3:-1]) if "KL" in held else ([], [])
    assert "KL" in heading and "2.0e-02" in line
