"""Servers are processes that are ready when they are handed over, and gone afterwards."""

from __future__ import annotations

from pathlib import Path
from urllib.request import urlopen

import pytest

from benchmarks.datasets import DatasetError
from benchmarks.partitions.processes import served
from indexer.building.builder import build
from tests.fakes import make_corpus


@pytest.mark.slow
def test_a_server_is_ready_and_then_gone(tmp_path: Path) -> None:
    build(tmp_path / "x.lm", make_corpus(3), encode="none")
    with served([tmp_path / "x.lm"]) as (one,):
        with urlopen(f"{one.address}/health", timeout=60) as answer:
            assert answer.status == 200
        assert one.process.poll() is None and one.address.endswith(f":{one.port}")
    assert one.process.poll() is not None


def test_the_error_for_a_server_that_does_not_start_has_the_reason(tmp_path: Path) -> None:
    with (
        pytest.raises(DatasetError, match=r"a server ended before it was ready: .*holds no index"),
        served([tmp_path / "absent.lm"]),
    ):
        pass
