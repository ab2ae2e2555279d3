from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from benchmarks.datasets import DatasetError, open_dataset, read_documents
from benchmarks.prepare import index_documents
from benchmarks.runs import read_runs
from benchmarks.sections.planting import (
    LENGTHS,
    NOT_NAMED,
    Adoption,
    Asker,
    Damage,
    Named,
    Overlap,
    Passage,
    Planted,
    Position,
    choose_adoptions,
    damaged,
    drop_words,
    host_words,
    judge,
    judge_model,
    n_words,
    overlap,
    plant,
    shuffle_sentences,
)
from benchmarks.tables.sections import DOCUMENT, EVIDENCE, MODEL
from benchmarks.tasks.planted import main, measure
from engine.encoders.encoder import ModelExplanation
from engine.index import Index
from engine.scoring.parts import Breakdown, ChunkPart, SectionPair
from engine.text.document import Document
from engine.text.segmentation import Chunk, Span
from tests.benchmarks.corpora import Explaining
from tests.benchmarks.made_runs import run_program
from tests.encoders.tiny import ENCODERS
from tests.fakes import FakeEncoder, make_document

TEXT = "One is first. Two is second. Three is third. Four is fourth. Five is fifth."
PASSAGE = Passage("Planted", "Green seed grows.")


@pytest.fixture
def host() -> Document:
    return make_document("host", [("One", "First. Second."), ("Two", "Third. Fourth."), ("Three", "Fifth. Sixth.")])


def test_dropped_words_leave_the_rest_in_order_and_shuffled_sentences_stay_whole() -> None:
    words = [f"w{number}" for number in range(50)]
    left = drop_words(" ".join(words), 0.3, np.random.default_rng(0)).split()
    assert len(left) == 35 and left == sorted(left, key=words.index)
    assert drop_words("a\n\nb", 0, np.random.default_rng(0)) == "a\n\nb"
    shuffled = shuffle_sentences(TEXT, np.random.default_rng(0))
    assert shuffled != TEXT and sorted(f"{shuffled} ".split(". ")) == sorted(f"{TEXT} ".split(". "))


def test_damages_are_seeded_and_only_a_copy_has_the_heading() -> None:
    kinds = {damage: damaged(Passage("A", TEXT), damage, np.random.default_rng(1)) for damage in Damage}
    assert {damage: passage.heading for damage, passage in kinds.items() if passage.heading} == {Damage.COPY: "A"}
    # round(0.1 * 15) is 2: halves are rounded to the even number.
    assert [len(passage.text.split()) for passage in kinds.values()] == [15, 13, 11, 7, 15]
    assert kinds[Damage.COPY].text == TEXT
    assert damaged(Passage("A", TEXT), Damage.DROP_50, np.random.default_rng(1)) == kinds[Damage.DROP_50]


@pytest.mark.parametrize("position", Position)
def test_the_host_holds_the_passage_and_all_that_it_was(host: Document, position: Position) -> None:
    planted = plant(host, PASSAGE, position)
    document, span = planted.document, planted.span
    expected = "Planted\n\nGreen seed grows."
    assert document.text[span.start : span.stop] == expected
    assert (document.text[: span.start] + document.text[span.stop :]).split() == host.text.split()
    starts, stops = ([getattr(section, end) for section in document.sections] for end in ("start", "stop"))
    assert starts == [0, *stops[:-1]] and stops[-1] == len(document.text)
    holder = document.sections[planted.section]
    assert holder.start <= span.start < span.stop <= holder.stop
    kept = [section.heading for section in document.sections if section is not holder]
    assert kept == ["One", "Two", "Three"]


def test_positions_are_the_first_the_middle_and_the_last(host: Document) -> None:
    assert [plant(host, PASSAGE, position).section for position in Position] == [0, 1, 3]


@pytest.fixture
def documents(long_folder: Path) -> list[Document]:
    return list(read_documents(open_dataset(str(long_folder))))


