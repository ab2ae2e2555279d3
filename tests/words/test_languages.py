"""Languages: their words and stop words, and indexes of German and Japanese."""

import inspect
import json
import re
import string
import textwrap
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from engine.errors import IndexMismatch, QueryError
from engine.index import Index
from engine.report.contract import best_parts, result_dict
from engine.report.lines import plain
from engine.report.page import result_page
from engine.report.table import result_lines
from engine.scoring.evidence import Scoring
from engine.search.request import Request
from engine.store.snapshot import IndexSnapshot
from engine.text.document import Document
from engine.text.segmentation import Section, Span
from engine.views import joint_view, result_view
from engine.words.languages import (
    NONE,
    check_language,
    detect_language,
    languages,
    normal_form,
    other_language,
    stop_words_of,
)
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
from indexer.building.corpus import read_corpus
from tests.fakes import FakeEncoder, make_corpus, make_document

TEXTS = Path(__file__).parent / "texts"
ENGLISH_TEXT = (
    "It is not for us to say that this was the way in which they will be at work, but if there are no such ones, then "
    "these are for a house on the hill, and with that they are as old as the town."
)


def texts_of(language: str) -> list[str]:
    return [json.loads(line)["text"] for line in (TEXTS / f"{language}.jsonl").read_text("utf-8").splitlines()]


@pytest.mark.parametrize("language", ["german", "japanese"])
def test_real_text_is_recognised_in_every_document(language: str) -> None:
    texts = texts_of(language)
    assert [detect_language([text]) for text in texts] == [language] * len(texts)
    assert detect_language(texts) == language


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("Everyone has the right to life, liberty and the security of person.", "english"),
        ("Tout individu a droit à la vie, à la liberté et à la sûreté de sa personne.", "french"),
        ("Каждый человек имеет право на жизнь, на свободу и на личную неприкосновенность.", "russian"),
        ("Κάθε άτομο έχει δικαίωμα στη ζωή, την ελευθερία και την προσωπική του ασφάλεια.", "greek"),
        ("人人有权享有生命、自由和人身安全。", "chinese"),
        ("すべて人は、生命、自由及び身体の安全に対する権利を有する。", "japanese"),
        ("모든 사람은 생명과 신체의 자유와 안전에 대한 권리를 가진다.", "korean"),
        ("บุคคลมีสิทธิในการดำรงชีวิต ในเสรีธรรมและในความมั่นคงแห่งร่างกาย", "thai"),
    ],
)
def test_a_sentence_is_enough(text: str, language: str) -> None:
    assert detect_language([text]) == language


@pytest.mark.parametrize(
    "text",
    [
        "x = foo(bar); return x[0]",
        "1 2 3",
        "",
        "9f86d081884c7d65 9a2feaa0c55ad015 a3bf4f1b2b0b822c d15d6c15b0f00a08",
        "Кожна людина має право на життя, на свободу і на особисту недоторканність.",  # Ukrainian
        "Всеки човек има право на живот, свобода и лична сигурност.",  # Bulgarian
        "Mọi người đều có quyền sống, quyền tự do và an toàn cá nhân.",  # Vietnamese
    ],
)
def test_text_in_no_known_language_is_none(text: str) -> None:
    assert detect_language([text]) == NONE


@pytest.mark.parametrize(
    ("text", "language", "expected"),
    [
        ("Tout individu a droit à la vie, à la liberté et à la sûreté de sa personne. " * 2, "english", "french"),
        ("水泵管理人员应当检查。", "english", "chinese"),
        ("ประตูน้ำกั้นน้ำและคลองเก่า", "english", "thai"),
        ("ປະຕູນ້ຳກັ້ນນ້ຳແລະຄອງເກົ່າ", "english", "lao"),
        (ENGLISH_TEXT, "chinese", "english"),
        (ENGLISH_TEXT, "german", "english"),
        ("Pompe à eau de la ville", "english", None),  # too short to be sure
        ("quelles sont les causes des tremblements de terre", "english", "french"),
        ("Was verursacht Erdbeben in Japan?", "english", None),  # "was" and "in" are English too
        (ENGLISH_TEXT, NONE, None),
        (ENGLISH_TEXT, "english", None),
        ("x = foo(bar); " * 40, "german", None),
        ("", "english", None),
    ],
)
def test_another_language_is_named_where_it_is_certain(text: str, language: str, expected: str | None) -> None:
    assert other_language(text, language) == expected


