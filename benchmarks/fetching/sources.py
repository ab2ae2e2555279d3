"""The source files of a corpus: addresses and checksums, downloads that can be resumed, archives and folders."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import lzma
import re
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from http.client import HTTPException, HTTPResponse
from pathlib import Path
from typing import IO, TypeAlias
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

from benchmarks.datasets import QUERIES, TASKS, checksum, open_dataset
from benchmarks.program import log
from engine.errors import EngineError

Files: TypeAlias = Mapping[str, bytes]  # by key, see `Recipe.key`
CorpusDocument: TypeAlias = Mapping[str, object]  # id, title, sections, meta: one line of a corpus
Judged: TypeAlias = Mapping[str, Mapping[str, Sequence[str]]]  # from query id and relevance to the ids of targets
CITE = "[CITE]"  # in place of a masked citation


@dataclass(frozen=True)
class Source:
    """One download."""

    file: str  # name of the downloaded file
    url: str
    patterns: tuple[str, ...]  # names of files or folders with the same content, with "*"
    is_optional: bool = False  # whether it can be missing offline; other files can have its content


@dataclass(frozen=True)
class Recipe:
    """The recipe for rebuilding one corpus."""

    name: str
    sources: tuple[Source, ...]
    key: Callable[[str], str]  # maps the name of a member of an archive to its key, "" if it is not used
    is_text: Callable[[str], bool]  # whether the file of a key is a document rather than metadata
    documents: Callable[[Recorded, Files], Iterator[CorpusDocument]]  # documents in the files, in recorded order
    queries: Callable[[Recorded, Files], Iterator[CorpusDocument]] | None = None  # None if queries are documents
    facts: Callable[[Files], Recorded] | None = None  # where the sources have all judgments; else they ship
    given: tuple[str, ...] = ()  # fields of metadata that ship, since no source file has them
    left_out: str = ""  # further files of the recorded folder, as a sentence


def github_archive(repository: str, commit: str) -> Source:
    """The archive of a public repository at a commit."""
    name = repository.partition("/")[2]
    return Source(
        f"{name}-{commit[:12]}.tar.gz", f"https://codeload.github.com/{repository}/tar.gz/{commit}", (f"{name}-*", name)
    )


def corpus_document(
    doc_id: str, title: str, sections: Iterable[tuple[str, str]], meta: Mapping[str, object]
) -> CorpusDocument:
    """One line of a corpus."""
    parts = [{"heading": heading, "text": text} for heading, text in sections]
    return {"id": doc_id, "title": title, "sections": parts, "meta": dict(meta)}


_BLOCK = 1 << 20  # bytes read at once
_TIMEOUT_S = 60.0
_PARTIAL, _RANGE_REFUSED = 206, 416


def download(source: Source, folder: Path) -> Path:
    """Download a file unless the folder has it; an interrupted download is resumed at its last byte."""
    path = folder / source.file
    if path.is_file():
        log(f"{path} is there already")
        return path
    folder.mkdir(parents=True, exist_ok=True)
    part = path.with_name(path.name + ".unfinished")
    log(f"downloading {source.url} to {path}")
    try:
        _continue(source.url, part)
    except (URLError, HTTPException, OSError) as error:
        reason = str(getattr(error, "reason", None) or error) or type(error).__name__
        raise FetchError(f"{source.url} could not be downloaded ({reason})") from error
    part.replace(path)
    return path


def find_downloads(source: Source, folder: Path) -> list[Path]:
    """Archives and unpacked folders of a source in a folder of downloads, by name."""
    found = {path for pattern in (source.file, *source.patterns) for path in folder.glob(pattern)}
    return sorted(path for path in found if path.is_dir() or path.name.endswith((*SUFFIXES, ".xml")))


def _continue(url: str, part: Path) -> None:
    have = part.stat().st_size if part.is_file() else 0
    headers = {"User-Agent": "longmatch-benchmarks", **({"Range": f"bytes={have}-"} if have else {})}
    try:
        with urlopen(Request(url, headers=headers), timeout=_TIMEOUT_S) as response:
            _save(response, part, is_rest=response.status == _PARTIAL)
    except HTTPError as error:
        if error.code != _RANGE_REFUSED or not have:
            raise
        # The partial file is not shorter than the file on the server: start again.
        part.unlink()
        _continue(url, part)


def _save(response: HTTPResponse, part: Path, *, is_rest: bool) -> None:
    expected = response.headers.get("Content-Length")
    received = 0
    with part.open("ab" if is_rest else "wb") as file:
        while block := response.read(_BLOCK):
            file.write(block)
            received += len(block)
    if expected is not None and received != int(expected):
        raise URLError(f"{received} of {expected} bytes came; run the same command again to go on")


_AR_MAGIC, _AR_HEADER = b"!<arch>\n", 60
_TAR_SUFFIXES = (".tar", ".tar.gz", ".tgz", ".tar.xz")
SUFFIXES = (*_TAR_SUFFIXES, ".zip", ".deb")


class FetchError(EngineError):
    """Raised when a source cannot be downloaded or read; names the file and the next step."""


def read_members(path: Path, wanted: Callable[[str], bool]) -> Iterator[tuple[str, bytes]]:
    """Stream names and bytes of the members of an archive, or of the files below a folder, whose name is `wanted`.

    A member that ends with ".gz" is decompressed, and ".gz" is removed from its name.
    """
    try:
        for name, read in _members(path):
            plain = name.removesuffix(".gz")
            if wanted(plain):
                data = read()
                yield plain, gzip.decompress(data) if plain != name else data
    except (tarfile.TarError, zipfile.BadZipFile, lzma.LZMAError, zlib.error, EOFError, OSError) as error:
        raise FetchError(f"{path} cannot be read as an archive ({error}); delete it and download it again") from error


def _members(path: Path) -> Iterator[tuple[str, Callable[[], bytes]]]:
    if path.is_dir():
        files = sorted(file for file in path.rglob("*") if file.is_file())
        yield from ((file.relative_to(path).as_posix(), file.read_bytes) for file in files)
    elif path.name.endswith(_TAR_SUFFIXES):
        with path.open("rb") as file:
            yield from _tar_members(file)
    elif path.suffix == ".zip":
        with zipfile.ZipFile(path) as archive:
            for name in archive.namelist():
                yield name, lambda name=name: archive.read(name)  # type: ignore[misc]
    elif path.suffix == ".deb":
        yield from _tar_members(io.BytesIO(_debian_data(path)))
    else:
        raise FetchError(f"{path} is neither a folder nor an archive that ends with {', '.join(SUFFIXES)}")


def _tar_members(file: IO[bytes]) -> Iterator[tuple[str, Callable[[], bytes]]]:
    with tarfile.open(fileobj=file, mode="r:*") as archive:
        for member in archive:
            content = archive.extractfile(member) if member.isfile() else None
            if content is not None:
                yield member.name, content.read


def _debian_data(path: Path) -> bytes:
    """The member data.tar.* of a Debian package, which is an archive of ar."""
    data = path.read_bytes()
    place = len(_AR_MAGIC)
    if not data.startswith(_AR_MAGIC):
        raise FetchError(f"{path} is not a Debian package; download it again")
    while place + _AR_HEADER <= len(data):
        name = data[place : place + 16].decode("ascii", "replace").strip().rstrip("/")
        size = data[place + 48 : place + 58].strip()
        if not size.isdigit():
            break
        start = place + _AR_HEADER
        if name.startswith("data.tar"):
            return data[start : start + int(size)]
        place = start + int(size) + int(size) % 2
    raise FetchError(f"{path} holds no data.tar; download it again")


_SPACE = re.compile(r"\s+")


@dataclass(frozen=True)
class ParsedDocument:
    """The content of a source file; its text is not masked yet."""

    title: str
    sections: Sequence[tuple[str, str]]  # heading and text, in their order
    meta: Mapping[str, object] = field(default_factory=dict)


class SectionBuilder:
    """Collects lines into paragraphs and paragraphs into sections, in the order of the source."""

    def __init__(self, heading: str = "") -> None:
        self._sections: list[tuple[str, list[str]]] = [(heading, [])]
        self._lines: list[str] = []
        self.is_skipping = False  # paragraphs of a dropped section are discarded

    def open(self, heading: str) -> None:
        """Start a section."""
        self.is_skipping = False
        self._sections.append((heading, []))

    def line(self, line: str) -> None:
        """Add a line to the current paragraph."""
        self._lines.append(line)

    def paragraph(self, text: str) -> None:
        """Add a whole paragraph to the current section, unless the section is dropped or the text is empty."""
        if text and not self.is_skipping:
            self._sections[-1][1].append(text)

    def take_lines(self) -> str:
        """Remove and return the lines of the current paragraph, joined by line breaks."""
        text = "\n".join(self._lines)
        self._lines.clear()
        return text

    def sections(self, min_words: int) -> tuple[tuple[str, str], ...]:
        """All sections whose text has at least `min_words` words; paragraphs are separated by a blank line."""
        joined = ((heading, "\n\n".join(paragraphs)) for heading, paragraphs in self._sections)
        return tuple((heading, text) for heading, text in joined if len(text.split()) >= min_words)


def decoded(data: bytes, encoding: str = "utf-8") -> str:
    """The text of a file, or its text as Latin-1 if an old file is not UTF-8."""
    try:
        return data.decode(encoding)
    except UnicodeDecodeError:
        return data.decode("latin-1")


def one_line(text: str) -> str:
    """The text with each run of white space replaced by one blank."""
    return _SPACE.sub(" ", text).strip()


FOLDER = Path(__file__).resolve().parent / "recorded"
HEADER = "query_id\tdoc_id\trelevance\n"
_DIGEST = 6  # hex digits of a document's digest; one in 16 million other texts has the same digest
_SOURCE_DIGEST = 12


@dataclass(frozen=True)
class Recorded:
    """The shipped facts about a recorded corpus."""

    ids: Sequence[str]  # of the documents, in the order of the file
    digests: Sequence[str]  # of title and sections, by document
    judgments: Mapping[str, Judged]  # by file name
    splits: Mapping[str, Mapping[str, Sequence[str]]]  # by file name: split to query ids
    query_ids: Sequence[str]  # of the file of queries, in its order
    given: Mapping[str, Mapping[str, object]]  # by document: metadata that is not in its source file
    checksums: Mapping[str, str]  # by task
    source: str  # digest of the source files, see `source_digest`


def read_recorded(name: str) -> Recorded:
    """Read the shipped facts about a corpus."""
    return Recorded(**json.loads(lzma.decompress((FOLDER / f"{name}.json.xz").read_bytes())))


def write_recorded(name: str, recorded: Recorded) -> None:
    """Write the facts into the folder that ships."""
    text = json.dumps(asdict(recorded), ensure_ascii=False, separators=(",", ":"))
    (FOLDER / f"{name}.json.xz").write_bytes(lzma.compress(text.encode(), preset=9 | lzma.PRESET_EXTREME))


def record(folder: Path, given: Sequence[str] = (), source: str = "") -> Recorded:
    """Collect the facts about a corpus in the project's layout; `given` are fields of metadata in no source file."""
    documents = _read_lines(folder / "corpus.jsonl.gz")
    tasks = {name: task for name, task in TASKS.items() if task.folder == folder.name}
    queries = folder / QUERIES
    # The citation sentences are not rebuilt.
    judgments = sorted(path for path in folder.glob("qrels*.tsv") if path.name != "qrels_citances.tsv")
    return Recorded(
        ids=[str(document["id"]) for document in documents],
        digests=[document_digest(document) for document in documents],
        judgments={path.name: _read_judgments(path) for path in judgments},
        splits={path.name: json.loads(path.read_text("utf-8")) for path in sorted(folder.glob("splits*.json"))},
        query_ids=[str(query["id"]) for query in _read_lines(queries)] if queries.is_file() else [],
        given={str(document["id"]): _some_meta(document, given) for document in documents} if given else {},
        checksums={name: checksum(open_dataset(name, folder.parent)) for name in tasks},
        source=source,
    )


