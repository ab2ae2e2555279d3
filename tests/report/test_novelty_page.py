"""Novelty as HTML: the numbers of the JSON, every section with its nearest document, texts escaped."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import lxml.html
import pytest

from engine.index import Index
from engine.report.page import result_page, result_pieces
from engine.search.request import Mode, Request
from engine.views import Result
from engine.words.function_words import is_function_word
from indexer.building.builder import build
from tests.fakes import FakeEncoder, make_document
from tests.report.test_page import HOSTILE, hostile, numbers, parsed

SHIPS = "Keel, mast and harbour: the wind fills a sail, and a rope holds the anchor against the tide. " * 4
FOXES = "Old foxes cross the wide river at night, and a stone house by the bank stays dark until dawn. " * 4
NOVELTY = Request(mode=Mode.NOVELTY)
QUERY = make_document("draft", [("Seen before", FOXES), ("Ships", SHIPS), ("Of the", "And then, of the. " * 30)])


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Result:
    corpus = [make_document("fox", [("Foxes", FOXES), ("Bread", "Flour and water make a dough that rises. " * 9)])]
    folder = tmp_path_factory.mktemp("novelty") / "x.lm"
    build(
        folder,
        [*corpus, make_document("bank", "The bank lends money to a house. " * 20)],
        encode="none",
        language="english",
    )
    with Index.open(folder) as index:
        result = index.search(replace(QUERY, pages=(0, 300)), NOVELTY)
        result.to_dict()
        return result


def articles(page: lxml.html.HtmlElement) -> list[lxml.html.HtmlElement]:
    return list(page.xpath("//article[@class='hit']"))


def test_every_number_is_that_of_the_json(found: Result) -> None:
    page, values = parsed(found.to_html(n_pairs=2)), found.to_dict(n_pairs=2)
    known = [one["novelty"] for one in values["sections"] if one["novelty"] is not None]
    assert numbers(page.xpath("//table[@class='ranking']")[0]) == known
    for one, article in zip(values["sections"], articles(page), strict=True):
        shown = numbers(article.xpath(".//p[@class='score']")[0])
        assert shown == ([] if one["novelty"] is None else [one["novelty"]])
        for table in article.xpath(".//table[@class='contributions']"):
            rows = [numbers(row)[0] for row in table.xpath("./tbody/tr")]
            assert rows == [part["contribution"] for part in one["hit"]["parts"]]
            assert sum(rows) == pytest.approx(1 - one["novelty"], abs=1e-5)


def test_sections_are_listed_most_novel_first_with_their_nearest_document(found: Result) -> None:
    shown = [" ".join(one.text_content().split()) for one in articles(parsed(found.to_html()))]
    assert [text.split(" Novelty")[0] for text in shown] == ["1 Ships", "2 Seen before", "3 Of the"]
    assert found.sections is not None
    novelty = found.sections[1].novelty
    assert novelty is not None and f"Nearest: fox fox, which contains {1 - novelty:.4f} of it." in shown[1]
    assert "Nothing to compare: the section has no content words." in shown[2]
    assert all(text.count("section ") for text in shown) and "section 1, pp. 1–2; body" in shown[1]


def test_the_whole_section_is_there_and_what_matches_is_marked(found: Result) -> None:
    ships, seen, nothing = articles(parsed(found.to_html()))
    for heading, article in (("Ships", ships), ("Seen before", seen), ("Of the", nothing)):
        section = next(one for one in QUERY.sections if one.heading == heading)
        texts = ["".join(one.text_content().split()) for one in article.xpath(".//p[@class='text']")]
        assert "".join(QUERY.text[section.start : section.stop].split()) in texts
    (part, *_) = found.to_dict(n_pairs=1)["sections"][1]["hit"]["parts"]
    marked = {one.text_content().strip().lower() for one in seen.iter("mark")}
    assert all(any(word["term"].lower() in mark for mark in marked) for word in part["words"])
    assert not any(is_function_word(mark, "english") for mark in marked)


def test_every_link_has_a_target_and_ids_are_unique(found: Result) -> None:
    page = parsed(result_page([found, found]))
    names = page.xpath("//@id")
    assert len(names) == len(set(names))
    assert {link[1:] for link in page.xpath("//a/@href")} <= set(names)


def test_the_pieces_are_the_sections_of_the_page(found: Result) -> None:
    pieces = list(result_pieces(found))
    assert [kind for kind, _ in pieces] == ["head", "hit", "hit", "hit", "tail"]
    whole = [numbers(one) for one in articles(parsed(found.to_html()))]
    assert [numbers(lxml.html.fromstring(html)) for kind, html in pieces if kind == "hit"] == whole


def test_hostile_documents_add_no_element(tmp_path: Path) -> None:
    build(tmp_path / "x.lm", [hostile("a"), hostile("b")], encoder=FakeEncoder(), language="english")
    with Index.open(tmp_path / "x.lm", encoder=FakeEncoder()) as index:
        html = index.search(hostile("q"), NOVELTY).to_html(command=HOSTILE)
    page = parsed(html)
    assert page.xpath("//img | //iframe | //link | //@onerror | //@src") == []
    assert len(page.xpath("//script")) == 1 and "alert" not in page.xpath("//script")[0].text
    assert page.xpath("//h1")[0].text_content() == HOSTILE
