"""HTML: the readable text of the main part of a page, or of a chapter of a book. Nothing is fetched or run."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from html import escape
from itertools import islice
from types import MappingProxyType

from lxml import etree

from engine.errors import DocumentError
from engine.readers import left_out as reasons
from engine.readers import markup
from engine.readers.blocks import MAX_HEADING_CHARS, Blocks
from engine.readers.encoding import decode
from engine.readers.fields import declared, fields_of_page
from engine.readers.markup import Element, Grammar, HeadingMark, words, write
from engine.text.cleaning import joined_words, one_line, without_deleted
from engine.text.document import Document, is_made_up_title
from engine.text.headings import headings_of_lines

_CHARSET = re.compile(rb"""<(?:meta[^>]+charset|\?xml[^>]+encoding)\s*+=\s*+["']?\s*+([\w.:-]+)""", re.IGNORECASE)
# Possessive quantifiers prevent backtracking: linear time.
_START_TAG = re.compile(r"""<([A-Za-z][^\s/<>"']*+)(?:[^>"']++|"[^"]*+"|'[^']*+'){1,}+""")
# An opening without an end in its script matches too: linear time.
_CDATA = re.compile(r"<!\[CDATA\[((?:(?!</script|\]\]>).)*+)(\]\]>)?", re.DOTALL)
_SUBSET = re.compile(  # of declarations, for readers of XML alone
    r"""(?<=<!DOCTYPE html)[^<>\[]{0,300}\[(?:[^\]<>]|<(?:"[^"]*+"|'[^']*+'|[^<>"'])*+>)*+\](?=\s*>)""", re.IGNORECASE
)
_QUOTED = re.compile(r""""[^"]*+"|'[^']*+'""")
NO_ENTRIES: Mapping[str, int] = MappingProxyType({})
_MAX_PAGE_SHARE = 0.7  # of lists of links, of the letters of the page; above it the links are the page
_MAX_ATTRIBUTES = 500  # libxml2 compares each attribute of a tag with all before it
_WEB_NAMES = {"iso-8859-1": "cp1252", "latin1": "cp1252", "us-ascii": "cp1252", "iso-8859-9": "cp1254"}