def test_a_query_in_another_language_gets_a_note_in_every_view(tmp_path: Path) -> None:
    (german, *_) = texts_of("german")
    build(tmp_path / "x.lm", [make_document("a", ENGLISH_TEXT), make_document("b", german)], language="english")
    with Index.open(tmp_path / "x.lm") as index:
        found = result_view(index.search(make_document("q", german + " Ende.")))
        assert found.to_dict()["query_language"] == "german"
        note = "he query is in German, the index in English: words hardly match"
        assert all(note in " ".join(view.split()) for view in (str(found), found.to_html(), found._repr_html_()))
        same = result_view(index.search(make_document("q", ENGLISH_TEXT + " End.")))
        texts = make_document("q", f"{german} Ende."), make_document("r", f"{ENGLISH_TEXT} End.")
        both = joint_view(index.search_together(texts, []))
        assert [query["query_language"] for query in both.to_dict()["queries"]] == ["german", None]
        assert " ".join(str(both).split()).count(note) == 1
        assert same.to_dict()["query_language"] is None and "hardly match" not in str(same) + same.to_html()


def test_code_is_no_language() -> None:
    lines = "".join(inspect.getsource(module) for module in (json.decoder, json.encoder, string, textwrap)).splitlines()
    code = [line for line in lines if set(line) & set("=()[]:") and '"""' not in line and "#" not in line]
    assert len(code) > 300
    assert detect_language(["\n".join(code)]) == NONE


def test_the_language_of_most_words_is_detected_also_beside_code_and_quotations() -> None:
    german, english = texts_of("german"), ["Everyone has the right to life, liberty and the security of person."]
    assert detect_language([*english, *german[:5]]) == "german"
    assert detect_language(["", "  ", *english]) == "english"
    assert detect_language([]) == NONE
    japanese = "".join(texts_of("japanese"))[:400]
    assert detect_language([japanese + " def f(x): return x + 1\n" * 60]) == "japanese"
    assert detect_language([japanese[:100] + " ".join(texts_of("german"))]) == "german"


def test_every_language_has_its_stop_words_and_broken_lists_are_repaired() -> None:
    without = {name for name in languages() if not stop_words_of(name)}
    assert without == {"burmese", "chinese", "japanese", "khmer", "korean", "lao", "thai", "none"}
    assert {"the", "of"} <= stop_words_of("english") and "can" not in stop_words_of("english")
    assert len(stop_words_of("english")) == 33
    assert {"şey", "altı", "için"} <= stop_words_of("turkish") and "þey" not in stop_words_of("turkish")
    assert {"και", "του", "είναι"} <= stop_words_of("greek")
    for language, content in (("spanish", {"trabajo", "valor"}), ("portuguese", {"trabalho"}), ("italian", {"lavoro"})):
        assert not content & stop_words_of(language) and {"con", "com"} & stop_words_of(language)


def test_a_normal_form_is_composed_and_in_lower_case() -> None:
    assert normal_form("ＡＢＣ", NONE) == "abc"
    assert normal_form("CAFE\u0301", "french") == "café"
    assert normal_form("I", "turkish") == "ı"


ARTICLES = Path(__file__).parent / "texts"
WORDS = Scoring(chunk_weight=0)


def built(tmp_path: Path, texts: str, **options: str) -> Path:
    folder = tmp_path / "x.lm"
    build(folder, read_corpus([str(ARTICLES / f"{texts}.jsonl")]), encoder=FakeEncoder(), **options)  # type: ignore[arg-type]
    return folder


@pytest.mark.slow
@pytest.mark.parametrize(
    ("language", "query", "doc_id", "term"),
    [
        ("german", "Sklaven und Leibeigene: jede Form des Sklavenhandels", "german-04", "Sklavenhandel"),
        ("japanese", "奴隷売買は禁止する", "japanese-04", "奴隷"),
    ],
)
def test_words_find_the_article_in_its_language(
    tmp_path: Path, language: str, query: str, doc_id: str, term: str
) -> None:
    with Index.open(built(tmp_path, language), encoder=FakeEncoder()) as index:
        assert index.snapshot.language == language
        hit = index.search(make_document("q", query), Request(k=1, scoring=WORDS)).hits[0]
        assert hit.doc_id == doc_id
        assert any(term in part.term for part in hit.breakdown.terms)
        assert hit.breakdown.score == pytest.approx(hit.score, abs=1e-6)


def test_a_given_language_is_kept_and_another_or_an_unknown_one_is_refused(tmp_path: Path) -> None:
    folder = built(tmp_path, "german", language="none")
    with IndexSnapshot(folder) as snapshot:
        assert snapshot.language == "none"
    with pytest.raises(IndexMismatch, match="segments words by language 'none', not 'german'"):
        built(tmp_path, "german", language="german")
    with pytest.raises(QueryError, match=r"there is no language 'deutsch'; use one of arabic, burmese, .*, turkish"):
        check_language("deutsch")


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
    assert note in plain(result_lines(result)) and note in result_page([result])
