"""Whether an optional package is installed, asked before the module that imports the package is loaded."""

from __future__ import annotations

import importlib.util

from engine.errors import MissingExtra


def check_extra(module: str, feature: str, package: str, extra: str) -> None:
    """Refuse a feature whose package is not installed.

    Args:
        module: that the package is imported by.
        feature: what needs it, for the message.
        package: its name on PyPI.
        extra: of longmatch that brings it.

    Raises:
        MissingExtra: it is not installed; the message has the command that installs it.
    """
    if importlib.util.find_spec(module) is None:
        raise MissingExtra(feature, package, extra)
