"""Official scorers of short answers: ChartQA's relaxed accuracy and OCRBench's substring.

They are made to measure. As a reward of training prefer `numeric` and `answer_normalized`, which close what
these leave open.
"""

from __future__ import annotations

from typing import Any

from vlrl.parsing.extract import Part, references, scored_text
from vlrl.scoring.author import reward

MAX_RELATIVE_CHANGE = 0.05


@reward(range=(0.0, 1.0))
def relaxed_accuracy(completion: str, answer: Any, *, part: Part = "answer") -> float:
    """1 if the text is the answer without regard to case, or a number within 5 % of it, else 0.

    [|x − a| / |a| ≤ 0.05] where both are numbers and a is not 0; "12%" is 0.12. Range {0, 1}; of several
    references any will do. Source: ChartQA (Masry et al. 2022, arXiv 2203.10244, section 5.1), as pix2struct
    and lmms-eval compute it. Numbers are what Python's float() reads: "1,000" and "12 units" are texts.

    Raises:
        ValueError: if the sample has no answer.
    """
    right = references(answer)
    said = scored_text(completion, part)
    return float(said is not None and any(_is_close(said, reference) for reference in right))


def _is_close(said: str, reference: str) -> bool:
    number, target = _number(said), _number(reference)
    if number is not None and target:
        return abs(number - target) / abs(target) <= MAX_RELATIVE_CHANGE
    return said.lower() == reference.lower()


def _number(text: str) -> float | None:
    try:
        return float(text.rstrip("%")) / 100 if text.endswith("%") else float(text)
    except ValueError:
        return None


@reward(range=(0.0, 1.0))
def answer_contained(
    completion: str, answer: Any, *, is_formula: bool = False, part: Part = "answer"
) -> float:
    """1 if the text holds the answer, in lower case and with line ends as spaces, else 0.

    Range {0, 1}; of several references any will do. Source: OCRBench (Liu et al. 2023, arXiv 2305.07895;
    example.py). A text that lists many answers scores 1 if the right one is among them: measure with it, do
    not train with it.

    Args:
        completion: what the model wrote.
        answer: a text, or a list of equally good ones.
        is_formula: compare without any space, and with regard to case: the rule of OCRBench's HME100k.
        part: where the answer is looked for; see `vlrl.parsing.extract`.

    Raises:
        ValueError: if the sample has no answer.
    """
    right = references(answer)
    said = scored_text(completion, part)
    if said is None:
        return 0.0
    fold = _without_spaces if is_formula else _in_lower_case
    return float(any(fold(reference) in fold(said) for reference in right))


def _without_spaces(text: str) -> str:
    return text.strip().replace("\n", " ").replace(" ", "")


def _in_lower_case(text: str) -> str:
    return text.lower().strip().replace("\n", " ")
