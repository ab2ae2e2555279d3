"""All copies of a replica group are of one snapshot."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from engine.index import Index
from indexer.building.builder import build
from indexer.serving.replicas import ReplicaGroup
from tests.fakes import make_document


def test_copies_are_of_one_snapshot_though_a_build_commits_between_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "x.lm"
    build(folder, [make_document("old", "the old fox runs. " * 9)], encode="none")
    opened, open_index = [], Index.open

    def open_and_commit(*arguments: Any, **named: Any) -> Index:  # noqa: ANN401 - those of Index.open
        index = open_index(*arguments, **named)
        opened.append(index)
        if len(opened) == 2:
            build(folder, [make_document("new", "the new dog barks. " * 9)], encode="none")
        return index

    monkeypatch.setattr("indexer.serving.replicas.Index.open", open_and_commit)
    group = ReplicaGroup(folder, None, 3, None, store=False)
    copies = [group.take() for _ in range(3)]
    assert len(opened) == 5  # the first two are opened again
    assert {copy.index.n_documents for copy in copies if copy} == {2}
    assert len({copy.state for copy in copies if copy}) == 1
    for copy in copies:
        assert copy is not None
        group.give_back(copy)
    group.retire()
