"""Converts exceptions of Ray into errors of this program."""

from __future__ import annotations

from typing import Any

import ray
from ray.exceptions import ActorDiedError, ActorUnavailableError, RayError, RayTaskError

from engine.errors import ClusterError, EngineError

DIED = (ActorDiedError, ActorUnavailableError)  # of the process of an actor: a new one takes over


def fetched(reference: ray.ObjectRef[Any]) -> Any:  # noqa: ANN401
    """The value of a task or a call of an actor.

    Raises:
        EngineError: raised in the task or the call.
        ClusterError: the process of a task ended repeatedly.
        ActorDiedError: the process of the actor ended.
        ActorUnavailableError: the process of the actor cannot be reached.
    """
    try:
        return ray.get(reference)
    except RayTaskError as error:
        cause = error.cause
        while isinstance(cause, RayTaskError):
            cause = cause.cause
        if isinstance(cause, EngineError):
            raise cause from None
        raise
    except DIED:
        raise
    except RayError as error:
        raise ClusterError(
            f"a process on the Ray cluster failed again and again ({first_line(error)}); what was committed is safe: "
            "look into the logs of Ray for the memory of its machine, then run the same command again to go on"
        ) from error


def first_line(error: BaseException) -> str:
    """The first line of an error message."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