_SILENT = frozenset(["script", "style", "template", "head", "rp", "datalist"])
_REASONS = {
    **markup.MARKED,
    **dict.fromkeys(["img", "svg", "canvas", "video", "audio", "map"], reasons.FIGURES),
    **dict.fromkeys(["iframe", "object", "embed"], reasons.OBJECTS),
    **dict.fromkeys(["button", "select", "textarea"], reasons.FORM),
    "nav": reasons.NAVIGATION,
    **dict.fromkeys(["noscript", "noframes"], reasons.FALLBACK),
    "s": reasons.DELETED,
}
_ROLES = {
    **dict.fromkeys(["navigation", "search", "menu", "toolbar", "doc-backlink"], reasons.NAVIGATION),
    **dict.fromkeys(["banner", "contentinfo"], reasons.PAGE_FRAME),
    "tooltip": reasons.HIDDEN,
}
_FRAMES = frozenset(["header", "footer", "aside"])
_PARTS = frozenset(["main", "article", "section"])
_NOTE = re.compile(
    r"note|annotation|comment|epigraph|abstract|case|opinion|margin|gloss|callout|admonition|pull-?quote", re.IGNORECASE
)
_STRUCK = re.compile(r"text-decoration[\w-]{0,20}\s*+:[^;:]*line-through", re.IGNORECASE)
_STRUCK_CLASS = re.compile(
    r"(?:^|[\s_-]|(?<=[a-z])(?=[A-Z]))(?i:del(?:eted?|etion)?(?:-?text)?|struck|strike(?:-?through|out)?|line-through"
    r"|diff-removed)(?:\s|$)"
)
_PAGE_BREAK = re.compile(r"\b(?:doc-)?pagebreak\b")
_RAISED_STYLE = re.compile(
    r"vertical-align\s*:\s*(?:super|text-top)|position\s*:\s*relative\s*;\s*top\s*:\s*-", re.IGNORECASE
)
_MOST_PARTS = 50  # of a heading
_SITE = re.compile(r"\s*[-|\u2013\u2014:\u00b7\u2022]\s")
_HEADINGS = ("h1", "h2", "h3", "h4", "h5", "h6")
_LINES = (*_HEADINGS, "p", "div", "center", "li", "blockquote", "pre")
_RAISED_CLASS = re.compile(r"(?:^|\s)sup(?:er(?:script)?)?(?:\s|$)", re.IGNORECASE)
_CENTRED = re.compile(r"text-align\s*:\s*center", re.IGNORECASE)
_BOLD = re.compile(r"font-weight\s*:\s*(?:bold|[6-9]00)", re.IGNORECASE)
_ITEM = re.compile(r"(?:Item\s*\d{1,2}[A-C]?\s*[.:\u2013\u2014-]|PART\s+[IV]{1,3}\b)", re.IGNORECASE)
_TITLE_CLASS = re.compile(
    r"(?:oj-)?(?:(?P<title>doc-ti)|(?P<article>ti-art)|(?P<below>sti-art|ti-section-2)|ti-(?:section|grseq|annex)-?1?)$"
)
_FONT = re.compile(r"font(?:-family)?\s*:[^;]{0,80}\b(symbol|wingdings)\b", re.IGNORECASE)
_NOTES = re.compile(r"(?:^|[\s_-])(?:foot|end)-?notes?(?:$|[\s_-])", re.IGNORECASE)
_TITLE = re.compile(r"(?:^|\s)(?:title|MsoTitle)(?:\s|$)")  # of Google Docs and Word
_TITLE_BLOCK = re.compile(r"title-?block", re.IGNORECASE)  # of pandoc
_COMMENT = re.compile(r"#cmnt(?:_ref)?\d")  # of Google Docs
_ASIDE = re.compile(r"(?:^|[\s_-])(?:(?:foot|end|side|margin)-?)?notes?(?:$|[\s_-])|\bfn[-:_]?\d+\b", re.IGNORECASE)
_NOTE_ID = re.compile(r"(?:fn|(?:foot|end)note)[-:_.]?\d+$", re.IGNORECASE)
_NOT_BODY = frozenset(["title", "meta", "link", "style", "script", "base", "template", "noscript"])
_ENDS = re.compile(r"</(?:body|html)\s*>", re.IGNORECASE)
_PREFIXED_MATH = re.compile(r"<(/?)(?:m|mml|math):(?=m|semantics|annotation)")
_MATH = re.compile(r"\b(?:mwe-math|math|tex|latex|equation|katex)", re.IGNORECASE)
_EDIT_LINKS = re.compile(r"\b(?:mw-(?:editsection|cite-backlink)|noprint|printfooter|catlinks)\b")
_FURNITURE = re.compile(  # of the page, by its names
    r"(?:^|[\s_-])(?:cookies?[-_ ]?(?:banner|bar|box|consent|law|message|modal|notice|overlay|pop-?up|warning|alert)"
    r"|(?:gdpr|consent)-?(?:banner|overlay|modal|notice)|skip-?(?:links?|nav(?:igation)?|to-[\w-]+)|breadcrumbs?"
    r"|(?:share|sharing|social)-?(?:buttons?|bar|icons?|links?|list|media|tools|daddy)|addtoany[\w-]*)(?:\s|$)",
    re.IGNORECASE,
)
_GUTTER = re.compile(r"(?:^|\s)(?:linenos?|[\w-]*gutter)(?:\s|$)")  # numbers beside lines of code
_STAR_PAGE = re.compile(r"(?:^|[\s_-])(?:star-?pag|page[-_]?(?:number|num|break|no|label)|pagenum)", re.IGNORECASE)
_PAGE_HEAD = re.compile(r"(?:oj-)?hd-(?:date|lg|ti|oj|coll|uniq|modified)\b")  # of EUR-Lex
_NOTE_LINK = re.compile(r"\[?(?:\d{1,3}|[*\u2020\u2021\u00a7a-z])\]?$")
_HIDDEN = re.compile(
    r"display\s*:\s*none|mso-hide\s*:\s*all|(?<![\w-])visibility\s*:\s*(?:hidden|collapse)|font-size\s*:\s*0(?![\d.]*[1-9])|(?<![\w-])color\s*:\s*"
    r"transparent|(?:left|top|text-indent)\s*:\s*-(?:\d{4}|999)|(?<![\w-])clip(?:-path)?\s*:\s*(?:rect\(0|inset\(50%)",
    re.IGNORECASE,
)
_CLEAR = re.compile(r"(?<![\w-])opacity\s*:\s*0(?![\d.]*[1-9])", re.IGNORECASE)
_HIDDEN_CLASS = re.compile(
    r"(?:^|\s)(?:sr-only|visually-?hidden|screen-?reader(?:-text|-only)?)(?:\s|$)", re.IGNORECASE
)
_LETTERS = etree.XPath(  # with letters of other fonts, or numbers
    "//*[self::font or self::span or self::a][@style or @face or contains(@class, 'No') or contains(@class, 'num')"
    " or contains(@class, 'CommentaryLink')]"
)
_LONE_LETTERS = etree.XPath("//div[not(*)][string-length(normalize-space(.)) = 1]")
_SIDE_NOTE = re.compile(r"(?:^|\s)(?:(?:side|margin|foot)-?note|ltx_note_outer)(?:\s|$)", re.IGNORECASE)
_NUMBER_CLASS = re.compile(
    r"(?:^|\s)(?:\w*(?:[a-z\d]No|CommentaryLink)|(?:para|item|list|line|sec(?:tion)?|chapter)-?(?:num(?:ber)?|no))(?:\s|$)"
)
_LIST_FORM = re.compile(r"list-style(?:-type)?\s*:[^;]*\b((?:lower|upper)-(?:alpha|latin|roman))\b")
_SEEN = (_HIDDEN, _CLEAR, _STRUCK, _RAISED_STYLE, _CENTRED, _BOLD, _FONT)  # looks that change what a reader sees
_AT_RULE = re.compile(
    r"@media(?![^{@]*\bprint\b)[^{@]*\{((?:[^{}]*\{[^{}]*\})*)[^{}]*\}|@[^{;@]*\{(?:[^{}]*\{[^{}]*\})*[^{}]*\}"
)
_RULE = re.compile(r"(?<![^{}])([^{}]{1,20000}+)\{([^{}]{0,20000}+)\}")
_SELECTOR = re.compile(r"\s*([a-z]*)([.#])([\w-]+)\s*$", re.IGNORECASE)
_PERMALINKS = frozenset(["¶", "§", "#", "🔗", "\uf0c1", "↩", "↩\ufe0e", "↑", "^"])