def test_sections_of_queries_are_adopted_by_other_documents(documents: list[Document]) -> None:
    adoptions = choose_adoptions(documents, 2, seed=0)
    names = [name for adoption in adoptions for name in (adoption.query, adoption.host)]
    assert len(names) == len(set(names)) == 12
    assert [adoption.length for adoption in adoptions] == [*LENGTHS] * 2
    assert adoptions == choose_adoptions(documents, 2, seed=0) != choose_adoptions(documents, 2, seed=1)
    by_id = {document.doc_id: document for document in documents}
    for adoption in adoptions:
        query = by_id[adoption.query]
        section = query.sections[adoption.section]
        assert adoption.section > 0 and adoption.passage.heading == section.heading
        text = query.text[section.start : section.stop]
        assert text.split() == [*section.heading.split(), *adoption.passage.text.split()]
        assert adoption.n_shared == 0  # each document has its own rare words
    for length, ends in host_words(by_id, adoptions).items():
        own = [n_words(by_id[adoption.host]) for adoption in adoptions if adoption.length == length]
        assert ends == [min(own), max(own)]


def test_a_query_gets_the_host_that_shares_least() -> None:
    """Every document has a twin with the same rare words, which is never its host."""
    documents = []
    for letter in "abcdefghij":
        words = [f"{letter}{number}" for number in ("uno", "due", "tre", "quattro", "cinque")]
        text = " ".join(f"The {word} stands here in a line with so many other plain words." for word in words)
        documents += [make_document(f"{letter}{twin}", [("", "title"), ("Part", text)]) for twin in (1, 2)]
    for seed in range(5):
        for adoption in choose_adoptions(documents, 2, seed):
            assert adoption.query[0] != adoption.host[0] and adoption.n_shared == 0


def test_too_few_documents_are_refused(documents: list[Document]) -> None:
    with pytest.raises(DatasetError, match=r"15 plantings need 15 queries .* 24 documents have 15 and 9; plant fewer"):
        choose_adoptions(documents, 5, seed=0)
    boilerplate = [make_document(f"d{number}", [("", "title"), ("Licence", "as is " * 80)]) for number in range(9)]
    with pytest.raises(DatasetError, match=r"3 plantings need 3 queries .* 9 documents have 0 and 9"):
        choose_adoptions(boilerplate, 1, seed=0)


@pytest.mark.parametrize("seed", range(20))
def test_overlap_counts_characters(seed: int) -> None:
    ends = np.sort(np.random.default_rng(seed).integers(0, 60, (5, 2)), axis=1).tolist()
    *named, truth = [Span(start, stop + 1) for start, stop in ends]
    covered = {at for span in named for at in range(span.start, span.stop)}
    true = set(range(truth.start, truth.stop))
    both = len(covered & true)
    assert overlap(named, truth) == Overlap(both / len(covered | true), both / len(covered), both / len(true))


PLANTED = Planted(make_document("host", "text"), Span(100, 200), 2)


def pair(query_section: int, target_section: int, target: Span) -> SectionPair:
    return SectionPair(query_section, target_section, 0.2, (ChunkPart(Span(0, 9), target, 0.9, 0.9, 0.5, 0.3, 0.2),))


@pytest.mark.parametrize(
    ("pairs", "expected"),
    [
        ([pair(1, 2, Span(150, 250)), pair(0, 0, Span(0, 9))], Named(True, Overlap(1 / 3, 0.5, 0.5))),
        ([pair(1, 0, Span(0, 9)), pair(1, 2, Span(100, 200))], Named(False, Overlap(0, 0, 0))),
        ([pair(0, 2, Span(100, 200))], Named(False, Overlap(1, 1, 1))),
        ([SectionPair(1, 2, 0.2, (), 0.2)], Named(True, Overlap(0, 0, 0))),  # by words
        ([], NOT_NAMED),
    ],
)
def test_the_first_pair_is_compared_with_the_planted_section(pairs: list[SectionPair], expected: Named) -> None:
    assert judge(Breakdown(tuple(pairs), None, (), {}), 1, PLANTED) == expected


def test_a_copy_is_found_and_named(corpus: list[Document], tmp_path: Path) -> None:
    words = " ".join(f"rare{number}" for number in range(24))
    source = make_document("source", [("part one", "common1 common2 common3"), ("part two", words)])
    adoption = Adoption("source", 1, Passage("part two", words), "doc012", "short", 0)
    index_documents(tmp_path / "a.lm", [*corpus, source], FakeEncoder())
    with Index.open(tmp_path / "a.lm") as index:
        before = Asker(index).ranks(adoption)
    planted = plant(corpus[12], adoption.passage, Position.MIDDLE)
    index_documents(tmp_path / "a.lm", [planted.document], FakeEncoder())
    with Index.open(tmp_path / "a.lm") as index:
        after, (named, by_model) = Asker(index).ranks(adoption), Asker(index).named(adoption, planted)
    assert by_model is None  # no encoder was given
    assert before.evidence > 1 and after.evidence == 1 and after.document < before.document
    assert named.is_first and named.spans.iou == pytest.approx(1, abs=0.02)  # spaces between chunks


