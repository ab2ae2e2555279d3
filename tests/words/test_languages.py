"""Languages: their words and stop words, and indexes of German and Japanese."""

from __future__ import annotations

import inspect
import json
import string
import textwrap
from pathlib import Path

import pytest

from engine.errors import IndexMismatch, QueryError
from engine.index import Index
from engine.scoring.evidence import Scoring
from engine.search.request import Request
from engine.store.snapshot import IndexSnapshot
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
from indexer.building.builder import build
from indexer.building.corpus import read_corpus
from tests.fakes import FakeEncoder, make_document

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
