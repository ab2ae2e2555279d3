"""Documents and pairs of a task: drawn by a protocol, or read from published files or files of a user."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.baselines.lexical import BM25
from benchmarks.datasets import TASKS, Dataset, DatasetError, checksum, files_checksum, open_dataset, read_documents
from benchmarks.formats import gwikimatch, pair_files
from benchmarks.formats.lines import FormatError, columns, read_lines
from benchmarks.pair_scorer import Pair, documents_of
from benchmarks.pairs.building import PROTOCOLS, Negatives, Ranked, build_pairs
from benchmarks.pairs.splitting import (
    Edge,
    PairSplits,
    Split,
    SplitRule,
    assign_documents,
    cut_tenths,
    hold_out_tenths,
    read_relations,
    split_of,
    undirected,
)
from engine.text.document import Document


@dataclass(frozen=True)
class GivenPairs:
    """Pairs, and the split of each."""

    place: str  # file or folder, for messages
    pairs: Sequence[Pair]
    splits: Sequence[Split | None]  # of each pair; None if the file gives none


def split_given(given: GivenPairs, rule: SplitRule, *, seed: int, most: int | None = None) -> PairSplits:
    """Assign pairs to splits.

    With the rule DOCUMENT, a tenth of the first documents is held out for test and another tenth for valid, and the
    others are assigned by `assign_documents`; pairs between two splits are dropped. With every rule except GIVEN,
    repeated pairs, in this or the other order, are left out.

    Args:
        given: pairs of any splits.
        rule: GIVEN uses the given splits; the other rules ignore them.
        seed: of the splits.
        most: the largest number of matches, and of mismatches, in a split; the first ones are kept; all by default.

    Raises:
        DatasetError: the rule is GIVEN and splits are missing, or a split has no matches or no mismatches.
    """
    if rule is SplitRule.GIVEN and not all(given.splits):
        raise DatasetError(f"{given.place} has no column split; add it, or take --split document or --split pair")
    pairs = given.pairs if rule is SplitRule.GIVEN else _each_once(given.pairs)
    chosen = given.splits if rule is SplitRule.GIVEN else _splits(pairs, rule, seed)
    splits: dict[Split, list[Pair]] = {split: [] for split in Split}
    for pair, split in zip(pairs, chosen, strict=True):
        if split is not None:
            splits[split].append(pair)
    for split, own in splits.items():
        n_matches = sum(pair.is_match for pair in own)
        if n_matches in (0, len(own)):
            raise DatasetError(
                f"split {split} of {given.place} has {n_matches} matches among {len(own)} pairs by the rule {rule}; "
                "both kinds are needed: take another rule (--split), or more pairs"
            )
    return {split: _first(own, most) for split, own in splits.items()}


def _each_once(pairs: Sequence[Pair]) -> list[Pair]:
    first: dict[Edge, Pair] = {}
    for pair in pairs:
        first.setdefault(undirected(pair.first, pair.second), pair)
    return list(first.values())


def _first(pairs: Sequence[Pair], most: int | None) -> tuple[Pair, ...]:
    if most is None:
        return tuple(pairs)
    of_kind = {kind: [at for at, pair in enumerate(pairs) if pair.is_match is kind][:most] for kind in (True, False)}
    return tuple(pairs[at] for at in sorted(of_kind[True] + of_kind[False]))


def _splits(pairs: Sequence[Pair], rule: SplitRule, seed: int) -> list[Split | None]:
    """A split for each pair; None if its documents are in two splits."""
    if rule is SplitRule.PAIR:
        return [*cut_tenths(len(pairs), seed)]
    held = hold_out_tenths(list(dict.fromkeys(pair.first for pair in pairs)), seed)
    claims: dict[Split, list[Edge]] = defaultdict(list)
    for pair in pairs:
        claims[split_of((pair.first, pair.second), held)].append((pair.first, pair.second))
    homes = assign_documents({split: claims[split] for split in Split}, held)
    return [homes[pair.first] if homes[pair.first] is homes[pair.second] else None for pair in pairs]


COLUMNS = ("id1", "id2", "label")
SPLIT = "split"
FORM = "id1 <tab> id2 <tab> label [<tab> split], label 0 or 1, split train, valid or test"


def read_pair_file(path: Path, doc_ids: Collection[str]) -> GivenPairs:
    """Read a file whose first line names the columns id1, id2, label and optionally split.

    Args:
        path: the file in UTF-8; can be gzipped.
        doc_ids: the ids of the corpus.

    Raises:
        FormatError: the file cannot be read, or a line has another form, names a document that is not in the corpus,
            or repeats a pair.
    """
    known, seen = set(doc_ids), dict[Edge, str]()
    names: list[str] = []
    pairs: list[Pair] = []
    splits: list[Split | None] = []
    for place, line in read_lines(path):
        if not names:
            names = _checked_names(path, line.split("\t"))
            continue
        row = dict(zip(names, columns(place, line, names), strict=True))
        pair = _pair(place, row, known)
        edge = undirected(pair.first, pair.second)
        if edge in seen:
            raise FormatError(
                f"{place} has the pair {pair.first}, {pair.second} that stands in {seen[edge]}, in this or the other "
                "order; leave one of them out"
            )
        seen[edge] = place
        pairs.append(pair)
        splits.append(_split(place, row))
    return GivenPairs(str(path), pairs, splits)


def _checked_names(path: Path, names: list[str]) -> list[str]:
    if missing := [column for column in COLUMNS if column not in names]:
        raise FormatError(f"{path} lacks the column {missing[0]}; its lines must be: {FORM}")
    return names


def _pair(place: str, row: Mapping[str, str], known: Collection[str]) -> Pair:
    first, second, label = (row[column] for column in COLUMNS)
    if label not in ("0", "1") or first == second:
        raise FormatError(f"{place} has the ids {first!r}, {second!r} and the label {label!r}; it must be: {FORM}")
    if strangers := [doc_id for doc_id in (first, second) if doc_id not in known]:
        raise FormatError(
            f"{place} names {strangers[0]!r}, which is none of {len(known)} documents of the corpus; add it there, or "
            "leave the pair out"
        )
    return Pair(first, second, label == "1")


def _split(place: str, row: Mapping[str, str]) -> Split | None:
    name = row.get(SPLIT)
    if name is None:
        return None
    if name not in list(Split):
        raise FormatError(f"{place} has the split {name!r}; it must be one of {', '.join(Split)}")
    return Split(name)


@dataclass(frozen=True)
class PublishedPairs:
    """A published set of pairs."""

    given: GivenPairs
    documents: Mapping[str, Document]
    n_lost: Mapping[Split, int]  # dropped pairs, which lack a text
    files: Sequence[Path]  # all files that were read


def read_published(folder: Path, texts: Path) -> PublishedPairs:
    """Read the published set in a folder, AAN or GWikiMatch.

    Args:
        folder: has `new_aan_pairs.{train,eval,test}.tsv`, which include the texts, or the files of GWikiMatch,
            see `benchmarks.formats.gwikimatch`.
        texts: the file of articles for GWikiMatch; not read for AAN.

    Raises:
        FormatError: the folder has neither set, or a file cannot be read.
    """
    if pair_files.is_pair_folder(folder):
        read = pair_files.read_folder(folder)
        files = [folder / name for name in pair_files.FILES.values()]
        n_lost = {split: read.n_blank[split] for split in Split}
        return PublishedPairs(_given(folder, read.pairs), read.documents, n_lost, files)
    paths = gwikimatch.pair_files(folder)
    if not paths:
        raise FormatError(
            f"{folder} holds neither {', '.join(pair_files.FILES.values())} nor the files of GWikiMatch; name a folder "
            "of these, or a file of your own pairs"
        )
    if not texts.is_file():
        raise FormatError(
            f"{texts} is no file, and GWikiMatch holds no texts; name the file of its articles as TASK, which "
            "benchmarks/formats/gwikimatch.py tells how to make"
        )
    pairs = {split: list(gwikimatch.read_pairs(path)) for split, path in paths.items()}
    names = gwikimatch.article_names(pair for own in pairs.values() for pair in own)
    documents = gwikimatch.read_texts(texts, names)
    kept = {split: gwikimatch.with_texts(own, documents)[0] for split, own in pairs.items()}
    n_lost = {split: len(pairs[split]) - len(kept[split]) for split in Split}
    return PublishedPairs(_given(folder, kept), documents, n_lost, [texts, *paths.values()])


def _given(folder: Path, pairs: Mapping[str, Sequence[Pair]]) -> GivenPairs:
    flat = [(pair, Split(split)) for split, own in pairs.items() for pair in own]
    return GivenPairs(str(folder), [pair for pair, _ in flat], [split for _, split in flat])


@dataclass(frozen=True)
class Asked:
    """The requested pairs."""

    protocol: str
    rule: SplitRule
    pairs: Path | None  # a file of the user, or the folder of a published set; None draws pairs
    seed: int
    most: int | None  # largest number of either kind in a split


@dataclass(frozen=True)
class PreparedPairs:
    """Pairs and their documents."""

    task: str
    dataset: str  # name@checksum of all files that were read
    documents: Mapping[str, Document]  # documents of the pairs, in the order of the corpus
    splits: PairSplits
    n_lost: Mapping[Split, int]  # dropped pairs: matches without a mismatch, or pairs without a text


def prepared_pairs(name: str, data: Path, request: Asked) -> PreparedPairs:
    """Read a corpus and draw its pairs, or read them from files.

    Args:
        name: a task, or a folder of the same layout; with a user's own pairs, any file of documents; with GWikiMatch,
            the file of its articles; with AAN, only a name, since its files include the texts.
        data: the folder of the tasks.
        request: the requested pairs.

    Raises:
        DatasetError: files are missing or do not fit together, or too few pairs are left.
        FormatError: a file of pairs cannot be read.
    """
    if request.pairs is None:
        return _drawn(name, data, request)
    if request.pairs.is_dir():
        return _published(name, request, request.pairs)
    return _own(name, data, request, request.pairs)


def _drawn(name: str, data: Path, request: Asked) -> PreparedPairs:
    dataset = open_dataset(name, data)
    documents = {document.doc_id: document for document in read_documents(dataset)}
    protocol = PROTOCOLS[request.protocol]
    ranked = _lexical(documents) if protocol.negatives is Negatives.LEXICAL else None
    relations = read_relations(dataset, documents.keys())
    built = build_pairs(relations, protocol, request.rule, seed=request.seed, most=request.most, ranked=ranked)
    return _prepared(dataset.name, checksum(dataset), documents, built.splits, built.n_lost)


def _own(name: str, data: Path, request: Asked, pairs: Path) -> PreparedPairs:
    folder = data / TASKS[name].folder if name in TASKS else Path(name)
    corpus = folder / "corpus.jsonl.gz" if folder.is_dir() else folder
    if not corpus.is_file():
        raise DatasetError(f"{name!r} is no task, no folder with corpus.jsonl.gz and no file of documents; pass one")
    task = folder.resolve().name.partition(".")[0]
    documents = {document.doc_id: document for document in read_documents(Dataset(task, corpus, pairs, pairs))}
    splits = split_given(read_pair_file(pairs, documents.keys()), request.rule, seed=request.seed, most=request.most)
    return _prepared(task, files_checksum([corpus, pairs]), documents, splits, dict.fromkeys(Split, 0))


def _published(name: str, request: Asked, folder: Path) -> PreparedPairs:
    read = read_published(folder, Path(name))
    splits = split_given(read.given, request.rule, seed=request.seed, most=request.most)
    task = Path(name).name.partition(".")[0]
    return _prepared(task, files_checksum(read.files), read.documents, splits, read.n_lost)


def _prepared(
    task: str, digest: str, documents: Mapping[str, Document], splits: PairSplits, n_lost: Mapping[Split, int]
) -> PreparedPairs:
    named = {doc_id for pairs in splits.values() for doc_id in documents_of(pairs)}
    kept = {doc_id: document for doc_id, document in documents.items() if doc_id in named}
    return PreparedPairs(task, f"{task}@{digest}", kept, splits, n_lost)


def _lexical(documents: Mapping[str, Document]) -> Ranked:
    """The nearest documents of each document by BM25."""
    bm25 = BM25().fit(documents.values())
    return lambda doc_id, depth: [found for found, _ in bm25.search(documents[doc_id], depth)]
