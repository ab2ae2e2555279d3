"""The study of kills on Ray finds documents that were encoded twice, shards with other bytes, and failed runs."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.partitions.ray_job import Running, _family
from benchmarks.partitions.ray_kills import Trial, shard_digests
from engine.errors import EngineError
from indexer.building.builder import build
from tests.fakes import FakeEncoder, make_corpus, make_document


def test_a_document_that_is_encoded_again_counts_as_encoded_twice(tmp_path: Path) -> None:
    build(tmp_path / "x.lm", make_corpus(4), encoder=FakeEncoder())
    trial = Trial(tmp_path / "x.lm")
    assert (trial.look(), trial.look(), trial.n_twice) == (4, 4, 0)
    other = make_document("doc002", "another text")
    build(tmp_path / "x.lm", [other], encoder=FakeEncoder())
    assert (trial.look(), trial.n_twice) == (4, 1)


def test_shards_are_compared_by_their_bytes(tmp_path: Path) -> None:
    for name in ("a", "b"):
        build(tmp_path / name / "x.lm", make_corpus(4), encoder=FakeEncoder())
    mine, theirs = (shard_digests(tmp_path / name / "x.lm") for name in ("a", "b"))
    assert mine == theirs and len(mine) == 1
    build(tmp_path / "b" / "x.lm", [make_document("more", "another text")], encoder=FakeEncoder())
    assert len(shard_digests(tmp_path / "b" / "x.lm")) == 2


def test_a_run_that_fails_is_an_error_with_its_last_line(tmp_path: Path) -> None:
    log = tmp_path / "run.log"
    log.write_text("one\nno more memory\n")
    failing = subprocess.Popen([sys.executable, "-c", "raise SystemExit(3)"])
    with pytest.raises(EngineError, match="ended with 3: no more memory"):
        Running(failing, log).finish(60)


def test_the_processes_of_a_run_include_its_descendants() -> None:
    script = "import subprocess, sys; subprocess.run([sys.executable, '-c', 'print(1); input()'])"
    with subprocess.Popen([sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        parent.stdout.readline()  # the child runs
        family = _family(parent.pid)
        assert len(family) == 2 and parent.pid in family and os.getpid() not in family
        parent.communicate(b"\n")
    assert _family(parent.pid) == {}
