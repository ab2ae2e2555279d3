"""Facts about the recorded corpora that ship with the code: ids, splits, judgments, digests. No text is among them."""

from __future__ import annotations

import gzip
import hashlib
import json
import lzma
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TypeAlias

from benchmarks.datasets import TASKS, checksum, open_dataset

CorpusDocument: TypeAlias = Mapping[str, object]  # id, title, sections, meta: one line of a corpus
Judged: TypeAlias = Mapping[str, Mapping[str, Sequence[str]]]  # query id, then relevance, to the ids of targets

FOLDER = Path(__file__).resolve().parent / "recorded"
HEADER = "query_id\tdoc_id\trelevance\n"
_DIGEST = 6  # hex digits of a document's digest: one in 16 million other texts has the same
_SOURCE_DIGEST = 12


@dataclass(frozen=True)
class Recorded:
    """What is known about a recorded corpus."""

    ids: Sequence[str]  # of the documents, in the order of the file
    digests: Sequence[str]  # of title and sections, by document
    judgments: Mapping[str, Judged]  # by file name
    splits: Mapping[str, Mapping[str, Sequence[str]]]  # by file name: split to query ids
    query_ids: Sequence[str]  # of the file of queries, in its order
    given: Mapping[str, Mapping[str, object]]  # by document: metadata that its source file does not hold
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
    """Collect the facts about a corpus in the project's layout.

    Args:
        folder: named as the corpus.
        given: fields of the metadata that no source file holds.
        source: digest of the source files.
    """
    documents = _read_lines(folder / "corpus.jsonl.gz")
    tasks = {name: task for name, task in TASKS.items() if task.folder == folder.name}
    queries = folder / "queries.jsonl.gz"
    return Recorded(
        ids=[str(document["id"]) for document in documents],
        digests=[document_digest(document) for document in documents],
        judgments={path.name: _read_judgments(path) for path in sorted(folder.glob("qrels*.tsv")) if _ships(path)},
        splits={path.name: json.loads(path.read_text("utf-8")) for path in sorted(folder.glob("splits*.json"))},
        query_ids=[str(query["id"]) for query in _read_lines(queries)] if queries.is_file() else [],
        given={str(document["id"]): _some_meta(document, given) for document in documents} if given else {},
        checksums={name: checksum(open_dataset(name, folder.parent)) for name in tasks},
        source=source,
    )


def document_digest(document: CorpusDocument) -> str:
    """The first hex digits of a SHA-256 of the title and the sections; metadata does not count."""
    text = json.dumps([document["title"], document["sections"]], ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:_DIGEST]


def source_digest(files: Mapping[str, bytes]) -> str:
    """The first hex digits of a SHA-256 of names and contents, whatever archive the files came in."""
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


def _ships(path: Path) -> bool:
    return path.name != "qrels_citances.tsv"  # the citation sentences are not rebuilt


def _some_meta(document: CorpusDocument, names: Sequence[str]) -> Mapping[str, object]:
    meta = document["meta"]
    assert isinstance(meta, Mapping)
    return {name: meta[name] for name in names if meta.get(name)}
