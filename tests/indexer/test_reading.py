"""A document that would stop a run or fill the memory of the machine ends only the process that reads it."""

import gzip
import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
from click.testing import Result

from engine.errors import DocumentError
from engine.index import Index
from engine.readers import Unreadable, read_file
from engine.text.document import Document
from engine.text.segmentation import Section
from indexer.building.corpus import list_corpus, read_corpus
from indexer.reading.reader import DocumentReader, ReadLimits, ReadRequest, batches, pack, results_of, unpack
from tests.commands import run, succeed
from tests.indexer.hostile_readers import FORMATS, MARK
from tests.readers.made import pdf_bytes
from tests.readers.made_pdf import scan_of

ROOT = Path(__file__).parents[2]
LIMITS = ReadLimits(0.4, 150 * 2**20)
REASONS = {
    ".loop": "reading needs more than 0.4 s of processor time; "
    "leave the document out, or allow more with --read-seconds",
    ".cloop": "reading needs more than 0.4 s of processor time; "
    "leave the document out, or allow more with --read-seconds",
    ".fill": "reading needs more than 150 MiB of memory; leave the document out, or allow more with --read-memory",
    ".sleep": "no answer within 4 s; leave the document out, or allow more with --read-seconds",
    ".crash": "the parser crashed (SIGSEGV): the file is damaged, or needs more than 150 MiB of memory (--read-memory)",
    ".die": "the process that read it was killed twice (SIGKILL); is the memory full?",
    ".odd": "the parser gave no document (Object of type PosixPath is not JSON serializable)",
}

pytestmark = pytest.mark.skipif(os.name != "posix", reason="documents are read in this process there")


@pytest.fixture
def hostile(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("indexer.reading.reader._MODULE", "tests.indexer.hostile_readers")
    monkeypatch.setattr("engine.readers.reader.FORMATS", FORMATS)


@pytest.fixture
def reader(hostile: None) -> Iterator[DocumentReader]:
    with DocumentReader(LIMITS) as one:
        yield one


def requests(folder: Path, *names: str) -> list[ReadRequest]:
    for name in names:
        (folder / name).write_text(f"words of {name}")
    return [ReadRequest(str(folder / name), name) for name in names]


def outcomes(results: Iterator[Document | Unreadable]) -> list[tuple[str, str]]:
    """Each result as its doc_id, and its text or the reason of its failure."""
    return [(one.doc_id, one.reason if isinstance(one, Unreadable) else one.text.strip()) for one in results]


def lines(*words: str) -> str:
    return "".join(json.dumps({"_id": f"{at}", "text": word}) + "\n" for at, word in enumerate(words))


@pytest.mark.slow
def test_all_formats_read_alike_in_both_processes() -> None:
    smallest: dict[str, Path] = {}
    for file, _ in sorted(list_corpus([str(ROOT / "demo")]).named(), key=lambda one: -one[0].stat().st_size):
        smallest["".join(file.suffixes)] = file
    paths = list(map(str, smallest.values()))
    expected = [one for file, doc_id in list_corpus(paths).named() for one in read_file(file, doc_id)]
    with DocumentReader() as reader:
        assert list(read_corpus(paths, reader)) == expected
    assert len(expected) > 8


def test_one_process_reads_many_documents_and_is_replaced_when_it_is_killed(tmp_path: Path) -> None:
    with DocumentReader() as reader:
        pid = reader.pid
        first = outcomes(reader.read(requests(tmp_path, "a.txt", "b.txt", "c.txt")))
        again = outcomes(reader.read(requests(tmp_path, "d.txt", "absent.txt")[:1]))
        assert reader.pid == pid
    assert first + again == [(name, f"words of {name}") for name in ("a.txt", "b.txt", "c.txt", "d.txt")]
    assert reader.pid is None
    with DocumentReader() as reader:
        assert outcomes(reader.read(requests(tmp_path, "a.txt"))) == [("a.txt", "words of a.txt")]
        assert reader.pid is not None
        os.kill(reader.pid, signal.SIGKILL)
        assert outcomes(reader.read(requests(tmp_path, "b.txt"))) == [("b.txt", "words of b.txt")]


@pytest.mark.slow
@pytest.mark.parametrize("suffix", REASONS)
def test_a_hostile_document_fails_alone_with_its_reason(tmp_path: Path, reader: DocumentReader, suffix: str) -> None:
    names = ["a.txt", f"b{suffix}", "c.txt", f"d{suffix}", f"e{suffix}", "f.txt"]
    if suffix == ".sleep":
        names = names[:3]  # each takes 4 s by the clock
    results = outcomes(reader.read(requests(tmp_path, *names)))
    assert results == [(name, f"words of {name}" if ".txt" in name else REASONS[suffix]) for name in names]


@pytest.mark.slow
def test_a_document_may_be_slow_on_busy_machines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, hostile: None
) -> None:
    monkeypatch.setattr("indexer.reading.reader._WALL_FACTOR", 2)
    with DocumentReader(ReadLimits(1.0, 150 * 2**20)) as reader:
        assert outcomes(reader.read(requests(tmp_path, "a.crawl"))) == [("a.crawl", "words of a.crawl")]


