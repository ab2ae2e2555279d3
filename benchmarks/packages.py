"""Packages that not every installation has, looked for before long work; nothing is imported."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping

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
