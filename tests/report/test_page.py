"""Reports in HTML: the numbers of the JSON, texts escaped; of rankings, comparisons and novelty."""

import json
import re
from dataclasses import replace
from pathlib import Path

import lxml.html
import pytest

from engine.comparison import compare_alone
from engine.index import Index
from engine.report.contract import summary
from engine.report.lines import pages_label
from engine.report.page import hit_views, result_page, result_pieces
from engine.search.request import Mode, Request
from engine.text.document import LEFT_OUT, Document
from engine.text.segmentation import Section
from engine.views import Result, result_view
from engine.words.wording import is_function_word
from indexer.building.builder import build
from tests.fakes import FakeEncoder, make_corpus, make_document

HOSTILE = "<script>alert(1)</script> \"quoted\" & 'single' </script><img src=x onerror=alert(2)>"


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> Result:
    folder = tmp_path_factory.mktemp("report") / "x.lm"
    corpus = [replace(document, pages=(0, 200, 300)) for document in make_corpus(8)]
    build(folder, corpus, encoder=FakeEncoder(), language="english")
    with Index.open(folder, encoder=FakeEncoder()) as index:
        found = index.search(replace(corpus[1], source=""), Request(k=3))
        found.to_dict()
        return found


def parsed(html: str) -> lxml.html.HtmlElement:
    return lxml.html.document_fromstring(html)


def numbers(element: lxml.html.HtmlElement) -> list[float]:
    return [float(one.get("value")) for one in element.iter("data")]


def test_every_number_is_that_of_the_json(result: Result) -> None:
    page, values = parsed(result.to_html(n_pairs=4)), result.to_dict(n_pairs=4)
    ranking = page.xpath("//table[@class='ranking']")[0]
    assert numbers(ranking) == [hit["score"] for hit in values["hits"]]
    for hit, element in zip(values["hits"], page.xpath("//article[@class='hit']"), strict=True):
        table = element.xpath(".//table[@class='contributions']")[0]
        rows, shares = [numbers(row)[0] for row in table.xpath("./tbody/tr")], hit["by_section"]
        rest = [sum(one["contribution"] for one in shares["rest"])] if shares["rest"] else []
        assert rows == pytest.approx([*(row["contribution"] for row in shares["rows"]), *rest])
        assert sum(rows) == pytest.approx(hit["score"], abs=1e-5)
        assert f"It {summary(hit)}." in " ".join(element.text_content().split())
        assert numbers(table.xpath("./tfoot")[0]) == [hit["score"]]
        assert numbers(element.xpath(".//ul[@class='components']")[0]) == list(hit["components"].values())


def test_sections_add_up_to_the_section_pairs(result: Result) -> None:
    (view,) = (one for one in hit_views(result, n_pairs=2) if one.hit.rank == 1)
    total = sum(pair.contribution for pair in view.hit.pairs)
    for sections in (view.query, view.target):
        assert sum(section.contribution for section in sections) == pytest.approx(total)


def test_both_texts_are_complete_and_their_matches_marked(result: Result) -> None:
    page = parsed(replace(result, hits=result.hits[:1]).to_html(n_pairs=2))
    query, target = page.xpath("//div[@class='sides full']/div")
    for document, side in ((result.query, query), (result.hits[0].document, target)):
        text = "".join(one.text_content() for one in side.xpath(".//p[@class='text']"))
        assert "".join(text.split()) == "".join(document.text.split())
    part = result.to_dict(n_pairs=1)["hits"][0]["parts"][0]
    match = page.get_element_by_id("q1-h1-match-1")
    for side, element in zip(("query", "target"), match.xpath(".//div[@class='side']"), strict=True):
        shown = " ".join(one.text_content() for one in element.xpath(".//*[contains(@class, 'passage')]"))
        assert part["spans"][0][side]["text"].split()[0] in shown
        marked = {one.text_content().lower() for one in element.iter("mark")}
        assert marked & {word["term"].lower() for word in part["words"]}
    place = part["spans"][0]["target"]
    assert element.xpath("./h5")[0].text_content().endswith(f" {pages_label(place)}")
    assert pages_label(place).startswith("p")


