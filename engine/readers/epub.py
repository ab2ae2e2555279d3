"""EPUB: the chapters in the order of the book, each read as a web page."""

from __future__ import annotations

import posixpath
import re
from collections import defaultdict
from collections.abc import Iterator
from contextlib import suppress
from urllib.parse import unquote

from engine.errors import DocumentError
from engine.readers import html
from engine.readers import left_out as reasons
from engine.readers.archive import Archive, member_name
from engine.readers.blocks import Blocks
from engine.readers.markup import Element, attributes, local_name, parse_safely, words
from engine.readers.scalars import split_names
from engine.text.cleaning import MAX_DOCUMENT_BYTES, too_large
from engine.text.document import Document, MetadataValue, is_made_up_title

_CONTAINER = "META-INF/container.xml"
_EPUB = "http://www.idpf.org/2007/ops"
_ENCRYPTION = "META-INF/encryption.xml"
_PAGES = frozenset(["application/xhtml+xml", "text/html", "application/x-dtbook+xml"])


def read(data: bytes, doc_id: str, source: str) -> Document:
    """Read a book without its contents page.

    Metadata: `authors`, `date`, `year`, `identifier`, `language`, `publisher`, `keywords`.
    """
    archive = Archive(data, "EPUB")
    package_name = _package_name(archive)
    package = parse_safely(archive.read(package_name))
    protected = _protected(archive)
    blocks = Blocks()
    failure: DocumentError | None = None
    folder = posixpath.dirname(package_name)
    guides = package.iterfind("{*}guide/{*}reference[@type='toc']")
    contents = {member_name(unquote(guide.get("href") or ""), folder) for guide in guides}
    contents.update(_contents_pages(package, folder, archive))
    for name in _chapters(package, folder):
        if name in protected or name not in archive:
            blocks.left_out[reasons.PARTS] += 1
            continue
        page = Blocks() if name in contents else blocks
        try:  # one chapter that cannot be read is counted, and the others are read
            chapter = archive.read(name)
            if b"<" not in chapter:
                raise DocumentError(f"its chapter {name} is not a page; save it again")
            html.add_page(chapter, page, is_of_book=True)
            if page is not blocks:
                blocks.left_out.update({**page.left_out, reasons.CONTENTS: len(page.text.split())})
        except DocumentError as error:
            failure = error
            blocks.left_out[reasons.PARTS] += 1
        if blocks.size > MAX_DOCUMENT_BYTES:
            raise too_large("text", f"more than {MAX_DOCUMENT_BYTES:,}", MAX_DOCUMENT_BYTES)
    if failure is not None and not blocks.size:
        raise failure
    if protected and not blocks.size:
        raise DocumentError("its text is encrypted (DRM); it can be read only by the reader it was sold for")
    title = words(_main_title(package))
    if is_made_up_title(title):
        title = next((heading.title for heading in blocks.headings), title)
    return blocks.document(doc_id, source, title, _metadata(package))


def _package_name(archive: Archive) -> str:
    container = parse_safely(archive.read(_CONTAINER))
    root = container.find(".//{*}rootfile")
    name = root.get("full-path") if root is not None else None
    if not name:
        raise DocumentError(f"its {_CONTAINER} names no book; save it as EPUB")
    return member_name(name, "")


def _chapters(package: Element, folder: str) -> Iterator[str]:
    """Members of the archive in reading order, each once."""
    items = {item.get("id"): item for item in package.iterfind("{*}manifest/{*}item")}
    seen = set[str]()
    for reference in package.iterfind("{*}spine/{*}itemref"):
        item = items.get(reference.get("idref"))
        if item is None or item.get("media-type") not in _PAGES:
            continue
        name = member_name(unquote(item.get("href") or ""), folder)
        if name not in seen:
            seen.add(name)
            yield name


def _contents_pages(package: Element, folder: str, archive: Archive) -> Iterator[str]:
    """The navigation page of EPUB 3, and the pages that it names as the contents; part of a page is none."""
    for item in package.iterfind("{*}manifest/{*}item[@properties]"):
        name = member_name(unquote(item.get("href") or ""), folder)
        if "nav" not in item.get("properties").split():
            continue
        yield name
        with suppress(DocumentError):
            for link in parse_safely(archive.read(name)).iterfind(f".//{{*}}a[@{{{_EPUB}}}type='toc']"):
                href = unquote(link.get("href") or "")
                yield from [] if "#" in href else [member_name(href, posixpath.dirname(name))]


def _protected(archive: Archive) -> frozenset[str]:
    """Members that are encrypted; fonts often are, without harm."""
    if _ENCRYPTION not in archive:
        return frozenset()
    links = parse_safely(archive.read(_ENCRYPTION)).iter("{*}CipherReference")
    return frozenset(member_name(unquote(link.get("URI") or ""), "") for link in links)


def _described(package: Element) -> Iterator[tuple[Element, dict[str, str]]]:
    """The fields of the package, each with what attributes and other elements say of it: its role, its type."""
    said: dict[str, dict[str, str]] = {}
    for meta in package.iterfind(".//{*}meta[@refines]"):
        said.setdefault(meta.get("refines"), {})[meta.get("property") or ""] = words(meta)
    for element in package.iterfind(".//{http://purl.org/dc/elements/1.1/}*"):
        yield element, said.get(f"#{element.get('id')}", {}) | attributes(element)


def _main_title(package: Element) -> Element | None:
    titles = [(element, said) for element, said in _described(package) if local_name(element) == "title"]
    main = next((element for element, said in titles if said.get("title-type") == "main"), None)
    return titles[0][0] if main is None and titles else main


def _metadata(package: Element) -> dict[str, MetadataValue]:
    found: dict[str, list[str]] = defaultdict(list)
    for element, said in _described(package):
        kind = "subtitle" if said.get("title-type") == "subtitle" else local_name(element)
        is_author = said.get("role", "aut") in ("aut", "author", "")
        if (text := words(element)) and is_author and said.get("event") != "modification":
            found[kind].append(text)
    year = next((match for date in found["date"] if (match := re.match(r"\d{4}", date))), None)
    fields: dict[str, MetadataValue] = {
        "authors": [name for creator in found["creator"] for name in split_names(creator)],
        "date": next(iter(found["date"]), ""),
        "year": int(year.group()) if year else None,
        "identifier": next(iter(found["identifier"]), ""),
        "language": next(iter(found["language"]), ""),
        "publisher": next(iter(found["publisher"]), ""),
        "keywords": [*found["subject"]],
        "subtitle": "; ".join(found["subtitle"]),
    }
    return {field: value for field, value in fields.items() if value}
