"""A page from a template: nothing fetched, everything a row says escaped."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

TEMPLATES = Path(__file__).parent / "templates"


def write_page(path: Path, template: str, **context: Any) -> None:
    """Render a template of this package into `path`, by a rename."""
    aside = path.with_name(f"{path.name}.part")
    aside.write_text(render_page(template, **context), encoding="utf-8", errors="replace")
    os.replace(aside, path)


def render_page(template: str, **context: Any) -> str:
    """A template of this package, everything put into it escaped."""
    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template(template).render(**context)
