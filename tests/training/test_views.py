"""Views of a document: which text is kept, and in which sections."""

from __future__ import annotations

from engine.text.document import Document
from engine.text.spans import Section, Span
from engine.training.tasks.views import keep, n_words, one_section, sentences, words
from tests.fakes import make_document

DOCUMENT = make_document(
    "d", [("Start", "One fox runs. Two dogs sleep."), ("Middle", "The house is old."), ("End", "A river. It is long.")]
)


def shown(document: Document, spans: list[Span]) -> list[str]:
    return [document.text[span.start : span.stop] for span in spans]


def test_sentences_cover_the_text_and_stay_within_sections() -> None:
    assert shown(DOCUMENT, sentences(DOCUMENT)) == [
        "Start\nOne fox runs. ",
        "Two dogs sleep.\n\n",
        "Middle\nThe house is old.\n\n",
        "End\nA river. ",
        "It is long.\n\n",
    ]


def test_blank_sections_have_no_sentence() -> None:
    document = make_document("d", [("", "One fox. "), ("", " \n "), ("", "Two dogs.")])
    assert shown(document, sentences(document)) == ["One fox. ", "Two dogs."]


def test_words_cover_the_text() -> None:
    document = make_document("d", "  one two\n\nthree ")
    assert shown(document, words(document)) == ["  one ", "two\n\n", "three "]
    assert words(make_document("d", " \n ")) == []
    assert n_words(document, Span(0, 7)) == 2


def test_kept_text_stays_under_its_heading() -> None:
    first, _, third, _, last = sentences(DOCUMENT)
    view = keep(DOCUMENT, [first, third, last])
    assert view.text == "Start\nOne fox runs. Middle\nThe house is old.\n\nIt is long.\n\n"
    assert [(section.heading, section.path) for section in view.sections] == [
        ("Start", ("Start",)),
        ("Middle", ("Middle",)),
        ("End", ("End",)),
    ]
    assert [view.text[section.start : section.stop] for section in view.sections] == [
        "Start\nOne fox runs. ",
        "Middle\nThe house is old.\n\n",
        "It is long.\n\n",
    ]
    assert (view.doc_id, view.title, view.pages) == ("d", "d", ())


def test_sections_without_kept_text_are_dropped() -> None:
    view = keep(DOCUMENT, [sentences(DOCUMENT)[2]])
    assert [section.heading for section in view.sections] == ["Middle"]
    assert view.sections[0].start == 0
    assert keep(DOCUMENT, []).text == ""


def test_a_span_over_several_sections_is_cut_at_their_borders() -> None:
    document = Document(
        "d", "", "abcdef", (Section("", (), 0, 2), Section("", (), 2, 4), Section("", (), 4, 6)), pages=(3,)
    )
    view = keep(document, [Span(1, 5)])
    assert view.text == "bcde"
    assert [(section.start, section.stop) for section in view.sections] == [(0, 1), (1, 3), (3, 4)]


def test_keeping_everything_returns_the_document() -> None:
    assert keep(DOCUMENT, [Span(0, len(DOCUMENT.text))]) == DOCUMENT
    assert keep(DOCUMENT, sentences(DOCUMENT)) == DOCUMENT


def test_one_section_has_all_of_the_text_and_no_heading() -> None:
    joined = one_section(DOCUMENT)
    assert joined.text == DOCUMENT.text
    assert joined.sections == (Section("", (), 0, len(DOCUMENT.text)),)
