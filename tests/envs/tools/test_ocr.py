"""Reading text: a backend of one's own, and Tesseract where it is installed."""

import shutil
from pathlib import Path
from typing import Any

import pytest
from PIL import Image, ImageDraw, ImageFont

from vlrl.coordinates import Canvas
from vlrl.envs.tools.declare import Given, Tool
from vlrl.envs.tools.open import open_tools
from vlrl.errors import ConfigError

PAGE = Image.new("RGB", (300, 100), "white")
ImageDraw.Draw(PAGE).text((20, 20), "4071", fill="black", font=ImageFont.load_default(48))
SEEN = Given([PAGE], [Canvas((100, 300), (50, 150))])


def opened(**options: Any) -> Tool:
    (made,) = open_tools(["ocr"], {"ocr": options})
    return made


def test_a_backend_of_ones_own(tmp_path: Path) -> None:
    file = tmp_path / "reader.py"
    file.write_text(
        "def size(image):\n    return f' {image.size} '\n\n"
        "def nothing(image):\n    return ''\n\n"
        "def fails(image):\n    raise OSError('no scanner')\n"
    )
    assert opened(backend=f"{file}:size").run({}, SEEN).parts == ("(300, 100)",)
    assert opened(backend=f"{file}:size").run({"box": [10, 5, 20, 30]}, SEEN).parts == ("(20, 50)",)
    assert opened(backend=f"{file}:nothing").run({}, SEEN).parts == ("(no text found)",)
    failed = opened(backend=f"{file}:fails").run({}, SEEN)
    assert failed.failed and failed.parts == ("Error: ocr failed: OSError: no scanner",)
    assert opened(backend=f"{file}:size").run({"box": [5, 5, 5, 5]}, SEEN).failed
    with pytest.raises(ConfigError, match="has no 'sise'; did you mean 'size'"):
        opened(backend=f"{file}:sise")


def test_tesseract_or_what_to_install(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    if shutil.which("tesseract"):
        assert opened().run({"box": [0, 0, 150, 50]}, SEEN).parts == ("4071",)
        with pytest.raises(ConfigError, match=r"tesseract failed: .*xyz"):
            opened(language="xyz").run({}, SEEN)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ConfigError, match=r"tool 'ocr': the program tesseract is not installed; install it"):
        opened()
