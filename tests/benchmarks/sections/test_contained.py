"""Planted sections and documents are searched for by words; the table counts correct results."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from benchmarks.datasets import DatasetError
from benchmarks.runs import Run, read_run, run_files
from benchmarks.sections.contained import (
    QUICK,
    ContainedPlan,
    contained_case,
    contained_table,
    judged,
    long_sections,
    planted_corpus,
    recall_by_share,
)
from benchmarks.sections.planting import replace_words
from benchmarks.tasks.planted import main
from engine.text.document import Document
from indexer.origin import Origin
from tests.fakes import make_document

SECTIONS = [
    contained_case("a", 0, "x", 0.0, "x", 0.9),
    contained_case("a", 1, "y", 0.1, "z", 0.8),
    contained_case("b", 0, "", 0.0, "w", 0.7),
    contained_case("b", 1, "z", 0.0, "z", 0.4),
]


def corpus() -> list[Document]:
    def words(number: int, part: int) -> str:
        return " ".join(f"w{number}x{part}x{place % 60}" for place in range(90))

    return [make_document(f"d{n}", [(f"Part {part}", words(n, part)) for part in range(5)]) for n in range(20)]


def test_a_case_is_correct_if_its_home_is_found_with_a_sufficient_score(origin: Origin) -> None:
    assert judged(SECTIONS) == pytest.approx((1 / 3, 1 / 3))
    assert judged(SECTIONS, least=0.4) == pytest.approx((2 / 4, 2 / 3))
    assert judged([contained_case("c", -1, "x", 0.3, "x", 0.5)]) == (1, 1)
    assert recall_by_share(SECTIONS) == [0.5, 0.0, None]
    given = {"task": "contained", "dataset": "rfc@0", "system": "novelty", "details": {"n_documents": 1234}}
    row = contained_table([Run(**given, origin=origin, cases=SECTIONS)]).splitlines()[2]
    assert row == "| rfc | 1,234 | novelty | section | 3 | 1 | 0.333 | 0.333 | 0.500 | 0.000 |  |"


def test_some_sections_and_half_of_the_documents_are_planted_in_others() -> None:
    documents = corpus()
    made, cases = planted_corpus(documents, QUICK, seed=3)
    sections, inner = [one for one in cases if one.section >= 0], [one for one in cases if one.section < 0]
    assert (len(sections), len(inner), len(made)) == (10, 4, 14)
    assert sum(bool(one.home) for one in sections) == 4 and sum(bool(one.home) for one in inner) == 2
    by_id = {one.doc_id: one for one in made}
    assert not {one.query.doc_id for one in cases} & set(by_id)
    for case in [case for case in cases if case.home and not case.replaced]:
        text = case.query.text
        if case.section >= 0:
            text = text[case.query.sections[case.section].start : case.query.sections[case.section].stop]
        assert " ".join(text.split()) in by_id[case.home].text


def test_a_corpus_that_is_too_small_is_refused() -> None:
    with pytest.raises(DatasetError, match="20 documents are too few"):
        planted_corpus(corpus(), ContainedPlan(10, 10), seed=0)


def test_a_share_of_the_words_is_replaced() -> None:
    text = " ".join(str(number) for number in range(100))
    made = replace_words(text, 0.3, ["word"], np.random.default_rng(0)).split()
    assert made.count("word") == 30
    assert all(one in (str(number), "word") for number, one in enumerate(made))


def test_long_sections_have_eighty_words() -> None:
    document = make_document("a", [("One", "word " * 78), ("Two", "word " * 90)])
    assert [document.sections[at].heading for at in long_sections(document)] == ["Two"]


def test_a_quick_run_writes_two_runs_and_their_table(long_folder: Path, tmp_path: Path) -> None:
    given = [str(long_folder), "--contained", "--quick", "--out", str(tmp_path)]
    done = CliRunner().invoke(main, given, catch_exceptions=False)
    runs = [read_run(path) for path in run_files(tmp_path)]
    assert [run.name for run in runs] == ["long_quick-containment", "long_quick-novelty"]
    assert [len(run.cases) for run in runs] == [QUICK.inner, len({case.id for case in runs[1].cases})]
    assert contained_table(runs) in done.stdout