def document_digest(document: CorpusDocument) -> str:
    """The first hex digits of a SHA-256 of the title and the sections, without metadata."""
    text = json.dumps([document["title"], document["sections"]], ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:_DIGEST]


def source_digest(files: Mapping[str, bytes]) -> str:
    """The first hex digits of a SHA-256 of names and contents, whatever the archive of the files."""
    digest = hashlib.sha256()
    for name in sorted(files):
        digest.update(name.encode() + b"\0" + hashlib.sha256(files[name]).digest())
    return digest.hexdigest()[:_SOURCE_DIGEST]


def judgment_lines(judged: Judged) -> Iterable[str]:
    """One line per judgment, by query and then by target, without the header."""
    for query_id, by_relevance in judged.items():
        targets = {target: relevance for relevance, ids in by_relevance.items() for target in ids}
        yield from (f"{query_id}\t{target}\t{targets[target]}\n" for target in sorted(targets))


def _read_lines(path: Path) -> list[CorpusDocument]:
    with gzip.open(path, "rt", encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def _read_judgments(path: Path) -> Judged:
    judged: dict[str, dict[str, list[str]]] = {}
    for line in path.read_text("utf-8").splitlines()[1:]:
        query_id, target, relevance = line.split("\t")
        judged.setdefault(query_id, {}).setdefault(relevance, []).append(target)
    return judged


def _some_meta(document: CorpusDocument, names: Sequence[str]) -> Mapping[str, object]:
    meta = document["meta"]
    assert isinstance(meta, Mapping)
    return {name: meta[name] for name in names if meta.get(name)}