@pytest.mark.slow
def test_a_line_that_does_harm_fails_alone(tmp_path: Path, reader: DocumentReader) -> None:
    file = tmp_path / "many.jsonl"
    bad = {3: ".loop", 4: ".crash", 90: ".fill", 91: ".raise", 149: ".die"}
    file.write_text("\n" + lines(*(MARK + bad[at] if at in bad else f"words {at}" for at in range(150))))
    results = list(reader.read([ReadRequest(str(file)), *requests(tmp_path, "z.txt")]))
    assert [one.doc_id for one in results if isinstance(one, Document)] == [
        *(str(at) for at in range(150) if at not in bad),
        "z.txt",
    ]
    failed = {one.source: one.reason for one in results if isinstance(one, Unreadable)}
    assert list(failed) == [f"{file}:{at + 2}" for at in bad]
    assert failed[f"{file}:5"] == REASONS[".loop"]
    assert failed[f"{file}:93"] == "the reader failed (exit status 82); the file may be damaged"
    assert {one.source for one in results if isinstance(one, Document)} == {
        *(f"{file}:{at + 2}" for at in range(150) if at not in bad),
        str(tmp_path / "z.txt"),
    }


@pytest.mark.slow
def test_a_bad_file_among_small_ones_is_read_once(tmp_path: Path, reader: DocumentReader) -> None:
    names = [f"{at:02}{'.count' if at % 40 in (0, 17, 39) else '.txt'}" for at in range(90)]
    assert outcomes(reader.read(requests(tmp_path, *names))) == [
        (name, REASONS[".crash"] if name.endswith(".count") else f"words of {name}") for name in names
    ]
    bad = [name for name in names if name.endswith(".count")]
    assert {name: (tmp_path / name).with_suffix(".reads").read_text() for name in bad} == dict.fromkeys(bad, "x")


def test_small_files_cost_few_messages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = [f"{at:03}.txt" for at in range(300)]
    with DocumentReader() as reader:
        received: list[object] = []
        receive = reader._receive

        def counted() -> object:
            received.append(receive())
            return received[-1]

        monkeypatch.setattr(reader, "_receive", counted)
        assert [name for name, _ in outcomes(reader.read(requests(tmp_path, *names)))] == names
    assert len(received) < 100


@pytest.mark.slow
@pytest.mark.parametrize("suffix", [".loop", ".crash"])
def test_a_long_line_fails_at_the_first_attempt(tmp_path: Path, reader: DocumentReader, suffix: str) -> None:
    file = tmp_path / "many.jsonl.gz"
    file.write_bytes(gzip.compress(lines("one", "two", MARK + suffix + " long" * 20_000, "four").encode()))
    started: list[int | None] = [reader.pid]
    ids = []
    for one in reader.read([ReadRequest(str(file))]):
        ids.append((one.source.rpartition(":")[2], one.doc_id))
        started.append(reader.pid)
    assert ids == [("1", "0"), ("2", "1"), ("3", ""), ("4", "3")]
    assert len(set(started)) == 2


