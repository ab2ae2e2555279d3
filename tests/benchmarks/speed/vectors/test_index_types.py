"""Each library at its widest search, compared with exact search."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from benchmarks.speed.vectors.collection import Collection, exact
from benchmarks.speed.vectors.index_types import (
    Candidate,
    Conditions,
    Library,
    VectorIndex,
    candidates,
    check_packages,
    make_index,
    value_of,
)
from benchmarks.speed.vectors.measuring import answer, chunk_recall, document_recall, takes_documents
from engine.errors import MissingExtra
from engine.store.ann import choose_factory

CONDITIONS = Conditions(k=10, threads=1, build_threads=1, seed=0)
WIDEST = [
    Candidate(Library.LONGMATCH, "Flat", ("",)),
    Candidate(Library.LONGMATCH, "IVF8,PQ16x4fs", ("nprobe=8",)),
    Candidate(Library.FAISS, "SQfp16", ("",)),
    Candidate(Library.FAISS, "IVF8,PQ16x4fs,Refine(SQfp16)", ("nprobe=8,k_factor_rf=36",)),
    Candidate(Library.FAISS, "HNSW16", ("efSearch=360",)),
    Candidate(Library.HNSWLIB, "M16,efC200", ("ef=360",)),
    Candidate(Library.USEARCH, "M16,efC200,f32", ("ef=360",)),
    Candidate(Library.USEARCH, "M16,efC200,f16", ("ef=360",)),
]


def built(candidate: Candidate, collection: Collection) -> VectorIndex:
    if candidate.library in (Library.HNSWLIB, Library.USEARCH):
        pytest.importorskip(candidate.library)
    index = make_index(candidate, CONDITIONS)
    index.build(collection.rows.astype(np.float32))
    index.set(candidate.settings[0])
    return index


@pytest.mark.parametrize("candidate", WIDEST, ids=lambda candidate: candidate.name)
def test_the_widest_search_finds_nearly_everything(
    candidate: Candidate, collection: Collection, tmp_path: Path
) -> None:
    index, truth = built(candidate, collection), exact(collection, 10)
    answers = answer(index, collection, 10)
    assert chunk_recall(answers.chunks, collection, truth) >= 0.99
    assert answers.documents is not None and document_recall(answers.documents, truth) >= 0.97
    index.write(tmp_path / "index")
    assert (tmp_path / "index").stat().st_size > 360


@pytest.mark.parametrize("candidate", WIDEST, ids=lambda candidate: candidate.name)
def test_similarities_are_cosines_best_first_and_no_row_is_found_twice(
    candidate: Candidate, collection: Collection
) -> None:
    index = built(candidate, collection)
    rows, similarities = index.search(collection.queries[:1], 5)
    assert rows.shape == similarities.shape == (1, 5)
    assert (np.diff(similarities) <= 0).all()
    tolerance = 0.1 if "PQ16x4fs" in candidate.factory and "Refine" not in candidate.factory else 2e-3
    exact_ones = collection.rows[rows[0]].astype(np.float32) @ collection.queries[0]
    np.testing.assert_allclose(similarities[0], exact_ones, atol=tolerance)
    for queries in (collection.queries, collection.queries[:1]):
        for row in index.search(queries, 5000)[0]:  # more than there are
            found = row[row >= 0].tolist()
            assert len(set(found)) == len(found) <= 360


def test_a_wider_search_finds_more(collection: Collection) -> None:
    index, truth = built(Candidate(Library.FAISS, "IVF16,Flat", ("nprobe=1",)), collection), exact(collection, 10)
    narrow = chunk_recall(answer(index, collection, 10).chunks, collection, truth)
    index.set("nprobe=16")
    assert narrow < chunk_recall(answer(index, collection, 10).chunks, collection, truth) == 1.0


@pytest.mark.parametrize("candidate", [one for one in WIDEST if "ef" in one.settings[0].lower()], ids=str)
def test_graphs_report_their_search_width(candidate: Candidate, collection: Collection) -> None:
    index = built(candidate, collection)
    assert index.search_width == 360 and takes_documents(index)
    index.set(candidate.settings[0].replace("360", "64"))
    assert index.search_width == 64 and not takes_documents(index)


def test_our_factories_are_those_auto_chooses_under_any_limit() -> None:
    def ours(n_vectors: int, width: int) -> list[str]:
        return [candidate.factory for candidate in candidates(n_vectors, width, [Library.LONGMATCH])]

    assert ours(1_000_000, 384) == ["IVF4096,PQ192x4fs", "IVF4096,PQ96x4fs", "IVF4096,PQ48x4fs"]
    assert ours(1000, 384)[:3] == ["Flat", "SQfp16", "SQ8"]
    for n_vectors in (1000, 100_000):
        limits = [None, *range(0, 60 * n_vectors, n_vectors)]
        assert {choose_factory(n_vectors, 64, limit) for limit in limits} <= set(ours(n_vectors, 64))


def test_types_whose_codes_lose_nothing_are_not_rescored() -> None:
    for candidate in candidates(1000, 16, [Library.LONGMATCH]):
        assert make_index(candidate, CONDITIONS).is_rescored == (candidate.factory not in ("Flat", "SQfp16"))


def test_a_sweep_names_each_type_once_and_quickly_has_fewer_settings() -> None:
    whole, quick = candidates(100_000, 64, Library), candidates(100_000, 64, Library, is_quick=True)
    names = [candidate.name for candidate in whole]
    assert len(set(names)) == len(names) == len(quick)
    assert all(set(few.settings) <= set(many.settings) for few, many in zip(quick, whole, strict=True))
    probes = next(candidate.settings for candidate in whole if candidate.name == "faiss IVF512,Flat")
    assert [value_of(setting) for setting in probes] == [1, 2, 4, 8, 16, 32, 64, 128, 256]
    assert [few.settings[-1] for few in quick] == [many.settings[-1] for many in whole]  # the widest
    deep = [candidate for candidate in candidates(1000, 16, [Library.FAISS], k=100) if "HNSW" in candidate.factory]
    assert [value_of(setting) for setting in deep[0].settings] == [100, 128, 256, 512, 1024]
    assert {candidate.library for candidate in candidates(1000, 16, [Library.FAISS])} == {Library.FAISS}
    assert not any("PQ" in candidate.factory for candidate in candidates(1000, 15, [Library.FAISS]))


def test_the_error_for_a_missing_library_names_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    check_packages([Library.LONGMATCH, Library.FAISS])
    with pytest.raises(MissingExtra, match=r"measuring usearch needs usearch; .*pip install 'longmatch\[ann\]'"):
        check_packages([Library.USEARCH])
