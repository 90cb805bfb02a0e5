"""Files of an office suite, as tasks make them and as an agent might."""

from __future__ import annotations

import io
import zipfile

import pytest

from vlrl.envs.gui.x11.tasks.documents import headings_of, paragraphs_of, rows_of, sheet, styled, text

SPACES = " ".join(
    f'xmlns:{name}="urn:oasis:names:tc:opendocument:xmlns:{uri}:1.0"'
    for name, uri in (
        *((name, name) for name in ("office", "text", "table", "style")),
        ("fo", "xsl-fo-compatible"),
    )
)


def packed(content: str, member: str = "content.xml") -> dict[str, bytes]:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(member, content)
    return {"x": buffer.getvalue()}


def document(body: str) -> dict[str, bytes]:
    return packed(f"<office:document-content {SPACES}>{body}</office:document-content>")


def test_what_is_made_is_read_back() -> None:
    rows = [["a & b", "7", "30"], ["c", "", "1"]]
    assert rows_of({"x": sheet(rows)}, "x") == rows
    assert paragraphs_of({"x": text(["one <b>", "two"])}, "x") == ["one <b>", "two"]


def test_repeated_cells_and_rows_count_as_many_and_empty_ends_do_not() -> None:
    tree = document(
        "<table:table><table:table-row><table:table-cell table:number-columns-repeated='2' "
        "office:value='3'/><table:table-cell table:number-columns-repeated='16000'/></table:table-row>"
        "<table:table-row table:number-rows-repeated='1048000'><table:table-cell/></table:table-row>"
        "</table:table>"
    )
    assert rows_of(tree, "x") == [["3", "3"]]


def test_headings_and_bold_texts_are_told_from_others() -> None:
    tree = document(
        "<style:style style:name='P1'><style:text-properties fo:font-weight='bold'/></style:style>"
        "<style:style style:name='P2'><style:text-properties fo:font-weight='normal'/></style:style>"
        "<text:h text:outline-level='1'>A</text:h><text:h text:outline-level='2'>B</text:h>"
        "<text:p text:style-name='P1'>C</text:p><text:p text:style-name='P2'>D</text:p>"
    )
    assert headings_of(tree, "x") == ["A"] and styled(tree, "x", "font-weight", "bold") == ["C"]
    assert paragraphs_of(tree, "x") == ["A", "B", "C", "D"]


BOMB = '<!DOCTYPE x [<!ENTITY a "aaaaaaaaaa">]><x>&a;</x>'


@pytest.mark.parametrize(
    "tree",
    [
        {},
        {"x": b"not an archive"},
        {"x": sheet([["1"]])[:-30]},
        packed("<broken"),
        packed(BOMB),
        packed("<x/>", "other.xml"),
        packed("<x>" + " " * (1 << 22) + "</x>"),
    ],
    ids=["none", "text", "cut", "no xml", "entities", "no content", "too large"],
)
def test_what_is_no_such_file_has_nothing_in_it(tree: dict[str, bytes]) -> None:
    assert rows_of(tree, "x") == [] and paragraphs_of(tree, "x") == [] and headings_of(tree, "x") == []