def test_a_document_whose_process_is_killed_is_read_again(tmp_path: Path, reader: DocumentReader) -> None:
    results = outcomes(reader.read(requests(tmp_path, "a.txt", "b.once", "c.txt")))
    assert results == [(name, f"words of {name}") for name in ("a.txt", "b.once", "c.txt")]
    file = tmp_path / "many.jsonl"
    file.write_text(lines("one", MARK + ".once", "three"))
    assert [doc_id for doc_id, _ in outcomes(reader.read([ReadRequest(str(file))]))] == ["0", "1", "2"]


def test_results_that_were_not_consumed_do_not_come_later(tmp_path: Path) -> None:
    file = tmp_path / "many.jsonl"
    file.write_text(lines(*(f"words {at} " * 2_000 for at in range(200))))
    with DocumentReader() as reader:
        results = reader.read([ReadRequest(str(file)), *requests(tmp_path, "a.txt")])
        assert next(results).doc_id == "0"
        results.close()  # type: ignore[attr-defined]
        assert outcomes(reader.read(requests(tmp_path, "b.txt"))) == [("b.txt", "words of b.txt")]


def test_a_process_that_keeps_much_memory_is_replaced(tmp_path: Path, reader: DocumentReader) -> None:
    names = ["a.txt", "b.keep", "c.txt", "d.txt"]
    started = {reader.pid: ""}
    for one in reader.read(requests(tmp_path, *names)):
        started[reader.pid] = one.doc_id
        assert isinstance(one, Document)
    assert list(started.values()) == ["b.keep", "d.txt"]


