"""The two sentences of a section pair belong together, are text of the documents, and have marked words of content."""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.comparison import compare_alone
from engine.index import Index
from engine.readers import markdown
from engine.report.contract import best_parts, result_dict, spans
from engine.report.lines import plain
from engine.report.page import result_html, result_page
from engine.report.quotes import MOST_CHARACTERS, Quote, Quotes, marked_runs, window
from engine.report.table import result_lines
from engine.result import Hit
from engine.scoring.parts import SectionPair, TermPart
from engine.search.request import Request
from engine.text.document import Document
from engine.text.segmentation import Section, Span
from engine.words.wording import is_content_word, is_function_word
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


# Two paragraphs of rules, what is quoted of each, and the words that the table lists.
REGULATIONS = {
    "chinese": (
        "第二十六条 业主大会由全体业主组成，每个物业管理区域设立一个业主大会。业主大会决定选聘、解聘物业服务企业，以及"
        "筹集和使用专项维修资金。\n业主委员会应当自选举产生之日起三十日内，向物业所在地的街道办事处备案。",
        "第九条 同一个物业管理区域内的业主，应当在街道办事处的指导下成立业主大会，选举产生业主委员会。\n"
        "下列事项由业主共同决定：筹集和使用专项维修资金，改建、重建建筑物及其附属设施。市人民政府另有规定的，从其规定。",
        "[业主]大会[决定]选聘、解聘物业服务企业，以及[筹集和使用专项维修资金]。",
        "下列事项由[业主]共同[决定]：[筹集和使用专项维修资金]，改建、重建建筑物及其附属设施。",
        "业主, 业主大会, 专项维修",
    ),
    "japanese": (
        "個人情報取扱事業者は、個人情報を取り扱うに当たっては、その利用の目的をできる限り特定しなければならない。\n"
        "また、あらかじめ本人の同意を得ないで、個人データを第三者に提供してはならない。ただし、法令に基づく場合はこの限りでない。",
        "事業者は、従業員の研修を毎年行うものとする。個人データを第三者に提供する場合には、\n"
        "あらかじめ本人の同意を得ることが必要である。この規程は四月一日から施行する。",
        "また、あらかじめ[本人の同意を得]ないで、[個人データを第三者に提供]してはならない。",
        "[個人データを第三者に提供]する場合には、 あらかじめ[本人の同意を得]ることが必要である。",
        "個人",
    ),
    "korean": (
        "개인정보처리자는 정보주체의 동의를 받은 경우에는 개인정보를 수집할 수 있다. 수집한 개인정보는 그 목적 외의 "
        "용도로 이용하여서는 아니 된다.\n보유 기간이 지난 개인정보는 지체 없이 파기하여야 한다.",
        "회사는 매년 보안 교육을 실시한다. 보유 기간이 끝난 개인정보는 지체 없이 파기하며, 파기 기록을 남긴다.\n"
        "이 규정은 공포한 날부터 시행한다.",
        "[보유 기간이] 지난 [개인정보는 지체 없이 파기하]여야 한다.",
        "[보유 기간이] 끝난 [개인정보는 지체 없이 파기하]며, [파기] 기록을 남긴다.",
        "지체 없이",
    ),
    "thai": (
        "ผู้ควบคุมข้อมูลส่วนบุคคลต้องแจ้งวัตถุประสงค์ของการเก็บรวบรวมข้อมูลก่อนหรือในขณะเก็บข้อมูล\n"
        "เจ้าของข้อมูลมีสิทธิขอให้ลบหรือทำลายข้อมูลส่วนบุคคลเมื่อหมดความจำเป็น",
        "บริษัทจัดอบรมพนักงานทุกปี\nเมื่อหมดความจำเป็น บริษัทจะลบหรือทำลายข้อมูลส่วนบุคคลตามคำขอของเจ้าของข้อมูล\n"
        "ระเบียบนี้ใช้บังคับตั้งแต่วันประกาศ",
        "[เจ้าของข้อมูล]มีสิทธิขอให้[ลบหรือทำลายข้อมูลส่วนบุคคล]เมื่อหมดความจำเป็น",
        "บริษัทจะ[ลบหรือทำลายข้อมูลส่วนบุคคล]ตามคำ[ขอของเจ้าของข้อมูล]",
        "",  # words of Thai cannot be told from halves of words
    ),
}

PARTS = ["valve", "rotor", "shaft", "seal", "drain", "motor", "pipe"]


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


