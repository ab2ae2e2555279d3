from __future__ import annotations

import json
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from benchmarks.datasets import open_dataset, read_documents
from benchmarks.sections.planting import (
    LENGTHS,
    NOT_NAMED,
    Adoption,
    Asker,
    Damage,
    Form,
    Overlap,
    Passage,
    Planted,
    Position,
    choose_adoptions,
    judge,
    merge,
    overlap,
    plant,
)
from benchmarks.sections.records import PlantedRecord
from benchmarks.sections.subcorpus import index_documents
from benchmarks.tasks.planted import draw_planted, main, measure, planted_table
from engine.document import Document, Span
from engine.index import Index
from engine.scoring.breakdown import Breakdown, ChunkPart, SectionPair
from indexer.training.origin import Origin
from tests.benchmarks.sections.corpora import write_long
from tests.fakes import FakeEncoder, make_document


@pytest.mark.parametrize("seed", range(20))
def test_overlap_counts_characters(seed: int) -> None:
    ends = np.sort(np.random.default_rng(seed).integers(0, 60, (5, 2)), axis=1).tolist()
    *named, truth = [Span(start, stop + 1) for start, stop in ends]
    said = {at for span in named for at in range(span.start, span.stop)}
    true = set(range(truth.start, truth.stop))
    both = len(said & true)
    assert overlap(named, truth) == Overlap(both / len(said | true), both / len(said), both / len(true))


def test_nothing_named_is_no_overlap() -> None:
    assert overlap([], Span(2, 5)) == Overlap(0.0, 0.0, 0.0)


def test_spans_that_touch_are_one() -> None:
    assert merge([Span(5, 7), Span(0, 3), Span(3, 4), Span(1, 2)]) == [Span(0, 4), Span(5, 7)]


def pair(query_section: int, target_section: int, target: Span) -> SectionPair:
    return SectionPair(query_section, target_section, 0.2, (ChunkPart(Span(0, 9), target, 0.9, 0.5, 0.3, 0.2),))


def breakdown(*pairs: SectionPair) -> Breakdown:
    return Breakdown(pairs, None, (), {})


def test_the_first_pair_is_held_against_what_was_planted() -> None:
    planted = Planted(make_document("host", "text"), Span(100, 200), 2)
    named = judge(breakdown(pair(1, 2, Span(150, 250)), pair(0, 0, Span(0, 9))), 1, planted)
    assert (named.is_first, named.spans) == (True, Overlap(1 / 3, 0.5, 0.5))
    assert not judge(breakdown(pair(1, 0, Span(0, 9)), pair(1, 2, Span(100, 200))), 1, planted).is_first
    assert not judge(breakdown(pair(0, 2, Span(100, 200))), 1, planted).is_first
    assert judge(breakdown(), 1, planted) == NOT_NAMED
    by_words = judge(breakdown(SectionPair(1, 2, 0.2, (), 0.2)), 1, planted)
    assert (by_words.is_first, by_words.spans) == (True, Overlap(0, 0, 0))


def test_a_copy_is_found_and_named(corpus: list[Document], tmp_path: Path) -> None:
    words = " ".join(f"rare{number}" for number in range(24))
    source = make_document("source", [("part one", "common1 common2 common3"), ("part two", words)])
    adoption = Adoption("source", 1, Passage("part two", words), "doc012", "short", 0)
    index_documents(tmp_path / "a.lm", [*corpus, source], FakeEncoder())
    with Index.open(tmp_path / "a.lm") as index:
        before = Asker(index).ranks(adoption)
    planted = plant(corpus[12], adoption.passage, Position.MIDDLE, Form.SECTION)
    index_documents(tmp_path / "a.lm", [planted.document], FakeEncoder())
    with Index.open(tmp_path / "a.lm") as index:
        after, named = Asker(index).ranks(adoption), Asker(index).named(adoption, planted)
    assert before.evidence > 1 and after.evidence == 1 and after.document < before.document
    assert named.is_first and named.spans.iou == pytest.approx(1, abs=0.02)  # spaces between chunks


def test_a_host_without_a_score_has_the_last_place(index: Index) -> None:
    adoption = Adoption("doc007", 1, Passage("", "text"), "absent", "short", 0)
    assert Asker(index).ranks(adoption).evidence == 59
    assert Asker(index).named(adoption, Planted(index.document("doc001"), Span(0, 9), 0)) == NOT_NAMED


