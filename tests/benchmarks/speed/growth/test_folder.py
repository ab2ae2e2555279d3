from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

from benchmarks.speed.growth.folder import (
    Real,
    add,
    generation,
    grow,
    grow_folder,
    join,
    prepared_growth,
    publish,
    recipe_path,
)
from benchmarks.speed.growth.queries import find
from benchmarks.speed.growth.source import COPY_MARK, Source
from benchmarks.speed.growth.stream import learn_growth
from benchmarks.speed.growth.texts import TextModel
from engine.errors import BudgetExceeded, IndexMismatch
from engine.index import Index
from engine.scoring.evidence import Scoring
from engine.search.request import Request
from engine.store.factory import AUTO
from engine.store.snapshot import Snapshot
from indexer.generation.generations import FRESH_CHUNKS
from indexer.upkeep.verify import verify

N_CHUNKS = 400


@pytest.fixture
def small(source: Source) -> Source:
    return source.part(np.arange(40))


@pytest.fixture
def of_forty(small: Source, tmp_path: Path) -> Path:
    folder = tmp_path / "grown.lm"
    grow_folder(folder, *prepared_growth(folder, small, 0), N_CHUNKS)
    return folder


def test_a_grown_index_is_an_ordinary_one(small: Source, of_forty: Path) -> None:
    assert verify(of_forty) == []
    with Index.open(of_forty) as index:
        assert index.n_chunks >= N_CHUNKS and index.snapshot.language == small.language
        hit = index.search("d3", Request(k=1, scoring=Scoring(word_weight=0, pair_weight=0))).hits[0]
        part = hit.breakdown.pairs[0].parts[0]
        assert hit.document.text[part.target.start : part.target.stop] == "word"
        name = index.snapshot.doc_ids()[-1]
        assert index.document(name).metadata == {"original": name.partition(COPY_MARK)[0], "copy": 2}
        assert index.search(name, Request(where="copy = 0", k=1)).hits[0].doc_id in small.names


def test_texts_have_the_sections_and_tokens_of_their_originals(of_forty: Path, real_folder: Path) -> None:
    with Index.open(of_forty) as grown, Index.open(real_folder) as real:
        name = f"d3{COPY_MARK}1"
        made, original = grown.stored_query(name), real.stored_query("d3")
        sections = made.document.sections
        assert len(sections) == len(original.document.sections) and sections[-1].stop == len(made.document.text)
        for one, other in zip(made.vectors.chunk_spans, original.vectors.chunk_spans, strict=True):
            assert (one.section, one.n_tokens) == (other.section, other.n_tokens)
            assert sections[one.section].start <= one.start < one.stop <= sections[one.section].stop


@pytest.mark.slow
def test_an_index_grown_in_steps_equals_one_grown_at_once(small: Source, tmp_path: Path) -> None:
    once, steps = tmp_path / "once.lm", tmp_path / "steps.lm"
    _, n_added = grow_folder(once, *prepared_growth(once, small, 0), N_CHUNKS)
    for n_chunks in (90, 250, N_CHUNKS):
        growth, recipe = prepared_growth(steps, small, 0)
        recipe, n_last = grow_folder(steps, growth, recipe, n_chunks)
    assert 0 < n_last < n_added
    assert grow_folder(steps, growth, recipe, N_CHUNKS) == (recipe, 0)
    with Snapshot(once) as one, Snapshot(steps) as other:
        assert one.doc_ids() == other.doc_ids()
        everything = np.arange(one.n_documents)
        np.testing.assert_allclose(one.chunk_vectors(everything)[0], other.chunk_vectors(everything)[0], atol=1e-3)


def test_an_index_grown_from_another_source_or_seed_is_refused(small: Source, source: Source, of_forty: Path) -> None:
    with pytest.raises(IndexMismatch, match=r"was grown from source \w{12} with seed 0 .*, not from \w{12} with 1"):
        prepared_growth(of_forty, small, 1)
    with pytest.raises(IndexMismatch, match="name another --work folder"):
        prepared_growth(of_forty, source, 0)
    with pytest.raises(IndexMismatch, match="make 30 chunks; name sizes from small to large"):
        grow_folder(of_forty, *prepared_growth(of_forty, small, 0), 30)
    with Snapshot(of_forty) as grown, pytest.raises(IndexMismatch, match="was itself grown from another one"):
        learn_growth(Source(grown))
    recipe_path(of_forty).unlink()
    with pytest.raises(IndexMismatch, match=r"grown\.lm\.grown\.json that would say what it was grown from is not"):
        prepared_growth(of_forty, small, 0)