def test_a_host_without_a_score_has_the_last_place(index: Index) -> None:
    adoption = Adoption("doc007", 1, Passage("", "text"), "absent", "short", 0)
    assert Asker(index).ranks(adoption).evidence == 59
    planted = Planted(index.document("doc001"), Span(0, 9), 0)
    assert Asker(index, FakeEncoder()).named(adoption, planted) == (NOT_NAMED, None)
    assert Asker(index, Explaining()).named(adoption, planted) == (NOT_NAMED, NOT_NAMED)


def test_the_first_pair_of_the_encoder_is_compared_with_the_planted_section() -> None:
    query_chunks = (Chunk(0, 0, 5, 1), Chunk(1, 10, 20, 1), Chunk(1, 20, 30, 1))
    target_chunks = (Chunk(0, 0, 50, 1), Chunk(2, 100, 150, 1), Chunk(2, 150, 200, 1), Chunk(2, 200, 250, 1))
    values = np.array([[0.1, 0, 0, 0], [0, 0.1, 0.3, 0.2], [0, 0.1, 0.4, 0.2]], np.float32)
    documents = make_document("q", [("A", "a"), ("B", "b")]), make_document("t", [("X", "x"), ("Y", "y"), ("Z", "z")])
    ones = (np.ones(3, np.float32), np.ones(4, np.float32))
    sides = zip(documents, (query_chunks, target_chunks), ones, strict=True)
    model = ModelExplanation.of_chunks("made", "", *sides, values)
    # Both chunks of the section prefer the third chunk of the target, which is half of what was planted.
    assert judge_model(model, 1, PLANTED) == Named(True, Overlap(0.5, 1.0, 0.5))
    assert not judge_model(model, 0, PLANTED).is_first
    assert not judge_model(model, 1, replace(PLANTED, section=0)).is_first
    assert judge_model(replace(model, pairs=-model.pairs), 1, PLANTED) == NOT_NAMED


@pytest.mark.slow
def test_copies_are_found_and_named_by_an_encoder_that_sees_words(documents: list[Document]) -> None:
    adoptions = choose_adoptions(documents, 1, seed=0)
    cases = measure(documents, adoptions, Explaining(), seed=0)
    ids = {system: [case.id for case in own] for system, own in cases.items()}
    assert ids == dict.fromkeys((EVIDENCE, DOCUMENT, MODEL), ids[EVIDENCE]) and len(ids[EVIDENCE]) == 3 * 5 * 3
    copies, of_model = (
        [case.values for case in cases[system] if case.labels["damage"] == "copy"] for system in (EVIDENCE, MODEL)
    )
    assert {values["rank"] for values in copies} == {1} and all(values["is_first"] for values in copies)
    assert min(values["iou"] for values in copies) > 0.8
    assert min(case.values["rank_before"] for case in cases[EVIDENCE]) > 1
    assert [case.group for case in cases[EVIDENCE][:3]] == [adoption.query for adoption in adoptions]
    assert set(of_model[0]) == {"is_first", "iou", "span_precision", "span_recall"}
    assert np.mean([values["is_first"] for values in of_model]) > 0.5


@pytest.mark.slow
def test_the_command_writes_a_run_of_each_system(long_folder: Path, bert_folder: Path, tmp_path: Path) -> None:
    ENCODERS["colde fixed"](bert_folder).save_pretrained(tmp_path / "bert")
    given = [long_folder, "--encoder", tmp_path / "bert", "--hosts", "1"]
    done = run_program(main, *given, "--out", tmp_path / "out")
    assert "| long (3) | bert | position: middle |" in done.output and "IoU, model" in done.output
    document, evidence, model = read_runs(tmp_path / "out")
    assert evidence.name == "long-evidence-bert-section-24documents"
    assert document.case_ids == evidence.case_ids == model.case_ids and evidence.settings["hosts"] == 1
    assert (evidence.details["n_documents"], evidence.details["n_pairs"]) == (24, 3)
    assert all(0 <= value <= 1 for case in model.cases for value in case.values.values())