def read(data: bytes, doc_id: str, source: str) -> Document:
    """Read a web page.

    Menus, lists that are mostly links, page headers and footers, asides and hidden
    parts are left out; where the page marks one main part, only that is read.
    """
    blocks = Blocks()
    root = add_page(data, blocks)
    title = _title(root)
    return blocks.document(doc_id, source, title, fields_of_page(root))


def _title(root: Element) -> str:
    """The title of the page, without the name of the site where a heading shows the title alone."""
    fields = {(one.get("name") or "").lower(): one.get("content") or "" for one in root.iterfind(".//head/meta")}
    written = fields.get("citation_title", fields.get("dc.title", words(root.find(".//head/title"))))
    named = (one.get("content") or "" for one in root.iterfind(".//meta[@property='og:title']"))
    social = next(filter(None, (*named, *map(str, declared(root, "headline")))), "")
    written = written if written.strip() else social
    titles = (one for one in root.iter("h1", "p") if one.tag == "h1" or _TITLE.search(one.get("class") or ""))
    shown = markup.rendered(next(titles, None), GRAMMAR)
    for name in (shown, social):
        is_without_site = written.startswith(name) and _SITE.match(written, len(name))
        if len(name) >= 4 and (
            is_without_site or re.search(rf"[]|\u2013\u2014:\u00b7\u2022-]\s+{re.escape(name)}$", written)
        ):
            return name
    return shown if is_made_up_title(written) else written


_WIKI_COMMENT = re.compile(r"<!--(?:[^-]|-(?!->))*+(?:-->|\Z)")
_WIKI_REFERENCE = re.compile(
    r"<ref\b(?:[^<>/]|/(?!>))*+(?:/>|>(?:(?!</?ref\b).)*+(?:</ref\s*>|(?=<ref\b)|\Z))", re.DOTALL | re.IGNORECASE
)
_WIKI_TEMPLATE = re.compile(r"\{\{\{[^{}]*+\}\}\}|\{\{(?:[^{}]|\{(?!\{)|\}(?!\}))*+\}\}")
_WIKI_WORDING = re.compile(  # a template that shows its last value as it is
    r"\{\{\s*(?:lang|no(?:wrap|br)|small(?:caps)?|sc|em|strong|blockquote|quote)\s*\|(?:[^{}|=]*+\|)*+(?:1=)?([^{}|=]*+)\}\}",
    re.I,
)
_WIKI_FILE = re.compile(
    r"\[\[\s*:?(?P<kind>[A-Za-z\u00c0-\u00ff]{2,20}):(?P<name>[^\[\]|]*+)(?P<shown>(?:\|[^\[\]]*+)?)\]\]"
)
_WIKI_LINK = re.compile(r"\[\[(?:[^\[\]|]*+\|)?+([^\[\]]*+)\]\]|\[(?:https?|ftp):[^\s\[\]]*+\s*([^\[\]]*+)\]")
_WIKI_HEADING = re.compile(r"^(={1,6})([^\n]+?)\1[ \t]*+$", re.MULTILINE)
_WIKI_LINE = re.compile(r"^(?:([*#:;]++)[ \t]*|(\{\||\|\}|\|-|\|\+|[|!]))([^\n]*)$", re.MULTILINE)
_WIKI_CELL = re.compile(r"\|\||!!")
_OF_CELL = re.compile(r"\A(?:\s*+[\w-]++\s*+=\s*+(?:\"[^\"]*+\"|[\w%]++))+\s*+\|")  # how a cell looks
_WIKI_FIGURES = ("file", "image", "datei", "fichier", "archivo", "bild", "media")
_WIKI_GALLERY = re.compile(rf"^\s*(?:{'|'.join(_WIKI_FIGURES)}):[^\n|\[\]]{{1,300}}\|?", re.IGNORECASE | re.MULTILINE)
_OF_FILE = re.compile(r"\s*(?:thumb\w*|left|right|cent\w+|none|frame\w*|border|upright|[\dx]+ ?px|\w+=.*)?\s*$", re.I)
_WIKI_CODE = re.compile(r"<(/?)(?:syntaxhighlight|source|poem)\b[^<>]*+>", re.IGNORECASE)
_MOST_NESTED = 20  # templates in templates


