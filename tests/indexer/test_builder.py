"""Building an index: what is refused before anything is read, and first runs that commit nothing or are killed."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from engine.errors import DocumentError, IndexBusy, IndexMismatch, QueryError, RecallTooLow
from engine.index import Index
from engine.readers import Unreadable
from engine.search.request import Request
from engine.store.catalog import read_manifest
from engine.store.partitioned import open_snapshot
from engine.store.snapshot import IndexSnapshot
from engine.store.writer import Writer
from engine.text.document import Document
from indexer.building.builder import build
from indexer.building.rewriting import partition
from indexer.generation.resources import folder_bytes
from indexer.upkeep.verify import verify
from tests.commands import run
from tests.fakes import FakeEncoder, make_corpus, make_document


def test_an_index_is_built_searched_and_reported(tmp_path: Path, corpus: list[Document]) -> None:
    report = build(str(tmp_path / "deep" / "x.lm"), iter(corpus), encoder=FakeEncoder())
    assert report.n_added == 60
    with Index.open(tmp_path / "deep" / "x.lm", encoder=FakeEncoder()) as index:
        assert index.search(corpus[7], Request(with_itself=True)).hits[0].doc_id == "doc007"
        assert index.snapshot.meta["encoder"] == {"name": "fake", "fingerprint": "f" * 32, "width": 32}
    report = build(tmp_path / "x.lm", corpus, encoder=FakeEncoder())
    assert report.disk_bytes == folder_bytes(tmp_path / "x.lm") > 0
    assert report.generation_seconds > 0


def test_the_encoder_of_the_index_is_used_again(tmp_path: Path, bert_folder: Path) -> None:
    build(tmp_path / "x.lm", [make_document("a", "old fox")], encoder=str(bert_folder), device="cpu")
    build(tmp_path / "x.lm", [make_document("b", "young dog")], device="cpu")
    with IndexSnapshot(tmp_path / "x.lm") as snapshot:
        assert snapshot.doc_ids() == ["a", "b"]
        assert snapshot.meta["encoder"]["name"] == str(bert_folder)


def test_another_encoder_is_refused_before_anything_is_encoded(tmp_path: Path, corpus: list[Document]) -> None:
    build(tmp_path / "x.lm", corpus[:3], encoder=FakeEncoder())
    other = FakeEncoder(name="other", fingerprint="0" * 32)
    with pytest.raises(IndexMismatch, match="pass --encoder fake"):
        build(tmp_path / "x.lm", corpus, encoder=other)
    assert other.encoded == []


def test_an_unknown_factory_string_is_refused_before_anything_is_read(tmp_path: Path) -> None:
    def unread() -> Iterator[Document]:
        pytest.fail("it was read")
        yield

    with pytest.raises(IndexMismatch, match="FAISS cannot build factory 'Nonsense' over vectors 32 wide"):
        build(tmp_path / "x.lm", unread(), encoder=FakeEncoder(), factory="Nonsense")


def test_scan_makes_no_generation(tmp_path: Path, corpus: list[Document]) -> None:
    build(tmp_path / "x.lm", corpus, encoder=FakeEncoder(), factory="scan")
    with Index.open(tmp_path / "x.lm", encoder=FakeEncoder()) as index:
        assert index.snapshot.generation is None
        assert index.search(corpus[3], Request(with_itself=True)).hits[0].doc_id == corpus[3].doc_id


@pytest.mark.slow
def test_documents_stay_when_the_generation_is_refused(tmp_path: Path, corpus: list[Document]) -> None:
    with pytest.raises(RecallTooLow):
        build(tmp_path / "x.lm", corpus, encoder=FakeEncoder(), factory="IVF4,Flat", recall_floor=1.5)
    assert not verify(tmp_path / "x.lm")
    with Index.open(tmp_path / "x.lm", encoder=FakeEncoder()) as index:
        assert index.snapshot.generation is None
        assert index.search(corpus[7], Request(with_itself=True)).hits[0].doc_id == "doc007"


def test_a_busy_index_is_refused(tmp_path: Path, corpus: list[Document]) -> None:
    with Writer(tmp_path / "x.lm"), pytest.raises(IndexBusy) as raised:
        build(tmp_path / "x.lm", corpus, encoder=FakeEncoder())
    assert str(raised.value) == f"another process is writing {tmp_path / 'x.lm'}; wait for it to end"


def test_an_empty_corpus_makes_an_empty_index(tmp_path: Path) -> None:
    assert build(tmp_path / "x.lm", [], encoder=FakeEncoder()).n_seen == 0
    with Index.open(tmp_path / "x.lm", encoder=FakeEncoder()) as index:
        assert index.search(make_document("q", "any words")).hits == ()
        assert index.document_vectors()[0] == []


@pytest.fixture
def papers(tmp_path: Path) -> Path:
    (tmp_path / "papers").mkdir()
    for number in range(3):
        (tmp_path / "papers" / f"{number}.txt").write_text(f"the quick fox runs over the river {number}")
    return tmp_path / "papers"


@pytest.mark.parametrize(
    "wrong", [["--device", "cuda:99"], ["--factory", "Foo12"], ["--language", "klingon"], ["--encoder", "/no/such"]]
)
def test_a_refused_first_run_makes_no_folder(tmp_path: Path, papers: Path, bert_folder: Path, wrong: list[str]) -> None:
    refused = run("index", tmp_path / "x.lm", papers, "--encoder", bert_folder, *wrong)
    assert refused.exit_code == 1 and not (tmp_path / "x.lm").exists()


def test_ctrl_c_after_a_commit_leaves_what_was_committed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("indexer.building.builder.join_small_shards", interrupt)
    with pytest.raises(KeyboardInterrupt):
        build(tmp_path / "x.lm", make_corpus(3), encoder=FakeEncoder())
    monkeypatch.undo()
    assert build(tmp_path / "x.lm", make_corpus(3), encoder=FakeEncoder()).n_unchanged == 3


@pytest.mark.slow
def test_a_stub_of_a_killed_run_does_not_block_a_plan(tmp_path: Path, papers: Path, bert_folder: Path) -> None:
    with Writer(tmp_path / "x.lm"):
        pass
    dry = run("index", tmp_path / "x.lm", papers, "--encoder", bert_folder, "--dry-run", "--json")
    assert dry.exit_code == 0, dry.output
    assert json.loads(dry.stdout)["n_new"] == 3
    made = run("index", tmp_path / "x.lm", papers, "--encoder", bert_folder)
    assert made.exit_code == 0, made.output
    assert made.stdout.startswith("3 added")


def test_an_index_of_words_can_be_planned_for_vectors(tmp_path: Path, papers: Path, bert_folder: Path) -> None:
    assert run("index", tmp_path / "x.lm", papers, "--encode", "none").exit_code == 0
    dry = run("index", tmp_path / "x.lm", papers, "--encoder", bert_folder, "--dry-run", "--json")
    assert dry.exit_code == 0, dry.output
    assert json.loads(dry.stdout)["n_unchanged"] == 3


P = 3


def ranks(folder: Path, encoder: FakeEncoder | None = None) -> list[tuple[str, float]]:
    with Index.open(folder, encoder=encoder) as index:
        return [(hit.doc_id, hit.score) for hit in index.search("doc001", Request(k=100, exact=True))]


@pytest.mark.slow
def test_a_new_partitioned_index_equals_one_index_and_a_split_one(tmp_path: Path) -> None:
    one, new, split = (tmp_path / name for name in ("one.lm", "new.parts", "split.parts"))
    for folder, n_partitions in ((one, None), (new, P)):
        build(folder, make_corpus(12), encoder=FakeEncoder(), factory="Flat", partitions=n_partitions)
    partition(one, split, P)
    assert ranks(new, FakeEncoder()) == ranks(one, FakeEncoder()) != []
    made, cut = read_manifest(new), read_manifest(split)
    assert made.partitions == cut.partitions
    assert (made.encoder, made.language) == (cut.encoder, cut.language)
    assert verify(new) == []


def test_the_language_is_that_of_the_first_documents(tmp_path: Path) -> None:
    texts = ["le chat est sur la table et il ne veut pas en descendre", "the cat sits on the table"]
    documents = [make_document(f"doc{number}", text) for number, text in enumerate(texts * 2)]
    for folder, n_partitions in ((tmp_path / "one.lm", None), (tmp_path / "new.parts", P)):
        build(folder, documents, encode="none", partitions=n_partitions)
    with Index.open(tmp_path / "one.lm") as one:
        assert read_manifest(tmp_path / "new.parts").language == one.snapshot.language


def test_partitions_without_a_document_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DocumentError, match="there is no document; begin with one at least"):
        build(tmp_path / "x.parts", [], encode="none", partitions=P)


def test_another_number_of_partitions_is_refused_with_the_next_step(tmp_path: Path) -> None:
    build(tmp_path / "x.parts", make_corpus(3), encode="none", partitions=P)
    build(tmp_path / "one.lm", make_corpus(3), encode="none", partitions=1)
    with pytest.raises(IndexMismatch, match=r"3 partitions, not 4; .*longmatch upkeep partition .*x\.parts OUT -p 4"):
        build(tmp_path / "x.parts", make_corpus(3), encode="none", partitions=4)
    with pytest.raises(IndexMismatch, match=r"not partitioned, not 4; .*longmatch upkeep partition .*one\.lm OUT -p 4"):
        build(tmp_path / "one.lm", make_corpus(3), encode="none", partitions=4)
    with pytest.raises(QueryError, match="0 partitions; there can be 1 to 4,096"):
        build(tmp_path / "y.parts", make_corpus(3), encode="none", partitions=0)
    with pytest.raises(IndexMismatch, match="is not empty and holds no index"):
        build(tmp_path, make_corpus(3), encode="none", partitions=P)


@pytest.mark.parametrize("partitions", [None, P])
@pytest.mark.parametrize("document", [Unreadable("a.pdf", "no text", "a.pdf"), make_document("a", "...")])
def test_a_run_whose_documents_all_fail_leaves_nothing(
    tmp_path: Path, partitions: int | None, document: Document | Unreadable
) -> None:
    report = build(tmp_path / "x.lm", [document], encode="none", partitions=partitions)
    assert len(report.failures) == 1
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("name", "partitions"), [("commit", None), ("commit", P), ("bind_partition", P)])
def test_ctrl_c_before_the_first_commit_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, partitions: int | None
) -> None:
    def stop(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Writer, name, stop)
    with pytest.raises(KeyboardInterrupt):
        build(tmp_path / "x.lm", make_corpus(3), encode="none", partitions=partitions)
    assert list(tmp_path.iterdir()) == []


_KILLED = """
import os, signal, sys
from pathlib import Path
from engine.store.writer import Writer
from indexer.building.builder import build
from tests.commands import run
from tests.fakes import make_corpus

