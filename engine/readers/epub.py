"""EPUB: the chapters of a book in their order, as pages of HTML, without its contents page. Nothing is fetched."""

from __future__ import annotations

import posixpath
import re
from collections import defaultdict
from collections.abc import Iterator
from contextlib import suppress
from urllib.parse import unquote

from engine.errors import DocumentError
from engine.readers import left_out as reasons
from engine.readers import markup
from engine.readers.blocks import Blocks
from engine.readers.encoding import Archive, member_name
from engine.readers.fields import dated, split_names
from engine.readers.html import add_page
from engine.readers.markup import Element, local_name, parse_safely, words
from engine.text.cleaning import MAX_DOCUMENT_BYTES, too_large
from engine.text.document import Document, MetadataValue, is_made_up_title

_CONTAINER = "META-INF/container.xml"
_EPUB = "http://www.idpf.org/2007/ops"
_ENCRYPTION = "META-INF/encryption.xml"
_NCX = "application/x-dtbncx+xml"
_MAX_STYLE_CHARS = 500_000  # which each page reads
_CHAPTERS = frozenset(["application/xhtml+xml", "text/html", "application/x-dtbook+xml"])


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
    entries = _entries(package, folder, archive)
    styles = _styles(archive)
    for name in _chapters(package, folder, blocks):
        if name in protected or name not in archive:
            blocks.left_out[reasons.PARTS] += 1
            continue
        try:  # one chapter that cannot be read is counted, and the others are read
            chapter = archive.read(name)
            page = Blocks() if name in contents or _is_contents(chapter) else blocks
            if b"<" not in chapter:
                raise DocumentError(f"its chapter {name} is not a page; save it again")
            add_page(chapter, page, is_of_book=True, styles=styles, entries=entries[name])
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
    title, fields = _described(package)
    if is_made_up_title(title):
        title = next((heading.title for heading in blocks.headings), title)
    return blocks.document(doc_id, source, title, fields)


def _package_name(archive: Archive) -> str:
    """The member that lists the others: the one that the container names, else the first of its kind."""
    failure = DocumentError(f"its {_CONTAINER} names no book; save it as EPUB")
    names: list[str] = []
    try:
        roots = parse_safely(archive.read(_CONTAINER)).iterfind(".//{*}rootfile")
        names = [member_name(root.get("full-path") or "", "") for root in roots]
    except DocumentError as error:
        failure = error
    for name in (*names, *archive.named((".opf",))):
        with suppress(DocumentError):
            archive.read(name)
            return name
    raise failure


def _chapters(package: Element, folder: str, blocks: Blocks) -> Iterator[str]:
    """Members of the archive in reading order, each once, and "" for one that is not listed; pictures are counted."""
    items = {item.get("id"): item for item in package.iterfind("{*}manifest/{*}item")}
    seen = set[str]()
    listed = [reference.get("idref") for reference in package.iterfind("{*}spine/{*}itemref")]
    if not any(map(items.__contains__, listed)):  # without an order, that of the files
        listed = [link for link, item in items.items() if item.get("media-type") in _CHAPTERS]
    for link in listed:
        item = items.get(link)
        if item is not None and item.get("media-type") not in _CHAPTERS:
            item = items.get(item.get("fallback"), item)
        name = "" if item is None else member_name(unquote(item.get("href") or ""), folder)
        if name in seen:
            continue
        seen.add(name)
        if item is not None and re.match("image/(?!svg)", item.get("media-type") or ""):
            blocks.left_out[reasons.FIGURES] += 1
        else:
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


_LINK = re.compile(rb"""<a\b[^<>]*\bhref\s*=\s*["'](?![#:/]|\w+:)[^<>]*>(.*?)</a>""", re.DOTALL)
_BESIDE_TEXT = re.compile(rb"<(head|h[1-6]|style|script)\b.*?</\1\s*>|<[^<>]*>|[\s\d.]+", re.DOTALL)
_LEAST_LINKS, _SHARE_OF_LINKS, _MOST_BYTES_OF_LINE = 2, 0.9, 800


def _is_contents(page: bytes) -> bool:
    """Whether nearly all letters of a page are those of links to other pages of the book."""
    links = _LINK.findall(page)
    if len(links) * _MOST_BYTES_OF_LINE < len(page):
        return False
    n_letters, n_linked = (len(_BESIDE_TEXT.sub(b"", text)) for text in (page, b" ".join(links)))
    return len(links) >= _LEAST_LINKS and n_linked >= _SHARE_OF_LINKS * n_letters > 0


def _entries(package: Element, folder: str, archive: Archive) -> defaultdict[str, dict[str, int]]:
    """The lines of the contents of a book, with their levels, by the pages that they name."""
    found = defaultdict[str, dict[str, int]](dict)
    for item in package.iterfind("{*}manifest/{*}item"):
        if not (item.get("media-type") == _NCX or "nav" in (item.get("properties") or "").split()):
            continue
        name = member_name(unquote(item.get("href") or ""), folder)
        with suppress(DocumentError):
            for part in parse_safely(archive.read(name)).iter("{*}navPoint", "{*}a"):
                label, target = part.find("{*}navLabel"), part.find("{*}content")
                page = unquote(part.get("href") or "" if target is None else target.get("src") or "").partition("#")[0]
                level = sum(local_name(above) in ("navPoint", "ol") for above in part.iterancestors())
                line = words(part if label is None else label).casefold()
                found[member_name(page, posixpath.dirname(name))][line] = level + (label is not None)
    return found


def _styles(archive: Archive) -> str:
    """The style sheets of a book; one that cannot be read has no effect."""
    sheets = []
    for name in archive.named((".css",)):
        with suppress(DocumentError):
            sheets.append(archive.read(name).decode("utf-8", "replace"))
    return "\n".join(sheets)[:_MAX_STYLE_CHARS]


def _protected(archive: Archive) -> frozenset[str]:
    """Members that are encrypted; fonts often are, without harm."""
    if _ENCRYPTION not in archive:
        return frozenset()
    links = parse_safely(archive.read(_ENCRYPTION)).iter("{*}CipherReference")
    return frozenset(member_name(unquote(link.get("URI") or ""), "") for link in links)


def _described(package: Element) -> tuple[str, dict[str, MetadataValue]]:
    """The title and the fields of the package, by what attributes and other elements say of each, as its role."""
    refined: dict[str, dict[str, str]] = {}
    for meta in package.iterfind(".//{*}meta[@refines]"):
        refined.setdefault(meta.get("refines"), {})[meta.get("property") or ""] = words(meta)
    found: dict[str, list[str]] = defaultdict(list)
    for element in package.iterfind(".//{http://purl.org/dc/elements/1.1/}*"):
        said = refined.get(f"#{element.get('id')}", {}) | markup.attributes(element)
        kind = said["title-type"] if said.get("title-type") in ("main", "subtitle") else local_name(element)
        is_author = said.get("role", "aut") in ("aut", "author", "")
        if (text := words(element)) and is_author and said.get("event") != "modification":
            found[kind].append(text)
    fields: dict[str, MetadataValue] = {
        "authors": [name for creator in found["creator"] for name in split_names(creator)],
        **dated(next(iter(found["date"]), "")),
        "identifier": next(iter(found["identifier"]), ""),
        "language": next(iter(found["language"]), ""),
        "publisher": next(iter(found["publisher"]), ""),
        "keywords": [*found["subject"]],
        "subtitle": "; ".join(found["subtitle"]),
    }
    title = next((text for kind in ("main", "title", "subtitle") for text in found[kind]), "")
    return title, {field: value for field, value in fields.items() if value}
