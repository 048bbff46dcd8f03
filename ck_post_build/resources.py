"""Where the files that are not Python live: Jinja templates, the C++ runtime, the CMake module.

A wheel carries them under ``ck_post_build/data``; a source checkout has them beside the package.
"""

from __future__ import annotations

from pathlib import Path

import jinja2

_PACKAGE = Path(__file__).resolve().parent


def resource_dir(name: str) -> Path:
    """Return the directory of resources called `name` (``templates``, ``ck_jit_runtime`` or ``cmake``)."""
    packaged = _PACKAGE / "data" / name
    return packaged if packaged.is_dir() else _PACKAGE.parent / name


def template_environment() -> jinja2.Environment:
    """Return the Jinja environment of all templates: undefined names are errors, lines stay as written."""
    return jinja2.Environment(
        loader=jinja2.FileSystemLoader(resource_dir("templates")),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,
    )