def add_wiki(text: str, blocks: Blocks) -> list[str]:
    """Append a text in the markup of MediaWiki, as the page that it makes; returns the names of its categories.

    Templates are counted by their words, files and references by their number.
    """
    categories = list[str]()

    def without(match: re.Match[str]) -> str:
        blocks.left_out[reasons.RAW] += len(re.findall(r"[^\W_]+", match.group()))
        return ""

    def file(match: re.Match[str]) -> str:
        kind = match["kind"].lower()
        if kind.startswith(("categ", "kateg", "catég")):
            categories.append(match["name"].strip())
            return ""
        if len(kind) < 4 and not match.group().lstrip("[ ").startswith(":"):  # the same page in another language
            blocks.left_out[reasons.NAVIGATION] += 1
            return ""
        if kind not in _WIKI_FIGURES:
            return match["shown"][1:] or match["name"]
        blocks.left_out[reasons.FIGURES] += 1
        caption = match["shown"].rpartition("|")[2]
        return "" if _OF_FILE.match(caption) else f"\n\n{caption}\n\n"

    def line(match: re.Match[str]) -> str:
        marks, table, rest = match.groups()
        if marks:
            return f"<li>{rest}</li>" if marks[-1] in "*#" else f"<p>{rest}</p>"
        tag = "th" if table == "!" else "td"
        cells = (f"<{tag}>{_OF_CELL.sub('', cell)}</{tag}>" for cell in _WIKI_CELL.split(rest))
        start = {"{|": "<table><tr>", "|}": "</table>", "|-": "<tr>", "|+": f"</tr><caption>{rest}</caption><tr>"}
        return start.get(table) or "".join(cells)

    text, n_comments = _WIKI_COMMENT.subn("", _WIKI_CODE.sub(r"<\1pre>", text))
    text, n_references = _WIKI_REFERENCE.subn("", text)
    text, n_pictures = _WIKI_GALLERY.subn("\n\n", text)
    text = _WIKI_WORDING.sub(r"\1", text)
    found = {reasons.COMMENTS: n_comments, reasons.REFERENCES: n_references, reasons.FIGURES: n_pictures}
    blocks.left_out.update(found)
    for _ in range(_MOST_NESTED):  # from the innermost on
        before, text = text, _WIKI_LINK.sub(r"\1\2", _WIKI_FILE.sub(file, _WIKI_TEMPLATE.sub(without, text)))
        if before == text:
            break
    text = re.sub(r"'{2,5}|__[A-Z]+__", "", text)
    text = _WIKI_HEADING.sub(lambda found: f"<h{len(found[1])}>{found[2]}</h{len(found[1])}>", text)
    page = re.sub(r"\n[ \t]*\n", "\n<p>", _WIKI_LINE.sub(line, text))
    add_page(f"<html><body><p>{page}</body></html>".encode(), blocks)
    return categories


def add_page(
    data: bytes, blocks: Blocks, *, is_of_book: bool = False, styles: str = "", entries: Mapping[str, int] = NO_ENTRIES
) -> Element:
    """Append the text of a page to `blocks`; returns the root of the page, without its link lists.

    A page of a book has no frame: its asides, headers and footers are text. `styles` are the style sheets of the book,
    `entries` the lines of its contents that name parts of the page, with their levels.

    Raises:
        DocumentError: not decodable, too many elements, or nested too deeply.
    """
    root = _parse(data, blocks)
    held = [*root.iter()]  # lxml would make the objects again for each use
    shown = "".join(map(_shown, root.iterfind("body")))
    blocks.expect(shown)
    for template in root.iter("template"):
        blocks.skip(markup.all_text(template))
    markup.write_formulas(root, shown, blocks)
    for drawing in root.iterfind("body/svg") if is_of_book else ():
        if len(drawing.getparent()) == 1 and next(drawing.iter("text"), None) is not None:  # all of a page
            drawing.tag = "div"
            for text in drawing.iter("text"):
                text.tag = "p"
    _apply_styles(root, styles)
    _mark_entries(root, entries)
    _mend_letters(root, blocks)
    _set_print(root)
    _mark_centred(root)
    _mark_items(root)
    _mark_titles(root)
    for heading in root.iter("heading"):  # of Google Patents
        heading.tag = "h3"
    _move_notes(root)
    blocks.left_out[reasons.LINK_LISTS] += _remove_link_lists(root, blocks, 1.0 if is_of_book else _MAX_PAGE_SHARE)
    main = root if is_of_book else _main_part(root, shown)
    notes: list[Element] = []
    if main is not root:
        tags = ("section", "div", "aside", "ol", "footer", "p")
        outside = (
            one for one in root.iter(*tags) if (_ASIDE if one.tag in ("aside", "p") else _NOTES).search(_kinds(one))
        )
        notes = [one for one in outside if not {main, *notes} & {one, *one.iterancestors()} and main not in one.iter()]
        frame = [main, *notes, *root.iter("head", "script", "style", "template")]
        markup.leave_outside(root, frame, reasons.PAGE_FRAME, blocks)
    pages = [one for one in main.iter("div") if one.get("class") == "ocr_page"]  # of hOCR
    around = {page.getparent() for page in pages}
    for part in (*around.pop(), *notes) if len(around) == 1 else pages or (main, *notes):
        if part.get("class") == "ocr_page":
            blocks.start_page()
        write(part, BOOK_GRAMMAR if is_of_book or part in notes else GRAMMAR, blocks)
    del held
    return root


_CONTROL = re.compile(  # begins with a set of characters, which is found fast
    r"[\x00-\x08\x0b\x0e-\x1f&](?:(?<!&)|#(?<=&#)(?:0*(?:[0-8]|11|1[4-9]|2\d|3[01])|[xX]0*(?:[0-8bBeEfF]|1[0-9a-fA-F]));)"
)


