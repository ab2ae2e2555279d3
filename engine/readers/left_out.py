"""Counts the parts of a file that a reader leaves out of its text. Removes nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from lxml import etree

from engine.readers.markup import Element, local_name

# Kinds, in the words of the counts: "2 figures".
FIGURES = "figures"
REFERENCES = "references"
LINK_LISTS = "link_lists"
COMMENTS = "comments"
OBJECTS = "embedded_objects"
FILES = "missing_files"
RUNNING_HEADS = "running_heads"
LINE_NUMBERS = "line_numbers"
UNREADABLE = "unreadable_characters"
PAGES = "damaged_pages"


def elements_left_out(roots: Iterable[Element], kinds: Mapping[str, str]) -> Counter[str]:
    """Count the elements that a format's reader leaves out.

    Args:
        roots: of the trees that were read.
        kinds: the kind of each counted element, by local name; elements inside a counted element do not count.
    """
    counts: Counter[str] = Counter()
    for root in roots:
        for element in root.iter(etree.Element):
            kind = kinds.get(local_name(element))
            if kind is not None and not any(local_name(above) in kinds for above in element.iterancestors()):
                counts[kind] += 1
    return counts


def sentence(counts: Mapping[str, int]) -> str:
    """The counts in words: "2 figures, 1 link list"; "" where nothing was left out."""
    found = []
    for kind, n_left_out in counts.items():
        words = kind.replace("_", " ")
        found.append(f"{n_left_out:,} {words.removesuffix('s') if n_left_out == 1 else words}")
    return ", ".join(found)
