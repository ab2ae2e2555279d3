"""Every command has the effect on a partitioned index that it has on one index, and prints what it prints."""

import json
import shutil
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from filelock import FileLock

from engine.errors import IndexBusy, IndexDamaged, IndexMismatch, QueryError
from engine.index import Index
from engine.readers import Unreadable
from engine.result import Status
from engine.search.request import Mode, Request
from engine.store.catalog import index_folders, partition_of, read_manifest
from engine.store.writer import Writer
from engine.text.document import Document
from engine.views import Result
from indexer.building.builder import EncodeNow, build
from indexer.building.rewriting import partition
from indexer.generation.generations import compact
from indexer.generation.reference import rebase
from indexer.upkeep.backup import backup
from indexer.upkeep.repair import remove, repair
from indexer.upkeep.verify import Damage, verify
from tests.commands import run, succeed
from tests.fakes import FakeEncoder, few_first_vectors, make_corpus, make_document

P = 3


@pytest.fixture(scope="session")
def words_parts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Twelve documents in three partitions, words alone, beside the index that they come from; only to be copied."""
    folder = tmp_path_factory.mktemp("partitions")
    build(folder / "one.lm", make_corpus(12), encode="none")
    partition(folder / "one.lm", folder / "x.parts", P)
    return folder


@pytest.fixture
def home(words_parts: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(words_parts, tmp_path / "home"))


@pytest.fixture
def both(home: Path) -> tuple[Path, Path]:
    return home / "one.lm", home / "x.parts"


def ranks(folder: Path, encoder: FakeEncoder | None = None, query: str = "doc001") -> list[tuple[str, float]]:
    with Index.open(folder, encoder=encoder) as index:
        return [(hit.doc_id, hit.score) for hit in index.search(query, Request(k=100, exact=True))]


def test_documents_lie_where_their_doc_id_hashes_to_and_score_by_the_shared_reference(both: tuple[Path, Path]) -> None:
    _, parts = both
    for number, folder in enumerate(index_folders(parts)):
        with Index.open(folder) as index:
            assert {partition_of(name, P) for name in index.snapshot.doc_ids()} <= {number}
    one, parts = both
    of_one = dict(ranks(one))
    folder = index_folders(parts)[partition_of("doc001", P)]
    of_part = ranks(folder)
    assert of_part
    assert {name: of_one[name] for name, _ in of_part} == dict(of_part)


@pytest.mark.parametrize("n_partitions", [1, P])
def test_another_encoder_makes_the_vectors_of_a_copy_without_vectors(n_partitions: int, tmp_path: Path) -> None:
    corpus = make_corpus(12)
    build(tmp_path / "x.lm", corpus, encoder=FakeEncoder(), factory="Flat")
    before = ranks(tmp_path / "x.lm", FakeEncoder())
    report = partition(tmp_path / "x.lm", tmp_path / "copy", n_partitions, words_alone=True)
    assert (sum(report.n_documents), sum(report.n_chunks)) == (12, 0)
    assert verify(tmp_path / "copy") == []
    other = FakeEncoder(name="other", width=24, fingerprint="0" * 32)
    assert build(tmp_path / "copy", [], encoder=other).n_encoded == 12
    build(tmp_path / "new.lm", corpus, encoder=other)
    assert ranks(tmp_path / "copy", other) == ranks(tmp_path / "new.lm", other)
    assert ranks(tmp_path / "x.lm", FakeEncoder()) == before


def changed(folder: Path) -> object:
    """Add, replace, prune and fail."""
    documents: list[Document | Unreadable] = [
        *make_corpus(8)[1:],
        make_document("doc000", "topic0word1 topic0word2 is new here"),
        *make_corpus(20, seed=1)[14:],
        Unreadable("broken.pdf", "no text", "broken.pdf"),
        make_document("empty", "..."),
    ]
    report = build(folder, documents, encode="none", prune=True)
    assert (report.n_added, report.n_replaced, report.n_removed) == (6, 1, 4)
    report.seconds = report.generation_seconds = report.disk_bytes = 0
    report.failures.sort(key=lambda failure: failure.source)
    with Index.open(folder) as index:
        return asdict(report), index.snapshot.failures(), index.snapshot.content_hashes()


def drawn_again(folder: Path, n_documents: int) -> None:
    """Draw another reference, which a corpus of fifty documents calls for."""
    build(folder, make_corpus(n_documents), encode="none")
    if n_documents < 50:
        rebase(folder)
    with Index.open(folder) as index:
        assert index.snapshot.reference.version == 2


def removed(folder: Path) -> object:
    assert remove(folder, ["doc002", "doc003", "doc002", "doc005"]) == 3
    uncompacted = ranks(folder)
    report = compact(folder)
    assert report.bytes_after < report.bytes_before
    with pytest.raises(QueryError, match=rf"no document 'doc002' in {folder}; nothing was removed"):
        remove(folder, ["doc004", "doc002"])
    return uncompacted


def encoded(folder: Path, encode: EncodeNow, n_encoded: int) -> None:
    build(folder, make_corpus(12), encode=encode, encoder=FakeEncoder(), factory="Flat")
    with Index.open(folder) as index:
        assert np.count_nonzero(index.snapshot.has_vectors) == n_encoded


def encoded_by_a_query(folder: Path) -> object:
    """The second query finds the vectors of its candidates."""
    build(folder, make_corpus(12), encode="later", encoder=FakeEncoder())
    answers: list[Result] = []
    for _ in range(2):
        with Index.open(folder, encoder=FakeEncoder()) as index:
            answers.append(index.search("doc001", Request(k=20, candidates=5)))
    first, second = ([(hit.doc_id, hit.score, hit.has_vectors) for hit in answer] for answer in answers)
    encodings = [replace(answer.encoding, seconds_now=0, seconds_missing=None) for answer in answers if answer.encoding]
    assert [encoding.n_encoded_now > 0 for encoding in encodings] == [True, False]
    assert (first, answers[0].status) == (second, answers[1].status)
    return first, answers[0].status, encodings


def novelty(folder: Path) -> object:
    with Index.open(folder) as index:
        sections = index.search("doc001", Request(mode=Mode.NOVELTY)).sections
        assert sections
        return [(one.section, one.hit and (one.hit.doc_id, one.hit.score)) for one in sections]


USES: dict[str, Callable[[Path], object]] = {
    "changed": changed,
    "rebased": lambda folder: drawn_again(folder, 30),
    "outgrown": lambda folder: drawn_again(folder, 50),
    "removed": removed,
    "novelty": novelty,
    "encoded": lambda folder: encoded(folder, "all", 12),
    "encoded later": lambda folder: encoded(folder, "later", 4),
    "encoded by a query": encoded_by_a_query,
}


@pytest.mark.slow
@pytest.mark.parametrize("use", USES)
def test_partitions_are_used_as_one_index(both: tuple[Path, Path], use: str, monkeypatch: pytest.MonkeyPatch) -> None:
    few_first_vectors(monkeypatch)
    monkeypatch.setattr("indexer.generation.reference.FIRST_DOCUMENTS", 4)
    of_one, of_parts = (USES[use](folder) for folder in both)
    assert of_parts == of_one
    encoder = FakeEncoder() if use.startswith("encoded") else None
    assert ranks(both[1], encoder) == ranks(both[0], encoder)
    manifest = read_manifest(both[1])
    assert (manifest.encoder or {}).get("name") == (encoder and encoder.name)
    references = [file.name for file in (both[1] / "reference").iterdir()]
    assert references == [f"{manifest.last_reference:06}.safetensors"]


def test_a_doc_id_that_comes_twice_fails_once_and_is_counted(both: tuple[Path, Path]) -> None:
    twice = make_document("new", "topic1word1 and more"), make_document("new", "topic1word2 and other")
    report = build(both[1], twice, encode="none")
    assert ([failure.doc_id for failure in report.failures], report.n_added) == (["new"], 1)
    assert sum(entry.n_documents for entry in read_manifest(both[1]).partitions) == 13


@pytest.mark.slow
@pytest.mark.parametrize("n_commits", [0, 1, 2])
def test_a_stopped_run_continues(both: tuple[Path, Path], n_commits: int, monkeypatch: pytest.MonkeyPatch) -> None:
    more, commit, left = make_corpus(40), Writer.commit, [n_commits]

    def stops(self: Writer, *arguments: Any) -> list[int]:  # noqa: ANN401
        if not left[0]:
            raise KeyboardInterrupt
        left[0] -= 1
        return commit(self, *arguments)

    with monkeypatch.context() as patched:
        patched.setattr(Writer, "commit", stops)
        with pytest.raises(KeyboardInterrupt):
            build(both[1], more, encode="none")
    assert verify(both[1]) == []
    report = build(both[1], more, encode="none")
    assert report.n_added + report.n_unchanged == 40
    build(both[0], more, encode="none")
    assert ranks(both[1]) == ranks(both[0])


@pytest.mark.slow
def test_an_encoder_that_only_some_partitions_have_is_claimed_by_all(both: tuple[Path, Path]) -> None:
    encoder = FakeEncoder()
    with Writer(both[1] / "0000.lm") as writer:  # a run that was killed between the partitions
        writer.claim({"name": encoder.name, "fingerprint": encoder.fingerprint, "width": encoder.width})
    assert ranks(both[1]) == ranks(both[0])
    for folder in both:
        build(folder, make_corpus(12), encoder=encoder, factory="Flat")
    assert ranks(both[1], encoder) == ranks(both[0], encoder)


def test_partitions_are_written_together_by_one_writer_alone(both: tuple[Path, Path]) -> None:
    part = both[1] / "0000.lm"
    with pytest.raises(IndexMismatch, match=r"longmatch upkeep rebase .*x\.parts"):
        rebase(part)
    with pytest.raises(IndexMismatch, match=r"longmatch index .*x\.parts$"):
        build(part, make_corpus(1), encode="none")
    with Writer(both[1] / "0001.lm"), pytest.raises(IndexBusy, match=r"0001\.lm"):
        build(both[1], make_corpus(12), encode="none")


@pytest.mark.slow
def test_partition_damage_is_found_and_mended(both: tuple[Path, Path], flip_byte: Callable[[Path, int], None]) -> None:
    (shard,) = (both[1] / "0001.lm" / "shards").iterdir()
    flip_byte(shard, shard.stat().st_size // 2)
    (found,) = verify(both[1])
    assert (found.damage, found.where) == (Damage.SHARD, f"0001.lm/shards/{shard.name}")
    assert repair(both[1]).lost == []
    assert verify(both[1]) == []
    assert ranks(both[1]) == ranks(both[0])


def test_a_damaged_reference_is_drawn_for_all(both: tuple[Path, Path], flip_byte: Callable[[Path, int], None]) -> None:
    (file,) = (both[1] / "reference").iterdir()
    flip_byte(file, file.stat().st_size // 2)
    (found,) = verify(both[1])
    assert (found.damage, found.where) == (Damage.REFERENCE, "reference/000001.safetensors")
    with pytest.raises(IndexDamaged, match=r"reference/000001\.safetensors"):
        ranks(both[1])
    assert "another reference was drawn" in repair(both[1]).mended[0]
    assert verify(both[1]) == []
    assert ranks(both[1]) == ranks(both[0])
    assert read_manifest(both[1]).last_reference == 2


def test_the_error_names_a_missing_partition(both: tuple[Path, Path]) -> None:
    shutil.rmtree(both[1] / "0002.lm")
    with pytest.raises(IndexMismatch, match=r"0002\.lm"):
        Index.open(both[1])
    with pytest.raises(IndexMismatch, match=r"0002\.lm is missing"):
        build(both[1], make_corpus(12), encode="none")
    assert [(one.damage, one.where) for one in verify(both[1])] == [(Damage.MANIFEST, "0002.lm")]
    with pytest.raises(IndexDamaged, match=r"0002\.lm"):
        repair(both[1])


def test_swapped_partitions_are_refused(both: tuple[Path, Path]) -> None:
    first, second, aside = (both[1] / name for name in ("0000.lm", "0001.lm", "aside"))
    first.rename(aside)
    second.rename(first)
    aside.rename(second)
    with pytest.raises(IndexMismatch, match=r"0000\.lm is partition 1 of 3, not partition 0 of 3"):
        Index.open(both[1])
    assert {(one.damage, one.where) for one in verify(both[1])} == {
        (Damage.MANIFEST, "0000.lm/catalog.sqlite"),
        (Damage.MANIFEST, "0001.lm/catalog.sqlite"),
    }


def test_joining_gives_back_one_index(both: tuple[Path, Path], tmp_path: Path) -> None:
    partition(both[1], tmp_path / "joined.lm", 1)
    with Index.open(tmp_path / "joined.lm") as joined, Index.open(both[0]) as one:
        assert joined.snapshot.reference_row == one.snapshot.reference_row
        assert joined.snapshot.content_hashes() == one.snapshot.content_hashes()
    assert verify(tmp_path / "joined.lm") == []
    assert ranks(tmp_path / "joined.lm") == ranks(both[0])


@pytest.mark.slow
def test_splitting_again_gives_other_partitions(both: tuple[Path, Path], tmp_path: Path) -> None:
    report = partition(both[1], tmp_path / "y.parts", 16)  # more than there are documents
    assert (len(report.n_documents), sum(report.n_documents)) == (16, 12)
    assert verify(tmp_path / "y.parts") == []
    assert ranks(tmp_path / "y.parts") == ranks(both[0])
    build(tmp_path / "y.parts", make_corpus(13), encode="none")
    build(both[0], make_corpus(13), encode="none")
    assert ranks(tmp_path / "y.parts") == ranks(both[0])


@pytest.mark.slow
def test_a_split_keeps_the_failures(both: tuple[Path, Path], tmp_path: Path) -> None:
    build(both[0], [Unreadable("a.pdf", "no text", "a.pdf"), Unreadable("b.pdf", "broken")], encode="none")
    partition(both[0], tmp_path / "y.parts", 2)
    with Index.open(tmp_path / "y.parts") as index:
        assert index.snapshot.failures() == [("a.pdf", "no text"), ("b.pdf", "broken")]


def test_splits_and_backups_with_a_wrong_place_are_refused(both: tuple[Path, Path], tmp_path: Path) -> None:
    with pytest.raises(IndexMismatch, match=r"one\.lm is there already; name a new folder"):
        partition(both[1], both[0], 2)
    with pytest.raises(QueryError, match="0 partitions; there can be 1 to 4,096"):
        partition(both[0], tmp_path / "y.parts", 0)
    (tmp_path / "y.parts.unfinished").mkdir()
    with pytest.raises(IndexMismatch, match="unfinished is in the way; move it away"):
        partition(both[0], tmp_path / "y.parts", 2)
    with pytest.raises(IndexMismatch, match="holds no index"):
        partition(tmp_path / "absent", tmp_path / "z.parts", 2)
    with pytest.raises(
        IndexMismatch, match=r"join it first, and back that up: longmatch upkeep partition .*x\.parts ONE\.lm -p 1"
    ):
        backup(both[1], tmp_path / "x.backup")


def test_a_split_starts_over_after_a_killed_one(both: tuple[Path, Path], tmp_path: Path) -> None:
    (tmp_path / "y.parts.unfinished" / "0000.lm").mkdir(parents=True)
    (tmp_path / "y.parts.unfinished.lock").touch()
    with FileLock(tmp_path / "y.parts.unfinished.lock"), pytest.raises(IndexBusy, match="wait for it to end"):
        partition(both[0], tmp_path / "y.parts", 2)
    partition(both[0], tmp_path / "y.parts", 2)
    assert verify(tmp_path / "y.parts") == []
    assert [path.name for path in tmp_path.glob("y.*")] == ["y.parts"]


def test_failed_splits_leave_nothing(both: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise RuntimeError("killed")

    monkeypatch.setattr(Writer, "commit", fail)
    with pytest.raises(RuntimeError, match="killed"):
        partition(both[0], tmp_path / "y.parts", 2)
    assert list(tmp_path.glob("y.parts*")) == []
    assert ranks(both[0])


@pytest.mark.slow
def test_pages_of_an_approximate_index_join_to_the_full_list(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engine.search.partition.TIERS", ((4, 6), (8, 12)))
    build(tmp_path / "one.lm", make_corpus(60), encoder=FakeEncoder(), factory="IVF4,SQ8", recall_floor=0.0)
    monkeypatch.setattr("indexer.building.rewriting.AUTO", "IVF4,SQ8")
    partition(tmp_path / "one.lm", tmp_path / "x.parts", P)
    with Index.open(tmp_path / "x.parts", encoder=FakeEncoder()) as index:
        assert all(part.generation is not None and not part.generation.is_exact for part in index.snapshot.parts)
        whole = index.search("doc007", Request(k=40))
        pages = [hit for offset in range(0, 40, 5) for hit in index.search("doc007", Request(k=5, offset=offset))]
        assert whole.status is Status.ESTIMATED
        assert [(hit.doc_id, hit.score) for hit in pages] == [(hit.doc_id, hit.score) for hit in whole]
        exact = {hit.doc_id: hit.score for hit in index.search("doc007", Request(k=60, exact=True))}
        assert all(exact[hit.doc_id] == hit.score for hit in whole)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory, papers: Path) -> Path:
    """`one.lm`, and the same in three partitions; only to be copied."""
    folder = tmp_path_factory.mktemp("cli-partitions")
    succeed("index", folder / "one.lm", papers, "--encode", "none")
    succeed("upkeep", "partition", folder / "one.lm", folder / "x.parts", "-p", "3")
    return folder


@pytest.fixture
def parts(made: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(made / "x.parts", tmp_path / "x.parts"))


def plain(printed: str) -> object:
    """JSON without what differs from run to run."""
    values = [json.loads(line) for line in printed.splitlines()]
    for value in values:
        if isinstance(value, dict):
            value.pop("seconds", None), value.pop("provenance", None)
    return values


def test_partition_prints_the_counts_of_each_partition(made: Path, tmp_path: Path) -> None:
    result = succeed("upkeep", "partition", made / "one.lm", tmp_path / "y.parts", "-p", "2")
    counts = [int(line.split()[2]) for line in result.stdout.splitlines()]
    assert sum(counts) == 16
    assert result.stdout.startswith(f"partition 0: {counts[0]} documents, 0 chunks\n")
    again = run("upkeep", "partition", made / "one.lm", tmp_path / "y.parts", "-p", "2")
    assert again.exit_code == 1
    assert "is there already; name a new folder" in again.stderr


@pytest.mark.parametrize(
    "command",
    [
        "query {x} --id fox/0.md --offset 2 --where number>=2 --format jsonl",
        "query {x} --text old,river,through,dark,light --without river/1.md -k 20 --format jsonl",
        "show {x} --fields --json",
        "show {x} fox/0.md --json",
        "show {x} --failures --json",
    ],
)
def test_commands_print_what_they_print_for_one_index(made: Path, command: str) -> None:
    printed = [run(*command.format(x=made / name).split()) for name in ("one.lm", "x.parts")]
    assert [result.exit_code for result in printed] == [0, 0]
    assert plain(printed[1].stdout) == plain(printed[0].stdout) != []


def test_show_has_a_line_for_each_partition(made: Path) -> None:
    assert "partitions   3, each with its own generation" in run("show", made / "x.parts").stdout
    facts = json.loads(run("show", made / "x.parts", "--json").stdout)
    assert [part["folder"] for part in facts["partitions"]] == ["0000.lm", "0001.lm", "0002.lm"]
    n_documents = sum(part["documents"] for part in facts["partitions"])
    assert n_documents == facts["n_documents"] == len(facts["documents"]) == 16


def test_queries_and_dry_runs_know_the_files_of_partitions(made: Path, papers: Path, bert_folder: Path) -> None:
    result = succeed("query", made / "x.parts", papers / "fox" / "0.md", "-k", "1")
    assert "left out: fox/0.md" in result.stderr
    assert "15 searched, certified" in result.stdout
    result = succeed("index", made / "x.parts", papers, "--dry-run", "--encoder", bert_folder, "--json")
    assert json.loads(result.stdout)["n_unchanged"] == 16


@pytest.mark.slow
def test_upkeep_commands_work_on_partitions(parts: Path) -> None:
    assert run("remove", parts, "fox/0.md", "dog/1.md").stdout == "2 removed\n"
    absent = run("remove", parts, "fox/0.md")
    assert absent.exit_code == 1
    assert "no document 'fox/0.md'" in absent.stderr
    assert "shards of" in run("upkeep", "compact", parts).stdout
    assert run("upkeep", "rebase", parts).stdout == "reference 2: 0 of 14 documents, 0 chunks\n"
    assert run("upkeep", "verify", parts).stdout == "no damage found\n"
    assert run("upkeep", "repair", parts).stdout == "no damage found\n"
    listed = [row["doc_id"] for row in json.loads(run("show", parts, "--documents", "--json").stdout)]
    assert len(listed) == 14 and "fox/0.md" not in listed


@pytest.mark.slow
def test_an_index_keeps_to_a_dtype_and_a_copy_without_vectors_leaves_it(bert_folder: Path, tmp_path: Path) -> None:
    folder, copy, text = tmp_path / "x.lm", tmp_path / "copy.lm", tmp_path / "fox.txt"
    text.write_text("the fox and the dog. " * 9)
    model = shutil.copytree(bert_folder, tmp_path / "model")

    def encoder_after(index: Path, *arguments: str | Path) -> object:
        succeed("index", index, *arguments)
        return json.loads(run("show", index, "--json").stdout)["encoder"]["name"]

    assert encoder_after(folder, text, "--encode", "all", "--encoder", model, "--dtype", "int8") == f"{model}:int8"
    assert encoder_after(folder, text) == f"{model}:int8"
    refused = run("index", folder, "--encoder", model, "--dtype", "float32")
    assert refused.exit_code == 1 and f"upkeep partition {folder} NEW -p 1 --words" in refused.stderr
    succeed("upkeep", "partition", folder, copy, "-p", "1", "--words")
    assert encoder_after(copy, "--encoder", model, "--dtype", "float32") == str(model)