name, left = sys.argv[2], [int(sys.argv[3])]
method = getattr(Writer, name)

def killed(self, *arguments):
    if not left[0]:
        os.kill(os.getpid(), signal.SIGKILL)
    left[0] -= 1
    return method(self, *arguments)

setattr(Writer, name, killed)
build(Path(sys.argv[1]), make_corpus(12), encode="none", partitions=3)
"""


@pytest.mark.slow
@pytest.mark.parametrize(("method", "n_calls"), [("bind_partition", 1), ("commit", 0), ("commit", 2)])
def test_a_killed_first_run_continues(tmp_path: Path, method: str, n_calls: int) -> None:
    command = [sys.executable, "-c", _KILLED, str(tmp_path / "x.parts"), method, str(n_calls)]
    done = subprocess.run(command, timeout=120, check=False, env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)})
    assert done.returncode == -signal.SIGKILL
    report = build(tmp_path / "x.parts", make_corpus(12), encode="none", partitions=P)
    assert (report.n_added + report.n_unchanged, report.n_unchanged > 0) == (12, n_calls == 2)
    build(tmp_path / "one.lm", make_corpus(12), encode="none")
    assert ranks(tmp_path / "x.parts") == ranks(tmp_path / "one.lm")
    assert [path.name for path in tmp_path.glob("x.*")] == ["x.parts"]


@pytest.mark.parametrize("partitions", [[], ["--partitions", "2"]], ids=["one", "partitions"])
@pytest.mark.parametrize("killed_in", ["_claimed", "run"])
def test_a_killed_first_run_is_continued_as_it_was_called(
    tmp_path: Path,
    papers: Path,
    bert_folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    killed_in: str,
    partitions: list[str],
) -> None:
    def stop(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:  # as a kill, which removes nothing
        patched.setattr(f"indexer.building.builder.{killed_in}", stop)
        patched.setattr("indexer.building.builder.remove_stub", lambda _: None)
        call = ("--encoder", bert_folder, *"--encode all --factory IVF1,Flat --language german".split(), *partitions)
        first = run("index", tmp_path / "x.lm", papers, *call).output
        assert "interrupted;" in first and "going on" not in first
    again = run("index", tmp_path / "x.lm", papers)
    assert again.stdout.startswith("3 added"), again.output
    assert f"--encode all --encoder {bert_folder} --factory IVF1,Flat" in again.stderr
    with open_snapshot(tmp_path / "x.lm") as snapshot:
        assert snapshot.has_vectors.all()
        factories = [part.generation_row.factory for part in snapshot.parts]
        assert (set(factories), snapshot.language) == ({"IVF1,Flat"}, "german")
    assert "first run" not in run("index", tmp_path / "x.lm", papers).stderr
