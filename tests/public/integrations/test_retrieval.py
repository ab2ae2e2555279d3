"""Retrieval in other frameworks: passages, documents, and the retrievers of each."""

import asyncio
import json
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

import longmatch
from engine.errors import DocumentError, IndexMismatch, MissingExtra, QueryError
from engine.scoring.parts import SectionPair, TermPart
from engine.text.document import Document
from engine.text.segmentation import Span
from engine.words.places import QueryText
from engine.words.segmenter import segmenter_of
from longmatch import integrations
from longmatch.integrations.retrieval import MOST_CHARACTERS, Retrieval, passage
from tests.fakes import FakeEncoder, make_document
from tests.public.integrations.conftest import QUERY


def test_the_text_is_the_passages_that_the_metadata_name(folder: Path, documents: list[Document]) -> None:
    texts = {document.doc_id: document.text for document in documents}
    for one in Retrieval(folder, k=3, n_pairs=2).find(QUERY):
        spans = dict.fromkeys(tuple(pair["target_span"]) for pair in one.metadata["pairs"])
        assert one.text == "\n\n".join(texts[one.doc_id][start:stop].strip() for start, stop in spans)


def test_metadata_are_plain_and_hold_the_parts(folder: Path) -> None:
    first = Retrieval(folder, k=1, n_pairs=1).find(QUERY)[0]
    assert json.loads(json.dumps(first.metadata)) == first.metadata
    assert first.metadata["doc_id"] == "fox" and first.metadata["year"] == 2000
    assert (first.metadata["status"], first.metadata["document_status"]) == ("certified", "Final")
    (pair,) = first.metadata["pairs"]
    page = 1 if pair["target_section"] == "Beginning" else 2
    assert pair["target_pages"] == first.metadata["pages"] == [page]
    assert 0 < pair["contribution"] <= first.metadata["score"] == first.score
    assert "fox" in pair["words"]


def test_pairs_of_an_index_with_vectors_are_passages(built_folder: Path) -> None:
    with longmatch.open(built_folder, encoder=FakeEncoder()) as index:
        found = Retrieval(index, k=4, n_pairs=3).find("topic3word1 topic3word2 common1 topic3word9")
        assert [one.metadata["rank"] for one in found] == [1, 2, 3, 4]
        for one in found:
            whole = index.document(one.doc_id).text
            passages = [whole[slice(*pair["target_span"])].strip() for pair in one.metadata["pairs"]]
            assert passages and all(passages)
            assert one.text == "\n\n".join(passages)


def test_the_whole_document_is_given_on_request(folder: Path, documents: list[Document]) -> None:
    assert Retrieval(folder, k=1, content="document").find(QUERY)[0].text == documents[0].text


def test_a_query_is_never_a_file(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "draft.md").write_text("A ship.")
    monkeypatch.chdir(tmp_path)
    (found,) = Retrieval(folder, k=1).find("draft.md fox")
    assert found.doc_id == "fox"
    assert Retrieval(folder).find("./draft.md") == []


def test_settings_of_a_call_replace_those_of_the_retriever(folder: Path) -> None:
    retriever = Retrieval(folder, k=1, where="year >= 2001")
    assert [one.metadata["year"] > 2000 for one in retriever.find(QUERY)] == [True]
    assert [one.doc_id for one in retriever.find(QUERY, k=1, where={"year": 2000})] == ["fox"]


def test_a_long_section_is_cut_to_where_its_words_stand() -> None:
    filler = "Nothing of interest is here. " * 200
    target = make_document("t", f"{filler}\nThe heron waits for the trout.\n{filler}")
    query = make_document("q", "heron and trout")
    heron, trout = segmenter_of("english").segment(query.text).words.tolist()
    pair = SectionPair(0, 0, 0.5, (), 0.5, (TermPart("heron", 0.3, heron), TermPart("trout", 0.2, trout)))
    span = passage(pair, query, QueryText(target, "english").places)
    assert span.stop - span.start <= MOST_CHARACTERS
    assert target.text[span.start :].startswith("The heron waits for the trout.")
    target = make_document("t", "a b " * 1_000)
    pair = SectionPair(0, 0, 0.5, (), 0.5, ())
    assert passage(pair, make_document("q", "b"), QueryText(target, "english").places) == Span(0, MOST_CHARACTERS)


