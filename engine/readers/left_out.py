"""The reasons for which a reader leaves out a part of a file. A kind of parts is counted by parts, others by words."""

from __future__ import annotations

from collections.abc import Mapping

# Kinds of parts, in the words of the counts: "2 figures".
FIGURES = "figures"
REFERENCES = "references"
LINK_LISTS = "link_lists"
COMMENTS = "comments"
OBJECTS = "embedded_objects"
FILES = "missing_files"
LABELS = "undefined_labels"  # that a text refers to
DOCUMENTS = "other_documents"  # of an archive that is one document
RUNNING_HEADS = "running_heads"
LINE_NUMBERS = "line_numbers"
CUES = "cue_times"  # of subtitles
UNREADABLE = "unreadable_characters"
PAGES = "damaged_pages"
SCANS = "scanned_pages"  # that OCR may read
PARTS = "damaged_parts"
ELEMENTS = frozenset([
    FIGURES, REFERENCES, LINK_LISTS, COMMENTS, OBJECTS, FILES, LABELS, RUNNING_HEADS, LINE_NUMBERS, CUES, PARTS,
])  # fmt: skip

# Kinds of words: "12 navigation words".
NAVIGATION = "navigation_words"
PAGE_FRAME = "page_frame_words"  # outside of the main part of a web page
FORM = "form_words"
FALLBACK = "fallback_words"  # shown where a program or a medium does not run
HIDDEN = "hidden_words"
DELETED = "deleted_words"
READINGS = "reading_words"  # above other words, as ruby
VARIANTS = "variant_words"  # another reading of a passage
FRONT_MATTER = "front_matter_words"  # neither text nor metadata
CONTENTS = "contents_words"  # of a table of contents or an index
TRANSLATIONS = "translation_words"
RAW = "raw_words"  # in another notation
COMMENT_WORDS = "comment_words"
FIELDS = "field_words"  # of a record, in fields that are neither text nor metadata
ENCODED = "encoded_characters"  # bytes of a picture as text
UNEXPLAINED = "unexplained_words"  # of the source, neither read nor left out for a reason: a fault of the reader


def sentence(counts: Mapping[str, int]) -> str:
    """The counts in words: "2 figures, 1 link list"; "" where nothing was left out."""
    found = []
    for kind, n_left_out in counts.items():
        words = kind.replace("_", " ")
        found.append(f"{n_left_out:,} {words.removesuffix('s') if n_left_out == 1 else words}")
    return ", ".join(found)
