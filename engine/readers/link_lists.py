"""Removes lists of links from web pages: languages, menus and contents that are not marked as navigation."""

from __future__ import annotations

import re
from dataclasses import dataclass

from lxml import etree

from engine.readers.markup import Element

_LISTS = frozenset(["ul", "ol", "dl"])
_NOT_TEXT = frozenset(["head", "nav", "noscript", "script", "style", "template"])
_NAMED = re.compile(
    r"(?:^|[\s_-])(?:nav|navbar|navigation|menu|toc|breadcrumbs?|sidebar|lang|languages?)(?:[\s_-]|$)", re.IGNORECASE
)
_MIN_LINKS, _MIN_NAMED_LINKS = 8, 3  # a list whose class or id is one of `_NAMED` needs fewer
_MIN_SHARE = 0.9  # of the letters of the list
_MAX_LINK_LETTERS = 30  # on average; longer ones are titles, as in a bibliography
_MAX_PAGE_SHARE = 0.7  # of the letters of the page; above it the links are the page


@dataclass(slots=True)
class _Tally:
    """Counts of an element and everything inside it."""

    n_found_before: int
    letters: int = 0
    linked: int = 0  # letters inside links
    links: int = 0


def remove_link_lists(root: Element) -> int:
    """Remove lists that are mostly short links, unless these are most of the page; returns the number removed."""
    found: list[tuple[Element, int]] = []
    tallies = [_Tally(0)]
    open_links = 0
    for event, element in etree.iterwalk(root, events=("start", "end")):
        is_link = element.tag == "a"
        if event == "start":
            open_links += is_link
            tallies.append(_Tally(len(found), links=int(is_link)))
            _count(tallies[-1], element.text, open_links)
            continue
        open_links -= is_link
        tally = tallies.pop()
        if element.tag in _LISTS and _is_link_list(element, tally):
            del found[tally.n_found_before :]
            found.append((element, tally.letters))
        above = tallies[-1]
        if element.tag not in _NOT_TEXT:
            above.letters += tally.letters
            above.linked += tally.linked
            above.links += tally.links
        _count(above, element.tail, open_links)
    if sum(letters for _, letters in found) > _MAX_PAGE_SHARE * tallies[0].letters:
        return 0
    for element, _ in found:
        element.clear(keep_tail=True)
    return len(found)


def _count(tally: _Tally, text: str | None, open_links: int) -> None:
    if text:
        letters = len("".join(text.split()))
        tally.letters += letters
        tally.linked += letters if open_links else 0


def _is_link_list(element: Element, tally: _Tally) -> bool:
    parent = element.getparent()
    places = (element,) if parent is None else (element, parent)
    is_named = any(_NAMED.search(place.get(name) or "") for place in places for name in ("class", "id"))
    if tally.links < (_MIN_NAMED_LINKS if is_named else _MIN_LINKS):
        return False
    return tally.linked >= _MIN_SHARE * tally.letters and tally.linked <= _MAX_LINK_LETTERS * tally.links