def _parse(data: bytes, blocks: Blocks) -> Element:
    match = _CHARSET.search(data, 0, 4096)
    declared = match.group(1).decode("ascii").lower() if match else ""
    text, blocks.left_out[reasons.DELETED] = without_deleted(decode(data, _WEB_NAMES.get(declared, declared) or None))
    markup.check_tags(text.count("<"))
    if "<" in text:
        text = _CONTROL.sub("", text.replace("\f", "\n"))  # no tree takes these when its parts move
    text = _CDATA.sub(lambda match: escape(match[1]) if match[2] else match[0], text)  # the parser drops such text
    text = _PREFIXED_MATH.sub(r"<\1", text) if "math" in text else text
    text = _SUBSET.sub("", text, count=1) if "<!E" in text else text
    text = _ENDS.sub("", _START_TAG.sub(_without_many_attributes, text))
    parser = etree.HTMLParser(encoding="utf-8", no_network=True, huge_tree=True, remove_comments=True, remove_pis=True)
    try:
        root = etree.fromstring(text.encode("utf-8"), parser)
    except etree.LxmlError as error:
        raise DocumentError(f"it is not HTML: {error}") from error
    if any(entry.type == etree.ErrorTypes.ERR_RESOURCE_LIMIT for entry in parser.error_log):
        raise DocumentError("its elements are nested too deeply to be read whole; convert it to text")
    if root is None:
        raise DocumentError("it holds no text")
    head = root.find("head")
    if head is not None and root.find("body") is None:  # the parser takes the elements of HTML 5 into the head
        body = etree.SubElement(root, "body")
        body.extend([child for child in head if child.tag not in _NOT_BODY])
    return root


def _without_many_attributes(tag: re.Match[str]) -> str:
    if len(tag.group()) < 2 * _MAX_ATTRIBUTES or len(_QUOTED.sub(" ", tag.group()).split()) <= _MAX_ATTRIBUTES:
        return tag.group()
    return f"<{tag.group(1)}"


def _apply_styles(root: Element, styles: str) -> None:
    """Write the rules of style sheets for single classes and ids into the elements themselves."""
    rules = {**_rules(styles), **_rules(" ".join(style.text or "" for style in root.iter("style")))}
    for element in root.xpath("//*[@class or @id]") if rules else ():
        names = [f"#{element.get('id')}", *f".{' .'.join((element.get('class') or '').split())}".split()]
        found = [rules[name] for name in names if name in rules]
        looks = [look for tag, look in found if tag in ("", element.tag)]
        if looks:
            element.set("style", ";".join([*looks, element.get("style") or ""]))


@lru_cache(maxsize=2)  # pages of a book share their style sheets
def _rules(sheets: str) -> Mapping[str, tuple[str, str]]:
    """The tag and the style for each ".class" and "#id" whose looks matter."""
    rules: dict[str, tuple[str, str]] = {}
    for match in _RULE.finditer(_AT_RULE.sub(lambda rule: rule.group(1) or "", re.sub(r"/\*.*?(?:\*/|$)", "", sheets))):
        selectors = [*filter(None, map(_SELECTOR.match, match[1].split(",")))]
        if selectors and any(look.search(match[2]) for look in _SEEN):
            rules |= {f"{simple[2]}{simple[3]}": (simple[1].lower(), match[2]) for simple in selectors}
    return MappingProxyType(rules)


def _mark_entries(root: Element, entries: Mapping[str, int]) -> None:
    """Mark lines as headings that the contents of a book name, in a page without headings."""
    if not entries or next(root.iter(*_HEADINGS), None) is not None:
        return
    entries = dict(entries)
    for element in root.iter("p", "div"):
        level = entries.pop(_opening(element).casefold(), None)
        if level is not None:
            element.set("role", "heading")
            element.set("aria-level", str(min(6, level)))


def _move_notes(root: Element) -> None:
    """Put notes inside of a sentence behind its paragraph, and those in the footer of the page before it."""
    for span in [one for one in root.xpath("//span[@class] | //small[@class]") if _SIDE_NOTE.search(one.get("class"))]:
        if markup.n_words(span) > 1:
            span.tag = "aside"
    markup.lift(root, frozenset(["aside"]), frozenset(["p", "li", *_HEADINGS]))
    for link in [one for one in root.iter("a") if _COMMENT.match(one.get("href") or "")]:
        place = next(link.iterancestors("div"), link) if "_ref" in link.get("href") else link
        place.set("style", "mso-element:comment")
    for footer in list(root.iter("footer")):
        notes = [one for one in footer.iter("section", "div", "aside", "ol") if _NOTES.search(_names(one))]
        for note in notes:
            is_of_part = any(one.tag in _PARTS for one in footer.iterancestors())
            if not is_of_part and not set(notes) & set(note.iterancestors()):
                markup.take_out(note)
                footer.addprevious(note)