@pytest.mark.parametrize("language", REGULATIONS)
def test_regulations_without_spaces_are_quoted_in_sentences_with_marked_words(language: str) -> None:
    *texts, mine, theirs, words = REGULATIONS[language]
    result = compare_alone(*(make_document(name, text) for name, text in zip("qt", texts, strict=True)), FakeEncoder())
    assert result.language == language
    table, report = plain(result_lines(result, width=160)), result_page([result])
    (best,) = best_parts(result_dict(result)["hits"][0])
    for side, text, marked in zip(("query", "target"), texts, (mine, theirs), strict=True):
        quote = best["quotes"][side]
        line = marked.replace("[", "").replace("]", "")
        assert quote["text"] == line and squeezed(line) in squeezed(text)
        assert "".join(f"[{run}]" if is_marked else run for run, is_marked in quote_runs(quote)) == marked
        assert line in table and squeezed(line) in squeezed(re.sub("<[^>]*>", "", report))
    assert words in table and ("words: " in table) == bool(words)
    assert "“…”" not in table


def quote_runs(quote: dict[str, Any]) -> list[tuple[str, bool]]:
    return marked_runs(quote["text"], [*spans(quote["marks"])])


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


def test_the_sentence_with_the_words_of_the_pair_is_chosen_before_one_with_the_words_of_the_hit() -> None:
    """The words "mill" and "weir" are strong in the hit, "sluice" and "gate" in this pair of sections."""
    common = "The mill has a weir. "
    mine, theirs = (
        make_document(name, [("A", common * 20), ("B", f"The mill has a weir. {rest}"), ("C", common * 20)])
        for name, rest in (("q", "We open a sluice gate."), ("t", "They shut the sluice gate."))
    )
    (hit,) = compare_alone(mine, theirs, FakeEncoder()).hits
    (pair,) = (pair for pair in hit.pairs if (pair.query_section, pair.target_section) == (1, 1))
    quotes = Quotes(mine, hit, "english").of(pair)
    assert [quote.marked("[", "]") for quote in quotes] == ["We open a [sluice gate].", "They shut the [sluice gate]."]


@pytest.mark.parametrize(("weak", "chosen"), [("sluice gate mill", "heron"), ("sluice gate mill weir lock", "sluice")])
def test_a_listed_word_is_quoted_unless_many_others_are_shared(weak: str, chosen: str) -> None:
    listed = ["heron", "trout", "otter", "beaver", "lynx", "falcon", "marten", "weasel", "badger", "curlew"]
    query, target = (
        " ".join([line.format(word) for line in lines for word in listed] + [f"{lead} {words}."])
        for lines, lead, words in (
            (["The {} is old.", "One {} ran.", "I saw a {}."], "Here are", weak),
            (["My {} is new.", "Some {} sat.", "He is a {}."], "There was", " ".join(weak.split()[::-1])),
        )
    )
    for quote in quotes_of(query, target, "english")[0]:
        assert chosen in quote.text


def test_words_of_grammar_choose_no_sentence() -> None:
    ((query, target),) = quotes_of(
        "However, we also show how. A heron was there.", "However, we also show how. My heron sat.", "english"
    )
    assert (query.text, target.text) == ("A heron was there.", "My heron sat.")


def test_a_pair_of_words_with_one_of_grammar_counts_less_than_words_of_content() -> None:
    ((query, target),) = quotes_of(
        "See both texts here. Each heron at the old mill waits for a trout.",
        "In both texts we see it. We saw that a heron was near the mill with its trout.",
        "english",
    )
    assert query.text == "Each heron at the old mill waits for a trout."
    assert target.text == "We saw that a heron was near the mill with its trout."


def test_bare_numbers_function_words_and_weak_words_are_neither_marked_nor_listed() -> None:
    text = "We also show how herons hunt."
    ((query, _),) = quotes_of(text, f"How do herons hunt? {text}", "english")
    assert query.marked("[", "]") == "We also show how [herons hunt]."
    assert is_function_word("我们", "chinese") and is_function_word("から", "japanese")
    assert not is_function_word("系统", "chinese") and not is_function_word("system", "english")
    text = "A pump 602 see 604 moves the fluid in 1998."
    result = compare_alone(make_document("q", text), make_document("t", text), FakeEncoder())
    (values,) = result_dict(result)["hits"]
    terms = {word["term"] for part in [values, *values["parts"]] for word in part["words"]}
    assert {"pump", "1998"} <= terms and not terms & {"602", "604", "602 see", "see", "see 604", "pump 602"}


