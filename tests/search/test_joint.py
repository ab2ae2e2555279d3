"""A search with several documents, results that are unlike each other, and novelty by sections."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

import engine.search.searcher as diversity_module
import longmatch
from engine.comparison import compare_alone
from engine.errors import QueryError
from engine.index import Index
from engine.readers.jsonl import read
from engine.result import Result, SectionNovelty, Status
from engine.search import joint
from engine.search.query import kinds_without_weight, names_of_sections, section_weights
from engine.search.request import Mode, Request, parse_weights
from engine.search.searcher import diverse_order, section_contributions
from engine.text.document import Document
from engine.text.section_kinds import SectionKind
from engine.text.segmentation import Section
from indexer.building.builder import build
from indexer.building.rewriting import partition
from indexer.cli import main
from tests.fakes import FakeEncoder, few_first_vectors, make_corpus, make_document
from tests.strict_schema import TOLERANCE, VALIDATOR, check
from tests.text.test_headings import BODY, CITED, document

N = 60
LIKE, UNLIKE = ["doc001", "doc006"], ["doc003"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("joint") / "x.lm"
    build(folder, make_corpus(N), encoder=FakeEncoder(), encode="all", factory="Flat")
    partition(folder, folder.with_name("p.lm"), 3)
    return folder


def expected(index: Index, like: list[str], unlike: list[str]) -> list[tuple[str, float]]:
    """The ranking from the scores of all documents for each query document alone."""
    totals = dict.fromkeys(set(index.snapshot.doc_ids()) - {*like, *unlike}, 0.0)
    for names, weight in ((like, 1 / len(like)), (unlike, -joint.UNLIKE / max(1, len(unlike)))):
        for name in names:
            for hit in index.search(name, Request(k=2 * N, exact=True)):
                if hit.doc_id in totals:
                    totals[hit.doc_id] += weight * hit.score
    found = [(doc_id, score) for doc_id, score in totals.items() if score > TOLERANCE]
    return sorted(found, key=lambda pair: (-round(pair[1], 6), pair[0]))


@pytest.mark.parametrize("unlike", [[], UNLIKE], ids=["like", "and unlike"])
@pytest.mark.parametrize("n_listed", [2, 200])
@pytest.mark.parametrize("name", ["x.lm", "p.lm"])
def test_the_best_sums_of_weighted_scores_are_found(
    folder: Path, monkeypatch: pytest.MonkeyPatch, name: str, n_listed: int, unlike: list[str]
) -> None:
    monkeypatch.setattr(joint, "_N_LISTED", n_listed)
    with Index.open(folder.with_name(name), encoder=FakeEncoder()) as index:
        best = expected(index, LIKE, unlike)
        for offset, k in ((0, 1), (3, 4), (0, 2 * N)):
            result = index.search_together(LIKE, unlike, Request(k=k, offset=offset))
            assert [hit.doc_id for hit in result] == [doc_id for doc_id, _ in best[offset : offset + k]]
            assert [hit.score for hit in result] == pytest.approx([score for _, score in best[offset : offset + k]])
            assert [hit.rank for hit in result] == [*range(offset + 1, offset + 1 + len(result))]
            assert result.status is Status.CERTIFIED


def test_one_document_gives_its_own_scores_floor_and_copies(folder: Path) -> None:
    with Index.open(folder, encoder=FakeEncoder()) as index:
        alone, result = index.search("doc001"), index.search_together(["doc001"])
        assert [(hit.doc_id, hit.score) for hit in result] == [(hit.doc_id, hit.score) for hit in alone]
        assert (result.floor, result.nothing_stands_out) == (alone.floor, alone.nothing_stands_out)
        copy = index.document("doc002")
        assert index.search_together([copy, "doc001"]).copies == ("doc002",)
        least = index.search_together(LIKE, request=Request(k=N, least="auto"))
        assert least.floor is not None
        assert [hit.score for hit in least] == [
            hit.score for hit in index.search_together(LIKE, request=Request(k=N)) if hit.score >= least.floor.p99
        ]
        assert index.search_together(["doc001"], ["absent absent"][:0], Request(where="topic = 99")).hits == ()


def test_results_fit_the_schema_and_contributions_sum(folder: Path) -> None:
    with longmatch.open(folder, encoder=FakeEncoder()) as index:
        text = make_document("a", "topic1word1 topic1word2 topic1word3 common1")
        result = index.search_together([text], ids=["doc005"], unlike_ids=["doc003"], k=5)
        check_parts(result.to_dict(n_pairs=2))
        assert "unlike  " in str(result)
        assert index.search_together(text, ids="doc005", unlike_ids="doc003", k=5).scores == result.scores
        for wrong in ({"mode": "novelty"}, {"diversify": True}, {"explain": "model"}):
            with pytest.raises(QueryError, match="is for one document"):
                index.search_together(ids=["doc005", "doc001"], **wrong)  # type: ignore[arg-type]
        with pytest.raises(QueryError, match="no document to be like"):
            index.search_together(unlike_ids=["doc003"])


@pytest.mark.parametrize(
    ("asked", "reason"),
    [
        ({"least": 1.0}, "no hit on this page reaches the least score of the search, 1"),
        ({"offset": 2 * N}, "past the end"),
        ({"where": "topic = 99"}, "no document was searched"),
        ({"where": "topic = 3"}, "no document is nearer to the first than to the others"),
    ],
)
def test_the_reason_for_no_hits_is_that_of_the_search(folder: Path, asked: dict[str, Any], reason: str) -> None:
    with longmatch.open(folder, encoder=FakeEncoder()) as index:
        assert reason in " ".join(str(index.search_together(ids=["doc005"], unlike_ids="doc003", **asked)).split())


def check_parts(value: dict[str, Any]) -> None:
    assert [error.message for error in VALIDATOR.iter_errors(value)] == []
    assert value["hits"]
    for hit in value["hits"]:
        assert sum(part["contribution"] for part in hit["by_query"]) == pytest.approx(hit["score"], abs=TOLERANCE)
        for part, query in zip(hit["by_query"], value["queries"], strict=True):
            assert part["contribution"] == pytest.approx(query["weight"] * part["hit"]["score"])
            parts = sum(one["contribution"] for one in part["hit"]["parts"])
            assert parts == pytest.approx(part["hit"]["score"], abs=TOLERANCE)


@pytest.fixture(scope="module")
def words(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("words") / "x.lm"
    build(folder, make_corpus(20), encoder=FakeEncoder(), encode="none")
    return folder


def test_the_command_takes_ids_texts_and_files_with_signs(words: Path, tmp_path: Path) -> None:
    def run(*arguments: str) -> Any:  # noqa: ANN401
        return CliRunner().invoke(main, ["query", str(words), *arguments])

    (tmp_path / "own.md").write_text("# Own\n\ntopic3word1 topic3word2 common1\n")
    named = [
        "--id",
        "doc001",
        "--text",
        "topic1word1 topic1word4",
        "--not",
        "doc003",
        "--not",
        str(tmp_path / "own.md"),
    ]
    found = run(*named, "--format", "json", "-k", "4")
    (value,) = json.loads(found.stdout)["results"]
    check_parts(value)
    assert [query["weight"] for query in value["queries"]] == [0.5, 0.5, -0.25, -0.25]
    assert run(*named, "-k", "1", "-o", str(tmp_path / "a.txt")).exit_code == 0
    assert "unlike  Own" in (tmp_path / "a.txt").read_text()
    assert len(json.loads(run("--id", "doc001", "--id", "doc002", "--format", "json").stdout)["results"]) == 2
    for wrong, message, status in (
        (["--not", "doc003"], "no query", 2),
        (["--id", "doc001", "--not", "nowhere"], "neither a document of", 1),
        (["--id", "doc001", "--together", "--format", "csv"], "table, json, jsonl", 2),
        (["nowhere.md", "--id", "doc001", "--together"], "No such file", 1),
    ):
        refused = run(*wrong)
        assert (refused.exit_code, message in refused.output) == (status, True), refused.output


def test_a_server_takes_several_documents(words: Path) -> None:
    pytest.importorskip("fastapi")
    from tests.indexer.serving.clients import served

    with served(words) as client:
        body = {"doc_id": "doc001", "also": [{"text": "topic1word1"}], "unlike": [{"doc_id": "doc003"}], "k": 3}
        reply = client.post("/v1/search", json=body)
        (value,) = reply.json()["results"]
        check_parts(value)
        assert value["queries"][0]["provenance"]["index"]["path"] == words.name
        assert client.post("/v1/search", json=body | {"unlike": [{"doc_id": "nowhere"}]}).status_code == 404


def order_by_hand(contributions: NDArray[np.float64]) -> list[int]:
    """The greedy choice, by loops over hits and sections."""
    n_hits, n_sections = contributions.shape
    order: list[int] = []
    while len(order) < n_hits:
        best, of_best = -1.0, -1
        for hit in range(n_hits):
            if hit in order:
                continue
            gain = 0.0
            for section in range(n_sections):
                there = max((contributions[one, section] for one in order), default=0.0)
                gain += max(0.0, contributions[hit, section] - there)
            if gain > best + 1e-9:
                best, of_best = gain, hit
        order.append(of_best)
    return order


@given(st.integers(0, 10_000), st.integers(1, 12), st.integers(1, 6))
def test_the_order_is_the_greedy_one(seed: int, n_hits: int, n_sections: int) -> None:
    contributions = np.random.default_rng(seed).integers(0, 4, (n_hits, n_sections)) / 8
    assert diverse_order(contributions) == order_by_hand(contributions)


@pytest.mark.slow
def test_another_section_comes_first_and_scores_stay(index: Index, corpus: list[Document]) -> None:
    plain, diverse = (index.search("doc011", Request(k=50, diversify=is_so)) for is_so in (False, True))
    assert {hit.doc_id: hit.score for hit in diverse} == {hit.doc_id: hit.score for hit in plain}
    assert [hit.rank for hit in diverse] == list(range(1, 51))
    contributions = section_contributions(plain.hits, len(corpus[11].sections))
    assert [hit.doc_id for hit in diverse] == [plain.hits[place].doc_id for place in order_by_hand(contributions)]
    assert [hit.doc_id for hit in diverse] != [hit.doc_id for hit in plain]
    check(diverse.to_dict())
    assert diverse_order(np.array([[0.5, 0.0], [0.45, 0.0], [0.0, 0.2]])) == [0, 2, 1]


def test_pages_join_across_the_last_diverse_rank(index: Index, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(diversity_module, "DIVERSIFIED", 12)
    every = [(hit.rank, hit.doc_id) for hit in index.search("doc003", Request(k=25, diversify=True))]
    pages = [index.search("doc003", Request(k=5, offset=offset, diversify=True)) for offset in range(0, 25, 5)]
    assert [(hit.rank, hit.doc_id) for page in pages for hit in page] == every
    plain = [hit.doc_id for hit in index.search("doc003", Request(k=25))]
    assert {name for _, name in every[:12]} == set(plain[:12])
    assert [name for _, name in every[12:]] == plain[12:]


@pytest.mark.parametrize("n_ranked", [1, 10])
def test_the_best_of_each_group_is_a_hit_with_its_own_score(
    index: Index, n_ranked: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(diversity_module, "_RANKED", max(2, n_ranked))
    plain = index.search("doc003", Request(k=100))
    best: dict[object, list[str]] = {}
    for hit in plain:
        best.setdefault(hit.metadata["topic"], []).append(hit.doc_id)
    grouped = index.search("doc003", Request(k=4, one_per="topic"))
    names = [hit.doc_id for hit in grouped]
    assert len(best) > 4 and names == [group[0] for group in best.values()][:4]
    scores = {hit.doc_id: hit.score for hit in plain}
    assert [(hit.rank, hit.score) for hit in grouped] == [(at, scores[name]) for at, name in enumerate(names, 1)]
    if n_ranked > 1:
        assert all(hit.others == tuple(best[hit.metadata["topic"]][1 : len(hit.others) + 1]) for hit in grouped)
        listed = check(grouped.to_dict())["hits"][0]["others"]
        assert listed == list(grouped[0].others) and f"of the same group: {listed[0]}" in str(grouped)
    pages = [index.search("doc003", Request(k=2, offset=offset, one_per="topic")) for offset in (0, 2)]
    assert [hit.doc_id for page in pages for hit in page] == names


def test_a_document_without_the_field_is_a_hit_and_an_unknown_field_is_refused(tmp_path: Path) -> None:
    documents = [
        replace(
            make_document(f"p{number}", f"rotor pump seal{number}"),
            metadata={} if family is None else {"family": family},
        )
        for number, family in enumerate(["f1", None, "f1", None, "f2", "f1"])
    ]
    build(tmp_path / "x.lm", documents, encoder=FakeEncoder(), encode="none")
    with Index.open(tmp_path / "x.lm") as index:
        query = make_document("q", "rotor pump")
        grouped = {hit.doc_id: hit.others for hit in index.search(query, Request(one_per="family"))}
        assert grouped == {"p0": ("p2", "p5"), "p1": (), "p3": (), "p4": ()}
        with pytest.raises(QueryError, match=r"^no document has the field 'famly'; did you mean 'family'\?"):
            index.search(query, Request(one_per="famly"))
        with pytest.raises(QueryError, match="one_per family is for one document"):
            index.search_together([query], request=Request(one_per="family"))


CORPUS = make_corpus(40)
NEW = "keel mast harbour wind sail rope anchor tide " * 3


def taken(doc_id: str) -> str:
    """The first section of a document of the corpus, without its heading."""
    document = next(one for one in CORPUS if one.doc_id == doc_id)
    section = document.sections[0]
    return document.text[section.start : section.stop].partition("\n")[2].strip()


NOVELTY = Request(mode=Mode.NOVELTY)
DRAFT = make_document("draft", [("ours", NEW), ("from 11", taken("doc011")), ("from 24", taken("doc024"))])


@pytest.fixture(scope="module")
def drafts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("novelty") / "x.lm"
    longmatch.build(made, CORPUS, encode="none", progress=False).close()
    return made


@pytest.fixture
def novel_words(drafts: Path) -> Iterator[Index]:
    with Index.open(drafts) as opened:
        yield opened


def sections_of(result: Result) -> tuple[SectionNovelty, ...]:
    assert result.sections is not None and [one.hit for one in result.sections if one.hit] == list(result)
    return result.sections


def best_of(result: Result) -> list[tuple[str, str | None]]:
    return [(one.heading, None if one.hit is None else one.hit.doc_id) for one in sections_of(result)]


def test_planted_and_missing_sections_are_named_also_in_the_table(novel_words: Index) -> None:
    found = novel_words.search(DRAFT, NOVELTY)
    assert best_of(found) == [("ours", None), ("from 24", "doc024"), ("from 11", "doc011")]
    assert [one.novelty == 1 for one in sections_of(found)] == [True, False, False]
    assert max(one.novelty or 1 for one in sections_of(found)[1:]) < 0.15
    assert found.status is Status.CERTIFIED and found.n_searched == 40
    text = str(novel_words.search(DRAFT, NOVELTY))
    assert "3 sections, most novel first" in text and "  1  1.0000  ours" in text
    assert "no document shares anything with it" in text and "is in Title 24  doc024" in text
    assert "from 24 -> part one" in text


@pytest.mark.parametrize("has_vectors", [False, True])
def test_each_section_is_searched_as_a_query_of_its_own(novel_words: Index, index: Index, has_vectors: bool) -> None:
    opened, query = (index, make_corpus(61)[60]) if has_vectors else (novel_words, DRAFT)
    for one in sections_of(opened.search(query, NOVELTY)):
        section = query.sections[one.section]
        text = query.text[section.start : section.stop]
        alone = Document("alone", query.title, text, (Section(section.heading, section.path, 0, len(text)),))
        (best,) = opened.search(alone, Request(k=1, mode="containment", exact=True)) or (None,)
        assert (one.hit and one.hit.doc_id) == (best and best.doc_id)
        if one.hit is not None and best is not None:
            assert one.hit.score == pytest.approx(best.score, abs=1e-4)
            assert one.novelty == 1 - one.hit.score


def test_parts_are_of_the_section_and_sum_to_what_is_not_novel(index: Index) -> None:
    found = index.search("doc004", NOVELTY)
    values = check(found.to_dict())
    shown = [one["novelty"] for one in values["sections"]]
    assert shown == sorted((one.novelty or 0.0 for one in sections_of(found)), reverse=True)
    for one in sections_of(found):
        assert one.hit is not None and one.novelty is not None
        assert {pair.query_section for pair in one.hit.pairs} == {one.section}
        assert one.hit.breakdown.score == pytest.approx(1 - one.novelty, abs=1e-5)
        assert one.hit.doc_id != "doc004"
        for part in (part for pair in one.hit.pairs for part in pair.parts):
            assert one.span.start <= part.query.start < part.query.stop <= one.span.stop
        assert one.hit.snippets(1)[0].query_section == one.heading


def test_many_sections_are_searched_in_several_passes(novel_words: Index, monkeypatch: pytest.MonkeyPatch) -> None:
    import engine.search.searcher as searcher_module

    at_once = novel_words.search(DRAFT, NOVELTY).to_dict()
    monkeypatch.setattr(searcher_module, "PASS_SCORES", 1)
    one_by_one = novel_words.search(DRAFT, NOVELTY).to_dict()
    assert one_by_one["sections"] == at_once["sections"]


def test_a_section_without_words_is_last_and_has_no_novelty(novel_words: Index) -> None:
    text = DRAFT.text + "\n\n--- ---\n"
    draft = replace(DRAFT, text=text, sections=(*DRAFT.sections, Section("", (), len(DRAFT.text), len(text))))
    found = novel_words.search(draft, NOVELTY)
    last = sections_of(found)[-1]
    assert (last.section, last.novelty, last.hit) == (3, None, None)
    assert "nothing to compare" in str(found) and "nothing to compare" in repr(last)
    check(found.to_dict())


def test_filters_and_kinds_leave_documents_and_sections_out(novel_words: Index) -> None:
    found = novel_words.search(DRAFT, Request.of(mode="novelty", where="family = 'odd'", without="doc011"))
    assert "doc011" not in {name for _, name in best_of(found)} and found.n_searched == 19
    paper = make_document("paper", [("1 Pumps", BODY), ("References", CITED)])
    request = Request.of(mode="novelty", skip=["references"])
    assert [one.heading for one in sections_of(novel_words.search(paper, request))] == ["1 Pumps"]
    with pytest.raises(QueryError, match="no document 'nothing'"):
        novel_words.search(DRAFT, Request.of(mode="novelty", without="nothing"))


@pytest.mark.slow
def test_documents_without_vectors_make_an_estimate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    few_first_vectors(monkeypatch)
    longmatch.build(tmp_path / "x.lm", CORPUS, encoder=FakeEncoder(), encode="later", progress=False).close()
    with Index.open(tmp_path / "x.lm", encoder=FakeEncoder()) as opened:
        found = opened.search(DRAFT, Request.of(mode="novelty", candidates=3))
        assert found.encoding is not None and found.encoding.n_encoded == 3
        assert found.status is not Status.CERTIFIED
        assert best_of(found)[1:] == [("from 24", "doc024"), ("from 11", "doc011")]


PAPER = document(("1 Pumps", BODY), ("2.1 Valves, new", BODY), ("References", CITED))
PATENT = document(("Background", BODY), ("What we protect", BODY), ("References", CITED))
WITH_KINDS = replace(PATENT, metadata={"kind.claims": ["What we protect"], "kind.old": "2. BACKGROUND", "kind": "B1"})
OWN = replace(document(("Abstract", BODY), ("Methods", BODY)), metadata={"kind.front": ["Abstract"]})
NESTED = Document(
    *("p", "p", "Claims A trap. Claim 1 A door."),
    (Section("Claims", ("Claims",), 0, 15), Section("Claim 1", ("Claims", "Claim 1"), 15, 30)),
)
USUAL = {
    "What is claimed is:": "claims",
    "Patentansprüche": "claims",
    "ABSTRACT OF THE DISCLOSURE": "abstract",
    "Detailed Description of the Invention": "description",
    "3 Materials and Methods": "methods",
    "5. Concluding remarks": "conclusions",
}


@pytest.mark.parametrize(
    ("query", "weights", "expected"),
    [
        (PAPER, {"pumps": 3}, (3, 1, 1)),
        (PAPER, {"2.1 valves, NEW": 0.5}, (1, 0.5, 1)),
        (PAPER, {"references": 0, "body": 2}, (2, 2, 0)),
        (PAPER, {"3": 7}, (1, 1, 7)),
        (PAPER, {"body": 2, "pumps": 3, "1": 4}, (4, 2, 1)),  # the most specific name counts
        (PAPER, {"body": 2, "pumps": 3}, (3, 2, 1)),
        (PAPER, {"appendix": 0, "claims": 3}, ()),  # kinds that it lacks
        (PAPER, {"pumps": 1, "references": 1.0}, ()),
        (NESTED, {"claims": 3}, (3, 3)),  # a heading above names its sections
        (NESTED, {"claims": 3, "claim 1": 5}, (3, 5)),
        (WITH_KINDS, {"claims": 3, "old": 0.5}, (0.5, 3, 1)),
        (WITH_KINDS, {"claims": 3, "what we protect": 2, "body": 7}, (7, 2, 1)),
        (OWN, {"front": 2, "body": 3}, (2, 3)),  # a kind of the metadata counts before that of the heading
        *((document((heading, BODY), ("Pumps", BODY)), {kind: 3}, (3, 1)) for heading, kind in USUAL.items()),
    ],
)
def test_sections_are_named_by_numbers_headings_and_kinds(
    query: Document, weights: dict[str, float], expected: tuple[float, ...]
) -> None:
    assert section_weights(query, weights) == expected


def test_the_metadata_gives_kinds_to_headings_and_sections_of_json_too() -> None:
    assert names_of_sections(WITH_KINDS) == [
        ("1", "background", "old", "body"),
        ("2", "what we protect", "claims", "body"),
        ("3", "references"),
    ]
    assert names_of_sections(OWN)[0] == ("1", "abstract", "front", "body")
    text = """{"title": "A trap", "sections": [
        {"heading": "What we  protect", "text": "A trap with a door.", "kind": "claims"},
        {"heading": "More of that", "text": "A trap with a spring.", "kind": "claims"},
        {"text": "A mouse.", "kind": "claims"}, {"heading": "Rest", "text": "A cat.", "kind": 7}]}"""
    assert read(text.encode(), "a", "a.json").metadata == {"kind.claims": ["What we protect", "More of that"]}


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ({"pump": 3}, "no section of .* is named 'pump'; did you mean '1 Pumps'"),
        ({"seals": 3}, r"named 'seals'; name a heading \('1 Pumps', '2.1 Valves, new', 'References'\), a kind"),
        ({"4": 3}, "a number to 3"),
        ({"pumps": -1}, "the weight of 'pumps' is -1; it must be a number from 0 to 1,000,000"),
        ({"pumps": 1e308}, "the weight of 'pumps' is 1e.308; it must be a number from 0 to 1,000,000"),
        ({"pumps": float("nan")}, "is nan"),
        ({"pumps": "3"}, "is '3'"),
        ({"pumps": True}, "is True"),
        ({"pumps": 2, "1 Pumps": 3}, "two weights name the same sections, '1 Pumps' the second time"),
        ({1: 2}, "the section 1 is no name"),
    ],
)
def test_weights_that_cannot_be_used_are_refused(weights: dict[str, float], message: str) -> None:
    with pytest.raises(QueryError, match=message):
        section_weights(PAPER, weights)


def test_weights_are_read_from_a_text_and_kinds_of_weight_0_found_by_their_own_names() -> None:
    assert parse_weights("claims=3,abstract=0") == {"claims": 3.0, "abstract": 0.0}
    assert parse_weights(" Valves, new = .5 , 2=1e1") == {"Valves, new": 0.5, "2": 10.0}
    weights = {"7 References": 0, "appendix": 0.5, "body": 0, "pumps": 0, "Boilerplate": 0}
    assert kinds_without_weight(weights) == {SectionKind.REFERENCES, SectionKind.BOILERPLATE}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("claims", "'claims' gives no weight; write NAME=NUMBER"),
        ("claims=3,abstract", "'abstract' gives no weight"),
        ("claims=much", "the weight of 'claims' is 'much'"),
        ("claims=", "the weight of 'claims' is ''"),
        ("claims=1,claims=2", "the section 'claims' has two weights"),
    ],
)
def test_a_text_that_is_no_list_of_weights_is_refused(text: str, message: str) -> None:
    with pytest.raises(QueryError, match=message):
        parse_weights(text)


def test_a_kind_of_weight_0_adds_nothing_and_the_parts_sum_to_the_score() -> None:
    made = make_document("q", [("Fox", "the quick fox jumps over the dog"), ("River", "a long river runs to the sea")])
    query = replace(made, metadata={"kind.claims": ["River"]})
    target: Document = make_document("t", "the long river runs to the sea and a fox jumps")
    found = compare_alone(query, target, FakeEncoder(), Request(weights={"claims": 0}))
    assert {pair.query_section for pair in found[0].pairs} == {0}
    for weight in (0, 0.5, 3):
        weighted = compare_alone(query, target, FakeEncoder(), Request(weights={"claims": weight}))
        assert weighted[0].breakdown.score == pytest.approx(weighted[0].score, abs=1e-5)
        by_heading = compare_alone(made, target, FakeEncoder(), Request(weights={"river": weight}))
        assert weighted[0].score == by_heading[0].score
