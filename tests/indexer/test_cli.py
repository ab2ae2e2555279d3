"""The command line for people and scripts: what a command prints where, and its exit status."""

import json
import re
import shutil
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from engine.gpu import Acceleration, scan_on
from indexer.building.builder import Settings
from indexer.building.report import BuildReport
from tests.commands import run, succeed
from tests.fakes import few_first_vectors
from tests.indexer.conftest import text_on
from tests.strict_schema import check

GERMAN = Path(__file__).parents[1] / "words" / "texts" / "german.jsonl"


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory, papers: Path, bert_folder: Path) -> Path:
    """An index of the papers, only to be read."""
    path = tmp_path_factory.mktemp("cli") / "papers.lm"
    assert succeed("index", path, papers, "--encoder", bert_folder).stdout.startswith(
        "16 added, 0 replaced, 0 unchanged, 0 removed, 0 failed; "
    )
    return path


@pytest.fixture
def copy(built: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(built, tmp_path / "p.lm"))


@pytest.mark.slow
def test_the_same_run_changes_nothing_and_prune_removes_what_is_gone(copy: Path, papers: Path) -> None:
    again = run("index", copy, papers)
    assert again.stdout.startswith("0 added, 0 replaced, 16 unchanged, 0 removed, 0 failed in ")
    assert run("upkeep", "rebase", copy).stdout.startswith("reference 2: ")
    result = run("index", copy, papers / "fox", papers / "dog", "--prune")
    assert ", 8 unchanged, 8 removed, 0 failed in " in result.stdout  # the files keep the doc_ids that they have


def test_files_of_no_supported_format_are_counted_in_the_report(tmp_path: Path) -> None:
    folder = tmp_path / "corpus"
    folder.mkdir()
    for name in ("a.txt", "b.png", "c.png", "d.doc"):
        (folder / name).write_text(text_on("fox", 1))
    shown = run("index", tmp_path / "p.lm", folder, "--encode", "none")
    assert "\nnot indexed, no supported format: .png (2), .doc (1)\n" in shown.stdout
    found = json.loads(run("index", tmp_path / "q.lm", folder, "--encode", "none", "--json").stdout)
    assert (found["n_added"], found["unsupported_files"]) == (1, {".png": 2, ".doc": 1})


def test_a_document_that_is_perhaps_not_whole_is_a_warning_of_the_run(tmp_path: Path) -> None:
    whole, part = tmp_path / "whole.jsonl", tmp_path / "part.jsonl"
    whole.write_text(json.dumps({"id": "1", "text": text_on("fox", 3), "url": "x" * 90}))
    part.write_text(json.dumps({"id": "2", "title": "Pump", "text": "A pump.", "verse": "a long verse " * 99}))
    lost = tmp_path / "lost.xml"  # JATS without words of its own, beside words that are no part of it
    lost.write_text("<article><body><p>The eels hide.</p></body><aside>Otters swim by.</aside></article>")
    result = run("index", tmp_path / "p.lm", whole, part, lost, "--encode", "none")
    assert {line for line in result.stderr.splitlines() if line.startswith("warning: ")} == {
        f'warning: {part}:1: nearly all of it is metadata; to read its longest field as the text: --text-field "verse"',
        f"warning: {lost}: 2 words of the file are neither read nor left out for a reason; this is a fault of the "
        "reader",
    }


@pytest.mark.parametrize(
    ("corpus", "options", "encode"),
    [
        ("german", (), "none"),
        ("german", ("--encode", "later"), "later"),
        ("german", ("--encoder", "own"), "later"),
        ("english", (), "later"),
    ],
)
def test_a_corpus_that_the_bundled_encoder_does_not_read_gets_words_alone(
    tmp_path: Path, papers: Path, monkeypatch: pytest.MonkeyPatch, corpus: str, options: tuple[str, ...], encode: str
) -> None:
    path = GERMAN if corpus == "german" else papers
    n_documents: list[int] = []

    def build(index: Path, documents: Iterable[object], settings: Settings, **_: object) -> BuildReport:
        assert settings.encode == encode
        n_documents.append(len(list(documents)))
        return BuildReport()

    monkeypatch.setattr("indexer.building.builder.build", build)
    result = run("index", tmp_path / "x.lm", path, *options)
    assert (result.exit_code, bool(n_documents[0])) == (0, True)
    assert ("are German, which the bundled encoder does not read" in result.stderr) == (encode == "none")