def hostile(name: str) -> Document:
    text = f"{HOSTILE}\n\n{HOSTILE} fox and river {HOSTILE} house. " * 3
    half = len(text) // 2
    sections = (Section(HOSTILE, (HOSTILE,), 0, half), Section(HOSTILE, (HOSTILE,), half, len(text)))
    return Document(name + HOSTILE, HOSTILE, text, sections, {HOSTILE: HOSTILE}, HOSTILE)


@pytest.mark.parametrize("mode", ["similar", "novelty"])
def test_hostile_documents_add_no_element_and_leave_no_script(tmp_path: Path, mode: str) -> None:
    build(tmp_path / "x.lm", [hostile("a"), hostile("b")], encoder=FakeEncoder(), language="english")
    with Index.open(tmp_path / "x.lm", encoder=FakeEncoder()) as index:
        page = parsed(index.search(hostile("q"), Request.of(mode=mode, with_itself=True)).to_html(command=HOSTILE))
    assert HOSTILE in page.xpath("//main")[0].text_content()
    assert page.xpath("//img | //iframe | //link | //@onerror | //@src") == []
    (script,) = page.xpath("//script[not(@type)]")
    assert "alert" not in script.text
    maps = [json.loads(one.text)["rows"] for one in page.xpath("//script[@type='application/json']")]
    assert maps == [[HOSTILE, HOSTILE]] * (2 if mode == "similar" else 0)
    assert page.xpath("//h1")[0].text_content() == HOSTILE


def test_a_page_loads_nothing_and_keeps_percentages_on_a_line(result: Result) -> None:
    html = result.to_html()
    assert not re.search(r"""(?:src|href)\s*=\s*["']?(?:https?:|//)|@import|url\(""", html)
    assert "default-src 'none'" in html
    assert re.findall(r"\d\s%", parsed(result.to_html()).text_content()) == re.findall("\\d\u00a0%", result.to_html())


def test_a_result_states_its_origin_and_command(result: Result) -> None:
    text = parsed(result.to_html(command="longmatch query x.lm 'a b.pdf'")).text_content()
    assert "longmatch query x.lm 'a b.pdf'" in text and "f" * 32 in text
    assert "Certified." in text and "generation 1" in text
    assert result.to_dict()["query"]["content"] in text


def test_a_comparison_states_what_its_score_rests_on(corpus: list[Document]) -> None:
    comparison = result_view(compare_alone(corpus[0], corpus[1], FakeEncoder()))
    text = parsed(comparison.to_html()).text_content()
    assert "Compared without an index" in text and "Ranking" not in text
    assert "a search of this index gives the same score" in replace(comparison, background="x.lm").to_html()


def test_a_result_without_hits_shows_the_reason(index: Index, corpus: list[Document]) -> None:
    assert "No document was searched" in index.search(corpus[3], Request(where="topic = 99")).to_html()


def test_a_report_of_words_alone_shows_the_sentence_that_matches(tmp_path: Path) -> None:
    filler = "Nothing of note is written in this line of the text. " * 20
    found = make_document("a", [("Body", f"{filler}Old foxes cross the wide river at night. {filler}")])
    build(tmp_path / "x.lm", [found, make_document("b", "House of stone.")], encode="none", language="english")
    with Index.open(tmp_path / "x.lm") as index:
        page = parsed(index.search(make_document("q", "The fox crosses a river.")).to_html())
    (side,) = page.xpath("//section[@id='q1-h1-match-1']//div[@class='side'][2]/p[@class='text']")
    assert "Old foxes cross the wide river" in side.text_content()
    assert len(side.text_content()) < 800 and side.text_content().startswith("… ")
    assert "words alone" in page.text_content()
    (best,) = page.xpath("//p[@class='best']")
    assert "query The fox crosses a river. document Old foxes cross the wide river at night." in " ".join(
        best.text_content().split()
    )