def test_words_are_drawn_from_the_terms_of_a_corpus(small: Source, source: Source, tmp_path: Path) -> None:
    texts = TextModel.learn("opinions", source.words(np.arange(len(source))))
    folder = tmp_path / "grown.lm"
    grow_folder(folder, *prepared_growth(folder, small, 0, texts=texts), N_CHUNKS)
    with Snapshot(folder) as snapshot:
        made = [at for at, name in enumerate(snapshot.doc_ids()) if COPY_MARK in name]
        counts = snapshot.words(np.array(made)).words
        original = {name: at for at, name in enumerate(small.names)}
        names = [snapshot.doc_ids()[at].partition(COPY_MARK)[0] for at in made]
        of_originals = small.words(np.array([original[name] for name in names])).words
    assert counts.terms.tolist() != of_originals.terms.tolist()
    with pytest.raises(IndexMismatch, match=r"and words of opinions, not .* words of the originals; name another"):
        prepared_growth(folder, small, 0)


@pytest.fixture
def folder(real_folder: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(real_folder, tmp_path / "grown.lm"))


@pytest.mark.slow
def test_a_generation_is_published_once(folder: Path) -> None:
    assert publish(folder, AUTO, 8 << 30, 0.95)["is_new"]
    with Snapshot(folder) as snapshot:
        row = snapshot.generation_row
        assert row is not None and (row.factory, row.n_vectors) == ("Flat", snapshot.n_chunks)
        assert snapshot.reference_row is not None
    assert not publish(folder, AUTO, None, 0.95)["is_new"]
    assert publish(folder, "SQ8", None, 0.0)["is_new"]


def test_the_budget_is_that_of_the_whole_process(folder: Path) -> None:
    with pytest.raises(BudgetExceeded, match=r"--memory leaves 0\.0 MB"):
        publish(folder, "Flat", 1 << 20, 0.95)


def test_a_part_of_the_real_documents_is_the_same_again(real_folder: Path) -> None:
    with Snapshot(real_folder) as snapshot:
        names = Real(real_folder, 9, 0).source(snapshot).names
        assert names == Real(real_folder, 9, 0).source(snapshot).names != Real(real_folder, 9, 1).source(snapshot).names
        assert (len(names), len(Real(real_folder, None, 0).source(snapshot))) == (9, 240)


@pytest.fixture(scope="module")
def grown(real_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An index that was grown from 60 real documents, and published."""
    folder = tmp_path_factory.mktemp("grown") / "grown.lm"
    grow(Real(real_folder, 60, 0), folder, 400)
    publish(folder, AUTO, None, 0.0)
    return folder


@pytest.fixture
def copied(grown: Path, tmp_path: Path) -> Path:
    folder = Path(shutil.copytree(grown, tmp_path / "copied.lm"))
    shutil.copy(recipe_path(grown), recipe_path(folder))
    return folder


def test_the_next_documents_of_the_stream_are_added(real_folder: Path, copied: Path) -> None:
    with Snapshot(copied) as snapshot:
        before = snapshot.doc_ids()
    added = add(Real(real_folder, 60, 0), copied, 70)
    with Snapshot(copied) as snapshot:
        n_chunks = snapshot.chunk_counts()
        assert set(snapshot.doc_ids()) == {*before, *added["names"]}
    assert len(added["names"]) == 70 and not set(added["names"]) & set(before)
    assert all(COPY_MARK in name for name in added["names"]) and added["seconds"] > 0
    assert added["n_chunks"] == sum(n_chunks[name] for name in added["names"])
    assert find(copied, added["names"][:5])["n_found"] == 5


@pytest.mark.parametrize(
    ("n_documents", "fresh_chunks", "outcome"),
    [(10, FRESH_CHUNKS, "scanned"), (10, 5, "joined"), (200, 5, "built anew")],
)
def test_few_documents_are_scanned_more_join_the_generation_and_very_many_have_it_rebuilt(
    real_folder: Path, copied: Path, monkeypatch: pytest.MonkeyPatch, n_documents: int, fresh_chunks: int, outcome: str
) -> None:
    monkeypatch.setattr("indexer.generation.generations.FRESH_CHUNKS", fresh_chunks)
    add(Real(real_folder, 60, 0), copied, n_documents)
    joined = join(copied, AUTO, None, 0.0)
    assert joined["outcome"] == outcome and joined["seconds"] > 0
    with Snapshot(copied) as snapshot:
        assert (generation(copied)["n_vectors"] == snapshot.n_chunks) == (outcome != "scanned")
