"""The library of Zotero as a corpus: its attachments, with the metadata of their items.

The database is copied before it is read, since Zotero locks it while it runs and keeps the newest changes in a second
file (WAL); the library itself is only read. Names of tables: `resource/schema/userdata.sql` of Zotero.
"""

from __future__ import annotations

import re
import shutil
import sqlite3
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

from engine.errors import DocumentError
from engine.text.document import Document, MetadataValue

DATABASE = "zotero.sqlite"
_LINKED_FILE = 2
_RENAMED = {
    "DOI": "doi", "ISBN": "isbn", "ISSN": "issn", "publicationTitle": "journal", "proceedingsTitle": "venue",
    "patentNumber": "number", "issueDate": "date", "dateDecided": "date", "dateEnacted": "date",
    "assignee": "assignees",
}  # fmt: skip
_LISTS = ("tags", "collections")
_UNUSED = ("title", "abstractNote", "accessDate", "caseName", "nameOfAct", "subject")
_TITLES = ("title", "caseName", "nameOfAct", "subject")
_DATE = re.compile(r"(\d{4})-(\d\d)-(\d\d) ")  # before the date as it was typed; 00 for a part that is not known

_ATTACHMENTS = """
SELECT owners.itemID, owners.key, items.key, linkMode, path
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
    for query in (_CREATORS, _TAGS, _COLLECTIONS):
        for item, name, value in database.execute(query):
            lists[item][name].append(value)
    for item, key, own_key, mode, path in database.execute(_ATTACHMENTS):
        stored = folder / "storage" / Path(own_key).name / Path(path.removeprefix("storage:")).name
        title = next((values[item][name] for name in _TITLES if name in values[item]), "")
        metadata = {"zotero_key": key, **_metadata(values[item], lists[item])}
        yield Path(path) if mode == _LINKED_FILE else stored, Item(title, metadata)


def _metadata(values: Mapping[str, str], lists: Mapping[str, list[str]]) -> dict[str, MetadataValue]:
    """The fields of an item under the names that reports use; all creators are authors where it has no author."""
    found: dict[str, MetadataValue] = {
        _RENAMED.get(name, name): value for name, value in values.items() if name not in _UNUSED
    }
    if match := _DATE.match(str(found.get("date", ""))):
        found["date"] = match[0].strip().replace("-00", "")
        found["year"] = int(match[1])
    found |= {name if name in _LISTS else f"{name}s": [*names] for name, names in lists.items()}
    creators = [name for role, names in lists.items() if role not in _LISTS for name in names]
    return {"authors": [*creators], **found} if creators else found
