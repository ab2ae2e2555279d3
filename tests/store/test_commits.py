"""Files on disk are whole: durable writes, checksums, and counts of commits."""

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import engine.store.reference as reference_module
from engine.errors import IndexDamaged, StorageError
from engine.index import Index
from engine.search.request import Request
from engine.store.checks import COMMITS_FILE, CommitLog, reported_commits
from engine.store.durable import Checksum, check_file, checksum, write_durably
from engine.store.reference import is_outgrown, sample_order, sample_size
from engine.store.snapshot import IndexSnapshot
from engine.store.writer import Writer
from engine.text.document import Document
from indexer.building.builder import build
from indexer.generation.reference import rebase
from indexer.upkeep.backup import backup
from indexer.upkeep.repair import repair
from indexer.upkeep.verify import Damage, Finding, verify
from tests.contents import read_contents
from tests.fakes import FakeEncoder, make_corpus, make_document
from tests.store.written import ENCODER, commit


def test_a_written_file_matches_its_checksum_and_a_missing_one_is_damage(tmp_path: Path) -> None:
    written = write_durably(tmp_path / "a", lambda path: path.write_bytes(b"abc"))
    assert (tmp_path / "a").read_bytes() == b"abc"
    assert written == checksum(tmp_path / "a") == Checksum(3, "06b05ab6733a618578af5f94892f3950")
    assert [path.name for path in tmp_path.iterdir()] == ["a"]
    with pytest.raises(IndexDamaged, match=r"gone cannot be read \(No such file or directory\); repair it"):
        check_file(tmp_path / "gone", Checksum(3, "0" * 32))


def _half(path: Path) -> None:
    path.write_bytes(b"half")
    raise OSError("disk full")


@pytest.mark.parametrize("before", [[], [b"old"]])
def test_a_writer_that_raises_leaves_what_was_under_the_final_name(tmp_path: Path, before: list[bytes]) -> None:
    for content in before:
        (tmp_path / "a").write_bytes(content)
    with pytest.raises(StorageError, match="a: disk full"):
        write_durably(tmp_path / "a", _half)
    assert [path.read_bytes() for path in tmp_path.glob("a")] == before


def test_each_flipped_byte_is_found(tmp_path: Path, flip_byte: Callable[[Path, int], None]) -> None:
    path = tmp_path / "a"
    path.write_bytes(bytes(range(100)))
    expected = checksum(path)
    for at in range(100):
        flip_byte(path, at)
        with pytest.raises(
            IndexDamaged, match=f"has checksum .*, not {expected.digest[:12]}; repair it: longmatch upkeep repair"
        ):
            check_file(path, expected)
        flip_byte(path, at)
    check_file(path, expected)


@pytest.mark.parametrize("content", [b"", b"ab", b"abcd"])
def test_another_size_is_found(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "a").write_bytes(content)
    with pytest.raises(IndexDamaged) as raised:
        check_file(tmp_path / "a", Checksum(3, "0" * 32))
    assert (
        str(raised.value) == f"{tmp_path / 'a'} has {len(content)} bytes, not 3; "
        "repair it: longmatch upkeep repair INDEX"
    )


