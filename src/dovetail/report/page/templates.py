"""Pages from templates: all text is escaped, and a policy lets a browser run only the page's own script."""

from __future__ import annotations

import base64
import hashlib
from functools import cache
from pathlib import Path
from typing import Any

from dovetail.report.page.number_text import spelt_out

HERE = Path(__file__).parent


def render(template: str, **context: Any) -> str:
    """The page, with style and script and their hashes in its policy."""
    from markupsafe import Markup

    style, script = _asset("page.css"), _asset("page.js")
    policy = (
        f"default-src 'none'; script-src {_hash(script)}; style-src {_hash(style)}; "
        "base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'"
    )
    page = _environment().get_template(template)
    return str(page.render(style=Markup(style), script=Markup(script), policy=policy, **context))


@cache
def _environment() -> Any:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    return Environment(
        loader=FileSystemLoader(HERE),
        autoescape=True,
        finalize=lambda value: spelt_out(value) if type(value) is str else value,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


@cache
def _asset(name: str) -> str:
    return (HERE / name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    digest = base64.b64encode(hashlib.sha256(text.encode("utf-8")).digest()).decode("ascii")
    return f"'sha256-{digest}'"