def test_a_hit_lists_short_metadata(tmp_path: Path) -> None:
    metadata = {"year": 2019, "tags": ["a", "b"], "note": "long " * 20, f"{LEFT_OUT}figures": 3, "none": []}
    build(tmp_path / "x.lm", [make_document("a", "fox and river", metadata=metadata)], encode="none")
    with Index.open(tmp_path / "x.lm") as index:
        page = parsed(index.search(make_document("q", "The fox.")).to_html())
    fields = page.xpath("//dl[@class='fields']/div")
    assert [" ".join(one.text_content().split()) for one in fields] == ["year 2019", "tags a, b"]


SHIPS = "Keel, mast and harbour: the wind fills a sail, and a rope holds the anchor against the tide. " * 4
FOXES = "Old foxes cross the wide river at night, and a stone house by the bank stays dark until dawn. " * 4
NOVELTY = Request(mode=Mode.NOVELTY)
DRAFT = make_document("draft", [("Seen before", FOXES), ("Ships", SHIPS), ("Of the", "And then, of the. " * 30)])


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Result:
    corpus = [make_document("fox", [("Foxes", FOXES), ("Bread", "Flour and water make a dough that rises. " * 9)])]
    folder = tmp_path_factory.mktemp("novelty") / "x.lm"
    bank = make_document("bank", "The bank lends money to a house. " * 20)
    build(folder, [*corpus, bank], encode="none", language="english")
    with Index.open(folder) as index:
        result = index.search(replace(DRAFT, pages=(0, 300)), NOVELTY)
        result.to_dict()
        return result


def articles(page: lxml.html.HtmlElement) -> list[lxml.html.HtmlElement]:
    return list(page.xpath("//article[@class='hit']"))


def test_every_number_of_novelty_is_that_of_the_json(found: Result) -> None:
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
    novelty = found.sections[1].novelty
    assert novelty is not None and f"Nearest: fox fox, which contains {1 - novelty:.4f} of it." in shown[1]
    assert "most novel first" in str(found._repr_html_()) and "Foxes" in str(found[0]._repr_html_())
    assert "Nothing to compare: the section has no content words." in shown[2]
    assert all(text.count("section ") for text in shown) and "section 1, pp. 1–2; body" in shown[1]


def test_the_whole_section_is_there_and_what_matches_is_marked(found: Result) -> None:
    ships, seen, nothing = articles(parsed(found.to_html()))
    for heading, article in (("Ships", ships), ("Seen before", seen), ("Of the", nothing)):
        section = next(one for one in DRAFT.sections if one.heading == heading)
        texts = ["".join(one.text_content().split()) for one in article.xpath(".//p[@class='text']")]
        assert "".join(DRAFT.text[section.start : section.stop].split()) in texts
    (part, *_) = found.to_dict(n_pairs=1)["sections"][1]["hit"]["parts"]
    marked = {one.text_content().strip().lower() for one in seen.iter("mark")}
    assert all(any(word["term"].lower() in mark for mark in marked) for word in part["words"])
    assert not any(is_function_word(mark, "english") for mark in marked)


def test_every_link_has_a_target_and_ids_are_unique(result: Result, found: Result) -> None:
    for shown in (result, found):
        page = parsed(result_page([shown, shown], n_pairs=5))
        names = page.xpath("//@id")
        assert len(names) == len(set(names))
        assert {link[1:] for link in page.xpath("//a/@href")} <= set(names)


def test_pieces_of_a_page_are_its_hits_or_sections(result: Result, found: Result) -> None:
    for shown in (result, found):
        pieces = list(result_pieces(shown))
        assert [kind for kind, _ in pieces] == ["head", "hit", "hit", "hit", "tail"]
        whole = [numbers(article) for article in articles(parsed(shown.to_html()))]
        assert [numbers(lxml.html.fragment_fromstring(html)) for kind, html in pieces if kind == "hit"] == whole
