"""Pages from templates: everything is escaped, and a policy lets a browser run our few lines and no others."""

from __future__ import annotations

import base64
import hashlib
import os
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

from dovetail.core.errors import OptionError

HERE = Path(__file__).parent


def render(template: str, **context: Any) -> str:
    """The page; style and program are put into it, with their hashes in its policy."""
    from markupsafe import Markup

    style, script = _asset("page.css"), _asset("page.js")
    policy = (
        f"default-src 'none'; script-src {_hash(script)}; style-src {_hash(style)}; "
        "base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'"
    )
    page = _environment().get_template(template)
    return page.render(style=Markup(style), script=Markup(script), policy=policy, **context)


@cache
def _environment() -> Any:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    return Environment(
        loader=FileSystemLoader(HERE),
        autoescape=True,
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


def write_whole(path: Path, text: str) -> Path:
    """Write a file under another name and rename it: nobody finds half of it, and a failure leaves nothing."""
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        part.write_text(text, encoding="utf-8")
        part.replace(path)
    except OSError as reason:
        with suppress(OSError):
            part.unlink(missing_ok=True)
        raise OptionError(f"{path} cannot be written ({reason.strerror}).") from reason
    return path