@pytest.mark.parametrize(
    ("word", "is_content"),
    [("602", False), ("7", False), ("1499", False), ("1998", True), ("2101", False), ("12345", True), ("the", False)],
)
def test_bare_numbers_are_no_content_words_and_years_are(word: str, is_content: bool) -> None:
    assert is_content_word(word, "english") == is_content


@pytest.mark.parametrize(
    ("terms", "listed"),
    [
        ({"clients": 3, "other client": 2, "clients may": 1}, ["clients"]),
        ({"disk": 3, "hard": 3, "hard disk": 2, "disks spin": 1}, ["hard disk"]),
        ({"heron": 9, "herons hunt": 1, "trout": 1}, ["heron", "trout"]),
        ({"section 302": 9, "pump 12": 8, "pump": 2, "1998": 1}, ["pump", "1998", "section 302"]),
        ({"业主": 3, "业主大会": 2}, ["业主", "业主大会"]),
    ],
)
def test_of_terms_with_a_common_word_one_is_listed_and_none_with_a_numeral_leads(
    terms: dict[str, float], listed: list[str]
) -> None:
    document, hit, _ = compared("Herons hunt.", "Herons hunt.")
    parts = [TermPart(term, value) for term, value in terms.items()]
    assert [part.term for part in Quotes(document, hit, "english").listed(parts)] == listed


def test_listed_words_of_katakana_and_hangul_are_no_halves_of_words() -> None:
    for mine, theirs, word, halves in (
        ("ポンプを点検する。", "管理者はポンプを定期に点検する。", "ポンプ", {"ポン", "ンプ"}),
        ("余分な文字を消す。", "不要な文字を消す。", "文字", {"な文字を", "文字を", "な文字"}),
        ("배관을 정기적으로 점검한다.", "관리자는 정기적으로 기록한다.", "정기적으로", {"정기", "기적으로", "적으로"}),
    ):
        document, hit, language = compared(mine, theirs)
        listed = [part.term for part in Quotes(document, hit, language).listed(hit.breakdown.terms)]
        assert listed.count(word) == 1 and not halves & {*listed}


def test_a_target_in_another_language_than_the_index_has_the_function_words_of_its_own() -> None:
    sentences = "Dabei hat die {} den {} und ist zu dem {} der Pumpe nicht nur bei den anderen gut.".format
    mine, theirs = (" ".join(sentences(*words) for words in zip(*[iter(own)] * 3, strict=True)) for own in (
        ["Weide", "Reiher", "Ufer"] * 6, ["Mühle", "Hecht", "Reiher"] * 6
    ))  # fmt: skip
    document, hit, language = compared(mine, theirs)
    assert language == "german"
    for known in ("german", "english"):
        listed = [part.term for part in Quotes(document, hit, known).listed(hit.breakdown.terms)]
        assert "Reiher" in listed and not {"die", "den", "und", "ist", "der"} & {*" ".join(listed).split()}


@pytest.mark.parametrize("is_patent", [False, True])
def test_hollow_phrases_of_patents_are_no_reason_for_a_quote_and_no_words_of_a_match(is_patent: bool) -> None:
    hollow = "A computer readable storage medium"
    rests = ("In embodiments.", "An embodiment.") if is_patent else ("", "")
    mine, theirs = f"{hollow} holds it. A heron eats. {rests[0]}", f"{hollow} hums. My heron sat. {rests[1]}"
    document, hit, _ = compared(mine, theirs)
    quotes = Quotes(document, hit, "english")
    quote, _ = quotes.of(hit.pairs[0])
    listed = {word for part in quotes.listed(hit.breakdown.terms) for word in part.term.split()}
    assert (quote.marked("[", "]") == "A [heron] eats.") is is_patent
    assert ({"computer", "storage", "medium"} & listed == set()) is is_patent and "heron" in listed
    keys = [term.key for term in hit.breakdown.terms if "medium" in term.term]
    assert keys and all(quotes.places(hit.pairs[0], keys)[0])  # the places of all words stay those of the score


@pytest.mark.parametrize("signs", ["## ", "- ", "> * ", "• ", "```\n", "```python\n"])
def test_signs_of_headings_and_lists_are_no_part_of_a_quote(signs: str) -> None:
    ((query, _),) = quotes_of(f"{signs}The heron waits at the weir.", "A heron waits at a weir.", "english")
    assert query.marked("[", "]") == "The [heron waits] at the [weir]."
    ((query, _),) = quotes_of(f"{signs}The heron waits\n```", "A heron waits at a weir.", "english")
    assert query.marked("[", "]") == "The [heron waits]"


