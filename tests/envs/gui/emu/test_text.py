"""Editing of texts, breaking them into lines, and the virtual disk."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vlrl.envs.gui.emu import files
from vlrl.envs.gui.emu.drawing.glyphs import Font, text_width
from vlrl.envs.gui.emu.input import text
from vlrl.envs.gui.emu.state import TextCursor
from vlrl.envs.gui.emu.strings import LANGUAGES, WORDS, add_words, speak, tr
from vlrl.envs.gui.emu.widgets.entry import row_of

TEXTS = st.text(alphabet="ab é\n.", max_size=60)


@given(TEXTS, st.integers(20, 200))
def test_lines_hold_every_letter_once_and_fit(written: str, width: int) -> None:
    font = Font("sans", 13)
    spans = text.wrap(written, width, font)
    between = [written[end:start] for (_, end), (start, _) in pairwise(spans)]
    assert spans[0][0] == 0 and spans[-1][1] == len(written) and set(between) <= {"", "\n"}
    assert sum(gap == "\n" for gap in between) == written.count("\n")
    for start, end in spans:
        assert text_width(font, written[start:end].rstrip(" ")) <= width or end - start == 1
    for at in range(len(written) + 1):
        start, end = spans[row_of(spans, at)]
        assert start <= at <= end


@given(TEXTS, st.integers(0, 60), st.integers(0, 60), st.booleans(), st.booleans())
def test_the_cursor_stays_in_the_text(written: str, one: int, other: int, forward: bool, word: bool) -> None:
    cursor = text.clamped(TextCursor(one, other), written)
    for extend in (False, True):
        moved = text.step(written, cursor, forward=forward, word=word, extend=extend)
        assert 0 <= moved.caret <= len(written) and (not extend or moved.anchor == cursor.anchor)
    shorter, after = text.erase(written, cursor, forward=forward, word=word)
    assert 0 <= after.caret == after.anchor <= len(shorter) <= len(written)
    longer, after = text.insert(written, cursor, "new")
    assert longer[after.caret - 3 : after.caret] == "new"
    assert len(longer) == len(written) - len(text.selected(written, cursor)) + 3


def test_words_and_paragraphs_around_a_place() -> None:
    written = "one, two\nthree_4 five"
    assert text.selected(written, text.word_at(written, 6)) == "two"
    assert text.selected(written, text.word_at(written, 12)) == "three_4"
    assert text.selected(written, text.paragraph_at(written, 2)) == "one, two"
    assert text.selected(written, text.paragraph_at(written, 20)) == "three_4 five"


def test_the_virtual_disk_keeps_whole_folders_together() -> None:
    disk = files.write(files.empty_disk(), "/Documents/a/b.txt", "one", 1)
    assert files.is_folder(disk, "/Documents/a") and disk["/Documents/a/b.txt"].content == "one"
    moved = files.move(disk, "/Documents/a", "/Pictures/c")
    assert moved["/Pictures/c/b.txt"].content == "one" and "/Documents/a/b.txt" not in moved
    assert files.move(disk, "/Documents", "/Documents/a/x") == disk
    copied = files.copy(disk, "/Documents/a", "/Documents/z")
    assert copied["/Documents/z/b.txt"] == copied["/Documents/a/b.txt"]
    assert "/Documents/a" not in files.delete(disk, "/Documents/a")
    assert "/Documents/a/b.txt" not in files.delete(disk, "/Documents/a")
    assert files.listing(copied, "/Documents") == ["/Documents/a", "/Documents/z"]
    assert files.listing(disk, "/")[0] == "/Desktop"


def test_every_word_is_there_in_every_language() -> None:
    for language in LANGUAGES:
        speak(language)
        for english in WORDS:
            assert tr(english).strip()
    speak("de")
    assert (tr("Save"), tr("no such word")) == ("Speichern", "no such word")
    speak("en")
    assert tr("Save") == "Save"


def test_a_word_means_one_thing() -> None:
    add_words("Save = Speichern = Enregistrer = Guardar")
    with pytest.raises(ValueError, match=r"'Save' is already .*Save\|kind"):
        add_words("Save = Retten = Sauver = Salvar")
    assert WORDS["Save"][0] == "Speichern"
