"""Files as agents leave them: python osworld_files.py FOLDER writes done/ and untouched/.

It runs in the interpreter that has OSWorld's package, which has what writes them.
"""

from __future__ import annotations

import json
import sqlite3
import sys
import zipfile
from pathlib import Path

import docx
import numpy as np
import openpyxl
import pptx
import pypdf
from PIL import Image


def write(folder: Path, done: bool) -> None:
    """One of each kind; `done` says whether what is asked for is in it."""
    folder.mkdir(parents=True)
    book = openpyxl.Workbook()
    for row in [("item", "price"), ("tea", 3), ("milk", 2), *([("sum", 5)] if done else [])]:
        book.active.append(row)
    book.save(folder / "prices.xlsx")
    document = docx.Document()
    document.add_heading("Report", 1)
    document.add_paragraph("It is finished." if done else "It is a draft.")
    document.save(str(folder / "report.docx"))
    slides = pptx.Presentation()
    slides.slides.add_slide(slides.slide_layouts[0]).shapes.title.text = "New title" if done else "Title"
    slides.save(str(folder / "talk.pptx"))
    pages = pypdf.PdfWriter()
    for _ in range(3 if done else 1):
        pages.add_blank_page(200, 200)
    pages.write(folder / "paper.pdf")
    (folder / "table.csv").write_text("a,b\n1,2\n" if done else "a,b\n")
    (folder / "note.txt").write_text("Hello, world\n" if done else "Hello\n")
    (folder / "settings.json").write_text(json.dumps({"editor": {"fontSize": 20 if done else 12}}))
    with zipfile.ZipFile(folder / "all.zip", "w") as archive:
        archive.writestr("note.txt", (folder / "note.txt").read_text())
    rng = np.random.default_rng(0)
    photo = np.kron(rng.integers(60, 250, (16, 16, 3)), np.ones((8, 8, 1)))
    Image.fromarray((photo * (0.5 if done else 1.0)).astype(np.uint8)).save(folder / "photo.png")
    with sqlite3.connect(folder / "mail.sqlite") as database:
        database.execute("create table mails (starred integer)")
        database.execute("insert into mails values (?)", (int(done),))


if __name__ == "__main__":
    for name in ("done", "untouched"):
        write(Path(sys.argv[1]) / name, name == "done")
