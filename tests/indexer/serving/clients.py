"""An index behind the test client of Starlette: the real application without a socket."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from starlette.testclient import TestClient

from engine.encoders.encoder import Encoder
from indexer.serving.app import create_app
from indexer.serving.service import Service
from indexer.serving.settings import ServerSettings
from tests.fakes import FakeEncoder

WAIT_SECONDS = 60.0


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + WAIT_SECONDS
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


@contextmanager
def served(
    folder: Path, settings: ServerSettings | None = None, encoder: Encoder | None = None
) -> Iterator[TestClient]:
    service = Service(folder, settings or ServerSettings(threads=2, reload=0.02), encoder or FakeEncoder())
    with TestClient(create_app(service), base_url="http://127.0.0.1") as client:
        until(lambda: service.live.is_ready)
        yield client