N_FLIPS = 60
BATCHES = [make_corpus(16)[first : first + 4] for first in range(0, 16, 4)]


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An index before its last commits, after them, and as a kill leaves it: they are in the log alone."""
    place = tmp_path_factory.mktemp("commits")
    with Writer(place / "x.lm") as writer:
        writer.claim(ENCODER)
        commit(writer, *BATCHES[0])
    shutil.copytree(place / "x.lm", place / "before.lm")
    with Writer(place / "x.lm") as writer, IndexSnapshot(place / "x.lm"):  # a reader keeps commits in the log
        for batch in BATCHES[1:]:
            commit(writer, *batch)
        shutil.copytree(place / "x.lm", place / "killed.lm", ignore=shutil.ignore_patterns("*-shm"))
    return place


@pytest.fixture
def folder(folders: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(folders / "x.lm", tmp_path / "x.lm"))


def names(folder: Path) -> list[str]:
    return sorted(read_contents(folder, []).documents)


def put_back(folders: Path, folder: Path, *names: str) -> None:
    for name in names:
        shutil.copy(folders / "before.lm" / name, folder / name)


def refused(folder: Path) -> None:
    """Readers, backups and writers refuse an index, and no file of it is deleted."""
    before = sorted(path.name for path in folder.rglob("*.safetensors"))
    for act in (IndexSnapshot, Writer, lambda at: backup(at, at.parent / "x.backup")):
        with pytest.raises(IndexDamaged, match=r"lost commits .*longmatch upkeep repair INDEX"):
            act(folder)
    assert sorted(path.name for path in folder.rglob("*.safetensors")) == before


def test_damage_in_the_log_is_refused_or_changes_nothing(folders: Path, tmp_path: Path) -> None:
    expected, n_refused, rng = names(folders / "killed.lm"), 0, np.random.default_rng(0)
    assert len(expected) == 16
    log = (folders / "killed.lm" / "catalog.sqlite-wal").read_bytes()
    for _ in range(N_FLIPS):
        copy = shutil.copytree(folders / "killed.lm", tmp_path / "x.lm")
        flipped = bytearray(log)
        flipped[int(rng.integers(len(log)))] ^= 1 << int(rng.integers(8))
        (copy / "catalog.sqlite-wal").write_bytes(flipped)
        try:
            assert names(copy) == expected
        except IndexDamaged:
            n_refused += 1
            assert Damage.COMMITS in {finding.damage for finding in verify(copy)}
            with pytest.raises(IndexDamaged):
                Writer(copy)
        assert len(list(copy.glob("shards/*"))) == 4
        shutil.rmtree(copy)
    assert n_refused > N_FLIPS // 4


@pytest.mark.parametrize("kind", ["no log", "older catalog"])
def test_lost_commits_are_refused_and_repaired_on_demand(
    folders: Path, folder: Path, tmp_path: Path, kind: str
) -> None:
    if kind == "older catalog":
        put_back(folders, folder, "catalog.sqlite")
    else:
        folder = Path(shutil.copytree(folders / "killed.lm", tmp_path / "y.lm", ignore=shutil.ignore_patterns("*-wal")))
    refused(folder)
    lost = "it holds 4 commits of 7: an older catalog was put back, or its log was damaged or lost"
    unknown = [f"shards/00000{number}.safetensors" for number in (2, 3, 4)]
    what = "the catalog does not name it; it holds vectors of lost documents"
    findings = [Finding(Damage.COMMITS, file, what) for file in unknown]
    assert verify(folder) == [Finding(Damage.COMMITS, "catalog.sqlite", lost), *findings]
    report = repair(folder)
    assert report.mended[0] == f"catalog.sqlite: {lost}; index the corpus again to add what was lost"
    assert sorted(path.name for path in folder.glob("lost/*")) == [Path(file).name for file in unknown]
    assert (verify(folder), len(names(folder))) == ([], 4)
    with Writer(folder) as writer:
        commit(writer, *BATCHES[1])
    assert (verify(folder), len(names(folder))) == ([], 8)


def test_an_older_catalog_with_its_number_is_seen_by_the_shards(folders: Path, folder: Path) -> None:
    put_back(folders, folder, "catalog.sqlite", COMMITS_FILE)
    with pytest.raises(IndexDamaged, match="is older than the shards beside it"):
        Writer(folder)
    assert verify(folder)[0] == Finding(Damage.COMMITS, "catalog.sqlite", "it is older than the shards beside it")
    assert len(repair(folder).mended) == 4


def test_a_kill_before_the_commit_was_reported_is_no_loss(folder: Path) -> None:
    log = CommitLog(folder)
    log.reset(reported_commits(folder) - 1)
    log.close()
    assert (verify(folder), len(names(folder))) == ([], 16)
    with Writer(folder) as writer:
        writer.record_failures([("bad.pdf", "no text", "")])
    assert reported_commits(folder) == 8


@pytest.mark.parametrize("damage", ["gone", "flipped"])
def test_a_damaged_number_of_commits_is_found_and_written_again(folder: Path, damage: str) -> None:
    file = folder / COMMITS_FILE
    file.unlink() if damage == "gone" else file.write_bytes(bytes(byte ^ 1 for byte in file.read_bytes()))
    assert len(names(folder)) == 16
    what = "it does not hold the number of commits; the next commit writes it"
    assert verify(folder) == [Finding(Damage.COMMITS, COMMITS_FILE, what)]
    assert repair(folder).lost == []
    assert (verify(folder), reported_commits(folder) > 6) == ([], True)


@pytest.fixture
def referred(tmp_path: Path, corpus: list[Document]) -> Path:
    build(tmp_path / "x.lm", corpus, encoder=FakeEncoder())
    return tmp_path / "x.lm"


def scores(referred: Path) -> dict[str, float]:
    with Index.open(referred, encoder=FakeEncoder()) as index:
        return {hit.doc_id: hit.score for hit in index.search("doc003", Request(k=100)).hits}


def test_a_sample_is_drawn_by_names_alone() -> None:
    names = [f"doc{number}" for number in range(100)]
    order = [names[at] for at in sample_order(names)]
    again = [names[::-1][at] for at in sample_order(names[::-1])]
    assert order == again != names


@pytest.mark.parametrize(
    ("n", "chunks", "size"), [(10, 5, 10), (1_000, 5, 400), (1_000, 200, 200), (1_000, 9_000, 100)]
)
def test_a_sample_is_bounded_in_documents_and_chunks(n: int, chunks: int, size: int) -> None:
    assert sample_size(np.full(n, chunks)) == size


@pytest.mark.parametrize(("drawn", "now", "is_so"), [(75, 299, False), (75, 300, True), (0, 1, False), (0, 4, True)])
def test_a_reference_is_outgrown_at_four_times_the_documents(drawn: int, now: int, is_so: bool) -> None:
    assert is_outgrown(drawn, now) is is_so


def test_a_pinned_reference_is_read_as_it_was_drawn(referred: Path) -> None:
    with IndexSnapshot(referred) as snapshot:
        pinned, drawn = snapshot.reference, snapshot.draw_reference(1)
        for name in ("version", "n_corpus", "n_documents"):
            assert getattr(pinned, name) == getattr(drawn, name)
        for name in ("hashes", "vectors", "starts"):
            assert np.array_equal(getattr(pinned, name), getattr(drawn, name)), name
        for kind in ("words", "pairs"):
            mine, theirs = getattr(pinned.statistics, kind), getattr(drawn.statistics, kind)
            assert np.array_equal(mine.terms, theirs.terms) and np.array_equal(mine.counts, theirs.counts)
            assert mine.total == theirs.total


def test_until_one_is_pinned_a_reference_is_drawn_for_each_search(tmp_path: Path, corpus: list[Document]) -> None:
    with Writer(tmp_path / "x.lm") as writer:
        writer.claim(ENCODER)
        commit(writer, *corpus)
    before = scores(tmp_path / "x.lm")
    with IndexSnapshot(tmp_path / "x.lm") as snapshot:
        assert snapshot.reference.version == 0
    assert rebase(tmp_path / "x.lm").version == 1
    assert scores(tmp_path / "x.lm") == before


def test_removed_and_changed_documents_stay_in_the_reference(referred: Path, corpus: list[Document]) -> None:
    before = scores(referred)
    with Writer(referred) as writer:
        writer.remove([there.id for there in writer.indexed(["doc010", "doc011"]).values()])
        commit(writer, make_document("doc012", "quite other words than there were before"))
    after = scores(referred)
    kept = before.keys() & after.keys() - {"doc012"}
    assert len(kept) > 10 and all(after[name] == before[name] for name in kept)


def test_a_run_over_an_outgrown_reference_logs_that_scores_change(referred: Path) -> None:
    lines: list[str] = []
    grown = make_corpus(240, seed=0)
    build(referred, grown, encoder=FakeEncoder(), log=lines.append)
    assert lines[0] == (
        "240 documents are 4 times the 60 that the reference was drawn from: drawing another one, so scores differ "
        "from those before"
    )
    assert lines[1].startswith("reference 2: 240 of 240 documents, ")
    with IndexSnapshot(referred) as snapshot:
        assert snapshot.reference.version == 2


def test_an_open_index_keeps_its_reference_while_another_is_pinned(referred: Path) -> None:
    before = scores(referred)
    with Index.open(referred, encoder=FakeEncoder()) as index:
        rebase(referred)
        assert {hit.doc_id: hit.score for hit in index.search("doc003", Request(k=100)).hits} == before
        assert index.snapshot.reference.version == 1
    assert [file.name for file in (referred / "reference").iterdir()] == ["000002.safetensors"]


@pytest.mark.slow
@pytest.mark.parametrize("at", [0, 9, 5_000, -1])
def test_a_damaged_reference_is_refused_and_another_one_drawn(
    referred: Path, flip_byte: Callable[[Path, int], None], at: int
) -> None:
    before = scores(referred)
    flip_byte(referred / "reference" / "000001.safetensors", at)
    with pytest.raises(IndexDamaged, match=r"000001\.safetensors has checksum"):
        scores(referred)
    assert [finding.damage for finding in verify(referred)] == [Damage.REFERENCE]
    assert repair(referred).mended == [
        "reference/000001.safetensors: another reference was drawn, so scores differ from those before"
    ]
    assert verify(referred) == []
    assert scores(referred) == before  # of the same documents
    with IndexSnapshot(referred) as snapshot:
        assert snapshot.reference.version == 2


def test_a_query_is_left_out_of_its_own_reference(referred: Path, corpus: list[Document]) -> None:
    """A document and a file of the same content have the same thresholds."""
    with Index.open(referred, encoder=FakeEncoder()) as index:
        searcher = index.searcher()
        by_id = searcher.prepare(index.stored_query("doc003")).limits
        query = index.stored_query("doc003")
        by_file = searcher.prepare(replace(query, key=None, words=None)).limits
        stranger = searcher.prepare(replace(query, key=0)).limits
    assert by_id.chunks.tolist() == by_file.chunks.tolist()
    assert (stranger.chunks >= by_id.chunks).all() and (stranger.chunks > by_id.chunks).any()


def test_an_index_smaller_than_the_fewest_is_its_own_reference(
    tmp_path: Path, corpus: list[Document], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reference_module, "FEWEST_DOCUMENTS", 2)
    build(tmp_path / "x.lm", corpus[:1], encoder=FakeEncoder())
    with IndexSnapshot(tmp_path / "x.lm") as snapshot:
        assert snapshot.reference.n_documents == 1
