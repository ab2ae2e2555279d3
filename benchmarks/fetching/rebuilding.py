"""From parsed sources to the folder of a corpus: recorded ids and splits, masks, and a count of equal documents."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.datasets import QUERIES, TASKS, checksum, open_dataset
from benchmarks.fetching.sources import (
    HEADER,
    CorpusDocument,
    FetchError,
    Judged,
    Recipe,
    Recorded,
    Source,
    document_digest,
    download,
    find_downloads,
    judgment_lines,
    read_members,
    read_recorded,
    source_digest,
)
from benchmarks.formats.lines import write_json_lines

CITE = "[CITE]"

_FAMILY = r"(?:PEP|EIP|ERC|XEP)"
_SERIES = rf"{_FAMILY}s?(?:[\s:#-]*\d+|[\s:-]*`\d+`)"
_MORE = rf"(?:,?\s*(?:and/or|and|or|/|,)\s*(?:and\s+|or\s+)?)(?:{_FAMILY}s?[\s-]*)?\d{{2,}}\b"
_URL = r"https?://\S*(?:(?:pep|eip|erc|xep)s?[-/]?\d+|EIPs/(?:issues|pull)/\d+)\S*"
_PROPOSAL = re.compile(rf"{_URL}|\b{_SERIES}(?:{_MORE})*", re.IGNORECASE)
_ONE_XEP = re.compile(rf"{_URL}|\b{_SERIES}", re.IGNORECASE)

_AND_RFC = r"(?:,\s*(?:and/or\s+|and\s+|or\s+)?|\s+(?:and/or|and|or)\s+|/)(?:RFCs?[\s-]*)?\d{3,4}\b"
_RFCS = rf"RFC(?:s?\s*|-)\d+(?:bis)?(?:{_AND_RFC})*"
_RFC = rf"https?://\S*rfc\S*|\b(?:{_RFCS}|(?:STD|BCP|IEN)(?:\s*|-)\d{{1,4}}\b)"
_BRACKET_OR_RFC = re.compile(rf"\[([^\]\[]{{1,60}})\](?=[\s.,;:)\]'\"]|$)|{_RFC}", re.IGNORECASE)
_RFC_ALONE = re.compile(_RFC, re.IGNORECASE)
_RFC_LABEL = re.compile(r"(?:RFC|STD|BCP|IEN)s?[ -]?\d", re.IGNORECASE)
_LABEL = re.compile(r"[A-Za-z]|\d{1,3}$")  # a label that is a date or a standard's number is left alone


def mask_proposals(text: str, *, lists: bool = True) -> str:
    """Mask the numbers of PEPs, EIPs, ERCs and XEPs and the addresses of such pages.

    Args:
        text: the text of one heading or section.
        lists: replace "PEP 1 and PEP 2" by one mask rather than two.
    """
    return (_PROPOSAL if lists else _ONE_XEP).sub(CITE, text)


def mask_rfcs(text: str, labels: Collection[str]) -> str:
    """Mask RFC, STD, BCP and IEN numbers, their addresses, and bracketed labels of references.

    Args:
        text: the text of one heading or section.
        labels: the labels in the document's list of references, without brackets.
    """

    def masked(found: re.Match[str]) -> str:
        inside = found[1]
        if inside is None or _RFC_LABEL.match(inside) or (inside in labels and _LABEL.match(inside)):
            return CITE
        return f"[{_RFC_ALONE.sub(CITE, inside)}]"

    return _BRACKET_OR_RFC.sub(masked, text)


Log = Callable[[str], None]


@dataclass(frozen=True)
class Rebuilt:
    """How a rebuilt corpus compares with the recorded one."""

    folder: Path
    n_recorded: int  # documents of the recorded corpus
    different: Sequence[str]  # ids of documents whose title or text differs
    missing: Sequence[str]  # ids of documents that are not in the sources
    has_recorded_sources: bool  # whether the source files equal the recorded ones, byte for byte
    checksums: Mapping[str, tuple[str, str]]  # by task: of this copy, and of the recorded corpus
    left_out: str

    @property
    def is_identical(self) -> bool:
        """Whether every file of every task equals the recorded one, byte for byte."""
        return all(here == there for here, there in self.checksums.values())


def rebuild(recipe: Recipe, to: Path, downloads: Path, *, is_offline: bool, log: Log) -> Rebuilt:
    """Make the folder of a corpus.

    Args:
        recipe: the recipe of the corpus.
        to: the folder of datasets; the corpus becomes a folder inside it with the name of the recipe.
        downloads: the folder into which the sources are downloaded.
        is_offline: download nothing; the sources must be in `downloads`.
        log: called with a line at each step.

    Raises:
        FetchError: a source is missing or cannot be read, or the folder already has a corpus.
    """
    folder = to / recipe.name
    if (folder / "corpus.jsonl.gz").exists():
        raise FetchError(f"{folder} holds a corpus already; pass another --to, or delete the folder first")
    recorded = read_recorded(recipe.name)
    paths = [path for source in recipe.sources for path in _source_paths(source, downloads, is_offline, log)]
    files = _read_files(recipe, recorded, paths, log)
    log(f"converting {len(files)} files")
    documents = list(recipe.documents(recorded, files))
    if not documents:
        raise FetchError(f"{', '.join(map(str, paths))}: no document of {recipe.name} is inside; check the downloads")
    queries = list(recipe.queries(recorded, files)) if recipe.queries else None
    _write(folder, recorded, documents, queries)
    digests = {str(document["id"]): document_digest(document) for document in documents}
    pairs = list(zip(recorded.ids, recorded.digests, strict=True))
    tasks = [name for name, task in TASKS.items() if task.folder == recipe.name]
    return Rebuilt(
        folder,
        len(recorded.ids),
        [doc_id for doc_id, digest in pairs if doc_id in digests and digests[doc_id] != digest],
        [doc_id for doc_id in recorded.ids if doc_id not in digests],
        _source_digest(recipe, files) == recorded.source,
        {name: (checksum(open_dataset(name, to)), recorded.checksums[name]) for name in tasks},
        recipe.left_out,
    )


def by_hand(recipe: Recipe, to: Path, downloads: Path) -> str:
    """The instructions for a source that cannot be downloaded: the address and name of each file, then the command."""
    lines = [f"  {source.url}\n    as {downloads / source.file}" for source in recipe.sources]
    command = f"python -m benchmarks fetch {recipe.name} --to {to} --from {downloads}"
    return "\n".join(["Download by hand:", *lines, f"Then run: {command}"])


def _source_paths(source: Source, downloads: Path, is_offline: bool, log: Log) -> list[Path]:
    found = find_downloads(source, downloads)
    if found or (is_offline and source.is_optional):
        return found
    if is_offline:
        raise FetchError(f"{downloads} holds no {source.file}")
    return [download(source, downloads, log)]


def _read_files(recipe: Recipe, recorded: Recorded, paths: Iterable[Path], log: Log) -> dict[str, bytes]:
    """The files that the recipe uses, by key; the first file of a key is used."""
    files: dict[str, bytes] = {}
    ids = set(recorded.ids)
    one_file_each = not recorded.given  # a key starts with the id of its document

    def is_wanted(name: str) -> bool:
        key = recipe.key(name)
        return bool(key) and key not in files and (not one_file_each or _id_of(key) in ids or not recipe.is_text(key))

    for path in paths:
        log(f"reading {path}")
        single = not path.is_dir() and path.suffix == ".xml"
        members = [(path.name, path.read_bytes())] if single else read_members(path, is_wanted)
        for name, data in members:
            files.setdefault(recipe.key(name), data)
    return files


def _id_of(key: str) -> str:
    return key.removesuffix(".txt")


def _source_digest(recipe: Recipe, files: Mapping[str, bytes]) -> str:
    return source_digest({key: data for key, data in files.items() if recipe.is_text(key)})


def _write(
    folder: Path,
    recorded: Recorded,
    documents: Sequence[CorpusDocument],
    queries: Sequence[CorpusDocument] | None,
) -> None:
    """Write all files, the corpus last, so that a folder with a corpus is complete."""
    ids = {str(document["id"]) for document in documents}
    query_ids = ids if queries is None else ids | {str(query["id"]) for query in queries}
    folder.mkdir(parents=True, exist_ok=True)
    for name, judged in recorded.judgments.items():
        lines = judgment_lines(_kept(judged, query_ids, ids))
        (folder / name).write_text(HEADER + "".join(lines), "utf-8")
    for name, splits in recorded.splits.items():
        kept = {split: [query_id for query_id in listed if query_id in query_ids] for split, listed in splits.items()}
        (folder / name).write_text(json.dumps(kept, indent=1) + "\n", "utf-8")
        judged = recorded.judgments[name.replace("splits", "qrels").replace(".json", ".tsv")]
        pairs = train_pairs(_kept(judged, query_ids, ids), kept)
        (folder / name.replace("splits", "train_pairs").replace(".json", ".tsv")).write_text(
            HEADER + "".join(pairs), "utf-8"
        )
    if queries is not None:
        write_json_lines(folder / QUERIES, queries)
    write_json_lines(folder / "corpus.jsonl.gz", documents)


def train_pairs(judged: Judged, splits: Mapping[str, Sequence[str]]) -> list[str]:
    """Judgments of training queries without held-out queries as targets, since a mutual link would leak a test pair."""
    held_out = {query_id for split, listed in splits.items() if split != "train" for query_id in listed}
    train = set(splits["train"])
    lines = judgment_lines({query_id: targets for query_id, targets in judged.items() if query_id in train})
    return [line for line in lines if line.split("\t")[1] not in held_out]


def _kept(judged: Judged, query_ids: Collection[str], ids: Collection[str]) -> Judged:
    return {
        query_id: {relevance: [target for target in targets if target in ids] for relevance, targets in by.items()}
        for query_id, by in judged.items()
        if query_id in query_ids
    }
