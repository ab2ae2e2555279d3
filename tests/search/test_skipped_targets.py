"""A search that skips kinds of sections scores documents as if these sections were not there."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import indexer.building.builder as builder_module
import longmatch
from engine.index import Index
from engine.result import Result, Status
from engine.scoring.evidence import CONTAINMENT
from engine.search.request import Mode, Request
from engine.search.searcher import Searcher
from engine.store.snapshot import IndexSnapshot
from engine.store.writer import Writer
from engine.text.document import Document
from engine.text.section_kinds import SectionKind, section_kinds
from engine.text.segmentation import Section
from indexer.building.builder import EncodeNow, build
from indexer.building.rewriting import partition
from indexer.generation.generations import compact
from indexer.upkeep.repair import remove
from tests.fakes import FakeEncoder

N = 60
KINDS = ("references", "acknowledgements", "appendix", "boilerplate")
CITED = "A. Lee. {0}. Journal of Policy, 61:821–856, 1993. Chow, B. {1}. Econometrica, 28:591–605, 1960.\n\n" * 3
BODIES = {
    "1 Body": "{0}. {1}.",
    "References": CITED,
    "Acknowledgments": "We thank the reviewers for {0}, and for {1}.",
    "Appendix A": "{0}. {1}.",
    "2 More": "{0}. {1}.",
    "Copyright": "Copyright (c) 2019 {0}. All rights reserved, {1}.",
}


def corpus() -> list[Document]:
    """Documents over six topics, whose other kinds of sections are on topics of their own; some lack a kind."""
    rng = np.random.default_rng(5)

    def words(topic: int) -> str:
        return " ".join(f"topic{topic}word{number}" for number in rng.integers(0, 12, int(rng.integers(3, 9))))

    made = []
    for number in range(N):
        text, sections = "", []
        title = f"{words(number % 6)} {words(number % 4)}"
        for place, (heading, body) in enumerate(BODIES.items()):
            if place and rng.random() < 0.2:
                continue
            start = len(text)
            topic = number % 6 if "1" in heading or "2" in heading else int(rng.integers(6))
            text += f"{title}\n\n" if place == number % 3 == 0 else ""
            text += f"{heading}\n{body.format(words(topic), words(topic))}\n\n"
            sections.append(Section(heading, (heading,), start, len(text)))
        metadata = {"half": number % 2}
        made.append(Document(f"d{number:02d}", title, text, tuple(sections), metadata, f"d{number:02d}.txt"))
    return made


def without(document: Document, skip: frozenset[SectionKind]) -> Document:
    """The document with its sections of some kinds really removed; each section ends in a full stop."""
    text, sections = "", []
    for section, kind in zip(document.sections, section_kinds(document), strict=True):
        if kind not in skip:
            start = len(text)
            text += document.text[section.start : section.stop]
            sections.append(replace(section, start=start, stop=len(text)))
    return replace(document, text=text, sections=tuple(sections))


def test_the_corpus_has_all_kinds() -> None:
    found = {kind for document in corpus() for kind in section_kinds(document)}
    assert found == set(SectionKind)


def built(path: Path, documents: list[Document], holds: str) -> Path:
    factory = "IVF4,Flat" if holds == "lists" else "Flat"
    encode: EncodeNow = "none" if holds == "words" else "all"
    build(path, documents, encoder=FakeEncoder(), encode=encode, factory=factory, recall_floor=0.0)
    return path


Open = Callable[[str, int], Index]
Reduced = Callable[[str, frozenset[SectionKind]], IndexSnapshot]


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Open:
    """Indexes by what they hold and by the number of partitions; 0 for one that is not split."""
    folder = tmp_path_factory.mktemp("skipped")

    @cache
    def open_index(holds: str, n_partitions: int) -> Index:
        path = folder / f"{holds}{n_partitions}"
        if n_partitions:
            open_index(holds, 0)
            partition(folder / f"{holds}0", path, n_partitions)
        else:
            built(path, corpus(), holds)
        return Index.open(path, encoder=None if holds == "words" else FakeEncoder())

    return open_index


@pytest.fixture(scope="module")
def reduced(tmp_path_factory: pytest.TempPathFactory, opened: Open) -> Reduced:
    """Snapshots of the same documents without some sections, with the reference of the whole ones; no floor of scores
    is measured for the reference that it replaces. They are searched exactly: one with lists is one of vectors.
    """
    folder = tmp_path_factory.mktemp("reduced")

    @cache
    def snapshot(has_vectors: bool, skip: frozenset[SectionKind]) -> IndexSnapshot:
        holds = "vectors" if has_vectors else "words"
        path = folder / f"{holds}-{'-'.join(sorted(skip))}"
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("indexer.generation.reference.measure_floor", lambda *_: None)
            built(path, [without(one, skip) for one in corpus()], holds)
        with Writer(path) as writer:
            writer.publish_reference(replace(opened(holds, 0).snapshot.reference, version=2), is_partial=False)
        return IndexSnapshot(path)

    return lambda holds, skip: snapshot(holds != "words", skip)


def expected_scores(
    index: Index, snapshot: IndexSnapshot, query: str, skip: frozenset[SectionKind]
) -> dict[str, float]:
    """Scores by a search of the really reduced documents; the query is the same."""
    skipping = replace(index.stored_query(query), skip=skip)
    found = Searcher(snapshot).search(skipping, Request(k=N, exact=True, without=query))
    return {hit.document.doc_id: hit.score for hit in found.hits}


@pytest.fixture(autouse=True)
def lists_at_any_size(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Few candidates, so that approximate searches leave documents out."""
    monkeypatch.setattr("engine.search.partition.TIERS", ((10, 20), (20, 40)))
    yield


