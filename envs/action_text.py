"""The text of an action in what a model wrote."""

from __future__ import annotations

OPENING, CLOSING = "<action>", "</action>"


def last_action(text: str) -> str | None:
    """What the last <action>…</action> of a text holds, stripped; None if there is none or it is cut off.

    An <action> that is opened after the last closing tag is ignored. Time is linear in the text's length.
    """
    end = text.rfind(CLOSING)
    start = text.rfind(OPENING, 0, max(end, 0))
    return text[start + len(OPENING) : end].strip() if start >= 0 else None
