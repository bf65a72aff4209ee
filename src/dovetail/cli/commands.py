"""Which commands there are, and where: each is imported when it is asked for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pkgutil import resolve_name
from typing import Any

import typer
from typer.core import TyperGroup

PLACES = {
    "demo": "dovetail_study.commands.demo_command:demo",
    "init": "dovetail.cli.init_command:init",
    "solve": "dovetail.cli.solve_command:solve",
    "check": "dovetail.cli.check_command:check",
    "report": "dovetail.cli.report_command:report",
    "list": "dovetail.cli.list_command:list_parts",
    "bench": "dovetail_study.commands.bench_command:bench",
    "migrate": "dovetail_peers.migrate_command:migrate",
}
"""The function of each command, in the order in which `dovetail --help` shows them."""


class LoadedCommands(Mapping[str, Any]):
    """The commands by name; asking for one imports its file."""

    def __getitem__(self, name: str) -> Any:
        alone = typer.Typer(add_completion=False)
        alone.command(name)(resolve_name(PLACES[name]))
        return typer.main.get_command(alone)

    def __iter__(self) -> Iterator[str]:
        return iter(PLACES)

    def __len__(self) -> int:
        return len(PLACES)


class Commands(TyperGroup):
    """The group of all commands: a command that nobody asks for costs no import."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**{**settings, "commands": LoadedCommands()})
