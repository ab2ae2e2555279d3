from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from benchmarks.records import read_records
from benchmarks.runs import Case, Run
from benchmarks.tasks.positions import HitMass, hit_mass, main, position_case, position_cases, position_table, tenths
from engine.scoring.breakdown import Breakdown, ChunkPart, DocumentPart, SectionPair, TermPart
from engine.text.document import Document
from engine.text.spans import Span
from engine.words.segmenter import segmenter_of
from indexer.origin import Origin


def a_run(origin: Origin, *cases: Case) -> Run:
    given = {"task": "positions", "dataset": "pets@0", "system": "evidence", "encoder": "mean@0f"}
    return Run(**given, details={"k": 10}, origin=origin, cases=list(cases))


def test_tenths_are_columns_and_sides_rows_and_queries_are_averaged(origin: Origin) -> None:
    first, last = np.eye(10)[[0, 9]]
    early, late = HitMass(np.stack([first, last]), 0.0), HitMass(np.stack([last, last]), 0.5)
    nowhere = HitMass(None, 1.0)
    by_query = {"a": [early, early, late, late], "b": [late, nowhere], "c": [nowhere]}
    cases = [position_case(name, "all", hits) for name, hits in by_query.items()]
    table = position_table([a_run(origin, *cases, position_case("c", "relevant", [nowhere]))])
    rows = table.splitlines()[2:]
    beginning = "| pets (3) | mean | 7 hits of the first 10, 2 without a place |"
    assert rows[0] == f"{beginning} query | 0.250 |{' 0.000 |' * 8} 0.750 | 0.667 |"
    assert rows[1] == f"{beginning} target |{' 0.000 |' * 9} 1.000 | 0.667 |"
    assert rows[2] == ""  # no relevant hit has a place


def test_means_of_an_earlier_record_count_all_their_queries(origin: Origin) -> None:
    case = position_case("mean", "all", [HitMass(np.full((2, 10), 0.1), 0.125)])
    many = replace(case, facts={"queries": 149, "hits": 1490, "placed": 1490})
    row = position_table([a_run(origin, many)]).splitlines()[2]
    assert row == f"| pets (149) | mean | 1,490 hits of the first 10 | query |{' 0.100 |' * 10} 0.125 |"


@dataclass(frozen=True)
class Found:
    """A hit with a given breakdown."""

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
(WORD,) = SEGMENTER.segment("word").words.tolist()


def tenths_by_hand(spans: list[tuple[Span, float]], n_chars: int) -> list[float]:
    """Contributions, one hundredth of a character at a time."""
    mass = [0.0] * 10
    for span, contribution in spans:
        fine = [(span.start * 100 + step) / 100 for step in range((span.stop - span.start) * 100)]
        for place in fine:
            mass[int(10 * (place + 0.005) / n_chars)] += contribution / len(fine)
    return mass


def test_contributions_are_spread_over_their_spans() -> None:
    draw = np.random.default_rng(0)
    ends = np.array([sorted(draw.choice(74, size=2, replace=False).tolist()) for _ in range(12)])
    contributions = draw.random(12)
    mass = tenths(ends, contributions, 73)
    by_hand = tenths_by_hand([(Span(*span), one) for span, one in zip(ends.tolist(), contributions, strict=True)], 73)
    assert mass == pytest.approx(by_hand, abs=1e-2)
    assert mass.sum() == pytest.approx(contributions.sum())


@pytest.mark.parametrize(
    ("hit", "query", "target", "document_share"),
    [
        (
            found(part((0, 10), (180, 200), 0.3), part((10, 20), (0, 20), 0.1), whole=0.1),
            [0.75, 0.25, *[0.0] * 8],
            [0.25, *[0.0] * 8, 0.75],
            0.2,
        ),
        (  # words lie where they occur
            found(part((0, 10), (0, 20), 0.6), terms=(TermPart("word", 0.2, WORD),)),
            [1.0, *[0.0] * 9],
            [0.75, *[0.0] * 8, 0.25],
            0.0,
        ),
    ],
)
def test_the_shares_of_a_hit_sum_to_one_on_either_side(
    hit: Found, query: list[float], target: list[float], document_share: float
) -> None:
    mass = hit_mass(hit, QUERY, SEGMENTER)
    assert mass is not None and mass.sides is not None
    np.testing.assert_allclose(mass.sides, [query, target], atol=1e-12)
    assert mass.document_share == pytest.approx(document_share)


def test_a_hit_by_document_vectors_alone_has_no_place_and_a_hit_by_nothing_gives_none() -> None:
    assert hit_mass(found(whole=0.4), QUERY, SEGMENTER) == HitMass(None, 1.0)
    assert hit_mass(found(), QUERY, SEGMENTER) is None


def test_relevant_hits_are_a_group_of_their_own() -> None:
    near, far = found(part((0, 10), (0, 20), 1.0)), found(part((90, 100), (0, 20), 1.0))
    hits = [near, replace(far, doc_id="other"), found(whole=1.0)]
    qrels = {"query": {"other": 1}, "lost": {"target": 0}}
    cases = position_cases(lambda _: hits, {"query": QUERY, "lost": QUERY}, qrels, SEGMENTER)
    n_hits = {case.id: case.facts["hits"] for case in cases}
    assert n_hits == {"query, all": 3, "query, relevant": 1, "lost, all": 3}
    assert cases[1].values["query 10"] == 1.0


@pytest.mark.slow
def test_the_command_writes_a_run_and_a_quick_run_prints_its_table(
    folder: Path, bert_folder: Path, tmp_path: Path
) -> None:
    options = [str(folder), "--encoder", str(bert_folder), "--work", str(tmp_path / "work")]
    done = CliRunner().invoke(main, [*options, "--out", str(tmp_path / "out")], catch_exceptions=False)
    assert "| pets (2) | bert | 6 hits of the first 10 | query | " in done.output
    (run,) = read_records(tmp_path / "out")
    assert isinstance(run, Run) and run.name == "pets-evidence-bert-test"
    shares = [sum(case.values[f"target {n}"] for n in range(1, 11)) for case in run.cases if case.facts["placed"]]
    assert shares == pytest.approx([1.0] * len(shares), abs=1e-4)
    quick = CliRunner().invoke(main, [*options, "--quick"], catch_exceptions=False)
    assert "| pets_quick (2) | bert |" in quick.output
