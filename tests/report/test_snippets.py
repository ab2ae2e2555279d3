"""The sentence with the heaviest shared words is shown, with these words marked."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.index import Index
from engine.report.html import result_html
from engine.report.snippets import Snippet, best_sentence, pair_snippets, term_weights
from engine.report.table import result_table
from engine.search.request import Request
from engine.text.document import Document
from engine.text.spans import Section, Span
from engine.words.segmenter import WordSegmenter
from indexer.building.builder import build
from tests.fakes import FakeEncoder, make_document

TEXT = "Rain\n\nThe sun shines over hills. Old foxes\n  cross the wide river slowly. Nothing else happens."
DOCUMENT = Document("d", "d", TEXT, (Section("Rain", ("Rain",), 0, len(TEXT)),))


def weights(**words: float) -> dict[int, float]:
    segmenter = WordSegmenter("english")
    return {int(segmenter.segment(word).words[0]): weight for word, weight in words.items()}


def sentence(**words: float) -> Snippet:
    return best_sentence(DOCUMENT, Span(0, len(TEXT)), weights(**words), "english", 0)


def test_the_sentence_with_the_heaviest_words_is_shown_on_one_line() -> None:
    found = sentence(sun=0.1, fox=0.2, river=0.2)
    assert found.text == "Old foxes cross the wide river slowly."
    assert found.marked() == "Old *foxes* cross the wide *river* slowly."


def test_a_word_counts_once_in_a_sentence() -> None:
    text = "Sun and sun and sun. A fox."
    document = Document("d", "d", text, (Section("", (), 0, len(text)),))
    assert best_sentence(document, Span(0, len(text)), weights(sun=0.1, fox=0.2), "english", 0).text == "A fox."


def test_without_shared_words_the_first_sentence_behind_the_heading_is_shown() -> None:
    assert sentence().text == "The sun shines over hills."
    assert sentence().marks == ()


def test_a_long_sentence_begins_near_its_first_marked_word() -> None:
    line = "word " * 40 + "fox runs " + "word " * 40
    found = Snippet(line.strip(), (Span(200, 203),)).cut(60)
    assert len(found.text) <= 60 and found.text.startswith("…word") and found.text.endswith("…")
    assert "*fox* runs" in found.marked()


def test_marks_and_text_are_escaped_apart() -> None:
    found = Snippet("a < fox & b", (Span(4, 7),))
    assert found.joined(lambda text: text.replace("<", "&lt;").replace("&", "&amp;"), "<mark>", "</mark>") == (
        "a &amp;lt; <mark>fox</mark> &amp; b"
    )


@pytest.fixture
def index(tmp_path: Path) -> Index:
    bodies = ["Foxes cross the river at night", "Houses are built of red stone", "Ships sail over the wide sea"]
    documents = [
        make_document(f"doc{number}", [("Topic", f"{body}. Number {number} says nothing more.")])
        for number, body in enumerate(bodies * 4)
    ]
    build(tmp_path / "x.lm", documents, encoder=FakeEncoder(), language="english")
    return Index.open(tmp_path / "x.lm", encoder=FakeEncoder())


QUERY = make_document("q", [("Mine", "Nobody knows. The fox crosses a river by night. Quite so.")])


def test_a_table_shows_sentences_with_their_words_and_what_these_add(index: Index) -> None:
    table = result_table(index.search(QUERY, Request(k=1)), width=100)
    (mine,) = [line for line in table.splitlines() if line.lstrip().startswith("< ")]
    (theirs,) = [line for line in table.splitlines() if line.lstrip().startswith("> ")]
    assert "*fox* *crosses* a *river*" in mine
    assert "*Foxes* *cross* the *river*" in theirs
    assert "in words: " in table


def test_section_pairs_that_only_words_make_have_snippets_too(index: Index) -> None:
    result = index.search(QUERY, Request(k=12))
    for hit in result.hits:
        shares = term_weights(hit, result.language)
        for pair in hit.breakdown.pairs:
            found = pair_snippets(result, hit, pair, shares)
            assert found.query.text and found.target.text


def test_html_marks_words_and_escapes_text(index: Index) -> None:
    html = result_html(index.search(make_document("q", "<b>fox</b> river & night"), Request(k=1)))
    assert "<mark>river</mark>" in html and "&lt;b&gt;" in html and "<b>fox" not in html