def test_a_heading_in_signs_of_code_is_no_part_of_a_quote() -> None:
    document = markdown.read(b"# Weirs\n\n## `gate.md`\n\n- Old foxes sleep.\n", "weirs.md", "")
    result = compare_alone(document, make_document("t", "Nothing equals this."), FakeEncoder())
    (hit,) = result.hits
    assert {Quotes(document, hit, "english").of(pair)[0].text for pair in hit.pairs} == {"Old foxes sleep."}


def test_pairs_of_words_across_paragraphs_are_not_listed() -> None:
    document, hit, _ = compared("Abstract\n\nHerons hunt trout.", "Abstract\n \nHerons hunt trout.")
    listed = {part.term for part in Quotes(document, hit, "english").listed(hit.breakdown.terms)}
    assert "Herons hunt" in listed and not any("Abstract Herons" in " ".join(term.split()) for term in listed)


def test_without_shared_words_the_sentences_behind_the_headings_are_shown() -> None:
    text = "Weather\n\nRain\n\nThe sun shines over hills and plains all day. Old foxes sleep."
    document = Document("d", "Weather", text, (Section("Rain", ("Rain",), 0, len(text)),))
    target = make_document("t", "Fog. Nothing equals this, nor does it come near.")
    (hit,) = compare_alone(document, target, FakeEncoder()).hits
    quotes = Quotes(document, hit, "english").of(SectionPair(0, 0, 0.1, ()))
    expected = ["The sun shines over hills and plains all day.", "Nothing equals this, nor does it come near."]
    assert [quote.text for quote in quotes] == expected


@given(st.integers(0, 90), st.integers(1, 4), st.integers(24, 120))
def test_a_line_is_cut_around_its_marks(first: int, n_words: int, most: int) -> None:
    text = "word " * 100
    mark = Span(5 * first, 5 * (first + n_words) - 1)
    line, (kept,) = window(text, [mark], most)
    assert len(line) <= most
    assert line[kept.start : kept.stop] == text[mark.start : mark.stop]
    assert squeezed(line.strip("…")) in squeezed(text)
    assert len(line) > most - len("word word ")  # no room is left where there is text


def test_a_long_claim_is_quoted_by_clause_and_a_sentence_around_its_marks() -> None:
    clauses = [f"a {name} of brass coupled to the {name} of the housing by a {name} of rubber" for name in PARTS]
    claim = f"A pump comprising: {'; '.join(clauses)}."
    ((query, target),) = quotes_of("A seal of brass is coupled to the seal of the housing by a seal.", claim)
    assert target.text == f"{clauses[PARTS.index('seal')]};" and "coupled" in query.text
    filler = "nothing of interest " * 200
    for query, _ in quotes_of(f"{filler} the heron waits {filler}.", "A heron waits."):
        assert len(query.text) <= MOST_CHARACTERS
        assert "[heron waits]" in query.marked("[", "]")


@pytest.mark.parametrize("name", ["K.A. Swami", "J.R.R.\nSwami", "U.P. Public Services"])
def test_initials_end_no_sentence_that_is_quoted(name: str) -> None:
    sentence = f"The petition about the weir was filed by {name} in Bhopal."
    for quote in quotes_of(f"It rains. {sentence} It rains.", f"Fog again. {sentence} More fog.")[0]:
        assert quote.text == " ".join(sentence.split())


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
    table, notebook = plain(result_lines(result, width=100)), result_html(result)
    report = " ".join(re.sub("<[^>]*>", "", result.to_html()).split())
    (snippet,) = result.hits[0].snippets(1)
    part = best_parts(result.to_dict()["hits"][0])[0]
    quotes = part["quotes"]
    for side, quote in (("query", snippet.query), ("target", snippet.target)):
        assert quotes[side]["text"] == quote.text and quote.text in table and quote.text in report
        assert quote.marked("<mark>", "</mark>") in notebook
        marked = {result.query.text[mark.start : mark.stop] for mark in spans(part["marks"]["query"])}
        assert marked >= {text for text, is_marked in quote_runs(quotes["query"]) if is_marked}
    assert "*" not in table and "words: " in table


def test_html_escapes_quotes(index: Index) -> None:
    html = result_html(index.search(replace(make_document("q", "<b>fox</b> river & night"), title="q"), Request(k=1)))
    assert "&lt;b&gt;" in html and "<b>fox" not in html