SKIPS = [*((kind,) for kind in KINDS), KINDS[::2], KINDS]  # of each, three indexes of reduced documents are built
skips = st.sampled_from(SKIPS).map(lambda names: frozenset(map(SectionKind, names)))


@pytest.mark.slow
@settings(max_examples=50)
@given(
    holds=st.sampled_from(["words", "vectors", "lists"]),
    n_partitions=st.sampled_from([0, 0, 1, 3]),
    query=st.integers(0, N - 1).map("d{:02d}".format),
    skip=skips,
    k=st.sampled_from([1, 4, 15, 100]),
    offset=st.sampled_from([0, 3, 30]),
    where=st.sampled_from([None, "half = 1"]),
    exact=st.booleans(),
)
def test_scores_are_those_of_documents_without_these_sections(
    opened: Open,
    reduced: Reduced,
    holds: str,
    n_partitions: int,
    query: str,
    skip: frozenset[SectionKind],
    k: int,
    offset: int,
    where: str | None,
    exact: bool,
) -> None:
    every = expected_scores(opened(holds, 0), reduced(holds, skip), query, skip)
    result = opened(holds, n_partitions).search(query, Request(k=k, offset=offset, where=where, skip=skip, exact=exact))
    assert {hit.doc_id: hit.score for hit in result} == {hit.doc_id: every[hit.doc_id] for hit in result}
    of_half = [name for name in every if where is None or int(name[1:]) % 2 == 1]
    by_rank = sorted(of_half, key=lambda name: (-every[name], name))
    if exact or holds != "lists":
        assert [hit.doc_id for hit in result] == by_rank[offset : offset + k]
        assert result.status is Status.CERTIFIED
    for hit in result:
        assert hit.breakdown.score == pytest.approx(hit.score, abs=1e-5)
        mine, theirs = section_kinds(result.query), section_kinds(hit.document)
        for pair in hit.pairs:
            assert mine[pair.query_section] not in skip and theirs[pair.target_section] not in skip


def ranked(result: Result) -> list[tuple[str, float]]:
    return [(hit.doc_id, hit.score) for hit in result]


@pytest.mark.parametrize("kind", KINDS)
def test_a_weight_of_zero_for_a_kind_is_the_same_as_skipping_it(opened: Open, kind: str) -> None:
    for holds in ("words", "vectors"):
        index = opened(holds, 0)
        by_weight = index.search("d09", Request(k=N, weights={kind: 0}))
        assert ranked(by_weight) == ranked(index.search("d09", Request(k=N, skip=[kind])))


