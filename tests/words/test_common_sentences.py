"""Sentences that many documents of an index share: left out of scores word by word, never first in other words."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from engine.index import Index
from engine.report.contract import best_parts, result_dict
from engine.report.page import result_page
from engine.report.table import result_table
from engine.search.request import Request
from engine.text.document import Document
from engine.text.segmentation import Section, Span
from engine.words.wording import (
    FEWEST_WITH_RUN,
    MOST_DOCUMENTS,
    blanked,
    common_sentences,
    common_stretches,
    hollow_phrases,
    kept_shares,
    stock_sentences,
    stock_wording,
)
from indexer.building.builder import build
from tests.fakes import FakeEncoder, make_corpus, make_document

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


def test_stretches_are_blanked_but_not_where_all_is_common() -> None:
    text = texts(20, 20)[3]
    (span,) = common_stretches(text, common_sentences(texts(20, 20)))
    assert text[span.start : span.stop] == NOTICE
    blank = blanked(text, [span])
    assert len(blank) == len(text)
    assert blank.startswith(OWN.format("w3x")) and not blank[span.start :].strip()
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


STOCK = "It will be apparent to those who know the craft that the {} may be varied without any danger to its purpose."


def varied(number: int) -> str:
    return STOCK.format(f"w{chr(97 + number)}")


@pytest.mark.parametrize(("n_with", "n_texts"), [(FEWEST_WITH_RUN - 1, 40), (FEWEST_WITH_RUN, 40), (9, 200), (10, 200)])
def test_a_sentence_is_stock_where_five_documents_and_a_twentieth_have_its_wording(n_with: int, n_texts: int) -> None:
    own = [f"The {chr(97 + number % 26)}{number} heron waits for trout at weir {number}." for number in range(n_texts)]
    noted = [f"{text} {varied(number)}" if number < n_with else text for number, text in enumerate(own)]
    text = f"Otters swim upstream in the cold season of the year. {varied(25)}"
    found = stock_sentences(text, stock_wording(noted))
    assert len(found) == (n_with >= max(FEWEST_WITH_RUN, n_texts / 20))
    for sentence in found:
        assert text[sentence.span.start : sentence.span.stop] == varied(25)
        assert (sentence.n_documents, sentence.n_compared) == (n_with, n_texts)


@pytest.mark.parametrize(
    ("sentence", "is_stock"),
    [
        ("Those skilled in the art will appreciate that the heron may be varied.", True),
        ("Many changes can be made without departing from the spirit and scope of the invention.", True),
        ("The heron is shown by way of illustration and not of limitation.", True),
        ("Media include RAM, ROM, EEPROM, flash memory and floppy disks.", True),
        ("Dem Fachmann ist klar, dass der Reiher austauschbar ist.", True),
        ("The program is kept in RAM and read from a floppy.", False),
        ("1. A computer-readable medium that stores the heron.", False),
        ("The art of departing from the river is a skill.", False),
        ("A heron, wherein those skilled in the art vary " + "the trout, " * 60 + "and rest.", False),  # a claim
    ],
)
def test_set_phrases_of_patents_are_stock_in_any_index(sentence: str, is_stock: bool) -> None:
    text = f"{'Otters swim past the embodiment in the cold season. ' * 20}{sentence}"
    found = stock_sentences(text, stock_wording([]))
    assert [text[one.span.start : one.span.stop] for one in found] == [sentence] * is_stock
    assert all(one.n_documents == 0 for one in found)
    assert stock_sentences(re.sub("embodiment|invention", "weir", text), stock_wording([])) == ()


@pytest.mark.parametrize(
    ("text", "phrases"),
    [
        ("The Present Invention relates to an embodiment.", ["Present Invention relates"]),
        ("A machine-readable recording medium of the invention.", ["machine-readable recording medium"]),
        ("A weir as claimed in claim 12, characterised in that", ["claimed in claim 12", "characterised in that"]),
        ("Wehr nach Anspruch 3, dadurch gekennzeichnet, dass", ["Anspruch 3", "dadurch gekennzeichnet"]),
        ("A computer reads a represented invention.", []),
    ],
)
def test_hollow_phrases_are_found_in_patents_alone(text: str, phrases: list[str]) -> None:
    patent = f"{text} An embodiment follows."
    found = hollow_phrases(patent)
    assert [patent[start:stop] for start, stop in found.tolist()] == phrases
    assert not len(hollow_phrases(re.sub("(?i)invention|embodiment", "weir", text)))


def test_of_a_text_of_stock_sentences_alone_none_is_stock() -> None:
    wording = stock_wording([varied(number) for number in range(20)])
    assert stock_sentences(varied(25), wording) == () == stock_sentences("", wording)
    assert stock_sentences(f"Otters swim. {varied(25)}", stock_wording([])) == ()


def test_a_stock_sentence_is_marked_and_never_shown_first(tmp_path: Path) -> None:
    heron = "The heron of the northern weir waits for silver trout at dawn. It nests in the alder by the mill."
    corpus = [
        make_document(f"d{number:02}", [("Birds", f"Alone sings bird w{chr(97 + number)}."), ("End", varied(number))])
        for number in range(24)
    ]
    query, target = (
        make_document(name, [("End", f"{varied(25)} {own}"), ("Birds", f"{heron} {own}")])
        for name, own in (("q", "Otters swim."), ("t", "Eels rest."))
    )
    build(tmp_path / "x.lm", [*corpus, target], encoder=FakeEncoder())
    with Index.open(tmp_path / "x.lm", encoder=FakeEncoder()) as index:
        result = index.search(query, Request(k=1))
    (hit,) = result_dict(result)["hits"]
    kinds, parts = [row["kind"] for row in hit["by_section"]["rows"]], best_parts(hit)
    assert kinds == ["body", "boilerplate"]
    assert [part["quotes"]["stock"] for part in parts] == [None, {"n_documents": 25, "n_compared": 25}]
    note = "boilerplate: 25 of 25 reference documents have it"
    assert note in result_table(result) and note in result_page([result])
