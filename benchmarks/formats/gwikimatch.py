"""GWikiMatch (Yang et al. 2020, arXiv:2004.12297): pairs of English Wikipedia articles by URL; no texts.

`gwikimatch_v2_human_neg_1.{train,eval,test}_external_wdp.filtered_contro_wiki_cc_team.only_urls.tsv` have,
without a header, the columns label, URL, URL, separated by tabs. The labels 1 and 2 are matches (somewhat or strongly
similar), 0 is a mismatch. The files are in gwikimatch_open_source.zip, named in
https://storage.googleapis.com/gresearch/smith_gwikimatch/README.md, licensed CC BY 4.0 by Google LLC; the articles
are CC BY-SA of their authors.

The texts have to be fetched by hand, since articles change and are not distributed with the pairs: for every name of
`article_names`, take the article from an English Wikipedia dump (https://dumps.wikimedia.org/enwiki/) or from
https://en.wikipedia.org/w/api.php?action=query&prop=extracts&explaintext=1&format=json&titles=NAME, and write a line
{"id": URL or name, "title": ..., "sections": [{"heading": ..., "text": ...}]} into a file .jsonl or .jsonl.gz. State
the date of the texts with every number; the authors' texts were of 2020.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from urllib.parse import unquote, urlsplit

from benchmarks.formats.lines import FormatError, columns, read_lines
from benchmarks.pair_scorer import Pair
from engine.readers import Unreadable, read_file
from engine.text.document import Document

SPLITS: Mapping[str, str] = {"train": "train", "valid": "eval", "test": "test"}  # our names, and the names in the files
_FILE = "gwikimatch*.{}_external_wdp*.tsv"
_COLUMNS = ("label", "URL", "URL")
_LABELS = {"0": False, "1": True, "2": True}


def pair_files(folder: Path) -> dict[str, Path]:
    """The files of pairs by split; empty if there are none."""
    found = {split: sorted(folder.glob(_FILE.format(name))) for split, name in SPLITS.items()}
    if not any(found.values()):
        return {}
    for split, paths in found.items():
        if len(paths) != 1:
            raise FormatError(
                f"{folder} holds {len(paths)} files {_FILE.format(SPLITS[split])}; one is needed, as the archive has it"
            )
    return {split: path for split, (path,) in found.items()}


def read_pairs(path: Path) -> Iterator[Pair]:
    """Stream the pairs of a file, with the names of articles as ids of documents."""
    for place, line in read_lines(path):
        label, first, second = columns(place, line, _COLUMNS)
        if label not in _LABELS:
            raise FormatError(f"{place} has the label {label!r}; it must be 0, 1 or 2")
        yield Pair(_named(place, first), _named(place, second), _LABELS[label])


def article_names(pairs: Iterable[Pair]) -> list[str]:
    """The name of every article of the pairs once, in their order."""
    return list(dict.fromkeys(name for pair in pairs for name in (pair.first, pair.second)))


def article_name(url: str) -> str:
    """The name of an article as Wikipedia shows it, from its URL or name.

    `http://en.wikipedia.org/wiki/Alan_Turing` and `Alan Turing` give the same name.
    """
    path = urlsplit(url).path if "://" in url else url
    name = unquote(path.rpartition("/wiki/")[2] if "://" in url else path).replace("_", " ").strip()
    return name[:1].upper() + name[1:]


def read_texts(path: Path, names: Collection[str]) -> dict[str, Document]:
    """Read the texts of these articles, by name, from a file that was fetched by hand."""
    wanted = set(names)
    found: dict[str, Document] = {}
    for document in read_file(path):
        if isinstance(document, Unreadable):
            raise FormatError(f"{document.source}: {document.reason}")
        name = article_name(document.doc_id)
        if name in wanted:
            found[name] = replace(document, doc_id=name)
    return found


def with_texts(pairs: Iterable[Pair], documents: Mapping[str, Document]) -> tuple[list[Pair], list[str]]:
    """The pairs with both texts, and the names of missing articles; report the number of dropped pairs with results."""
    all_pairs = list(pairs)
    kept = [pair for pair in all_pairs if pair.first in documents and pair.second in documents]
    missing = [name for name in article_names(all_pairs) if name not in documents]
    if not kept:
        raise FormatError(
            f"no pair of {len(all_pairs)} has both its texts; {len(missing)} articles are missing, the first is "
            f"{missing[0] if missing else ''!r}; fetch them by hand, as benchmarks/formats/gwikimatch.py tells"
        )
    return kept, missing


def _named(place: str, url: str) -> str:
    name = article_name(url)
    if not name or ("://" in url and "/wiki/" not in url):
        raise FormatError(f"{place} names {url!r}, which is no article of Wikipedia; it must hold /wiki/NAME")
    return name
