"""Packages of extras, imported where they are used; a missing one is told with the line that helps."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from engine.errors import MissingExtra

BASELINES = "baselines"
BENCHMARKS = "benchmarks"


def optional(module: str, feature: str, package: str, extra: str = BASELINES) -> Any:  # noqa: ANN401 - they carry no types
    """Import a module of a package that not every installation has.

    Args:
        module: as in an import statement.
        feature: what needs it, for the message.
        package: its name on PyPI.
        extra: of this project that installs it.

    Raises:
        MissingExtra: the package is not installed; a fault inside it raises what it raises.
    """
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != module.partition(".")[0]:
            raise
        raise MissingExtra(feature, package, extra) from error
