"""Optional packages: checked for before long work, or imported with an error that names the extra."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from importlib import import_module
from typing import Any

from engine.errors import MissingExtra


def require(feature: str, packages: Mapping[str, str], extra: str) -> None:
    """Raise `MissingExtra` unless all packages of a feature are installed: distributions by imported module."""
    for module, distribution in packages.items():
        if importlib.util.find_spec(module) is None:
            raise MissingExtra(feature, distribution, extra)


EXTRA = "benchmarks"


def optional(module: str, feature: str, package: str) -> Any:  # noqa: ANN401 - they carry no types
    """Import a module of a package that not every installation has, by its name on PyPI, or raise `MissingExtra`.

    Errors inside the package are raised unchanged.
    """
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != module.partition(".")[0]:
            raise
        raise MissingExtra(feature, package, EXTRA) from error
