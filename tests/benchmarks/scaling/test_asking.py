from __future__ import annotations

from pathlib import Path

from benchmarks.scaling.asking import draw_names, exact_answers
from engine.index import Index
from engine.store.snapshot import Snapshot


def test_queries_are_of_the_size_that_was_asked_and_of_both_kinds(real_folder: Path) -> None:
    with Snapshot(real_folder) as snapshot:
        drawn = draw_names(snapshot, 4, 6, seed=0)
        assert drawn["synthetic"] == [] and drawn == draw_names(snapshot, 4, 6, seed=0)
        rows = [snapshot.position(name) for name in drawn["real"]]
        assert snapshot.roster.n_chunks[rows].tolist() == [6] * 4


def test_exact_answers_are_those_of_exact_searches(real_folder: Path) -> None:
    told = exact_answers(real_folder, 3, 6, 0, 4)
    assert len(told["names"]["real"]) == len(told["found"]) == 3
    with Index.open(real_folder) as index:
        for name, found in told["found"].items():
            assert found == [hit.doc_id for hit in index.search_id(name, k=4, exact=True).hits]
