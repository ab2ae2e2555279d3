"""The two sentences of a section pair belong together, are text of the documents, and have marked words of content."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.comparison import compare_alone
from engine.index import Index
from engine.report.contract import result_dict
from engine.report.page import result_html
from engine.report.quotes import MOST_CHARACTERS, Quote, Quotes, window
from engine.report.table import result_table
from engine.result import Hit
from engine.search.request import Request
from engine.text.document import Document
from engine.text.spans import Section, Span
from engine.words.function_words import is_content_word, is_function_word
from indexer.building.builder import build
from tests.fakes import FakeEncoder, make_document

SCRIPTS = {
    "english": ("The old heron waits for trout at the weir. ", "A weir holds back the water of a mill. "),
    "german": ("Der Reiher wartet am Wehr auf die Forelle. ", "Das Wehr staut das Wasser der alten Mühle. "),
    "russian": ("Старая цапля ждёт форель у плотины. ", "Плотина держит воду мельницы. "),
    "arabic": ("ينتظر مالك الحزين السمك عند السد. ", "يحجز السد ماء الطاحونة. "),
    "chinese": ("水泵管理人员应当定期检查业主大会的记录。", "业主大会决定水泵的维修费用。"),
    "japanese": ("古い水車の堰で鷺が鱒を待っています。", "堰は水車小屋の水をせき止めます。"),
    "korean": ("늙은 왜가리가 둑에서 송어를 기다린다. ", "둑은 물레방아의 물을 막는다. "),
    "thai": ("นกกระสาแก่รอปลาเทราต์ที่ฝาย ", "ฝายกั้นน้ำของโรงสีเก่า "),
}


def squeezed(text: str) -> str:
    return "".join(text.split())


def compared(query: str, target: str) -> tuple[Document, Hit, str | None]:
    result = compare_alone(make_document("q", query), make_document("t", target), FakeEncoder())
    return result.query, result.hits[0], result.language


def quotes_of(query: str, target: str, language: str | None = None) -> list[tuple[Quote, Quote]]:
    document, hit, detected = compared(query, target)
    quotes = Quotes(document, hit, language or detected)
    return [quotes.of(pair) for pair in hit.pairs]


@pytest.mark.parametrize("script", SCRIPTS)
@given(st.data())
def test_a_quote_is_text_of_the_document_in_every_script(script: str, data: st.DataObject) -> None:
    sentences = st.lists(st.sampled_from(SCRIPTS[script]), min_size=1, max_size=6)
    gaps = st.sampled_from(["", " ", "\n", "\t \n"])
    sides = ["".join(sentence + data.draw(gaps) for sentence in data.draw(sentences)) for _ in range(2)]
    for both in quotes_of(*sides):
        for quote, text in zip(both, sides, strict=True):
            assert squeezed(quote.text) in squeezed(text)
            assert squeezed(text[quote.span.start : quote.span.stop]) == squeezed(quote.text)
            assert quote.marked("", "") == quote.text
            assert [mark.start < mark.stop for mark in quote.marks] == [True] * len(quote.marks)
            stops = [0, *(mark.stop for mark in quote.marks)]
            assert all(mark.start >= stop for mark, stop in zip(quote.marks, stops, strict=False))


def test_marks_of_scripts_without_spaces_are_words_and_not_bigrams() -> None:
    ((query, target),) = quotes_of("业主大会决定费用。", "记录由业主大会保管。")
    assert query.marked("[", "]") == "[业主大会]决定费用。"
    assert target.marked("[", "]") == "记录由[业主大会]保管。"


def test_the_same_text_in_two_formats_shows_equal_sentences() -> None:
    sentences = [f"Heron {n} waits for trout {n} at weir {n} of the mill." for n in range(5)]
    sentences += ["This long sentence speaks of boats, sails, masts, ropes, nets and much else that floats on water."]
    for query, target in quotes_of(" ".join(sentences), "\n ".join(sentences)):
        assert query.text == target.text


def test_sentences_are_chosen_together() -> None:
    ((query, target),) = quotes_of(
        "A heron waits at the mill. The trout swims upstream at night.",
        "A trout was seen. Trout swim upstream at night, and herons see them.",
    )
    assert query.text == "The trout swims upstream at night."
    assert target.text == "Trout swim upstream at night, and herons see them."


def test_function_words_alone_and_weak_words_are_not_marked() -> None:
    text = "We also show how herons hunt."
    ((query, _),) = quotes_of(text, f"How do herons hunt? {text}", "english")
    assert query.marked("[", "]") == "We also show how [herons hunt]."
    assert is_function_word("我们", "chinese") and is_function_word("から", "japanese")
    assert not is_function_word("系统", "chinese") and not is_function_word("system", "english")


@pytest.mark.parametrize(
    ("word", "is_content"),
    [("602", False), ("7", False), ("1499", False), ("1998", True), ("2101", False), ("12345", True), ("the", False)],
)
def test_bare_numbers_are_no_content_words_and_years_are(word: str, is_content: bool) -> None:
    assert is_content_word(word, "english") == is_content


def test_bare_numbers_and_function_words_are_not_listed() -> None:
    text = "A pump 602 see 604 moves the fluid in 1998."
    result = compare_alone(make_document("q", text), make_document("t", text), FakeEncoder())
    (values,) = result_dict(result)["hits"]
    terms = {word["term"] for part in [values, *values["parts"]] for word in part["words"]}
    assert {"pump", "1998", "pump 602"} <= terms and not terms & {"602", "604", "602 see", "see", "see 604"}


def test_without_shared_words_the_sentences_behind_the_headings_are_shown() -> None:
    text = "Rain\n\nThe sun shines over hills and plains all day. Old foxes sleep."
    document = Document("d", "d", text, (Section("Rain", ("Rain",), 0, len(text)),))
    result = compare_alone(document, make_document("t", "Nothing is equal here, nor alike."), FakeEncoder())
    (hit,) = result.hits
    for pair in hit.pairs:
        assert Quotes(document, hit, "english").of(pair)[0].text == "The sun shines over hills and plains all day."


@given(st.integers(0, 90), st.integers(1, 4), st.integers(24, 120))
def test_a_line_is_cut_around_its_marks(first: int, n_words: int, most: int) -> None:
    text = "word " * 100
    mark = Span(5 * first, 5 * (first + n_words) - 1)
    line, (kept,) = window(text, [mark], most)
    assert len(line) <= most
    assert line[kept.start : kept.stop] == text[mark.start : mark.stop]
    assert squeezed(line.strip("…")) in squeezed(text)


def test_a_very_long_sentence_is_quoted_around_its_marks() -> None:
    filler = "nothing of interest " * 200
    for query, _ in quotes_of(f"{filler} the heron waits {filler}.", "A heron waits."):
        assert len(query.text) <= MOST_CHARACTERS
        assert "[heron waits]" in query.marked("[", "]")


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


def test_all_views_show_the_same_sentences(index: Index) -> None:
    result = index.search(QUERY, Request(k=1))
    table, notebook = result_table(result, width=100), result_html(result)
    report = " ".join(re.sub("<[^>]*>", "", result.to_html()).split())
    (snippet,) = result.hits[0].snippets(1)
    part = result.to_dict()["hits"][0]["by_section"]["rows"][0]["best"]
    quotes = part["quotes"]
    for side, quote in (("query", snippet.query), ("target", snippet.target)):
        assert quotes[side]["text"] == quote.text and quote.text in table and quote.text in report
        assert quote.joined(lambda text: text, "<mark>", "</mark>") in notebook
        marked = {result.query.text[start:end] for start, end in part["marks"]["query"]}
        assert marked >= {quotes["query"]["text"][start:end] for start, end in quotes["query"]["marks"]}
    assert "*" not in table and "words: " in table


def test_html_escapes_quotes(index: Index) -> None:
    html = result_html(index.search(replace(make_document("q", "<b>fox</b> river & night"), title="q"), Request(k=1)))
    assert "&lt;b&gt;" in html and "<b>fox" not in html