def test_a_weight_by_heading_is_for_the_query_alone(opened: Open) -> None:
    result = opened("vectors", 0).search("d00", Request(k=N, weights={"1 Body": 2, "Appendix A": 0}))
    theirs = {section_kinds(hit.document)[pair.target_section] for hit in result for pair in hit.pairs}
    assert SectionKind.APPENDIX in theirs


def test_containment_leaves_sections_of_targets_out(opened: Open, reduced: Reduced) -> None:
    skip = frozenset([SectionKind.APPENDIX, SectionKind.REFERENCES])
    index = opened("vectors", 0)
    skipping = replace(index.stored_query("d11"), skip=skip)
    found = Searcher(reduced("vectors", skip), CONTAINMENT).search(skipping, Request(k=N, without="d11"))
    result = index.search("d11", Request(k=N, skip=skip, mode=Mode.CONTAINMENT))
    assert ranked(result) == [(hit.document.doc_id, hit.score) for hit in found.hits]


def test_a_comparison_skips_what_a_search_skips(opened: Open) -> None:
    index = opened("vectors", 0)
    for hit in index.search("d07", Request(k=5, skip=KINDS)):
        (compared,) = index.compare("d07", hit.doc_id, Request(skip=KINDS))
        assert (compared.score, compared.pairs) == (hit.score, hit.pairs)


def test_novelty_does_not_look_into_skipped_sections(opened: Open) -> None:
    index = opened("vectors", 0)
    request = Request.of(mode="novelty", skip=["references", "appendix"])
    for section in index.search("d13", request).sections or ():
        assert section.kind not in (SectionKind.REFERENCES, SectionKind.APPENDIX)
        if section.hit is not None:
            kinds = section_kinds(section.hit.document)
            used = {kinds[pair.target_section] for pair in section.hit.pairs}
            assert not used & {SectionKind.REFERENCES, SectionKind.APPENDIX}


def test_vectors_that_a_query_adds_are_skipped_too(tmp_path: Path) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(builder_module, "sample_documents", lambda _: np.arange(8))
        build(tmp_path / "x.lm", corpus(), encoder=FakeEncoder(), encode="later", factory="Flat")
    with Index.open(tmp_path / "x.lm", encoder=FakeEncoder()) as index:
        assert not index.snapshot.has_vectors.all()
        first = index.search("d20", Request(skip=["references"], candidates=20))
        assert first.encoding is not None and first.encoding.n_encoded_now > 0
    with Index.open(tmp_path / "x.lm", encoder=FakeEncoder()) as index:  # reads them from the shard that it wrote
        assert ranked(index.search("d20", Request(skip=["references"], candidates=20))) == ranked(first)
    for hit in first:
        assert hit.breakdown.score == pytest.approx(hit.score, abs=1e-5)
        kinds = section_kinds(hit.document)
        assert all(kinds[pair.target_section] is not SectionKind.REFERENCES for pair in hit.pairs)


def test_compaction_keeps_the_scores(tmp_path: Path) -> None:
    path = built(tmp_path / "x.lm", corpus(), "vectors")
    remove(path, ["d03", "d33"])
    with Index.open(path) as index:
        before = ranked(index.search("d05", Request(k=N, skip=["references", "boilerplate"])))
    compact(path)
    with Index.open(path) as index:
        assert ranked(index.search("d05", Request(k=N, skip=["references", "boilerplate"]))) == before


def test_a_document_with_nothing_left_is_no_hit(tmp_path: Path) -> None:
    text = "Bees dance to show where flowers are. " * 9
    papers = [{"id": "notes", "sections": [{"heading": "Appendix A", "text": text}]}, {"id": "bees", "text": text}]
    with longmatch.build(tmp_path / "x.lm", papers, encode="none", progress=False) as index:
        query = Document.from_text(text)
        assert [hit.doc_id for hit in index.search(query, skip="appendix", with_itself=True)] == ["bees"]
        assert {hit.doc_id for hit in index.search(query, with_itself=True)} == {"bees", "notes"}