def test_an_index_of_words_alone_says_what_adds_vectors(tmp_path: Path, papers: Path) -> None:
    path = tmp_path / "x.lm"
    result = succeed("index", path, GERMAN)
    assert f"this adds vectors: longmatch index {path} --encoder NAME\n" in result.stdout
    assert "does not read" not in run("index", path, GERMAN).stderr
    path = tmp_path / "my p.lm"
    words = run("index", path, papers / "fox" / "0.md", "--encode", "none").stdout
    assert "\n1 document has no vectors yet: about " in words
    assert f"; the index holds words alone, this adds vectors: longmatch index '{path}'\n" in words


@pytest.mark.parametrize(
    ("options", "is_noted"), [((), True), (("--language", "none"), False)], ids=["detected", "named"]
)
def test_a_new_index_without_a_language_says_so_unless_that_was_named(
    tmp_path: Path, options: tuple[str, ...], is_noted: bool
) -> None:
    (tmp_path / "parts.txt").write_text("valve 7731 bracket seal flange " * 20)
    shown = [run("index", tmp_path / "p.lm", tmp_path / "parts.txt", "--encode", "none", *options) for _ in range(2)]
    note = "no known language was detected, so words keep their forms and none is a stop word"
    assert [note in one.stderr for one in shown] == [is_noted, False]


@pytest.mark.slow
@pytest.mark.parametrize("encode", [[], ["--encode", "later"]])
def test_an_index_of_words_gets_vectors_from_a_named_encoder_alone(
    tmp_path: Path, papers: Path, bert_folder: Path, encode: list[str]
) -> None:
    path = tmp_path / "p.lm"
    succeed("index", path, papers, "--encode", "none")
    (tmp_path / "more.txt").write_text("A few more words about foxes and rivers.")
    again = run("index", path, tmp_path / "more.txt")
    assert again.stdout.startswith("1 added, ") and "words alone" in again.stderr
    assert "holds words alone" in run("show", path).stdout
    assert "words now" in run("index", path, papers, *encode, "--encoder", bert_folder).stderr
    assert json.loads(run("show", path, "--json").stdout)["encoded"] > 0


@pytest.mark.slow
def test_an_index_of_words_gets_all_vectors_by_a_run_without_files(
    tmp_path: Path, papers: Path, bert_folder: Path
) -> None:
    assert "16 documents have no vectors yet" in run("index", tmp_path / "p.lm", papers, "--encode", "none").stdout
    assert "16 encoded" in run("index", tmp_path / "p.lm", "--encoder", bert_folder).stdout


