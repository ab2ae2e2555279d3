from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from tests.indexer.serving.clients import served


@pytest.fixture(scope="session")
def client(built_folder: Path) -> Iterator[TestClient]:
    with served(built_folder) as client:
        yield client