def _mend_letters(root: Element, blocks: Blocks) -> None:
    """Write letters of the font Symbol as what they show, initials into their words, and blanks behind numbers."""
    for element in _LETTERS(root):
        if _NUMBER_CLASS.search(element.get("class") or "") and (element.tail or "0")[0].isalnum():
            element.tail = f" {element.tail or ''}"
        look = _FONT.search(element.get("style") or "")
        text = element.text or ""
        shown = markup.signs(text, look[1] if look else element.get("face") or "")
        if shown != text:
            blocks.skip(text)
            element.text = shown
    for element in _LONE_LETTERS(root):
        letter, place = element.text.strip(), element.getnext()
        if not letter.isupper() or place is None or place.tag != "p":
            continue
        if (place.text or "")[:1].islower() and not (element.tail or "").strip():
            place.text, element.text = letter + place.text, ""


def _set_print(root: Element) -> None:
    """Join the words that lines cut in the paragraphs of hOCR."""
    for paragraph in root.iter("p", "div"):
        if paragraph.get("class") == "ocr_par":
            lines = [words(one) for one in paragraph if (one.get("class") or "").startswith("ocr")]
            if " ".join(lines) == words(paragraph):
                paragraph[:], paragraph.text = [], one_line(joined_words("\n".join(lines), was_set=True))


def _mark_centred(root: Element) -> None:
    """Mark lines in the middle as headings, where they are bold, numbered, in capitals or a part of an opinion."""
    centred = set(filter(_is_centred, root.xpath("//center | //*[@align or @style]")))
    lines: list[tuple[Element, str, bool]] = []
    for element in root.iter(*_LINES) if centred else ():
        if any(child.tag in _BLOCKS for child in element) or not (text := _opening(element)):
            continue
        is_line = element.tag in ("p", "div", "center") and next(element.iterancestors("table", "li"), None) is None
        is_line = is_line and not centred.isdisjoint((element, *element.iterancestors()))
        lines.append((element, text if is_line else "", _is_bold(element, text)))
        if (element.tail or "").strip():
            lines.append((element, "", False))
    for heading in headings_of_lines([(text, is_bold) for _, text, is_bold in lines]):
        element, text, _ = lines[heading.start]
        if heading.title != text:
            markup.join_blocks(element, lines[heading.start + 1][0])
        element.set("role", "heading")
        element.set("aria-level", str(min(6, heading.level + 1)))


def _mark_items(root: Element) -> None:
    """Mark bold lines, and tables of a line, that are the parts and items of a filing: "Item 1A. Risk Factors"."""
    for element in root.iter("p", "div", "table"):
        first = next(filter(str.strip, element.itertext(etree.Element)), "").lstrip()
        if first[:1].lower() not in ("i", "p"):
            continue
        text, is_table = _opening(element), element.tag == "table"
        if not _ITEM.match(text) or len(text) >= MAX_HEADING_CHARS or element.get("role"):
            continue
        n_rows = sum(1 for row in islice(element.iter("tr"), _MOST_PARTS) if _opening(row))
        is_line = n_rows == 1 if is_table else not any(child.tag in _BLOCKS for child in element)
        if is_line and (is_table or _is_bold(element, text)) and element.find(".//a[@href]") is None:
            for part in element.iter("tbody", "tr", "td", "th"):
                part.tag, part.tail = "span", f" {part.tail or ''}"
            element.tag = "h3" if text[:4].lower() == "item" else "h2"


def _mark_titles(root: Element) -> None:
    """Mark the titles of EUR-Lex, which are paragraphs of a class: "Article 1" and below it what that is about."""
    for place in root.iterfind(".//h1/..[txt_te]") if next(root.iter("txt_te"), None) is not None else ():
        number, title = place.find("h1"), place.find("p/strong")
        if title is not None:  # the number of the act stands above
            number.tag, title.tag = "p", "h1"
    before: Element | None = None
    for element in list(root.iter("p")):
        kind = _TITLE_CLASS.match(element.get("class") or "")
        if kind is None or not _opening(element):
            before = None
        elif before is not None and (kind["below"] or before.tag == "h1"):
            markup.join_blocks(before, element)
        else:
            element.tag = "h1" if kind["title"] else "h3" if kind["article"] else "h2"
            before = element


def _is_bold(element: Element, text: str) -> bool:
    """Whether all words of an element are bold."""
    parts = list(islice(element.iter(etree.Element), _MOST_PARTS))
    bold = [one for one in parts if one.tag in ("b", "strong") or _BOLD.search(one.get("style") or "")]
    outer = (one for one in bold if one.getparent() not in bold)
    return "".join(map(_opening, outer)).replace(" ", "") == text.replace(" ", "")


def _opening(element: Element) -> str:
    """The first words of an element, enough for a heading: elements can lie inside of each other."""
    return one_line("".join(part[:MAX_HEADING_CHARS] for part in islice(element.itertext(etree.Element), _MOST_PARTS)))


def _is_centred(element: Element) -> bool:
    is_old = element.tag == "center" or (element.get("align") or "").lower() == "center"
    return is_old or _CENTRED.search(element.get("style") or "") is not None


_LISTS = frozenset(["ul", "ol", "dl"])
_SILENT_TAGS = frozenset(["head", "nav", "noscript", "script", "style", "template"])
_LISTS_NAMED = re.compile(
    r"(?:^|[\s_-])(?:nav|navbar|navigation|menu|toc|breadcrumbs?|sidebar|lang|languages?)(?:[\s_-]|$)", re.IGNORECASE
)
_MIN_LINKS, _MIN_LISTS_NAMED_LINKS = 8, 1  # a list whose class or id is one of `_LISTS_NAMED` needs fewer
_MIN_SHARE = 0.9  # of the letters of the list
_MAX_LINK_LETTERS = 30  # on average; longer ones are titles, as in a bibliography


