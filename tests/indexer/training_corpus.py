"""A small corpus on disk in the layout of the benchmarks, and sizes of tiny encoders that train quickly on it."""

import csv
import json
import re
from collections.abc import Sequence
from pathlib import Path

from engine.text.document import Document
from tests.fakes import make_corpus

N_DOCUMENTS = 24  # over ten topics
VALID = ("doc000", "doc001")
SMITH = {  # as on the command line
    "block_tokens": "16",
    "max_blocks": "8",
    "width": "32",
    "sentence_layers": "1",
    "sentence_heads": "2",
    "sentence_ffn": "32",
    "sentence_positions": "16",
    "document_layers": "1",
    "document_heads": "2",
    "document_ffn": "32",
    "document_positions": "8",
}
COLDE = {"chunk_tokens": "24", "lstm_width": "8", "projection_width": "16"}
TDE = {"n_topics": "2", "topic_width": "4", "topic_hidden_width": "4", "min_df": "2", "max_df": "0.9"}
_WORD = re.compile(r"(?:topic(\d+)word|common)(\d+)")


def write_documents(file: Path, documents: Sequence[Document]) -> Path:
    """Write each document with its sections as a line of JSON."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("w", encoding="utf-8") as lines:
        for one in documents:
            sections = [
                {"heading": section.heading, "text": _body(one.text[section.start : section.stop])}
                for section in one.sections
            ]
            record = {"_id": one.doc_id, "title": one.title, "sections": sections, "metadata": dict(one.metadata)}
            lines.write(json.dumps(record) + "\n")
    return file


def _body(text: str) -> str:
    """The text below its heading, "topic3word17" as "dra" and "common8" as "zia": words of letters, and short ones."""
    return _WORD.sub(_short, text.partition("\n")[2]).strip()


def _short(word: re.Match[str]) -> str:
    number = int(word[2])
    return "".join(chr(ord("a") + at) for at in (int(word[1] or 25), number % 26, number // 26))


def write_corpus(
    folder: Path, *, seed: int = 0, has_pairs: bool = True, suffix: str = "", is_split: bool = True
) -> Path:
    """corpus.jsonl, train_pairs.tsv, qrels.tsv, splits.json and README.md."""
    documents = make_corpus(N_DOCUMENTS, seed=seed)
    write_documents(folder / "corpus.jsonl", documents)
    (folder / "README.md").write_text("# A corpus\n\n## Licence\n\nCC0\n")
    topics = {one.doc_id: one.metadata["topic"] for one in documents}
    judged = [(one, other) for one in topics for other in topics if one != other and topics[one] == topics[other]]
    train = [pair for pair in judged if not set(pair) & set(VALID)]
    _write_pairs(folder / f"qrels{suffix}.tsv", judged)
    if has_pairs:
        _write_pairs(folder / f"train_pairs{suffix}.tsv", train)
    if is_split:
        splits = {"train": sorted({query for query, _ in train}), "valid": list(VALID)}
        (folder / f"splits{suffix}.json").write_text(json.dumps(splits))
    return folder


def _write_pairs(file: Path, pairs: Sequence[tuple[str, str]]) -> None:
    with file.open("w", encoding="utf-8", newline="") as lines:
        rows = csv.writer(lines, delimiter="\t", lineterminator="\n")
        rows.writerow(["query_id", "doc_id", "relevance"])
        rows.writerows((query, target, 1) for query, target in pairs)
