"""What a run reads: paths, folders, globs and standard input as one stream in a fixed order, each file with its doc_id.

Files that are parts of other documents, as the chapters of a LaTeX document are, are left out.
The rule by which a file gets its doc_id:

- A file that the index holds keeps its doc_id, whichever folder is passed this time.
- The doc_id of any other file is its path below the folder that was passed, or its file name if it was passed itself.
- If two files of a run would get the same doc_id, the paths start at the common parent of all passed folders:
  `2021 2022` gives `2021/x.txt` and `2022/x.txt`.
- A prefix comes in front. It never changes the doc_id of a file that the index holds.

Two files never share a doc_id.

Of a library of Zotero the database is copied before it is read, since Zotero locks it while it runs and keeps new
changes in a second file (WAL); the library itself is only read. Names of tables: `resource/schema/userdata.sql` there.
"""

import glob
import os
import re
import shutil
import sqlite3
import sys
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import closing, nullcontext, suppress
from dataclasses import dataclass, field, replace
from html import unescape
from itertools import groupby
from pathlib import Path, PurePath
from tempfile import TemporaryDirectory

from engine.errors import DocumentError
from engine.readers import Unreadable, holds_document, jsonl
from engine.readers.fields import USUAL, Fields
from engine.readers.latex_source import is_fragment
from engine.readers.reader import included_files
from engine.store.catalog import holds_index, is_manifest
from engine.text.document import NO_NAME, Document, MetadataValue
from indexer.reading.reader import (
    OCR_DIGEST,
    OCR_LANGUAGE,
    DocumentReader,
    ReadRequest,
    digest_of,
    is_json_lines,
)

DATABASE = "zotero.sqlite"
_LINKED_FILE = 2
_RENAMED = {
    "DOI": "doi", "ISBN": "isbn", "ISSN": "issn", "publicationTitle": "journal", "proceedingsTitle": "venue",
    "patentNumber": "number", "issueDate": "date", "dateDecided": "date", "dateEnacted": "date",
    "assignee": "assignees",
}  # fmt: skip
_LISTS = ("tags", "collections", "notes")
_UNUSED = ("title", "abstractNote", "accessDate", "caseName", "nameOfAct", "subject")
_TITLES = ("title", "caseName", "nameOfAct", "subject")
_TAG = re.compile(r"<[^<>]*>")
_DATE = re.compile(r"(\d{4})-(\d\d)-(\d\d) ")  # before the date as it was typed; 00 for a part that is not known

_ATTACHMENTS = """
SELECT owners.itemID, owners.key, items.itemID, items.key, linkMode, path
FROM itemAttachments JOIN items ON items.itemID = itemAttachments.itemID
JOIN items AS owners ON owners.itemID = coalesce(parentItemID, itemAttachments.itemID)
WHERE path IS NOT NULL AND linkMode <= 2
AND items.itemID NOT IN (SELECT itemID FROM deletedItems) AND owners.itemID NOT IN (SELECT itemID FROM deletedItems)"""
_VALUES = (
    "SELECT itemID, fieldName, value FROM itemData JOIN fields USING (fieldID) JOIN itemDataValues USING (valueID)"
)
_TYPES = "SELECT itemID, 'item_type', typeName FROM items JOIN itemTypes USING (itemTypeID)"
_CREATORS = """
SELECT itemID, creatorType, trim(coalesce(firstName, '') || ' ' || coalesce(lastName, ''))
FROM itemCreators JOIN creators USING (creatorID) JOIN creatorTypes USING (creatorTypeID) ORDER BY itemID, orderIndex"""
_TAGS = "SELECT itemID, 'tags', name FROM itemTags JOIN tags USING (tagID) ORDER BY itemID, name"
_NOTES = """
SELECT parentItemID, 'notes', note FROM itemNotes
WHERE note != '' AND itemID NOT IN (SELECT itemID FROM deletedItems) ORDER BY itemID"""
_ANNOTATIONS = """
SELECT parentItemID, 'annotations', coalesce(text, '') || char(10) || coalesce(comment, '') FROM itemAnnotations
WHERE coalesce(text, '') || coalesce(comment, '') != '' AND itemID NOT IN (SELECT itemID FROM deletedItems)
ORDER BY parentItemID, sortIndex"""  # of an attachment; older libraries have no such table
_COLLECTIONS = """
WITH RECURSIVE paths (collectionID, path) AS (
    SELECT collectionID, collectionName FROM collections WHERE parentCollectionID IS NULL
    UNION ALL SELECT collections.collectionID, path || '/' || collectionName
    FROM collections JOIN paths ON parentCollectionID = paths.collectionID)
SELECT itemID, 'collections', path FROM collectionItems JOIN paths USING (collectionID) ORDER BY itemID, path"""


