"""Optional packages: which extra installs them, and which FAISS is installed, of which there must be exactly one.

Reads package metadata; never imports FAISS.
"""

from __future__ import annotations

import importlib.util
from importlib.metadata import PackageNotFoundError, version

from engine.errors import EngineError, MissingExtra


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


DISTRIBUTIONS = ("faiss-cpu", "faiss-gpu", "faiss-gpu-cuvs")
_SLOW = "faiss-gpu-cu12"  # its CPU code was built without SIMD: up to 100 times slower


def installed_faiss() -> dict[str, str]:
    """Name and version of every FAISS distribution in this environment."""
    found = {}
    for name in (*DISTRIBUTIONS, _SLOW):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def require_one_faiss() -> None:
    """Check that exactly one usable FAISS is installed.

    The distributions share one folder: installing a second one breaks both, and
    removing it deletes files of the first.

    Raises:
        MissingExtra: there is none.
        EngineError: there are several, or a build that is unusably slow.
    """
    found = installed_faiss()
    if not found:
        raise MissingExtra("The index", "FAISS", "cpu")
    if len(found) > 1 or _SLOW in found:
        names = " and ".join(f"{name} {number}" for name, number in found.items())
        kept = "faiss-gpu" if "faiss-gpu" in found else "faiss-cpu"
        raise EngineError(
            f"{names} is installed, but exactly one of {', '.join(DISTRIBUTIONS)} must be; reinstall it: "
            f"pip uninstall -y {' '.join(found)} && pip install --force-reinstall --no-deps {kept}"
        )