@pytest.fixture
def interruptible() -> Iterator[None]:
    """Ctrl-C raises KeyboardInterrupt also where the tests run as a background job, which ignores it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.slow
@pytest.mark.usefixtures("interruptible")
def test_an_interrupt_ends_the_caller_at_once(tmp_path: Path, reader: DocumentReader) -> None:
    pid = reader.pid
    assert pid is not None
    threading.Timer(0.5, os.kill, (pid, signal.SIGINT)).start()
    with pytest.raises(KeyboardInterrupt):
        list(reader.read(requests(tmp_path, "a.txt", "b.sleep")))


def test_the_process_ends_with_its_caller(tmp_path: Path) -> None:
    code = (
        "import sys, time; from indexer.reading.reader import DocumentReader; reader = DocumentReader().__enter__(); "
        "print(reader.pid, flush=True); time.sleep(600)"
    )
    with subprocess.Popen([sys.executable, "-c", code], cwd=ROOT, stdout=subprocess.PIPE, text=True) as caller:
        pid = int(caller.stdout.readline())
        caller.kill()
    until = time.monotonic() + 30
    with suppress(ProcessLookupError):
        while time.monotonic() < until:
            if Path(f"/proc/{pid}/stat").exists() and Path(f"/proc/{pid}/stat").read_text().split()[2] == "Z":
                return
            os.kill(pid, 0)
            time.sleep(0.05)
        pytest.fail(f"process {pid} outlives its caller")


@pytest.mark.slow
def test_hostile_documents_do_not_stop_a_run(tmp_path: Path, hostile: None) -> None:
    harm = [".loop", ".fill", ".crash", ".die", ".cloop"]
    names = [f"{at:02}{harm[at // 10] if at % 10 == 9 else '.txt'}" for at in range(50)]
    (tmp_path / "in").mkdir()
    requests(tmp_path / "in", *names)
    limits = ["--read-seconds", "0.4", "--read-memory", "150Mi"]
    result = run("index", tmp_path / "x.lm", tmp_path / "in", "--encode", "none", "--language", "english", *limits)
    assert result.exit_code == 3, result.output
    assert result.stdout.startswith("45 added, 0 replaced, 0 unchanged, 0 removed, 5 failed in ")
    failures = succeed("show", tmp_path / "x.lm", "--failures", "--json")
    assert {Path(one["source"]).name: one["reason"] for one in json.loads(failures.stdout)} == {
        f"{at}9{suffix}": REASONS[suffix] for at, suffix in enumerate(harm)
    }


@pytest.mark.slow
def test_a_query_document_is_read_within_the_limits(tmp_path: Path, hostile: None) -> None:
    requests(tmp_path, "a.txt", "b.txt", "c.loop")
    succeed("index", tmp_path / "x.lm", tmp_path / "a.txt", "--encode", "none")
    result = run("query", tmp_path / "x.lm", tmp_path / "b.txt", tmp_path / "c.loop", "--read-seconds", "0.4")
    assert result.exit_code == 3, result.output
    assert f"failed: {tmp_path / 'c.loop'}: {REASONS['.loop']}" in result.stderr


def test_a_process_that_does_not_start_is_an_error(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("indexer.reading.reader._MODULE", "no_such_module")
    with DocumentReader() as reader, pytest.raises(DocumentError, match="did not start"):
        list(reader.read(requests(tmp_path, "a.txt")))


def test_the_process_imports_neither_torch_nor_faiss() -> None:
    heavy = "{'torch', 'faiss', 'numpy', 'transformers'}"
    code = f"import sys, indexer.reading.process; print(sorted({heavy} & set(sys.modules)))"
    run = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert run.stdout == "[]\n"


@pytest.mark.parametrize("packed", [False, True])
def test_the_rest_of_a_file_has_the_line_numbers_of_the_file(tmp_path: Path, packed: bool) -> None:
    bulk = '{"index": {"_index": "i"}}\n{"text": "no id"}\n'
    content = ("\n" + lines("one", "two") + " \n\n{oops\n" + bulk + lines("long " * 40_000, "last")).encode()
    file = tmp_path / ("x.jsonl.gz" if packed else "x.jsonl")
    file.write_bytes(gzip.compress(content) if packed else content)
    expected = list(read_file(file))
    assert [one.source.rpartition(":")[2] for one in expected] == ["2", "3", "6", "8", "9", "10"]
    assert [one.doc_id for one in expected][3] == f"{file.name.removesuffix('.gz')}#8"
    for n_skipped in range(len(expected) + 1):
        results = results_of(ReadRequest(str(file), n_skipped=n_skipped))
        assert [result for result in results if not isinstance(result, int)] == expected[n_skipped:]


WORDS = [
    (f"Words of line {number} that a machine has read.", 72.0, 700.0 - 14 * number, 11.0, False) for number in range(9)
]
_PROGRAM = "#!/bin/sh\necho run >> {log}\n/bin/cat > {folder}/stdin\nfor target; do :; done\n{command}\n"


@pytest.fixture
def stand_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Path]:
    """Puts a program in the place of ocrmypdf that runs a command of the shell; returns the log of its runs."""

    def place(command: str) -> Path:
        folder = tmp_path / "bin"
        folder.mkdir(exist_ok=True)
        (folder / "prepared.pdf").write_bytes(pdf_bytes([WORDS, WORDS]))
        script = _PROGRAM.format(log=folder / "log", folder=folder, command=command.format(folder=folder))
        (folder / "ocrmypdf").write_text(script)
        (folder / "ocrmypdf").chmod(0o755)
        monkeypatch.setenv("PATH", str(folder))
        return folder / "log"

    return place


_COPY = '/bin/cp {folder}/prepared.pdf "$target"'


def indexed(folder: Path, *options: str) -> Result:
    return run("index", folder / "x.lm", folder / "in", "--encode", "none", "--language", "english", *options)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["scan.pdf", "scan.pdf.gz"])
def test_a_scan_is_read_by_ocr_once(tmp_path: Path, name: str, stand_in: Callable[[str], Path]) -> None:
    log, data = stand_in(_COPY), pdf_bytes([[], []])
    (tmp_path / "in").mkdir()
    file = tmp_path / "in" / name
    file.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    assert indexed(tmp_path).exit_code == 1
    assert not log.exists()
    for options, n_runs, line in [
        (["--ocr"], 1, "1 added, 0 replaced, 0 unchanged"),
        (["--ocr"], 1, "0 added, 0 replaced, 1 unchanged"),
        ([], 1, "0 added, 0 replaced, 1 unchanged"),
        (["--ocr-language", "deu+eng"], 2, "0 added, 0 replaced, 1 unchanged"),
    ]:
        result = indexed(tmp_path, *options)
        assert result.exit_code == 0, result.output
        assert result.stdout.startswith(line)
        assert log.read_text().count("run") == n_runs
        assert ("1 document with pages read by OCR" in result.stdout) == line.startswith("1 added")
    assert (tmp_path / "bin" / "stdin").read_bytes() == data
    with Index.open(tmp_path / "x.lm") as index:
        document = index.document(name)
    assert "line 3 that a machine has read" in document.text
    assert document.source == str(file)
    digest = hashlib.sha256(file.read_bytes()).hexdigest()
    ocr = {"ocr_pages": 2, "ocr_language": "deu+eng", "ocr_file_sha256": digest}
    assert document.metadata == {"n_pages": 2} | ocr


@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "reason"),
    [
        ("echo 'the page is torn' >&2; exit 8", "OCR failed: the page is torn; leave the document out"),
        ("exit 8", "OCR failed: status 8; leave the document out"),
        (
            "/bin/sleep 60",
            "OCR needs more than 1.2 s a page; leave the document out, or allow more with --read-seconds",
        ),
        (":", "No such file or directory"),
        ('echo garbage > "$target"', "it is not a PDF, or a damaged one; try to repair it, e.g. with qpdf"),
        ('/bin/cp {folder}/stdin "$target"', "its page has no text layer (scanned?)"),
    ],
)
def test_a_bad_scan_fails_alone(tmp_path: Path, command: str, reason: str, stand_in: Callable[[str], Path]) -> None:
    stand_in(command)
    texts = requests(tmp_path, "a.txt", "b.txt", "c.txt")
    (tmp_path / "scan.pdf").write_bytes(pdf_bytes([[]]))
    scan = ReadRequest(str(tmp_path / "scan.pdf"), "scan")
    with DocumentReader(replace(LIMITS, ocr="eng")) as reader:
        (first, failed, *others) = outcomes(reader.read([texts[0], scan, *texts[1:]]))
    assert [first, *others] == [(name, f"words of {name}") for name in ("a.txt", "b.txt", "c.txt")]
    assert failed[0] == "scan" and failed[1].startswith(reason)


@pytest.mark.slow
def test_scanned_pages_among_others_are_recognised_or_named(tmp_path: Path, stand_in: Callable[[str], Path]) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "mixed.pdf").write_bytes(scan_of(pdf_bytes([WORDS, WORDS, WORDS]), n_printed=1))
    warning = "2 pages have hardly any text that can be read; "
    assert f"{warning}to recognise it in pictures: --ocr\n" in indexed(tmp_path).stderr
    stand_in("exit 1")
    (tmp_path / "in" / "two.pdf").write_bytes((tmp_path / "in" / "mixed.pdf").read_bytes())
    assert f"two.pdf: {warning}OCR failed: status 1; leave the document out\n" in indexed(tmp_path, "--ocr").stderr


def test_ocr_without_its_program_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.txt").write_text("words")
    result = indexed(tmp_path, "--ocr")
    assert (result.exit_code, result.stdout) == (1, "")
    assert "--ocr needs ocrmypdf; install it: apt install ocrmypdf" in result.stderr
    assert not (tmp_path / "x.lm").exists()


@pytest.mark.ocr
@pytest.mark.slow
@pytest.mark.skipif(shutil.which("ocrmypdf") is None, reason="needs ocrmypdf")
def test_the_words_of_a_picture_are_recognised(tmp_path: Path) -> None:
    (tmp_path / "scan.pdf").write_bytes(scan_of(pdf_bytes([WORDS, WORDS]), n_printed=1))
    with DocumentReader(ReadLimits(ocr="eng")) as reader:
        (document,) = reader.read([ReadRequest(str(tmp_path / "scan.pdf"))])
    assert isinstance(document, Document)
    assert "scanned_pages" not in document.metadata
    first, second = document.text[: document.pages[1]], document.text[document.pages[1] :]
    assert second.split() == first.split()


def _requests(folder: Path, sizes: dict[str, int]) -> list[ReadRequest]:
    for name, size in sizes.items():
        (folder / name).write_bytes(b"x" * size)
    return [ReadRequest(str(folder / name), name) for name in sizes]


def _names(folder: Path, sizes: dict[str, int]) -> list[list[str | None]]:
    return [[request.doc_id for request in batch] for batch in batches(_requests(folder, sizes))]


def test_a_batch_ends_at_a_number_of_files_or_bytes_and_draws_one_request_ahead(tmp_path: Path) -> None:
    found = _names(tmp_path, {f"{at}.txt": 10 for at in range(70)})
    assert [len(batch) for batch in found] == [32, 32, 6]
    assert [name for batch in found for name in batch] == [f"{at}.txt" for at in range(70)]
    half = 2**18
    sizes = {"a.txt": half, "b.txt": half, "c.txt": 1, "d.pdf": 2**20, "e.txt": 1, "f.txt": half}
    assert _names(tmp_path, sizes) == [["a.txt", "b.txt"], ["c.txt"], ["d.pdf"], ["e.txt", "f.txt"]]
    requests = iter(_requests(tmp_path, {f"{at}.txt": 10 for at in range(70)}))
    next(batches(requests))
    assert next(requests).doc_id == "33.txt"


def test_files_of_many_documents_single_lines_and_missing_files_are_sent_alone(tmp_path: Path) -> None:
    [first, lines, last] = _requests(tmp_path, {"a.txt": 1, "b.jsonl.gz": 1, "c.txt": 1})
    line, missing = ReadRequest("stdin:1", line=b"{}"), ReadRequest(str(tmp_path / "no.txt"))
    found = list(batches([first, last, lines, line, first, missing, last, first]))
    assert found == [[first, last], [lines], [line], [first], [missing], [last, first]]


def _document(text: str) -> Document:
    section = Section("Öl", ("A", "Öl"), 0, len(text))
    return Document("d", "title\n!", text, (section,), {"year": 2020, "tags": ["a", None]}, "d.txt", (0, 3))


@pytest.mark.parametrize("text", ["", "one\ntwo\r\n\n", "!", "naïve 😀 漢字", "half \ud83d and \ude00", "\0\x1f\u2028"])
def test_results_come_back_as_they_were(text: str) -> None:
    failed = Unreadable("e.txt", "damaged", "e")
    results: list[Document | Unreadable | int] = [_document(text), 7, failed, _document(text + "!")]
    assert unpack(pack(results)) == results


def test_a_document_without_plain_values_fails_alone() -> None:
    bad = Document("bad", "t", "text", (), {"year": cast(Any, {1, 2})}, "bad.txt")
    worse = Document("worse", "t", cast(Any, None), (), {}, "worse.txt")
    good = _document("sound")
    found = unpack(pack([bad, good, worse]))
    assert found[1] == good
    assert [(one.doc_id, one.reason[:30]) for one in (found[0], found[2]) if isinstance(one, Unreadable)] == [
        ("bad", "the parser gave no document (O"),
        ("worse", "the parser gave no document (i"),
    ]


@pytest.mark.parametrize(
    "message", [b"", b"[", b"\xff\xff", b"no JSON\n", b"[[1]]\n", b'{"a": 1}\n', b'[{"reason": 1}]\n', b"7\n"]
)
def test_other_bytes_are_refused(message: bytes) -> None:
    with pytest.raises(ValueError):
        unpack(message)
