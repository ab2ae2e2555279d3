"""Stored results are repeated and compared, and checked against the log of searches."""

import json
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import longmatch
from engine.errors import DocumentError, StorageError
from indexer.building.builder import build
from indexer.searches import SearchLog, line_of, read_log
from tests.commands import run, succeed
from tests.fakes import FakeEncoder, make_corpus

TOPICS = {"fox": "river", "house": "stone", "ship": "sea", "bank": "money"}


def text(topic: str, other: str) -> str:
    first, second = (f"An old {one} stands by the {one} and every {one} is red." for one in (topic, other))
    return f"# On the {topic}\n\n{first}\n\n## More on {other}\n\n{second}\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "corpus").mkdir()
    for topic, other in TOPICS.items():
        (tmp_path / "corpus" / f"{topic}.md").write_text(text(topic, other))
    (tmp_path / "draft.md").write_text(text("fox", "stone"))
    succeed("index", tmp_path / "x.lm", tmp_path / "corpus", "--encode", "none")
    return tmp_path


def stored(folder: Path, *arguments: str | Path, form: str = "json") -> Path:
    path = folder / f"result.{form}"
    succeed("query", folder / "x.lm", *arguments, "--format", form, "-o", path)
    return path


def replace_document(folder: Path, name: str) -> None:
    (folder / "corpus" / name).write_text(text("house", "river"))
    succeed("index", folder / "x.lm", folder / "corpus", "--encode", "none")


@pytest.mark.parametrize(
    "edited",
    [
        {"hits": None},
        {"hits": ["fox.md"]},
        {"hits": [{"id": "fox.md"}]},
        {"query": "x"},
        {"provenance": []},
        {"provenance": {"index": None, "is_indexed": True, "parameters": {"k": 3}}},
        {"provenance": {"index": {"path": 5}, "is_indexed": True, "parameters": {"k": 3}}},
        None,
    ],
)
def test_a_result_that_was_edited_is_refused(folder: Path, edited: dict[str, Any] | None) -> None:
    path = stored(folder, "--id", "fox.md")
    envelope = json.loads(path.read_text())
    envelope["results"] = edited and [envelope["results"][0] | edited]
    path.write_text(json.dumps(envelope))
    refused = run("replay", path)
    assert refused.exit_code == 1 and "write results: longmatch query INDEX DOCUMENT" in refused.stderr


def test_a_file_of_nested_brackets_is_refused(tmp_path: Path) -> None:
    (tmp_path / "deep.json").write_text("[" * 100_000)
    assert "deep.json is not JSON of results" in run("replay", tmp_path / "deep.json").stderr


@pytest.mark.slow
@pytest.mark.parametrize("form", ["json", "jsonl"])
@pytest.mark.parametrize("sections", ["0", "3"])
def test_results_of_files_texts_and_ids_are_repeated(folder: Path, form: str, sections: str) -> None:
    options = ["-k", "2", "--without", "bank.md", "--sections", sections]
    path = stored(folder, folder / "draft.md", "--text", "an old stone", "--id", "fox.md", *options, form=form)
    result = succeed("replay", path)
    assert [line.partition(":")[0] for line in result.stdout.splitlines()] == ["equal"] * 3


@pytest.mark.slow
def test_a_replaced_document_is_named_with_its_sections(folder: Path) -> None:
    path = stored(folder, folder / "draft.md")
    replace_document(folder, "house.md")
    result = run("replay", path, "--json")
    assert result.exit_code == 1
    (found,) = json.loads(result.stdout)
    changes: dict[str, Any] = {change["doc_id"]: change for change in found["changes"]}
    assert changes["house.md"]["note"] == "content changed"
    assert changes["house.md"]["causes"][0]["target_section"] in ("On the house", "More on river", "More on stone")
    assert any(reason.startswith("index: fingerprint") for reason in found["reasons"])


def test_a_removed_document_and_a_changed_query_are_named(folder: Path) -> None:
    path = stored(folder, folder / "draft.md")
    succeed("remove", folder / "x.lm", "fox.md")
    (folder / "draft.md").write_text(text("fox", "stone") + "\nAnd a ship.\n")
    result = run("replay", path)
    assert result.exit_code == 1 and result.stdout.startswith("different: On the fox: ")
    assert "the query has another content" in result.stdout and "fox.md  (removed from the index)" in result.stdout
    assert "documents: 4, now 3" in result.stdout