_MOST_ASKED = 20  # times the letters of the page: lists inside of lists


def _remove_link_lists(root: Element, blocks: Blocks, most: float) -> int:
    """Remove lists that are mostly short links, unless they are over a share of the page; returns their number."""
    found: dict[Element, int] = {}
    parts = root.iter(*_SILENT_TAGS)  # without letters of their own
    silent = {part for part in parts if next(part.iterancestors(*_SILENT_TAGS), None) is None}

    def n_letters(element: Element) -> int:
        texts = [element, *filter(silent.__contains__, element.iter(*_SILENT_TAGS))]
        n_all, *n_silent = (len("".join("".join(one.itertext(etree.Element)).split())) for one in texts)
        return n_all - sum(n_silent)

    n_page = n_asked = 0
    for element in root.iter(*_LISTS):
        links = [*element.iter("a")]
        n_asked += len(links)
        if len(links) < _least_links(element) or not found.keys().isdisjoint(element.iterancestors()):
            continue
        n_page = n_page or n_letters(root)
        n_own, n_linked = n_letters(element), sum(map(n_letters, links))
        n_asked += n_own
        if n_asked > _MOST_ASKED * n_page:
            break
        if n_linked >= _MIN_SHARE * n_own and n_linked <= _MAX_LINK_LETTERS * len(links):
            found[element] = n_own
    if sum(found.values()) > most * n_page:
        return 0
    for element in found:
        blocks.skip(markup.all_text(element))
        element.clear(keep_tail=True)
    return len(found)


def _least_links(element: Element) -> int:
    """The number of links from which on a list can be one of links."""
    parent = element.getparent()
    places = (element,) if parent is None else (element, parent)
    is_named = any(_LISTS_NAMED.search(place.get(name) or "") for place in places for name in ("class", "id"))
    return _MIN_LISTS_NAMED_LINKS if is_named else _MIN_LINKS


def _main_part(root: Element, shown: str) -> Element:
    """The one `main` element, or the one `article`, if it holds a third of the text; else the whole page."""
    places = [*root.iter("section", "div")]
    case = next((one for one in places if one.get("class") == "casebody"), None)
    if case is not None:  # of the Caselaw Access Project
        return case
    for parts in ([*root.iter("main")], [one for one in places if one.get("role") == "main"], [*root.iter("article")]):
        if len(parts) == 1 and len(_shown(parts[0])) * 3 > len(shown):
            return parts[0]
    return root


def _shown(part: Element) -> str:
    """All text of a part but that of scripts and style sheets."""
    silent = {one.text for one in part.iter("script", "style")}
    return " ".join([text for text in part.itertext(etree.Element) if text not in silent and not text.isspace()])


def _left_out(element: Element, tag: str) -> str | None:
    if tag in _SILENT:
        return None if tag == "script" and _formula_of(element) else ""
    if tag == "img" and (_MATH.search(element.get("class") or "") or _initial(element)):
        return None if _formula_of(element) else ""
    if (element.get("style") or "").startswith("mso-element:comment"):  # of Word
        return reasons.COMMENT_WORDS
    reason = _REASONS.get(tag) or _ROLES.get(element.get("role") or "")
    if element.get("role") == "doc-backlink" and _NOTE_LINK.match(words(element)):
        return None  # the number of a note
    if reason is not None or not (element.keys() or tag in _FRAMES or tag == "dialog"):
        return reason
    if tag == "input":
        return "" if element.get("type") in ("hidden", "submit", "reset") else reasons.FORM
    if tag == "a" and len(element) == 0 and (element.text or "").strip() in _PERMALINKS:
        return ""
    if "ltx_tag_note" in (element.get("class") or ""):
        return ""  # the number of a note, again
    if (element.get("class") or "").startswith("MathJax") and any(map(_formula_of, element.itersiblings("script"))):
        return ""  # the formula as a picture of it
    return _reason_of_looks(element, _names(element)) or _frame_reason(element, tag)


def _names(element: Element) -> str:
    return f"{element.get('class') or ''} {element.get('id') or ''}"


def _kinds(element: Element) -> str:
    """Its names, and what it is for."""
    ends = ("role", "type", "aria-label")
    return " ".join([_names(element), *(value for name, value in element.items() if name.endswith(ends))])


def _initial(picture: Element) -> str:
    """The letter that a picture shows at the start of a word; "" for any other picture."""
    letter, rest = (picture.get("alt") or "").strip(), picture.tail or ""
    return letter if len(letter) == 1 and letter.isupper() and rest[:1].islower() else ""


