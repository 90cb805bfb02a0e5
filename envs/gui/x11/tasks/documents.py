"""Files of an office suite: made for tasks, and read from what the agent saved, which may be anything."""

from __future__ import annotations

import io
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from xml.etree import ElementTree
from xml.sax.saxutils import escape

from vlrl.envs.gui.x11.sandbox.home import Tree

_MOST_BYTES = 1 << 21
_MOST_CELLS = 500
_OASIS = "urn:oasis:names:tc:opendocument:xmlns"
_OFFICE, _TEXT, _TABLE = (f"{{{_OASIS}:{name}:1.0}}" for name in ("office", "text", "table"))
_STYLE, _FO = f"{{{_OASIS}:style:1.0}}", f"{{{_OASIS}:xsl-fo-compatible:1.0}}"
_WORD = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_KINDS = {"ods": "spreadsheet", "odt": "text"}
_CONTENT = (
    '<?xml version="1.0" encoding="UTF-8"?><office:document-content office:version="1.3" '
    + " ".join(f'xmlns:{name}="{_OASIS}:{name}:1.0"' for name in ("office", "text", "table"))
    + "><office:body><office:{kind}>{body}</office:{kind}></office:body></office:document-content>"
)
_MANIFEST = (
    '<?xml version="1.0" encoding="UTF-8"?><manifest:manifest manifest:version="1.3" '
    f'xmlns:manifest="{_OASIS}:manifest:1.0">'
    '<manifest:file-entry manifest:full-path="/" manifest:media-type="{media}"/>'
    '<manifest:file-entry manifest:full-path="content.xml" manifest:media-type="text/xml"/>'
    "</manifest:manifest>"
)
_NO_DOCUMENT = (
    *(zipfile.BadZipFile, zlib.error, EOFError),  # damaged
    *(KeyError, ElementTree.ParseError, ValueError),  # another kind of file
    *(RuntimeError, OSError),  # encrypted, packed in a way that zipfile does not know, wrong offsets
)
"""What reading a file that an agent wrote may raise."""
Row = Sequence[str]


def sheet(rows: Sequence[Row]) -> bytes:
    """An .ods with one sheet; digits become numbers."""
    made = "".join(
        f"<table:table-row>{''.join(map(_cell, row))}</table:table-row>" for row in rows if len(row) > 0
    )
    return _packed("ods", f'<table:table table:name="Sheet1">{made}</table:table>')


def text(paragraphs: Sequence[str]) -> bytes:
    """An .odt."""
    return _packed("odt", "".join(f"<text:p>{escape(paragraph)}</text:p>" for paragraph in paragraphs))


def rows_of(tree: Tree, path: str) -> list[list[str]]:
    """The first sheet of an .ods, without what is empty at the ends; [] of anything else."""
    content = _parsed(tree, path, "content.xml")
    first = None if content is None else content.find(f".//{_TABLE}table")
    rows: list[list[str]] = []
    for row in [] if first is None else first.iter(f"{_TABLE}table-row"):
        cells = list(_values(row))
        while cells and not cells[-1]:
            cells.pop()
        rows += [cells] * (_repeats(row, "rows") if cells else 1)
    while rows and not rows[-1]:
        rows.pop()
    return rows[:_MOST_CELLS]


def paragraphs_of(tree: Tree, path: str) -> list[str]:
    """The paragraphs and headings of an .odt or a .docx that are not empty; [] of anything else."""
    if path.endswith(".docx"):
        content = _parsed(tree, path, "word/document.xml")
        found = [] if content is None else [_plain(one, f"{_WORD}t") for one in content.iter(f"{_WORD}p")]
    else:
        found = [_plain(one) for one in _blocks(tree, path)]
    return [paragraph for paragraph in found if paragraph]


def headings_of(tree: Tree, path: str) -> list[str]:
    """The headings of the first level of an .odt."""
    level = f"{_TEXT}outline-level"
    return [_plain(one) for one in _blocks(tree, path) if one.tag == f"{_TEXT}h" and one.get(level) == "1"]


def styled(tree: Tree, path: str, name: str, value: str) -> list[str]:
    """Texts of an .odt whose own style has a property of the letters, such as font-weight bold."""
    content = _parsed(tree, path, "content.xml")
    if content is None:
        return []
    styles = {
        style.get(f"{_STYLE}name")
        for style in content.iter(f"{_STYLE}style")
        if any(one.get(_FO + name) == value for one in style.iter(f"{_STYLE}text-properties"))
    }
    kinds = (f"{_TEXT}p", f"{_TEXT}h", f"{_TEXT}span")
    return [
        _plain(one) for one in content.iter() if one.tag in kinds and one.get(f"{_TEXT}style-name") in styles
    ]


def _cell(value: str) -> str:
    number = f' office:value-type="float" office:value="{value}"' if value.isdigit() else ""
    return f"<table:table-cell{number}><text:p>{escape(value)}</text:p></table:table-cell>"


def _packed(ending: str, body: str) -> bytes:
    media = f"application/vnd.oasis.opendocument.{_KINDS[ending]}"
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in (
            ("mimetype", media),
            ("content.xml", _CONTENT.format(kind=_KINDS[ending], body=body)),
            ("META-INF/manifest.xml", _MANIFEST.format(media=media)),
        ):
            archive.writestr(zipfile.ZipInfo(name), content)  # always of 1980
    return buffer.getvalue()


def _parsed(tree: Tree, path: str, member: str) -> ElementTree.Element | None:
    """One file of an archive; None if there is no such, or it is too large or defines entities."""
    try:
        with zipfile.ZipFile(io.BytesIO(tree.get(path, b""))) as archive, archive.open(member) as file:
            data = file.read(_MOST_BYTES + 1)
        if len(data) > _MOST_BYTES or b"<!" in data:
            return None
        return ElementTree.fromstring(data)
    except _NO_DOCUMENT:
        return None


def _blocks(tree: Tree, path: str) -> list[ElementTree.Element]:
    content = _parsed(tree, path, "content.xml")
    tags = (f"{_TEXT}p", f"{_TEXT}h")
    return [] if content is None else [one for one in content.iter() if one.tag in tags]


def _plain(element: ElementTree.Element, tag: str | None = None) -> str:
    return (
        "".join("".join(one.itertext()) for one in element.iter(tag)) if tag else "".join(element.itertext())
    )


def _values(row: ElementTree.Element) -> Iterator[str]:
    for cell in row.iter(f"{_TABLE}table-cell"):
        number = cell.get(f"{_OFFICE}value")
        value = "\n".join(_plain(one) for one in cell.iter(f"{_TEXT}p")) if number is None else number
        yield from [value] * _repeats(cell, "columns")


def _repeats(element: ElementTree.Element, kind: str) -> int:
    count = element.get(f"{_TABLE}number-{kind}-repeated", "1")
    return min(int(count), _MOST_CELLS) if count.isdecimal() else 1
