"""Optional packages: checked for before long work, or imported with an error that names the extra."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from importlib import import_module
from typing import Any

from engine.errors import MissingExtra


def require(feature: str, packages: Mapping[str, str], extra: str) -> None:
    """Check that the packages of a feature are installed.

    Args:
        feature: what needs them, for the message.
        packages: the distribution to install, by the module that is imported.
        extra: the extra of this project that installs them.

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
        extra: the extra of this project that installs it.

    Raises:
        MissingExtra: the package is not installed; errors inside the package are raised unchanged.
    """
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != module.partition(".")[0]:
            raise
        raise MissingExtra(feature, package, extra) from error
