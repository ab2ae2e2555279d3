from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from benchmarks.datasets import Dataset
from benchmarks.record_file import rebuild
from benchmarks.systems import Evidence
from benchmarks.tasks.positions import (
    HitMass,
    PositionRecord,
    collect_masses,
    hit_mass,
    main,
    position_record,
    position_table,
    tenths,
)
from engine.document import Document, Span
from engine.index import Index
from engine.scoring.breakdown import Breakdown, ChunkPart, DocumentPart, SectionPair, TermPart
from engine.words.segmenter import segmenter_of
from indexer.training.origin import Origin
from tests.fakes import FakeEncoder


@pytest.fixture
def positions(origin: Origin) -> PositionRecord:
    early = {"query": [0.55, *[0.05] * 9], "target": [0.1] * 10}
    return PositionRecord(
        task="pets",
        dataset="pets@0",
        system="evidence",
        encoder="mean@0f",
        settings={},
        split="test",
        k=10,
        n_queries={"all": 3},
        n_hits={"all": 1234},
        n_placed={"all": 1234},
        document_share={"all": 0.125},
        mass={"all": early},
        low={"all": early},
        high={"all": early},
        origin=origin,
    )


def test_tenths_are_columns_and_sides_rows(positions: PositionRecord) -> None:
    rows = position_table([positions]).splitlines()
    beginning = "| pets (3) | mean | 1,234 hits of the first 10 |"
    assert rows[2] == f"{beginning} query | 0.550 |{' 0.050 |' * 9} 0.125 |"
    assert rows[3] == f"{beginning} target |{' 0.100 |' * 10} 0.125 |"


@dataclass(frozen=True)
class Found:
    """A hit with a breakdown of our own."""

    doc_id: str
    score: float
    document: Document
    breakdown: Breakdown


def part(query: tuple[int, int], target: tuple[int, int], contribution: float) -> ChunkPart:
    return ChunkPart(Span(*query), Span(*target), 0.9, 0.5, 0.2, contribution)


def found(*parts: ChunkPart, whole: float = 0.0, terms: tuple[TermPart, ...] = ()) -> Found:
    pairs = tuple(SectionPair(0, 0, one.contribution, (one,)) for one in parts)
    breakdown = Breakdown(pairs, DocumentPart(0, 0, 0, whole), terms, {})
    return Found("target", 1.0, Document("target", "", "x" * 190 + " word word", ()), breakdown)


QUERY = Document("query", "", "word " + "y" * 95, ())
SEGMENTER = segmenter_of("english")


def tenths_by_hand(spans: list[tuple[Span, float]], n_chars: int) -> list[float]:
    """Contributions, one hundredth of a character at a time."""
    mass = [0.0] * 10
    for span, contribution in spans:
        fine = [(span.start * 100 + step) / 100 for step in range((span.stop - span.start) * 100)]
        for place in fine:
            mass[int(10 * (place + 0.005) / n_chars)] += contribution / len(fine)
    return mass


def arrays(spans: list[tuple[Span, float]]) -> tuple[np.ndarray, np.ndarray]:
    return np.array([[span.start, span.stop] for span, _ in spans]), np.array([mass for _, mass in spans])


def test_contributions_are_spread_over_their_spans() -> None:
    draw = np.random.default_rng(0)
    ends = [sorted(draw.choice(74, size=2, replace=False).tolist()) for _ in range(12)]
    spans = [(Span(start, stop), float(draw.random())) for start, stop in ends]
    mass = tenths(*arrays(spans), 73)
    assert mass == pytest.approx(tenths_by_hand(spans, 73), abs=1e-2)
    assert mass.sum() == pytest.approx(sum(contribution for _, contribution in spans))


def test_a_span_across_a_border_gives_to_both_sides() -> None:
    assert tenths(*arrays([(Span(8, 12), 4.0), (Span(90, 100), 1.0)]), 100).tolist() == [2.0, 2.0, *[0.0] * 7, 1.0]


