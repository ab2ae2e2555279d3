"""A Ray cluster for the tests of one process, on the loopback interface."""

from __future__ import annotations

import importlib.util
from contextlib import ExitStack
from functools import cache
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from indexer.cluster.session import RayCluster

N_CPUS = 2
_OPENED = ExitStack()


def ray_cluster() -> RayCluster:
    """The cluster, which is started for the first test that needs one; skips the test where Ray is missing."""
    if importlib.util.find_spec("ray") is None:
        pytest.skip("ray is not installed")
    return _started()


@cache
def _started() -> RayCluster:
    from indexer.cluster.session import connected

    return _OPENED.enter_context(connected("local", N_CPUS))


def end_ray_cluster() -> None:
    """End the cluster, if a test started it."""
    _OPENED.close()