def test_settings_that_cannot_be_used_are_refused(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(QueryError, match="content is 'text'; use one of 'passages', 'document'"):
        Retrieval(folder, content="text")  # type: ignore[arg-type]
    with pytest.raises(QueryError, match="k is 'ten'; it must be a whole number"):
        Retrieval(folder, k="ten")  # type: ignore[arg-type]
    with pytest.raises(IndexMismatch, match="holds no index"):
        Retrieval(tmp_path)
    with pytest.raises(DocumentError):
        Retrieval(folder).find(" ")
    with pytest.raises(QueryError, match="no document has the field 'yaer'; did you mean 'year'"):
        Retrieval(folder, where="yaer > 1").find(QUERY)


@pytest.mark.parametrize(
    ("name", "package"),
    [
        ("LangChainRetriever", "langchain-core"),
        ("LlamaIndexRetriever", "llama-index-core"),
        ("HaystackRetriever", "haystack-ai"),
        ("mcp_server", "mcp"),
    ],
)
def test_the_error_names_a_missing_package_and_command(
    name: str, package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    with pytest.raises(MissingExtra) as caught:
        getattr(integrations, name)
    assert str(caught.value).startswith(f"{name} needs {package}; install it: pip install ")
    assert package in str(caught.value).partition("pip install ")[2]


Hits = list[tuple[str, float, int, str]]  # doc_id, score, rank, text


def langchain_hits(folder: Path, *, is_async: bool, **settings: Any) -> Hits:  # noqa: ANN401
    retriever = integrations.LangChainRetriever(index=folder, **settings)
    found = asyncio.run(retriever.ainvoke(QUERY)) if is_async else retriever.invoke(QUERY)
    return [(one.id, one.metadata["score"], one.metadata["rank"], one.page_content) for one in found]


def llama_index_hits(folder: Path, *, is_async: bool, **settings: Any) -> Hits:  # noqa: ANN401
    retriever = integrations.LlamaIndexRetriever(folder, **settings)
    found = asyncio.run(retriever.aretrieve(QUERY)) if is_async else retriever.retrieve(QUERY)
    return [(one.node_id, one.score, one.metadata["rank"], one.text) for one in found]


def haystack_hits(folder: Path, *, is_async: bool, **settings: Any) -> Hits:  # noqa: ANN401
    retriever = integrations.HaystackRetriever(folder, **settings)
    found = asyncio.run(retriever.run_async(QUERY)) if is_async else retriever.run(query=QUERY)
    return [(one.id, one.score, one.meta["rank"], one.content) for one in found["documents"]]


def in_framework(module: str) -> pytest.MarkDecorator:
    return pytest.mark.skipif(find_spec(module) is None, reason=f"{module} is not installed")


LANGCHAIN, LLAMA_INDEX, HAYSTACK = map(in_framework, ("langchain_core", "llama_index", "haystack"))
FRAMEWORKS = [
    pytest.param(langchain_hits, id="langchain", marks=LANGCHAIN),
    pytest.param(llama_index_hits, id="llama_index", marks=LLAMA_INDEX),
    pytest.param(haystack_hits, id="haystack", marks=HAYSTACK),
]


@pytest.mark.parametrize("hits_of", FRAMEWORKS)
def test_a_retriever_gives_the_hits_of_a_search(
    folder: Path, expected: list[tuple[str, float]], hits_of: Callable[..., Hits]
) -> None:
    hits = hits_of(folder, is_async=False, k=3)
    assert [hit[:3] for hit in hits] == [(*hit, rank) for rank, hit in enumerate(expected, start=1)]
    assert "fox" in hits[0][3]
    assert hits_of(folder, is_async=True, k=3) == hits
    assert hits_of(str(folder), is_async=False, k=1, where={"year": {">=": 2001}})[0][0] != "fox"


@pytest.mark.parametrize("hits_of", FRAMEWORKS)
@pytest.mark.parametrize(
    ("name", "hint"), [("top_k", "did you mean k"), ("n_pair", "did you mean n_pairs"), ("xyz", "use one of index, k")]
)
def test_an_unknown_argument_gets_a_near_name(folder: Path, hits_of: Callable[..., Hits], name: str, hint: str) -> None:
    with pytest.raises(TypeError, match=f"has no argument '{name}'; {hint}"):
        hits_of(folder, is_async=False, **{name: 2})


@LANGCHAIN
def test_a_chain_of_langchain_holds_the_retriever(folder: Path) -> None:
    from langchain_core.runnables import RunnableLambda

    retriever = integrations.LangChainRetriever(index=folder, k=1)
    chain = retriever | RunnableLambda(lambda found: [one.id for one in found])
    assert chain.batch([QUERY] * 3) == [["fox"]] * 3
    retriever.k = 2
    assert len(retriever.invoke(QUERY)) == 2


@LLAMA_INDEX
def test_llama_index_reads_scores_and_keeps_section_pairs_out_of_prompts(folder: Path) -> None:
    from llama_index.core.postprocessor import SimilarityPostprocessor
    from llama_index.core.schema import MetadataMode

    nodes = integrations.LlamaIndexRetriever(folder, k=3).retrieve(QUERY)
    prompt = nodes[0].node.get_content(MetadataMode.LLM)
    assert "year: 2000" in prompt and "target_span" not in prompt
    assert nodes[0].metadata["pairs"][0]["target_span"]
    best = SimilarityPostprocessor(similarity_cutoff=nodes[0].score).postprocess_nodes(nodes)
    assert [node.node_id for node in best] == ["fox"]


@HAYSTACK
def test_a_pipeline_of_haystack_connects_saves_and_loads_the_retriever(folder: Path) -> None:
    from haystack import Pipeline
    from haystack.components.joiners import DocumentJoiner

    pipeline = Pipeline()
    pipeline.add_component("retriever", integrations.HaystackRetriever(folder, k=3, where="year >= 2001"))
    pipeline.add_component("joiner", DocumentJoiner())
    pipeline.connect("retriever.documents", "joiner.documents")
    one = {"retriever": {"query": QUERY, "k": 1, "where": {"year": 2000}}}
    for found in (pipeline.run(one), asyncio.run(pipeline.run_async(one))):
        assert [document.id for document in found["joiner"]["documents"]] == ["fox"]
    loaded = Pipeline.loads(pipeline.dumps(), allowed_modules=["longmatch.integrations.haystack"])
    every = {"retriever": {"query": QUERY}}
    assert loaded.run(every) == pipeline.run(every)
    settings = {"k": 3, "where": "year >= 2001", "n_pairs": 3, "content": "passages"}
    saved = pipeline.to_dict()["components"]["retriever"]["init_parameters"]
    assert saved == {"index": str(folder), **settings}