@pytest.mark.slow
def test_a_moved_index_and_query_can_be_given_on_the_command_line(folder: Path) -> None:
    path = stored(folder, folder / "draft.md")
    (folder / "x.lm").rename(folder / "y.lm")
    missing = run("replay", path)
    assert missing.exit_code == 1 and "name it: --index INDEX" in missing.stderr
    (folder / "draft.md").rename(folder / "moved.md")
    assert "--query DOCUMENT" in run("replay", path, "--index", folder / "y.lm").stderr
    found = run("replay", path, "--index", folder / "y.lm", "--query", folder / "moved.md")
    assert found.exit_code in (0, 1) and "On the fox" in found.stdout


def test_a_result_of_an_earlier_version_is_refused(folder: Path) -> None:
    path = stored(folder, folder / "draft.md")
    value = json.loads(path.read_text())
    del value["results"][0]["provenance"]
    path.write_text(json.dumps(value))
    assert "records no parameters" in run("replay", path).stderr


@pytest.mark.slow
def test_diff_names_the_documents_that_were_replaced(folder: Path) -> None:
    shutil.copytree(folder / "x.lm", folder / "old.lm")
    same = succeed("diff", folder / "old.lm", folder / "x.lm", "--queries", folder / "draft.md", "--id", "fox.md")
    assert [line.partition(":")[0] for line in same.stdout.splitlines()] == ["equal", "equal"]
    replace_document(folder, "house.md")
    found = run("diff", folder / "old.lm", folder / "x.lm", "--queries", folder / "draft.md", "--json")
    (one,) = json.loads(found.stdout)
    notes = {change["doc_id"]: change["note"] for change in one["changes"]}
    assert notes["house.md"] == "content changed"


