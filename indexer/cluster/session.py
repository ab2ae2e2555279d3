"""Connects to a Ray cluster, or starts one on this machine for the time of a command. Runs nothing on it.

Ray reads some of its settings when it is imported, so this module is loaded before Ray is.
"""

from __future__ import annotations

import logging
import os
import re
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from engine.errors import ClusterError, EngineError

if TYPE_CHECKING:
    import ray

LOCAL, AUTO = "local", "auto"
_ADDRESS = re.compile(r"[\w.-]+:\d{1,5}", re.ASCII)
_LOCAL_TRIES = 3  # Ray gives its own processes 30 s to start, and busy machines need more
_STORE_BYTES = 1 << 28  # of objects that processes of a local cluster share; a batch takes about one megabyte
# No reports to the makers of Ray, and no lines of its processes on standard output.
_QUIET = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_DEDUP_LOGS_SKIP_REGEX": "."}
# Without this setting, whose name does not match its effect, Ray listens on all interfaces of the machine.
_LOOPBACK_ONLY = {"RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0"}


@dataclass(frozen=True, slots=True)
class RayCluster:
    """The resources of the connected cluster."""

    n_cpus: int
    n_gpus: int

    def n_workers(self, wanted: int | None) -> int:
        """How many encoders run at the same time: by default one for each GPU, or else for each core."""
        return wanted or self.n_gpus or max(1, self.n_cpus)


@contextmanager
def connected(address: str, n_cpus: int | None = None) -> Iterator[RayCluster]:
    """Connect to a cluster inside the context; an existing connection is used, and stays open.

    Args:
        address: `local` starts a cluster for this process alone, on the loopback interface; `auto` is the cluster
            that this machine belongs to; HOST:PORT names the head of that cluster.
        n_cpus: cores of a local cluster; by default all cores of this machine.
    """
    if address not in (LOCAL, AUTO) and not _ADDRESS.fullmatch(address):
        raise ClusterError(
            f"{address!r} is no address of a Ray cluster; give local, auto or HOST:PORT, on a machine that belongs to "
            "the cluster: ray start --address=HOST:PORT"
        )
    settings = _QUIET | (_LOOPBACK_ONLY | {"RAY_AUTH_TOKEN": secrets.token_hex(32)} if address == LOCAL else {})
    for name, value in settings.items():
        os.environ.setdefault(name, value)
    import ray

    is_ours = not ray.is_initialized()
    if is_ours:
        _connect(address, n_cpus)
    try:
        found = ray.cluster_resources()
        yield RayCluster(int(found.get("CPU", 0)), int(found.get("GPU", 0)))
    finally:
        if is_ours:
            ray.shutdown()


def _connect(address: str, n_cpus: int | None) -> None:
    import ray

    own = {"num_cpus": n_cpus, "include_dashboard": False, "object_store_memory": _STORE_BYTES}
    options = {"log_to_driver": False, "logging_level": logging.ERROR, **(own if address == LOCAL else {})}
    for tries_left in range(_LOCAL_TRIES - 1 if address == LOCAL else 0, -1, -1):
        try:
            ray.init(address=address, **options)
            return
        except Exception as error:  # Ray raises exceptions of many types, including builtin ones
            ray.shutdown()
            if not tries_left:
                step = "read the logs in its folder session_latest" if address == LOCAL else "start it: ray start"
                raise ClusterError(f"Ray at {address} does not answer ({first_line(error)}); {step}") from error


def fetched(reference: ray.ObjectRef[Any]) -> Any:  # noqa: ANN401
    """The value of a task or a call of an actor.

    Raises:
        EngineError: raised in the task or the call.
        ClusterError: the process of a task or an actor ended repeatedly.
    """
    import ray
    from ray.exceptions import RayError, RayTaskError

    try:
        return ray.get(reference)
    except RayTaskError as error:
        cause = error.cause
        while isinstance(cause, RayTaskError):
            cause = cause.cause
        if isinstance(cause, EngineError):
            raise cause from None
        raise
    except RayError as error:
        raise ClusterError(
            f"a process on the Ray cluster failed again and again ({first_line(error)}); what was committed is safe: "
            "look into the logs of Ray for the memory of its machine, then run the same command again to go on"
        ) from error


def first_line(error: BaseException) -> str:
    """The first line of an error message."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
