r"""Mathematics: math-verify's judgement without its holes, and no expression that stops the run."""

from __future__ import annotations

import contextlib
import os
import signal
from concurrent.futures import ThreadPoolExecutor
from itertools import product

import psutil
import pytest
from math_verify import LatexExtractionConfig, parse, verify

from vlrl.errors import ConfigError
from vlrl.rewards.math.reward import math


def score(said: str, answer: object, **options: object) -> float:
    return math(said, answer, part="whole", **options)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("said", "answer"),
    [
        *(
            ("8", "8"),
            ("8", 8),
            ("08", "8"),
            ("8.0", "8"),
            ("$8$", "8"),
            ("8.", "8"),
            (r"\(8\)", "8"),
            ("(8)", "8"),
        ),
        *(
            (r"\boxed{8}", "8"),
            (r"So it is \boxed{8}.", "8"),
            (r"$\boxed{\frac{1}{2}}$", "0.5"),
            ("8 cm", "8"),
        ),
        *(
            ("0.5", r"\frac12"),
            ("1/2", r"\frac{1}{2}"),
            ("0.333333", r"\frac{1}{3}"),
            (r"1\frac{1}{2}", "3/2"),
        ),
        *((r"50\%", "0.5"), ("1,234", "1234"), (r"1{,}234", "1234"), (r"1\,234", "1234"), ("-3", "-3")),
        *((r"1.2\times 10^3", "1200"), (r"1.2 \cdot 10^{-3}", "0.0012"), (r"2\sqrt2", r"\sqrt{8}")),
        *(("(x+1)^2", "x^2+2x+1"), ("3>x", "x<3"), ("8", "x=8"), ("x=8", "8"), ("3+5=8", "8")),
        *(
            (r"\{2,1\}", r"\{1,2\}"),
            ("2,1", "1,2"),
            ("[0,1)", "[0,1)"),
            ("(1,2)", "(1,2)"),
            ("30", r"30^\circ"),
        ),
        *((r"\infty", r"\infty"), ("cat", r"\text{cat}"), (r"\begin{pmatrix}1&2\end{pmatrix}",) * 2),
    ],
)
def test_the_same_value_in_other_words(said: str, answer: object) -> None:
    assert score(said, answer) == (0.0 if said == "3+5=8" else 1.0)  # a plain number is asked for
    assert score(said, answer, unevaluated=True) == 1.0
    assert math(f"<think>?</think><answer>{said}</answer>", answer) == score(said, answer)


NOT_EIGHT = [
    *(
        "",
        "9",
        "eight",
        "nan",
        r"\infty",
        "x",
        "8x",
        "The answer is 8",
        r"\text{not }8",
        "8?",
        "$",
        "$$",
        r"\boxed{}",
    ),
    *(
        "1,2,8",
        "8,8",
        "8;8",
        "8 or 9",
        "8 8",
        "5 3",
        r"5\quad 3",
        r"5\ 3",
        r"\{8\}",
        r"8\lor 9",
        r"8\text{ or }9",
    ),
    *("7=8", "1=2=8", "x=8=9", "7<8", r"8\neq 9", r"x\in\{8,9\}", "$7$ or $8$", "$7$ $8$", "8!", "8^0"),
    *(
        r"\boxed{7}\boxed{8}",
        r"\boxed{8}\boxed{8}",
        r"\boxed{\boxed{8}}",
        r"\boxed{8",
        r"\boxed 8",
        "8" * 1000,
    ),
    *("4+4", "2^3", r"\sqrt{64}", r"2\times4", r"\max(1,2,8)", "|8|", "-8+16", "8!!/8!!*8", "9-1", "10-2"),
    *("__import__('os')", "8\x00", "\ud800", "{" * 1000, r"\boxed{8}" * 1000, "8," * 900 + "8"),
]


@pytest.mark.parametrize("said", NOT_EIGHT)
def test_what_is_not_the_number_eight_scores_nothing(said: str) -> None:
    assert score(said, "8") == 0.0
    assert math(said, "8") == 0.0  # nor out of form


def test_a_set_does_not_count_twice() -> None:
    assert score("1,2", r"\{1,2\}") == 1.0
    assert score("1,2,1,2", r"\{1,2\}") == score("1,2,3", r"\{1,2\}") == score("1", r"\{1,2\}") == 0.0


def test_which_box_counts() -> None:
    two = r"First \boxed{7}, then \boxed{\frac{16}{2}}."
    assert (
        score(two, "8") == 0.0
        and score(two, "8", boxed="last") == 1.0
        and score(two, "7", boxed="last") == 0.0
    )
    assert score("8", "8", boxed="required") == score("8", "8", boxed="last") == 0.0
    assert score(r"It is \boxed{8}", "8", boxed="required") == 1.0
    assert score(r"\boxed{\{1,2\}}", r"\{1,2\}") == 1.0  # escaped braces are none
    with pytest.raises(ConfigError, match="boxed='first'"):
        score("8", "8", boxed="first")