@pytest.fixture
def record(origin: Origin) -> PlantedRecord:
    """Three pairs, a length each; the host of `s0` is found and named whatever the damage, the others where copied."""
    plantings: dict[str, list[str | int | float]] = {}
    for (number, length), damage, position in product(enumerate(LENGTHS), Damage, Position):
        is_found = number == 0 or damage is Damage.COPY
        row = {
            "query": f"s{number}",
            "length": length,
            "damage": damage.value,
            "position": position.value,
            "rank": 1 if is_found else 11,
            "document_rank": 20,
            "rank_before": 30,
            "document_rank_before": 40,
            "is_first": int(is_found),
            "iou": 0.5 * is_found,
            "span_precision": 0.75 * is_found,
            "span_recall": 0.6 * is_found,
        }
        for name, value in row.items():
            plantings.setdefault(name, []).append(value)
    words = {"short": [10, 20], "medium": [30, 30], "long": [1000, 2000]}
    settings: dict[str, str | int | float | bool] = {"form": "section"}
    return PlantedRecord("rfc", "rfc@0", "mean@0f", settings, False, 60, 3, 0.5, words, plantings, 1.0, origin)


def cells(record: PlantedRecord, start: str) -> list[str]:
    rows = [line.strip("| ").split(" | ") for line in planted_table([record]).splitlines() if f"| {start}" in line]
    assert len(rows) == 1
    return rows[0]


def test_rows_say_what_was_found_and_named(record: PlantedRecord) -> None:
    row = cells(record, "damage: drop 30 %")
    assert row[:3] == ["rfc (3)", "mean", "damage: drop 30 %"]
    assert row[3:9] == ["0.333", "0.333 [0.000, 1.000]", "11", "0.000", "0.000", "20"]
    assert row[10:] == ["0.333 [0.000, 1.000]", "0.167", "0.250", "0.200"]
    assert cells(record, "length: long, 1,000 to 2,000 words")[3:6] == ["0.200", "0.200 [0.200, 0.200]", "11"]
    assert cells(record, "before planting")[3:9] == ["0.000", "0.000 [0.000, 0.000]", "30", "0.000", "0.000", "40"]


def test_every_group_has_its_rows(record: PlantedRecord) -> None:
    lines = [line for line in planted_table([record]).splitlines() if line.startswith("| rfc (3) |")]
    assert len(lines) == 1 + len(Damage) + len(Position) + len(LENGTHS)


def test_each_group_is_drawn(record: PlantedRecord, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    names = {path.name for path in draw_planted(record, tmp_path)}
    groups = ("damage", "position", "length")
    assert names == {
        f"planted-rfc-mean-section-60documents-{group}.{suffix}" for group in groups for suffix in ("png", "svg")
    }


@pytest.fixture
def long_folder(tmp_path: Path) -> Path:
    return write_long(tmp_path / "long")


def test_copies_are_found_and_named_by_an_encoder_that_sees_words(long_folder: Path) -> None:
    documents = list(read_documents(open_dataset(str(long_folder))))
    adoptions = choose_adoptions(documents, 1, seed=0)
    columns = measure(documents, adoptions, FakeEncoder(), Form.SECTION, seed=0, log=lambda _: None)
    assert {len(column) for column in columns.values()} == {3 * 5 * 3}
    is_copy = np.array([damage == "copy" for damage in columns["damage"]])
    assert set(np.array(columns["rank"])[is_copy].tolist()) == {1}
    assert np.array(columns["is_first"])[is_copy].all() and np.min(np.array(columns["iou"])[is_copy]) > 0.8
    assert min(columns["rank_before"]) > 1
    assert columns["host"][:3] == [adoption.host for adoption in adoptions]


def test_the_command_writes_a_record_and_its_plots(long_folder: Path, bert_folder: Path, tmp_path: Path) -> None:
    out = ["--out", str(tmp_path / "out"), "--plot-out", str(tmp_path / "plots")]
    given = [str(long_folder), "--encoder", str(bert_folder), "--quick", "--form", "passage", *out]
    done = CliRunner().invoke(main, given, catch_exceptions=False)
    assert "| long (3), quick | bert | position: middle |" in done.output
    record = json.loads((tmp_path / "out" / "planted-long-bert-passage-24documents-quick.json").read_text())
    assert (record["kind"], record["is_quick"], record["n_pairs"]) == ("planted", True, 3)
    assert (record["n_documents"], record["settings"]["hosts"]) == (24, 1)
    assert len(list((tmp_path / "plots").iterdir())) == 6


def test_a_corpus_that_is_too_small_is_one_line(folder: Path) -> None:
    said = CliRunner().invoke(main, [str(folder), "--hosts", "2"]).stderr.splitlines()[-1]
    assert said.startswith("Error: 6 plantings need 6 queries with a section to plant and 6 hosts of two sections")