@dataclass(frozen=True, slots=True)
class Item:
    """What a library says about a file; an empty title is not known."""

    title: str
    metadata: Mapping[str, MetadataValue]

    def of(self, document: Document) -> Document:
        """The document with the title of the item, and its metadata before those of the file."""
        return replace(document, title=self.title or document.title, metadata={**document.metadata, **self.metadata})


def attachments(folder: Path) -> dict[Path, Item]:
    """The files of a library with their items; items in the trash are left out, and so are links to the web.

    Raises:
        DocumentError: the database cannot be read.
    """
    with TemporaryDirectory() as copy:
        for suffix in ("", "-wal", "-journal"):
            if (file := folder / f"{DATABASE}{suffix}").exists():
                shutil.copyfile(file, Path(copy, file.name))
        try:
            with closing(sqlite3.connect(Path(copy, DATABASE))) as database:
                return dict(_attachments(folder, database))
        except sqlite3.Error as error:
            raise DocumentError(
                f"{folder / DATABASE} is no library of Zotero that can be read ({error}); close Zotero, and try again"
            ) from error


def _attachments(folder: Path, database: sqlite3.Connection) -> Iterator[tuple[Path, Item]]:
    values: defaultdict[int, dict[str, str]] = defaultdict(dict)
    for item, name, value in (*database.execute(_VALUES), *database.execute(_TYPES)):
        values[item][name] = str(value)
    lists: defaultdict[int, defaultdict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    tables = {name for (name,) in database.execute("SELECT name FROM sqlite_master")}
    for query in (_CREATORS, _TAGS, _COLLECTIONS, _NOTES, *[_ANNOTATIONS] * ("itemAnnotations" in tables)):
        for item, name, value in database.execute(query):
            is_markup = name in ("notes", "annotations")
            lists[item][name].append(" ".join(unescape(_TAG.sub(" ", value)).split()) if is_markup else value)
    for item, key, own, own_key, mode, path in database.execute(_ATTACHMENTS):
        stored = folder / "storage" / Path(own_key).name / Path(path.removeprefix("storage:")).name
        title = next((values[item][name] for name in _TITLES if name in values[item]), "")
        annotations = lists[own].pop("annotations", [])
        metadata = {"zotero_key": key, **_metadata(values[item], lists[item])}
        metadata |= {"annotations": [*annotations]} if annotations else {}
        yield Path(path) if mode == _LINKED_FILE else stored, Item(title, metadata)


def _metadata(values: Mapping[str, str], lists: Mapping[str, list[str]]) -> dict[str, MetadataValue]:
    """The fields of an item under the names that reports use; all creators are authors where it has no author."""
    fields: dict[str, MetadataValue] = {
        _RENAMED.get(name, name): value for name, value in values.items() if name not in _UNUSED
    }
    if match := _DATE.match(str(fields.get("date", ""))):
        fields["date"] = match[0].strip().replace("-00", "")
        fields["year"] = int(match[1])
    fields |= {name if name in _LISTS else f"{name}s": [*names] for name, names in lists.items()}
    creators = [name for role, names in lists.items() if role not in _LISTS for name in names]
    return {"authors": [*creators], **fields} if creators else fields


@dataclass(frozen=True, slots=True)
class FileIds:
    """The rule for the doc_ids of a run, besides its paths."""

    prefix: str = ""  # of new doc_ids
    index: Path | None = None  # whose files keep their doc_ids; None for no index

    def of(self, roots: Mapping[Path, Path]) -> dict[Path, str]:
        """The doc_id of each file.

        Args:
            roots: absolute paths of files, each with the folder that was passed.
        """
        names = {file: file.relative_to(root).as_posix() for file, root in roots.items()}
        if len(set(names.values())) < len(names):
            shared = os.path.commonpath(set(roots.values()))
            names = {file: file.relative_to(shared).as_posix() for file in roots}
        known = {} if self.index is None else held_files(self.index, roots)
        return {file: known.get(file, self.prefix + name) for file, name in names.items()}


def held_files(index: Path, files: Mapping[Path, object]) -> dict[Path, str]:
    """The doc_ids of the given files that an index holds; empty if there is no index."""
    # Loads numpy, time that a mistyped path should not cost.
    from engine.store.partitioned import stored_sources

    if not holds_index(index):
        return {}
    wanted = {str(file): file for file in files}
    doc_ids = {}
    for doc_id, source in stored_sources(index):
        file = wanted.get(source) or wanted.get(str(Path(source).absolute()))
        if file is not None:
            doc_ids[file] = doc_id
    return doc_ids


def absolute(path: Path) -> Path:
    """The absolute path, the same for all spellings; symbolic links are resolved only in a path with `..`."""
    return path.resolve() if ".." in path.parts else path.absolute()


def file_of(source: str, doc_id: str) -> str:
    """The file that a document is named by, with its place in it; else the source, which is such a file or none."""
    file = source.rpartition(":")[0]
    return file if f"{PurePath(file).name}#" in doc_id else source


def is_another_file(stored: str, source: str) -> bool:
    """Whether a document was read from another file than the one indexed under its doc_id.

    Both files must be there: a corpus that was moved is still the same corpus. Lines of JSON with ids and
    documents that were made in memory have no file of their own.
    """
    if stored == source or not (_is_file(stored) and _is_file(source)):
        return False
    return not Path(stored).samefile(source)


def is_gone(stored: str, source: str) -> bool:
    """Whether a document was read from another file, and the file it was indexed from is no longer there."""
    return stored not in ("", source) and _is_file(source) and not _is_file(stored)


def full_source(source: str) -> str:
    """The absolute path of a source that is a file; any other source as it is."""
    return str(absolute(Path(source))) if _is_file(source) else source


def repeated(document: Document) -> Unreadable:
    """The failure of a document whose doc_id came before in the same run."""
    return Unreadable(
        document.source or document.doc_id,
        f"doc_id {document.doc_id!r} came twice in this run; the first one was indexed: give each document its own",
        document.doc_id,
    )


def of_another_file(document: Document, stored: str) -> Unreadable:
    """The failure of a document whose doc_id belongs to the file `stored`."""
    file = file_of(document.source, document.doc_id)
    own_id = document.doc_id if file == document.source else document.doc_id.rpartition("#")[0]
    folder = PurePath(file.removesuffix(own_id)).name
    return Unreadable(
        document.source,
        f"doc_id {document.doc_id!r} belongs to another file, {stored}, which stays indexed; keep both with "
        f"--id-prefix {folder}/ (Python: id_prefix=), or put this one in its place with --replace (index.update)",
        document.doc_id,
    )


def _is_file(source: str) -> bool:
    """Whether a source is the path of a file; a source may hold what no path can."""
    try:
        return Path(source).is_file()
    except (OSError, ValueError):
        return False


def without_included(files: Collection[Path]) -> list[Path]:
    """Leave out files that another of these files includes, so that no text is indexed twice.

    Of files that include each other, one stays. Drafts and reference lists in the folder of a LaTeX document are left
    out, and all figures in a folder below it that holds one which it shows.
    """
    drafts = _fragments(files) | _reference_lists(files)
    parts = {file: included_files(file) for file in files}
    included = {part for value in parts.values() for part in value}
    if not included and not drafts:
        return list(files)
    resolved = {file: file.resolve() for file in files}
    shown = {part.parent for part in included if part.suffix.lower() == ".pdf"}
    shown -= {resolved[file].parent for file in files if ".tex" in file.suffixes[-2:] and file not in drafts}
    chosen: list[Path] = []
    covered = {part for draft in drafts for part in parts[draft] if part.suffix.lower() == ".pdf"}
    # Files that no other includes come first: what they include is read as a part of them.
    for file in sorted(files, key=lambda file: (resolved[file] in included, len(file.parts), str(file))):
        is_figure = file.suffix.lower() == ".pdf" and resolved[file].parent in shown
        if file not in drafts and resolved[file] not in covered and not is_figure:
            chosen.append(file)
            covered.update(part for part in parts[file] if part != resolved[file])
    return chosen


STDIN = "-"
_N_NAMED = 8  # suffixes in a message
# In place of the suffix of what is not read. A link to a folder may lead to a folder that it lies in.
NO_SUFFIX, BROKEN_LINK, LINKED_FOLDER = "no suffix", "broken link", "link to a folder"
NO_FILE = "missing file"  # of a library
_CITING = frozenset([".tex", ".md", ".qmd", ".rmd"])


def _fragments(files: Collection[Path]) -> set[Path]:
    """LaTeX files that are no documents, such as drafts, in the folder of the only one that is."""
    sources = [file for file in files if ".tex" in file.suffixes[-2:]]
    fragments = {file for file in sources if is_fragment(file)}
    n_mains = Counter(file.parent for file in sources if file not in fragments)
    return {file for file in fragments if sum(n_mains[folder] for folder in file.parents) == 1}


def _reference_lists(files: Collection[Path]) -> set[Path]:
    """Files of BibTeX in or below a folder with a text in LaTeX or Markdown, which may cite them."""
    lists = {file for file in files if ".bib" in file.suffixes[-2:]}
    citing = {file.parent for file in files if not _CITING.isdisjoint(file.suffixes[-2:])} if lists else set()
    return {file for file in lists if not citing.isdisjoint(file.parents)}


@dataclass(frozen=True, slots=True)
class CorpusFiles:
    """The files of a corpus, found by one walk through its folders."""

    roots: Mapping[Path, Path]  # absolute path of each readable file, and the folder that was passed
    unsupported: Mapping[str, int]  # other files of the folders by suffix, the most frequent suffix first
    latex_parts: Sequence[Path] = ()  # parts, figures, drafts and reference lists in the folders of documents
    reads_stdin: bool = False
    fields: Fields = USUAL  # of records
    items: Mapping[Path, Item] = field(default_factory=dict)  # of a library, by file

    def named(self, ids: FileIds | None = None) -> list[tuple[Path, str]]:
        """Absolute path and doc_id of each readable file, sorted by doc_id; see `indexer.building.corpus`.

        The documents in a file of JSON lines have doc_ids of their own.
        """
        names = (ids or FileIds()).of(self.roots) if self.roots else {}
        return sorted(names.items(), key=lambda item: (item[1], str(item[0])))

    @property
    def n_documents(self) -> int | None:
        """The number of files, each one document; None with JSON lines or standard input."""
        is_counted = not self.reads_stdin and not any(is_json_lines(str(file)) for file in self.roots)
        return len(self.roots) if is_counted else None


def list_corpus(paths: Sequence[str], fields: Fields = USUAL) -> CorpusFiles:
    """Find the files of a corpus.

    Args:
        paths: files, folders and glob patterns, and `-` for standard input. Folders are searched recursively, without
            hidden files and files that another file includes. A file that is named is read, whatever its suffix.

    Raises:
        DocumentError: a path does not exist, or nothing readable was found.
    """
    named = [path for path in paths if path != STDIN]
    roots: dict[Path, Path] = {}
    suffixes: dict[Path, str] = {}
    parts: set[Path] = set()
    items: dict[Path, Item] = {}
    for pattern in named:
        for path in map(absolute, _expand(pattern)):
            is_folder = path.is_dir()
            if is_folder and (path / DATABASE).is_file():
                items |= _library(path, roots, suffixes)
                continue
            root = path if is_folder else path.parent
            for file in _files_below(path, suffixes, parts) if is_folder else [path]:
                if file not in roots or len(root.parts) < len(roots[file].parts):
                    roots[file] = root
    counts = sorted(Counter(suffixes.values()).items(), key=lambda item: (-item[1], item[0]))
    if named and not roots:
        there = ", ".join(f"{suffix} ({n:,})" for suffix, n in counts[:_N_NAMED])
        is_library = any((Path(path) / DATABASE).is_file() for path in named)
        there = f", there is {there}" if there else ", whose library of Zotero lists no file" if is_library else ""
        raise DocumentError(f"no readable file in {', '.join(named)}{there}; formats: see longmatch index --help")
    return CorpusFiles(roots, dict(counts), sorted(parts - roots.keys()), STDIN in paths, fields, items)


def _library(folder: Path, roots: dict[Path, Path], unsupported: dict[Path, str]) -> dict[Path, Item]:
    """The items of a library of Zotero by file; adds readable files to `roots`, and the others to `unsupported`."""

    items = attachments(folder)
    for file in items:
        if not file.is_file():
            unsupported[file] = NO_FILE
        elif holds_document(file):
            roots[file] = folder if file.is_relative_to(folder) else file.parent
        else:
            unsupported[file] = file.suffix.lower() or NO_SUFFIX
    return items


def _files_below(folder: Path, unsupported: dict[Path, str], parts: set[Path]) -> list[Path]:
    """Documents below a folder that are not hidden; adds other files with their suffix to `unsupported`.

    A folder that cannot be listed is among the documents, so that it fails when it is read.
    """
    readable: list[Path] = []
    for root, folders, names in os.walk(folder, onerror=lambda error: readable.append(Path(error.filename))):
        folders[:] = [name for name in folders if not name.startswith(".")]
        for name in (*folders, *names):
            path = Path(root, name)
            if name.startswith((".", "~$")):
                continue  # "~$" begins the name of a lock file of Word
            if path.is_file():
                if holds_document(path) and not is_manifest(path):
                    readable.append(path)
                else:
                    unsupported[path] = path.suffix.lower() or NO_SUFFIX
            elif path.is_symlink():
                unsupported[path] = LINKED_FOLDER if path.exists() else BROKEN_LINK
    documents = without_included(readable)
    parts.update(set(readable).difference(documents))
    return documents


def _expand(pattern: str) -> list[Path]:
    if not pattern:
        raise DocumentError(f"'': {NO_NAME}")
    path = Path(pattern)
    if path.exists():
        return [path]
    matches = sorted(glob.glob(pattern, recursive=True))  # noqa: PTH207 - Path.glob takes no absolute pattern
    if not matches:
        raise DocumentError(f"{pattern} does not exist and no file matches it as a pattern")
    return [Path(match) for match in matches]


def read_corpus(
    paths: Sequence[str] | CorpusFiles, reader: DocumentReader | None = None, *, ids: FileIds | None = None
) -> Iterator[Document | Unreadable]:
    """Read the documents of paths one after another; `-` reads JSON lines from standard input.

    Args:
        reader: reads the files, and stays open; by default a reader with default limits. Standard input is read
            in this process, without limits of time and memory.
        ids: the rule for doc_ids; by default they depend on the paths alone.

    Raises:
        DocumentError: a path does not exist, or nothing readable was found.
    """
    ids = ids or FileIds()
    files = paths if isinstance(paths, CorpusFiles) else list_corpus(paths)
    if files.reads_stdin:
        yield from with_prefix(ids.prefix, jsonl.stream(sys.stdin.buffer, "stdin", files.fields))
    requests = [ReadRequest(str(file), doc_id, fields=files.fields) for file, doc_id in files.named(ids)]
    if requests:
        with nullcontext(reader) if reader is not None else DocumentReader() as used:
            for document in _read(requests, used, ids):
                item = files.items.get(Path(document.source)) if files.items else None
                yield document if item is None or isinstance(document, Unreadable) else item.of(document)


def _read(requests: Sequence[ReadRequest], reader: DocumentReader, ids: FileIds) -> Iterator[Document | Unreadable]:
    """The documents of files, those of JSON lines with the prefix in front of their own doc_ids."""
    held, prefix = set[str | None](), ids.prefix
    for document in () if ids.index is None else _unchanged_scans(ids.index, requests, reader.limits.ocr):
        held.add(document.doc_id)
        yield document
    requests = [request for request in requests if request.doc_id not in held]
    if not prefix:
        yield from reader.read(requests)
        return
    for is_lines, group in groupby(requests, key=lambda request: is_json_lines(request.source)):
        if is_lines:
            group = (replace(request, doc_id=(request.doc_id or "").removeprefix(prefix)) for request in group)
        yield from with_prefix(prefix, reader.read(group)) if is_lines else reader.read(group)


def _unchanged_scans(index: Path, requests: Sequence[ReadRequest], languages: str | None) -> Iterator[Document]:
    """Documents of an index whose text OCR recognised, in files that are the same; OCR takes seconds a page."""
    # Loads numpy, time that a mistyped path should not cost.
    from engine.citing import CITING_TEXT
    from engine.store.partitioned import stored_with_field

    files = {request.doc_id: request.source for request in requests}
    for document in stored_with_field(index, OCR_DIGEST) if holds_index(index) else ():
        if files.get(document.doc_id) != document.source or document.sections[-1].heading == CITING_TEXT:
            continue
        if languages in (None, document.metadata[OCR_LANGUAGE]):
            with suppress(OSError):  # reading names it
                if digest_of(Path(document.source).read_bytes()) == document.metadata[OCR_DIGEST]:
                    yield document


def with_prefix(prefix: str, documents: Iterator[Document | Unreadable]) -> Iterator[Document | Unreadable]:
    """Put a prefix in front of each doc_id."""
    for document in documents:
        yield replace(document, doc_id=prefix + document.doc_id) if prefix and document.doc_id else document
