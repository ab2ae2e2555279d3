"""Sentences that many documents of an index share, and how they are left out of scores."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from engine.index import Index
from engine.search.request import Request
from engine.text.document import Document
from engine.text.spans import Section, Span
from engine.words.common_sentences import MOST_DOCUMENTS, blanked, common_sentences, common_stretches, kept_shares
from indexer.building.builder import build
from tests.fakes import FakeEncoder, make_corpus

NOTICE = "This work is distributed without any warranty of any kind."
OWN = "Here the text {} speaks of things that no other text has."


def texts(n: int, n_with: int) -> list[str]:
    return [OWN.format(f"w{number}x") + (f"\n\n{NOTICE}" if number < n_with else "") for number in range(n)]


@pytest.mark.parametrize("n_with", [0, MOST_DOCUMENTS, MOST_DOCUMENTS + 1, 30])
def test_a_sentence_is_common_where_more_than_m_documents_have_it(n_with: int) -> None:
    common = common_sentences(texts(30, n_with))
    assert len(common) == (n_with > MOST_DOCUMENTS)
    assert common.dtype == np.uint64


def test_case_and_line_breaks_do_not_matter_and_repeats_in_one_text_do_not_count() -> None:
    wrapped = NOTICE.upper().replace(" ANY ", "\n  ANY ")
    some = [*texts(MOST_DOCUMENTS, MOST_DOCUMENTS), f"{OWN.format('q')} {OWN.format('r')}\n\n{wrapped}"]
    assert len(common_sentences(some)) == 1
    assert len(common_sentences([f"{NOTICE} {NOTICE}\n\n{NOTICE}"] * MOST_DOCUMENTS)) == 0
    assert len(common_sentences(["Short one. " + OWN.format(number) for number in range(20)])) == 0


def test_stretches_are_blanked_and_offsets_stay() -> None:
    text = texts(20, 20)[3]
    (span,) = common_stretches(text, common_sentences(texts(20, 20)))
    assert text[span.start : span.stop] == NOTICE
    blank = blanked(text, [span])
    assert len(blank) == len(text)
    assert blank.startswith(OWN.format("w3x")) and not blank[span.start :].strip()


def test_of_a_text_that_is_nearly_all_common_nothing_is_left_out() -> None:
    common = common_sentences(texts(20, 20))
    assert common_stretches(NOTICE, common) == []
    assert common_stretches("An own word. " + NOTICE, common) == []


def test_shares_are_by_characters() -> None:
    stretches = [Span(10, 20), Span(40, 50)]
    shares = kept_shares(stretches, [Span(0, 10), Span(0, 20), Span(12, 18), Span(15, 45), Span(60, 70)])
    np.testing.assert_allclose(shares, [1, 0.5, 0, 2 / 3, 1])
    assert kept_shares([], [Span(0, 1)]).tolist() == [1]


def with_notice(document: Document) -> Document:
    start = len(document.text) + 2
    section = Section("Licence", ("Licence",), start, start + len(NOTICE))
    last = replace(document.sections[-1], stop=start)
    return replace(
        document, text=f"{document.text}\n\n{NOTICE}", sections=(*document.sections[:-1], last, section), pages=()
    )


@pytest.mark.slow
def test_a_common_section_takes_no_part_of_a_score(tmp_path: Path) -> None:
    plain = make_corpus(40)
    noted = [with_notice(one) if number < 12 else one for number, one in enumerate(plain)]
    build(tmp_path / "noted.lm", noted, encoder=FakeEncoder())
    with Index.open(tmp_path / "noted.lm", encoder=FakeEncoder()) as index:
        assert len(index.snapshot.reference.common) >= 1
        for result in (index.search(noted[3].doc_id, Request(k=40)), index.search(noted[3], Request(k=40))):
            number = len(result.query.sections) - 1
            taken = [pair for hit in result.hits for pair in hit.breakdown.pairs if pair.query_section == number]
            assert taken == []
            for hit in result.hits:
                assert hit.breakdown.score == pytest.approx(hit.score, abs=1e-5)
        own = index.search(noted[3], Request(k=1, with_itself=True))
    assert own.hits[0].doc_id == noted[3].doc_id
    assert 0.95 < own.hits[0].score <= 1  # the target keeps its common section