def _reason_of_looks(element: Element, names: str) -> str | None:
    """The reason to leave out an element by its class, its style and its state; None for none."""
    roles = " ".join(value for name, value in element.items() if name.endswith(("role", "type")))
    is_break = _PAGE_BREAK.search(roles)
    is_page = is_break or (
        _STAR_PAGE.search(f"{element.tag} {names}")
        and (element.tag not in _BLOCKS or markup.words(element).strip("[]()- ").isdigit())
    )
    if (is_page and markup.n_words(element) <= 3) or _PAGE_HEAD.match(names):
        return reasons.RUNNING_HEADS
    if "pg-boilerplate" in names:  # of Project Gutenberg
        return reasons.PAGE_FRAME
    if _EDIT_LINKS.search(names):
        return reasons.NAVIGATION
    if _FURNITURE.search(names) or _FURNITURE.search(element.get("aria-label") or ""):
        return reasons.PAGE_FRAME
    if _GUTTER.search(names) and "".join(markup.words(element).split()).isdigit():
        return reasons.LINE_NUMBERS
    style = element.get("style") or ""
    is_hidden = element.get("hidden") is not None or element.get("aria-hidden") == "true" or _HIDDEN.search(style)
    is_hidden = is_hidden or _HIDDEN_CLASS.search(names) or (element.tag not in _BLOCKS and _CLEAR.search(style))
    if is_hidden and not (_MATH.search(names) and element.find(".//math") is not None):
        return reasons.HIDDEN
    if element.tag == "dialog" and element.get("open") is None:
        return reasons.HIDDEN
    return reasons.DELETED if _STRUCK.search(style) or _STRUCK_CLASS.search(element.get("class") or "") else None


def _frame_reason(element: Element, tag: str) -> str | None:
    """Headers, footers and asides of the page itself; those of its parts are text, and so are notes."""
    if tag not in _FRAMES or any(above.tag in (*_PARTS, "blockquote", "figure") for above in element.iterancestors()):
        return None
    kinds = _kinds(element)
    pattern = _NOTE if tag == "aside" else _NOTES if tag == "footer" else _TITLE_BLOCK
    parts = element.iter("p", "li", "div", "section") if tag != "header" else ()
    is_note = pattern.search(kinds) or any(_NOTE_ID.match(part.get("id") or "") for part in parts)
    return None if is_note else reasons.PAGE_FRAME


def _formula_of(element: Element) -> str:
    """The text of a formula that is a picture or a script with its source in TeX; "" for anything else."""
    if element.tag == "img":
        if initial := _initial(element):
            return initial
        source = element.get("alt") or ""
        parent = element.getparent()
        has_mathml = parent is not None and parent.find(".//math") is not None  # the same formula, as in MediaWiki
        is_formula = _MATH.search(element.get("class") or "") and not has_mathml
        return markup.tex_text(source) if source and is_formula else ""
    if element.tag == "script" and (element.get("type") or "").startswith("math/tex"):
        return markup.tex_text(element.text or "")
    if element.tag in ("span", "div") and not len(element) and "math" in (element.get("class") or "").split():
        source = (element.text or "").strip().strip("$")  # of pandoc
        return markup.tex_text(source) if "\\" in source else ""
    return ""


def _is_raised(element: Element, tag: str) -> bool:
    if tag == "sup":
        return True
    if tag == "span":
        is_raised = _RAISED_CLASS.search(element.get("class") or "") or _RAISED_STYLE.search(element.get("style") or "")
        return is_raised is not None
    if tag != "a":
        return False
    if "#" not in (element.get("href") or "")[:100]:
        before = element.getprevious()
        text = before.tail if before is not None else element.getparent().text
        return (text or "")[-1:].isalpha() and (element.text or "").isdecimal() and not len(element)
    return (
        _NOTE_LINK.match("".join(element.itertext(etree.Element)).strip()) is not None
        and next(element.iterancestors("sup"), None) is None
    )


def _form_of(ordered: Element) -> str:
    look = _LIST_FORM.search(ordered.get("style") or "")
    return markup.form_of(look[1]) if look else f"{(ordered.get('type') or '1')[:1]}."


def _heading(element: Element, tag: str) -> HeadingMark | None:
    if element.get("role") == "heading" and tag[:1] != "h":
        level = element.get("aria-level") or "2"
        return HeadingMark(int(level) if level in "123456" else 2)
    return HeadingMark(int(tag[1])) if len(tag) == 2 and tag[0] == "h" and tag[1] in "123456" else None


_BLOCKS = frozenset([
    "address", "article", "aside", "blockquote", "body", "caption", "center", "details", "dd", "dialog", "dir", "div",
    "dl", "dt", "fieldset", "figcaption", "figure", "footer", "form", "header", "hgroup", "hr", "html", "legend",
    "main", "menu", "ol", "p", "search", "section", "summary", "table", "tbody", "tfoot", "thead", "ul",
])  # fmt: skip
GRAMMAR = Grammar(
    blocks=_BLOCKS,
    items=frozenset(["li"]),
    rows=frozenset(["tr"]),
    cells=frozenset(["td", "th"]),
    breaks=frozenset(["br"]),
    verbatim=frozenset(["pre", "listing", "xmp"]),
    heading=_heading,
    left_out=_left_out,
    is_raised=_is_raised,
    sections=frozenset(["section"]),
    words=frozenset(["label"]),
    tex=lambda element, _: _formula_of(element),
    ordered=lambda element: _form_of(element) if element.tag == "ol" else "",
)
BOOK_GRAMMAR = replace(GRAMMAR, left_out=lambda element, tag: None if tag in _FRAMES else _left_out(element, tag))