def test_math_verify_s_judgement_on_two_hundred_pairs() -> None:
    """verify(parse(answer), parse(said)) of the library itself, where none of the closed holes is in play."""
    values = [
        "3",
        "-3",
        "0.5",
        r"\frac{1}{2}",
        r"\frac{2}{4}",
        r"\sqrt{2}",
        r"2\sqrt{2}",
        r"\sqrt{8}",
        r"50\%",
    ]
    values += ["x+1", "1+x", "x=3", r"\pi", "3.141593", r"(1,2)", "[1,2]"]
    readers = [LatexExtractionConfig()]
    pairs = list(product(values, values))
    assert len(pairs) >= 200
    for answer, said in pairs:
        theirs = verify(parse(f"${answer}$", readers), parse(f"${said}$", readers))
        assert score(said, answer, unevaluated=True) == float(theirs), (answer, said)


HOSTILE = [
    "9^9^9^9",
    "9^{9^{9^{9}}}",
    "1000000!",
    "10^{10^{10}}!",
    r"\prod_{n=1}^{1000000000} n",
    r"\sum_{n=1}^{10^{10}} \frac{1}{n^n}",
    r"\int_0^1 \int_0^1 \sin(\cos(\tan(x^x^x))) dx dy",
    r"\begin{pmatrix}" + r"\\".join("&".join("x" * 12) for _ in range(12)) + r"\end{pmatrix}^{1000}",
    r"\frac{1}{" * 150 + "1" + "}" * 150,
    r"\frac{1}{" * 10_000 + "1" + "}" * 10_000,
    "(" * 900 + "8" + ")" * 900,
    r"\sqrt{" * 200 + "2" + "}" * 200,
    "(x+y+z+w)^{200}-1",
    "1e400",
]


@pytest.mark.parametrize("number", range(len(HOSTILE)))
def test_a_hostile_expression_scores_nothing_and_the_next_is_judged(number: int) -> None:
    said = HOSTILE[number]
    assert score(said, "x^2", limit_s=0.5) == 0.0
    assert score(said, "8.5", unevaluated=True, limit_s=0.5) == 0.0
    assert score(rf"\frac{{{2 * number + 1}}}{{2}}", f"{number}.5", limit_s=5.0) == 1.0


@pytest.mark.parametrize(
    "answer", [None, "", [], "$", "1 $ 2", "x" * 2001, r"\boxed{1}\boxed{2}", float("nan")]
)
def test_an_unusable_sample_is_not_scored(answer: object) -> None:
    for said in ("8", ""):
        with pytest.raises(ValueError, match=r"the sample's answer|no 'answer'"):
            score(said, answer)


def test_an_answer_that_takes_too_long_is_the_sample_s_fault_not_the_model_s() -> None:
    for said in ("8.5", "", "9^9^9^9"):
        with pytest.raises(ValueError, match="cannot be read as an expression within its limits"):
            score(said, "(" * 900 + "8" + ")" * 900, limit_s=0.3)


def test_a_limit_that_is_none_is_refused() -> None:
    for limit_s in (0.0, -1.0, float("nan"), 1e9):
        with pytest.raises(ConfigError, match="limit_s"):
            score("8", "8", limit_s=limit_s)


def workers() -> list[int]:
    """Process ids of the children that read expressions."""
    found = []
    for child in psutil.Process().children():
        with contextlib.suppress(psutil.NoSuchProcess):  # it has ended in between
            if any("math.worker" in word for word in child.cmdline()):
                found.append(child.pid)
    return found


def test_it_works_in_threads_at_once() -> None:
    """math-verify's own limit does not: its signals need the main thread."""
    with ThreadPoolExecutor(4) as threads:
        found = list(threads.map(lambda n: score(rf"\frac{{{n}}}{{7}}", f"{n}/7"), range(1, 41)))
    assert found == [1.0] * 40
    assert 1 <= len(workers()) <= 5


def test_it_works_in_a_forked_process() -> None:
    assert score(r"\frac{3}{11}", "3/11") == 1.0  # there is a process to inherit
    child = os.fork()
    if child == 0:
        right = score(r"\frac{5}{11}", "5/11") == 1.0 and score("4", "5/11") == 0.0
        os._exit(0 if right else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert score(r"\frac{6}{11}", "6/11") == 1.0


def test_a_process_that_is_killed_from_outside_is_a_failure_and_not_a_zero() -> None:
    """Law 7: by the kernel for lack of memory, for instance."""
    assert score(r"\frac{7}{13}", "7/13") == 1.0
    killed = list(workers())
    for pid in killed:
        os.kill(pid, signal.SIGKILL)
    with pytest.raises(RuntimeError, match="ended with exit status -9"):
        score(r"\frac{8}{13}", "8/13")
    for _ in killed:
        try:
            assert score(r"\frac{9}{13}", "9/13") == 1.0
            break
        except RuntimeError:
            continue
    assert score(r"\frac{10}{13}", "10/13") == 1.0