def test_a_hit_counts_one_on_either_side() -> None:
    mass = hit_mass(found(part((0, 10), (180, 200), 0.3), part((10, 20), (0, 20), 0.1), whole=0.1), QUERY, SEGMENTER)
    assert mass is not None and mass.sides is not None
    assert mass.sides[0].tolist() == pytest.approx([0.75, 0.25, *[0.0] * 8])
    assert mass.sides[1].tolist() == pytest.approx([0.25, *[0.0] * 8, 0.75])
    assert mass.document_share == pytest.approx(0.2)


def test_a_hit_by_whole_documents_alone_has_no_place_and_one_by_nothing_is_none() -> None:
    assert hit_mass(found(whole=0.4), QUERY, SEGMENTER) == HitMass(None, 1.0)
    assert hit_mass(found(), QUERY, SEGMENTER) is None


def test_words_lie_where_they_occur() -> None:
    words = (TermPart("word", 0.2),)
    mass = hit_mass(found(part((0, 10), (0, 20), 0.6), terms=words), QUERY, SEGMENTER)
    assert mass is not None and mass.sides is not None
    assert mass.sides[0].tolist() == pytest.approx([1.0, *[0.0] * 9])
    assert mass.sides[1].tolist() == pytest.approx([0.75, *[0.0] * 8, 0.25])


def test_relevant_hits_are_a_group_of_their_own() -> None:
    near, far = found(part((0, 10), (0, 20), 1.0)), found(part((90, 100), (0, 20), 1.0))
    hits = [near, replace(far, doc_id="other"), found(whole=1.0)]
    groups = collect_masses(
        lambda _: hits, {"query": QUERY, "lost": QUERY}, {"query": {"other": 1}, "lost": {"target": 0}}, SEGMENTER
    )
    assert [len(masses) for masses in groups["all"]] == [3, 3]
    ((mass,),) = groups["relevant"]
    assert mass.sides is not None
    assert mass.sides[0, 9] == 1.0


def test_hits_are_averaged_within_a_query_first(dataset: Dataset, origin: Origin, built_folder: Path) -> None:
    first, last = np.eye(10)[[0, 9]]
    early, late = HitMass(np.stack([first, last]), 0.0), HitMass(np.stack([last, last]), 0.5)
    nowhere = HitMass(None, 1.0)
    with Index.open(built_folder, encoder=FakeEncoder()) as index:
        system = Evidence(index, "fake@ff")
    groups = {"all": [[early, early, late, late], [late, nowhere], [nowhere]], "relevant": [[nowhere]]}
    record = position_record(groups, system, dataset, split="test", k=10, origin=origin)
    assert (record.mass["all"]["query"][0], record.mass["all"]["query"][9]) == (0.25, 0.75)
    assert record.mass["all"]["target"] == [*[0.0] * 9, 1.0]
    assert (record.low["all"]["query"][0], record.high["all"]["query"][0]) == (0.0, 0.5)
    assert (record.n_queries, record.n_hits, record.n_placed) == ({"all": 3}, {"all": 7}, {"all": 5})
    assert record.document_share == {"all": round((0.25 + 0.75 + 1) / 3, 4)}
    assert record.name == "positions-pets-evidence-fake-test"


def test_the_command_shows_records_and_draws(folder: Path, bert_folder: Path, tmp_path: Path) -> None:
    folders = ["--work", str(tmp_path / "work"), "--out", str(tmp_path / "out"), "--plot-out", str(tmp_path / "plots")]
    done = CliRunner().invoke(main, [str(folder), "--encoder", str(bert_folder), *folders], catch_exceptions=False)
    assert "| pets (2) | bert | 6 hits of the first 10 | query | " in done.output
    (path,) = (tmp_path / "out").iterdir()
    values = json.loads(path.read_text())
    assert values.pop("kind") == "positions"
    record = rebuild(PositionRecord, values)
    assert [sum(shares) for shares in record.mass["all"].values()] == pytest.approx([1, 1], abs=1e-3)
    assert len(list((tmp_path / "plots").iterdir())) == 4


def test_a_quick_run_records_nothing(folder: Path, bert_folder: Path, tmp_path: Path) -> None:
    options = [str(folder), "--quick", "--encoder", str(bert_folder), "--work", str(tmp_path)]
    done = CliRunner().invoke(main, options, catch_exceptions=False)
    assert "| pets_quick (2) | bert |" in done.output