@pytest.mark.slow
def test_a_query_prints_what_it_encoded(
    tmp_path: Path, papers: Path, bert_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    few_first_vectors(monkeypatch, 4)
    path = tmp_path / "p.lm"
    later = run("index", path, papers, "--encoder", bert_folder)
    assert "12 documents have no vectors yet" in later.stdout
    assert "; queries encode what they need, this encodes all: longmatch index " in later.stdout
    answer = run("query", path, papers / "fox" / "0.md", "--candidates", "3")
    assert "encoding" in answer.stderr
    assert "partial" in answer.stdout
    assert "3 of 3 candidates encoded" in answer.stdout
    assert "scored by words alone" in answer.stdout
    (result,) = json.loads(run("query", path, papers / "fox" / "0.md", "--format", "json").stdout)["results"]
    assert result["encoding"]["n_candidates"] == result["encoding"]["n_encoded"] == 15  # the query document is left out
    assert "certified" in run("query", path, "--id", "dog/1.md", "--candidates", "0").stdout  # all have vectors by now


def test_a_run_whose_documents_all_fail_prints_the_failures(tmp_path: Path) -> None:
    (tmp_path / "empty.txt").write_text("")
    failed = run("index", tmp_path / "p.lm", tmp_path / "empty.txt", "--encode", "none")
    assert failed.exit_code == 1
    assert "1 failed" in failed.stdout
    assert f"failed: {tmp_path / 'empty.txt'}: " in failed.stderr
    for number in range(25):
        (tmp_path / f"empty{number}.txt").touch()
    assert "and 6 more: --json lists them" in run("index", tmp_path / "x.lm", tmp_path).stderr  # no index was made


def test_a_dry_run_writes_nothing(tmp_path: Path, papers: Path, bert_folder: Path) -> None:
    result = run("index", tmp_path / "p.lm", papers, "--encoder", bert_folder, "--dry-run")
    names = [line.split("  ")[0].rstrip() for line in result.stdout.splitlines()]
    assert names[4:] == ["to encode", "--encode none", "--encode later", "--encode all"]
    result = run("index", tmp_path / "p.lm", papers, "--encoder", bert_folder, "--dry-run", "--json")
    plan = json.loads(result.stdout)
    assert (plan["n_new"], plan["n_unchanged"]) == (16, 0)
    assert not (tmp_path / "p.lm").exists()


def test_the_use_of_a_gpu_is_printed_on_standard_error(built: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engine.index.check_device", lambda device: device)
    monkeypatch.setattr(
        "engine.gpu.accelerate",
        lambda snapshot, _: Acceleration(scan_on(snapshot, ["cpu"], 1 << 30)[0], None, "searched on the GPU: as here"),
    )
    there, here = (run("query", str(built), "--id", "fox/0.md", *device) for device in (["--device", "cuda"], []))
    assert there.stdout == here.stdout and there.exit_code == 0
    assert there.stderr == "searched on the GPU: as here\n"
    assert here.stderr == ""


def test_a_query_by_text_or_standard_input_is_a_document_of_that_text(built: Path) -> None:
    body = text_on("river", 2).split("\n\n")[1]  # without a title, which a file has and a text has not
    by_text = run("query", built, "--text", body, "-k", "3", "--format", "jsonl")
    by_stdin = run("query", built, "-", "-k", "3", "--format", "jsonl", stdin=body)
    found, expected = (check(json.loads(one.stdout))["hits"] for one in (by_text, by_stdin))
    assert found == expected
    result = run("query", built, "-", "-k", "1", "--format", "trec", stdin=text_on("river", 2))
    query_id, _, doc_id, rank, _, tag = result.stdout.split()
    assert (query_id, rank, tag) == ("stdin.md", "1", "longmatch") and doc_id.startswith("river/")


def test_show_prints_the_exact_text(built: Path, papers: Path) -> None:
    text = (papers / "fox" / "0.md").read_text().split("---\n", 2)[2]
    assert run("show", built, "fox/0.md", "--text").stdout == text + "\n"
    shown = json.loads(run("show", built, "fox/0.md", "--json").stdout)
    assert shown["metadata"] == {"topic": "fox", "number": 0}
    assert [(row["index"], row["heading"]) for row in shown["sections"]] == [(0, "The fox 0"), (1, "More on the fox")]
    assert [text[row["start"] : row["end"]] for row in shown["sections"]] == re.split(r"(?=^## )", text, flags=re.M)


def test_info_counts_documents_failures_and_tokens(built: Path) -> None:
    facts = json.loads(run("show", built, "--json").stdout)
    assert (facts["n_documents"], facts["failures"], facts["fresh_documents"]) == (16, 0, 0)
    assert (facts["documents"][0]["doc_id"], len(facts["documents"])) == ("dog/0.md", 16)
    assert facts["tokens_read"] == facts["tokens_total"] > 0
    assert "exact" in run("show", built).stdout


@pytest.mark.slow
def test_repair_rebuilds_faiss_and_names_lost_documents(copy: Path, flip_byte: Callable[[Path, int], None]) -> None:
    before = run("query", copy, "--id", "fox/1.md", "--format", "csv").stdout
    flip_byte(next(copy.glob("ann/*/chunks.faiss")), 50)
    assert run("upkeep", "verify", copy).exit_code == 1
    assert "no damage" not in succeed("upkeep", "repair", copy).stdout
    flip_byte(copy / "shards" / "000001.safetensors", 400)
    succeed("upkeep", "repair", copy, "--encode")
    assert run("query", copy, "--id", "fox/1.md", "--format", "csv").stdout == before
    flip_byte(next(copy.glob("shards/*.safetensors")), 400)
    lost = run("upkeep", "repair", copy)
    assert lost.exit_code == 3 and lost.stdout.count("lost: ") == 16
