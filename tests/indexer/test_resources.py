"""The size of a folder, file systems of a network, and the speed of an encoder."""

import gzip
import json
import random
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from engine.encoders.encoder import EncodedDocument, SegmentedDocument
from engine.errors import DocumentError, IndexMismatch
from engine.readers import Unreadable
from engine.store.checks import content_hash
from engine.store.writer import Writer
from engine.text.document import Document
from indexer.building.builder import build
from indexer.building.corpus import read_corpus
from indexer.building.pipeline import Pipeline, run
from indexer.generation.resources import folder_bytes, network_note
from indexer.plan import Drawn, Existing, Plan, Sample, Unit, draw, make_plan, read_sample, tokens_per_second, units_of
from indexer.reading.reader import DocumentReader, ReadRequest
from tests.fakes import FakeEncoder, make_corpus, make_document


@pytest.mark.parametrize(("enough_seconds", "largest"), [(1000.0, 8 * 4096), (0.0, 2 * 4096)])
def test_speed_is_that_of_a_large_group_unless_encoding_is_slow(
    enough_seconds: float, largest: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("indexer.plan._ENOUGH_SECONDS", enough_seconds)
    long = " ".join(f"word{number}" for number in range(5_000))
    documents = [FakeEncoder().segment(make_document(f"long{number}", long)) for number in range(12)]
    groups: list[int] = []

    class Counting(FakeEncoder):
        def encode_segmented(self, documents: Sequence[SegmentedDocument]) -> list[EncodedDocument]:
            groups.append(sum(document.coverage.tokens_read for document in documents))
            return super().encode_segmented(documents)

    tokens_per_second(documents, Counting())
    assert groups[-1] == largest


def test_of_a_long_document_only_the_first_chunks_are_encoded() -> None:
    long = make_document("long", " ".join(f"word{number}" for number in range(20_000)))
    read: list[int] = []

    class Counting(FakeEncoder):
        def _one(self, segmented: SegmentedDocument) -> EncodedDocument:
            read.append(segmented.coverage.tokens_read)
            return super()._one(segmented)

    tokens_per_second([FakeEncoder().segment(long)], Counting())
    assert read == [512, 4096]


def test_the_size_of_a_folder_is_that_of_its_files(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    (tmp_path / "a").write_bytes(b"123")
    (tmp_path / "deep" / "b").write_bytes(b"4567")
    assert folder_bytes(tmp_path) == 7
    assert folder_bytes(tmp_path / "none") == 0


_LISTED = """\
/dev/sda1 / ext4 rw,relatime 0 0
server:/home /home nfs4 rw,vers=4.2 0 0
/dev/sdb1 /home/disk ext4 rw 0 0
server:/ /media/a\\040disc 9p ro,nosuid 0 0
share /home/disk cifs rw 0 0
"""


@pytest.mark.parametrize(
    ("path", "mount"),
    [
        ("/data/x.lm", ""),
        ("/homes/x.lm", ""),
        ("/home/anna/x.lm", "nfs4 at /home"),
        ("/home/disk/x.lm", "cifs at /home/disk"),
        ("/media/a disc/x.lm", "9p at /media/a disc"),
    ],
)
def test_the_innermost_and_latest_mount_counts(
    path: str, mount: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("indexer.generation.resources.MOUNTS", tmp_path / "mounts")
    assert network_note(Path(path)) == ""  # the system lists none
    (tmp_path / "mounts").write_text(_LISTED)
    note = network_note(Path(path))
    assert note.startswith(f"{path} lies on a network file system ({mount})" if mount else "") and bool(note) == bool(
        mount
    )


def test_a_build_on_a_network_file_system_logs_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mounts").write_text(f"server:/a {tmp_path} nfs rw 0 0\n")
    monkeypatch.setattr("indexer.generation.resources.MOUNTS", tmp_path / "mounts")
    lines: list[str] = []
    build(tmp_path / "x.lm", make_corpus(3), encoder=FakeEncoder(), log=lines.append)
    assert "network file system (nfs at" in lines[0]


CORPUS = make_corpus(12)


def write(folder: Path, name: str, n_words: int) -> None:
    rng = random.Random(name)
    words = [f"word{rng.randrange(500)}" for _ in range(n_words)]
    half = len(words) // 2
    folder.mkdir(exist_ok=True)
    (folder / f"{name}.md").write_text(f"# One\n\n{' '.join(words[:half])}\n\n# Two\n\n{' '.join(words[half:])}\n")


@pytest.fixture
def papers(tmp_path: Path) -> Path:
    for number in range(30):
        write(tmp_path / "papers", f"p{number:02d}", 40 + 20 * number)
    return tmp_path / "papers"


def plan(folder: Path, papers: Path, factory: str = "auto") -> Plan:
    return make_plan(folder / "x.lm", [str(papers)], FakeEncoder(), factory=factory)


@pytest.mark.slow
def test_a_plan_of_few_documents_is_what_the_run_takes(tmp_path: Path, papers: Path) -> None:
    planned = plan(tmp_path, papers)
    assert not (tmp_path / "x.lm").exists()
    report = build(tmp_path / "x.lm", read_corpus([str(papers)]), encoder=FakeEncoder())
    assert (planned.n_new, planned.n_changed, planned.n_unchanged, planned.is_counted) == (30, 0, 0, True)
    assert (planned.n_tokens, planned.n_chunks) == (report.n_tokens, report.n_chunks)
    assert planned.way("all").disk_bytes == pytest.approx(report.disk_bytes, rel=0.15)
    assert planned.way("none").disk_bytes < planned.way("all").disk_bytes
    assert 0 < planned.way("none").seconds <= planned.way("later").seconds
    assert planned.way("later").n_tokens == report.n_tokens  # a small corpus is encoded at once


@pytest.mark.slow
def test_a_plan_of_an_index_counts_new_changed_and_unchanged_documents(tmp_path: Path, papers: Path) -> None:
    build(tmp_path / "x.lm", read_corpus([str(papers)]), encoder=FakeEncoder())
    unchanged = plan(tmp_path, papers)
    assert (unchanged.n_unchanged, unchanged.n_tokens) == (30, 0)
    write(papers, "p03", 500)
    write(papers, "q", 100)
    planned = plan(tmp_path, papers)
    half = plan(tmp_path, papers, "SQfp16")
    report = build(tmp_path / "x.lm", read_corpus([str(papers)]), encoder=FakeEncoder())
    assert (planned.n_new, planned.n_changed, planned.n_unchanged) == (1, 1, 29)
    assert (planned.n_tokens, planned.n_chunks) == (report.n_tokens, report.n_chunks)
    assert half.way("all").disk_bytes < planned.way("all").disk_bytes == pytest.approx(report.disk_bytes, rel=0.2)


@pytest.mark.slow
def test_a_sample_estimates_a_corpus_of_many_lengths(tmp_path: Path) -> None:
    rng = random.Random(0)
    for number in range(300):
        write(tmp_path / "papers", f"p{number:03d}", int(20 + rng.lognormvariate(4, 1)))
    write(tmp_path / "papers", "zz-long", 20_000)
    planned = plan(tmp_path, tmp_path / "papers")
    report = build(tmp_path / "x.lm", read_corpus([str(tmp_path / "papers")]), encoder=FakeEncoder())
    assert (planned.is_counted, planned.n_new) == (False, 301)
    assert planned.n_tokens == pytest.approx(report.n_tokens, rel=0.05)
    assert planned.n_chunks == pytest.approx(report.n_chunks, rel=0.05)
    assert planned.way("all").disk_bytes == pytest.approx(report.disk_bytes, rel=0.2)


def test_an_unknown_factory_string_is_refused(tmp_path: Path, papers: Path) -> None:
    with pytest.raises(IndexMismatch, match="FAISS cannot build factory 'Nonsense'"):
        plan(tmp_path, papers, "Nonsense")


def sampled(documents: Sequence[Document | Unreadable], n: float = 1.0, hashes: dict[str, str] | None = None) -> Sample:
    """Each document stands for `n`, and the index holds the ones with hashes in 5 chunks each."""
    existing = Existing(hashes or {}, dict.fromkeys(hashes or {}, 5))
    drawn = [Drawn(ReadRequest("held", document.doc_id), 1, n, n) for document in documents]
    by_name = {document.doc_id: document for document in documents}
    return read_sample(drawn, FakeEncoder(), existing, lambda unit: by_name[unit.request.doc_id or ""])


def test_a_sample_of_all_documents_has_the_counts_of_a_run(tmp_path: Path) -> None:
    sample = sampled([*CORPUS, Unreadable("x", "bad", "x"), make_document("void", " ")])
    with Writer(tmp_path / "x.lm") as writer:
        writer.claim({"name": "fake", "fingerprint": "f" * 32, "width": 32})
        report = run([Pipeline(writer, FakeEncoder())], CORPUS)
    assert (sample.n_new, sample.n_unreadable, sample.is_counted) == (12, 2, True)
    assert (sample.n_tokens, sample.n_chunks) == (report.n_tokens, report.n_chunks)
    assert sample.n_chars == sum(len(document.text) for document in CORPUS)
    assert {segmented.document.doc_id for segmented in sample.kept} == {document.doc_id for document in CORPUS}


def test_new_changed_and_unchanged_documents_are_counted_and_one_that_stands_for_ten_ten_times() -> None:
    hashes = {document.doc_id: content_hash(document) for document in CORPUS[:8]}
    documents = [*CORPUS[:7], replace(CORPUS[7], text=CORPUS[7].text.upper()), *CORPUS[8:]]
    sample = sampled(documents, hashes=hashes)
    assert (sample.n_unchanged, sample.n_changed, sample.n_new, sample.n_chunks_replaced) == (7, 1, 4, 5)
    assert sample.n_chars == sum(len(document.text) for document in CORPUS[7:])
    one, ten = sampled(CORPUS), sampled(CORPUS, n=10.0)
    assert (ten.n_new, ten.n_tokens, ten.is_counted) == (120, 10 * one.n_tokens, False)


def unit(number: int, size: int = 1_000, suffix: str = ".txt") -> Unit:
    return ReadRequest(f"{number}{suffix}", f"{number}{suffix}"), size


def number_of(drawn: Drawn) -> int:
    return int(drawn.request.source.partition(".")[0])


@pytest.mark.parametrize(
    ("units", "n_known", "alone"),
    [
        ([unit(number, 10 + number) for number in range(12)], 0, set(range(12))),
        ([unit(number, 1_024 + 7 * number) for number in range(5_000)], 0, set()),
        ([*(unit(number) for number in range(3_000)), unit(3_000, 5_000_000)], 0, {3_000}),
        ([*(unit(number) for number in range(500)), unit(500, suffix=".pdf"), unit(501)], 500, {500, 501}),
    ],
    ids=["few units", "many lengths", "a long document at the end", "another format and a file outside of the index"],
)
def test_a_sample_adds_up_and_rare_units_stand_alone(units: list[Unit], n_known: int, alone: set[int]) -> None:
    drawn = draw(units, known={f"{number}.txt" for number in range(n_known)})
    assert len(drawn) < 150
    assert {number_of(one) for one in drawn if (one.n_units, one.share) == (1, 1)} == alone
    assert sum(one.n_units for one in drawn) == pytest.approx(len(units))
    assert sum(one.share * one.size_bytes for one in drawn) == pytest.approx(sum(size for _, size in units))


def test_a_draw_depends_on_its_seed_alone_and_every_unit_is_as_likely_as_the_others() -> None:
    units = [unit(number) for number in range(1_000)]
    assert draw(units, seed=3) == draw(units, seed=3) != draw(units, seed=4)
    numbers = [number_of(one) for one in draw(units)]
    assert 300 < sum(numbers) / len(numbers) < 700
    units = [unit(number, 64) for number in range(48)]
    times = [0] * 48
    for seed in range(600):
        for one in draw(units, seed=seed):
            times[number_of(one)] += 1
    assert all(140 < count < 260 for count in times)  # 600 * 16 / 48 = 200


def sampled_documents(folder: Path) -> list[Document | Unreadable]:
    with DocumentReader() as reader:
        return [one.read(reader) for one in draw(units_of([str(folder)]))]


def texts_of(documents: Iterable[Document | Unreadable]) -> dict[str, str]:
    return {document.doc_id: document.text for document in documents if isinstance(document, Document)}


@pytest.mark.parametrize("packed", [False, True])
def test_lines_and_files_are_read_as_a_run_reads_them(tmp_path: Path, packed: bool) -> None:
    lines = "".join(json.dumps({"_id": f"j{number}", "text": "word " * number}) + "\n" for number in range(1, 6))
    if packed:
        (tmp_path / "many.jsonl.gz").write_bytes(gzip.compress(lines.encode()))
    else:
        (tmp_path / "many.jsonl").write_text(lines + "\n\n")
    (tmp_path / "one.md").write_text("# A heading\n\nA text.\n")
    assert texts_of(sampled_documents(tmp_path)) == texts_of(read_corpus([str(tmp_path)]))


def test_a_torn_file_does_not_end_the_draw_and_a_missing_path_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "bad.jsonl").write_text('no json\n{"_id": "a", "text": "words"}\n')
    (tmp_path / "torn.jsonl.gz").write_bytes(gzip.compress(b'{"_id": "b", "text": "words"}\n' * 3)[:-12])
    sample = sampled_documents(tmp_path)
    assert sum(isinstance(document, Unreadable) for document in sample) == 1
    assert "a" in texts_of(sample)
    with pytest.raises(DocumentError, match="does not exist"):
        list(units_of([str(tmp_path / "none")]))
