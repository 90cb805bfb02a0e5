r"""Texts within quotes or tags that no language defines.

\n, \t, \\, \', \", \xNN and \uNNNN are read, and any other backslash stays what it is, as in C:\Users.
"""

from __future__ import annotations

import re

_ESCAPE = re.compile(r"\\(?:([nt\\'\"])|x([0-9A-Fa-f]{2})|u([0-9A-Fa-f]{4}))")
_CHARACTERS = {"n": "\n", "t": "\t"}
_WRITTEN = {"\\": "\\\\", "\n": "\\n", "\t": "\\t", "'": "\\'"}
# Quotes, and what a reader of the text would take for something else: tags and fences.
_SPECIAL = re.compile(r"[\\\n\t']|<(?=/?(?:think|action|answer|tool_call)>)|`(?=``)")
_BLANK_ENDS = re.compile(r"\A +| +\Z")


def unescaped(text: str) -> str:
    """The text that is meant."""
    return _ESCAPE.sub(_character, text)


def escaped(text: str) -> str:
    """A text as `unescaped` reads it, on one line, without tags, fences and bare quotes."""
    return _SPECIAL.sub(lambda found: _WRITTEN.get(found.group(), f"\\x{ord(found.group()):02x}"), text)


def python_text(text: str) -> str:
    """A text as a Python string in single quotes."""
    return f"'{escaped(text)}'"


def escaped_ends(text: str) -> str:
    """The same with blanks at its ends spelt out, where blanks around it are not read; quotes stay bare."""
    written = escaped(text).replace("\\'", "'")
    return _BLANK_ENDS.sub(lambda found: "\\x20" * len(found.group()), written)


def _character(found: re.Match[str]) -> str:
    plain, byte, unit = found.groups()
    return _CHARACTERS.get(plain, plain) if plain else chr(int(byte or unit, 16))
