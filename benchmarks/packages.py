"""Packages that not every installation has: looked for before long work, or imported with a message."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from importlib import import_module
from typing import Any

from engine.errors import MissingExtra


def require(feature: str, packages: Mapping[str, str], extra: str) -> None:
    """Look for the packages of a feature.

    Args:
        feature: what needs them, for the message.
        packages: by the module that is imported the distribution that is installed.
        extra: of this program, that brings them.

    Raises:
        MissingExtra: one is not installed.
    """
    for module, distribution in packages.items():
        if importlib.util.find_spec(module) is None:
            raise MissingExtra(feature, distribution, extra)


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
