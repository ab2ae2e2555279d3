"""200 queries from Python and from the command line: all results are valid, equal, and sum to their scores."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import longmatch
from engine.readers import Unreadable, read_file
from engine.text.document import Document
from indexer.cli import main
from tests.strict_schema import check

DEMO = Path(__file__).parents[2] / "demo/corpus"
N_QUERIES = 200
N_DOCUMENTS = 24
LEAST_CHARACTERS = 200


@pytest.fixture(scope="module")
def documents() -> list[Document]:
    """The shortest documents of the demo, of all its formats."""
    files = sorted((file for file in DEMO.rglob("*") if file.is_file()), key=lambda file: file.stat().st_size)
    found: list[Document] = []
    for file in files:
        found += [document for document in read_file(file) if not isinstance(document, Unreadable)]
        if len(found) >= N_DOCUMENTS:
            break
    return found[:N_DOCUMENTS]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, documents: list[Document], bert_folder: Path) -> Path:
    path = tmp_path_factory.mktemp("demo") / "demo.lm"
    longmatch.build(path, documents, encoder=str(bert_folder), encode="all", progress=False).close()
    return path


@pytest.fixture(scope="module")
def queries(tmp_path_factory: pytest.TempPathFactory, documents: list[Document]) -> Path:
    """Documents, each followed by its sections, as JSON lines."""

    def records() -> Iterator[dict[str, Any]]:
        for document in documents:
            texts = [document.text[section.start : section.stop] for section in document.sections]
            sections = zip(document.sections, texts, strict=True)
            listed = [{"heading": section.heading, "text": text} for section, text in sections]
            yield {"id": document.doc_id, "title": document.title, "sections": listed}
            for number, text in enumerate(texts):
                if len(text) >= LEAST_CHARACTERS:
                    yield {"id": f"{document.doc_id}#{number}", "title": document.title, "text": text}

    lines = [json.dumps(record) for record, _ in zip(records(), range(N_QUERIES), strict=False)]
    assert len(lines) == N_QUERIES
    path = tmp_path_factory.mktemp("queries") / "queries.jsonl"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def without_time(result: Mapping[str, Any]) -> dict[str, Any]:
    provenance = {name: value for name, value in result["provenance"].items() if name != "time"}
    return {name: value for name, value in result.items() if name != "seconds"} | {"provenance": provenance}


@pytest.mark.slow
def test_results_of_200_queries_are_valid_and_the_same_everywhere(folder: Path, queries: Path) -> None:
    query_documents = [query for query in read_file(queries) if isinstance(query, Document)]
    with longmatch.open(folder) as index:
        from_python = [result.to_dict(n_pairs=2) for result in index.search(query_documents, k=3)]
    arguments = ["query", str(folder), str(queries), "-k", "3", "--sections", "2", "--format", "json"]
    run = CliRunner().invoke(main, arguments, catch_exceptions=False)
    assert run.exit_code == 0, run.stderr
    from_command = check(json.loads(run.stdout))["results"]
    assert len(from_command) == N_QUERIES
    assert list(map(without_time, from_command)) == list(map(without_time, from_python))
    kinds = {part["kind"] for result in from_python for hit in result["hits"] for part in hit["parts"]}
    assert kinds == {"section_pair", "rest"}
