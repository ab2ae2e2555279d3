"""Pairs of papers of the ACL Anthology Network from the Long Range Arena; a pair matches if one cites the other.

`new_aan_pairs.{train,eval,test}.tsv` have, without a header and without quoting, the columns label, id1, id2, text1,
text2, separated by tabs (Tay et al. 2021, arXiv:2011.04006). The label is 0 or 1, possibly as a decimal; a text can be
written as a Python bytes literal, b'...'. The files are in `lra_release/tsv_data` of lra_release.gz, to be fetched by
hand from https://storage.googleapis.com/long-range-arena/lra_release.gz. The repository's licence covers its code;
the papers are the ACL Anthology's, CC BY-NC-SA 3.0 up to 2015 and CC BY 4.0 from 2016 on.

These are not the pairs of AAN104K (SMITH) or of CoLDE: papers and numbers differ.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from benchmarks.formats.lines import FormatError, columns, read_lines
from benchmarks.pair_scorer import Pair
from engine.errors import DocumentError
from engine.text.document import Document, assemble

FILES: Mapping[str, str] = {
    "train": "new_aan_pairs.train.tsv",
    "valid": "new_aan_pairs.eval.tsv",
    "test": "new_aan_pairs.test.tsv",
}
_COLUMNS = ("label", "id1", "id2", "text1", "text2")


@dataclass(frozen=True)
class PairFolder:
    """The three files together."""

    pairs: Mapping[str, list[Pair]]  # by split, one of `FILES`
    n_blank: Mapping[str, int]  # by split: pairs with a blank text, which are dropped as by SMITH's preprocessing
    documents: Mapping[str, Document]


def is_pair_folder(folder: Path) -> bool:
    """Whether the folder has one of `FILES`; reads no file."""
    return any((folder / name).is_file() for name in FILES.values())


def read_folder(folder: Path) -> PairFolder:
    """Read all pairs, and each document once."""
    pairs: dict[str, list[Pair]] = {}
    n_blank: dict[str, int] = {}
    texts: dict[str, tuple[str, str]] = {}  # by id: the place of its first line, and its text there
    for split, name in FILES.items():
        pairs[split], n_blank[split] = [], 0
        # Line by line, since the text of a document is repeated in every line of its pairs.
        for place, line in read_lines(folder / name):
            label, id1, id2, *written = columns(place, line, _COLUMNS)
            pair = Pair(id1, id2, _is_match(place, label))
            text1, text2 = (_text(place, text) for text in written)
            if not text1.strip() or not text2.strip():
                n_blank[split] += 1
                continue
            pairs[split].append(pair)
            for doc_id, text in ((id1, text1), (id2, text2)):
                first, known = texts.setdefault(doc_id, (place, text))
                if known != text:
                    raise FormatError(
                        f"{place} gives {doc_id!r} another text than {first}; an id must name one document"
                    )
    documents = {doc_id: _document(place, doc_id, text) for doc_id, (place, text) in texts.items()}
    return PairFolder(pairs, n_blank, documents)


def _is_match(place: str, label: str) -> bool:
    try:
        return {0.0: False, 1.0: True}[float(label)]
    except (ValueError, KeyError):
        raise FormatError(f"{place} has the label {label!r}; it must be 0 or 1") from None


def _text(place: str, text: str) -> str:
    if not text.startswith(("b'", 'b"')) or text[-1:] != text[1]:
        return text
    try:
        written = ast.literal_eval(text)
    except (ValueError, SyntaxError) as error:
        raise FormatError(f"{place} holds bytes that are not written as Python writes them ({error})") from error
    return written.decode("utf-8", "replace") if isinstance(written, bytes) else text


def _document(place: str, doc_id: str, text: str) -> Document:
    try:
        return assemble(text, (), doc_id=doc_id, source=place, title=doc_id)
    except DocumentError as error:
        raise FormatError(f"{place}: {error}") from error