@pytest.fixture(scope="module")
def sixty(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An index of words over sixty files."""
    folder = tmp_path_factory.mktemp("sixty")
    (folder / "corpus").mkdir()
    for document in make_corpus(60):
        (folder / "corpus" / f"{document.doc_id}.md").write_text(f"# {document.title}\n\n{document.text}")
    succeed("index", folder / "x.lm", folder / "corpus", "--encode", "none")
    return folder


@pytest.mark.slow
def test_diff_names_five_replaced_documents(sixty: Path) -> None:
    """The score depends on the query, the target and the pinned reference: no other hit has another score."""
    shutil.copytree(sixty / "x.lm", sixty / "new.lm")
    replaced = {f"doc{number:03}.md" for number in (4, 17, 23, 31, 58)}
    (sixty / "replacements").mkdir()
    for number, name in enumerate(sorted(replaced)):
        (sixty / "replacements" / name).write_text(f"# Another {number}\n\n{make_corpus(5, seed=9)[number].text}")
    indexed = succeed("index", sixty / "new.lm", sixty / "replacements", "--encode", "none", "--replace")
    assert "5 replaced" in indexed.output, indexed.output
    queries = [word for number in range(40, 50, 3) for word in ("--id", f"doc{number:03}.md")]
    result = run("diff", sixty / "x.lm", sixty / "new.lm", *queries, "-k", "60", "--json")
    changes = [change for one in json.loads(result.stdout) for change in one["changes"]]
    assert {change["doc_id"] for change in changes if change["note"] == "content changed"} == replaced
    assert {
        change["doc_id"] for change in changes if change["score_before"] != change["score_after"] or change["causes"]
    } == replaced


def test_diff_reports_a_query_that_cannot_be_read(folder: Path) -> None:
    result = run("diff", folder / "x.lm", folder / "x.lm", "--queries", folder / "no.md", folder / "draft.md")
    assert result.exit_code == 3 and result.stdout.startswith("equal: ") and "failed: " in result.stderr


TEXT = "topic1word1 topic1word2 common1"


@pytest.fixture
def twenty(tmp_path: Path) -> Path:
    build(tmp_path / "x.lm", make_corpus(20), encoder=FakeEncoder(), encode="none")
    return tmp_path


def test_each_search_of_each_front_is_a_line(twenty: Path) -> None:
    log, index = twenty / "log.jsonl", twenty / "x.lm"
    succeed("query", index, "--id", "doc001", "--text", TEXT, "--log", log, "-k", 3)
    succeed("query", index, "--text", TEXT, "--mode", "novelty", "--log", log)
    with longmatch.open(index, search_log=log) as opened:
        joint = opened.search_together([TEXT], unlike_ids=["doc003"], k=2)
        opened.add({"id": "doc999", "text": TEXT})
        opened.search(TEXT, k=1)
    entries = read_log(log)
    assert [*entries] == [1, 2, 3, 4, 5]
    assert [entries[number]["queries"][0]["id"] for number in (1, 2, 3)] == ["doc001", "text", "text"]
    assert [query["weight"] for query in entries[4]["queries"]] == [1, -0.5]
    assert [hit["score"] for hit in entries[4]["hits"]] == [hit.score for hit in joint]
    assert entries[2]["queries"][0]["text"] == TEXT and entries[1]["queries"][0]["text"] is None
    assert [entries[number]["index"]["n_documents"] for number in (4, 5)] == [20, 21]
    assert entries[5]["index"]["fingerprint"] != entries[4]["index"]["fingerprint"]


def test_a_server_logs_searches_of_the_api_and_of_the_page_and_no_others(twenty: Path) -> None:
    pytest.importorskip("fastapi")
    from indexer.serving.settings import ServerSettings
    from tests.indexer.serving.clients import served

    log = twenty / "log.jsonl"
    with served(twenty / "x.lm", ServerSettings(log_file=log)) as client:
        reply = client.post("/v1/search", json={"text": TEXT, "k": 2}).json()
        assert client.post("/page/search", json={"doc_id": "doc002"}).status_code == 200
        assert client.post("/v1/search", json={"doc_id": "nowhere"}).status_code == 404
    entries = read_log(log)
    assert len(entries) == 2
    assert line_of(entries, reply["results"][0]) == 1


def test_replay_checks_a_result_against_its_line(twenty: Path) -> None:
    log, result = twenty / "log.jsonl", twenty / "r.json"
    run("query", twenty / "x.lm", "--id", "doc002", "--log", log)
    run("query", twenty / "x.lm", "--text", TEXT, "--log", log, "--format", "json", "-o", result)
    found = run("replay", result, "--log", log)
    assert (found.exit_code, "line 2 is the search" in found.stderr) == (0, True), found.output
    values = json.loads(result.read_text())
    values["results"][0]["hits"][0]["score"] += 0.01
    (twenty / "forged.json").write_text(json.dumps(values))
    forged = run("replay", twenty / "forged.json", "--log", log)
    assert (forged.exit_code, "has no line with the result" in forged.output) == (1, True)
    first, second = log.read_bytes().splitlines(keepends=True)
    for changed in (second, first.replace(b"doc002", b"doc003") + second, second + first):
        log.write_bytes(changed)
        refused = run("replay", result, "--log", log)
        assert (refused.exit_code, "is not what was written" in refused.output) == (1, True)


def test_lines_of_many_threads_and_behind_a_torn_line_stay_a_chain(twenty: Path) -> None:
    log = twenty / "log.jsonl"
    with longmatch.open(twenty / "x.lm") as index:
        result = index.search(TEXT * 5_000, k=1)  # a line longer than the tail that is read
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(lambda _: SearchLog(log).add(result), range(24)))
        whole = log.read_bytes()
        log.write_bytes(whole[: -len(whole) // 30])
        SearchLog(log).add(index.search("topic2word2", k=1))
    assert [*read_log(log)] == [*range(1, 24), 25]
    log.write_bytes(whole.replace(b"doc", b"dog", 1))
    with pytest.raises(DocumentError, match="line 1 of"):
        read_log(log)


def test_a_search_that_cannot_be_logged_fails(twenty: Path) -> None:
    (twenty / "log.jsonl").mkdir()
    with (
        longmatch.open(twenty / "x.lm", search_log=twenty / "log.jsonl") as index,
        pytest.raises(StorageError, match=r"log\.jsonl"),
    ):
        index.search(TEXT)
