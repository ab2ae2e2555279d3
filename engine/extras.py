"""Checks whether an optional package is installed, before the module that imports it is loaded."""

from __future__ import annotations

import importlib.util

from engine.errors import MissingExtra


def check_extra(module: str, feature: str, package: str, extra: str) -> None:
    """Refuse a feature whose package is not installed.

    Args:
        module: name under which the package is imported.
        feature: name of the feature, for the message.
        package: name of the package on PyPI.
        extra: the extra of longmatch that installs the package.

    Raises:
        MissingExtra: the package is not installed; the message has the install command.
    """
    if importlib.util.find_spec(module) is None:
        raise MissingExtra(feature, package, extra)
