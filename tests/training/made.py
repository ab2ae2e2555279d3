"""Small corpora, in memory or in the layout of the benchmarks; small tasks over them, and how to compare their runs."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from math import exp, log
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import normalize

from engine.encoders.backbone import Backbone
from engine.encoders.encoder import SegmentedDocument
from engine.encoders.trainable import Embedded, MeanEncoder
from engine.text.document import Document
from engine.text.segmentation import Chunk, Coverage
from engine.training.corpus import Judgments, TrainingCorpus
from engine.training.fine_tuning import FineTuning, FineTuningSettings, Source
from engine.training.history import History
from engine.training.selection import PairBatch, RandomRuns
from tests.encoders import tiny
from tests.fakes import make_document

WORDS = (
    "the a of and in we is was old young fox dog river house bank light dark model vector search long document "
    "section chunk query target score finds shows every some many few runs jumps over under through quick slow"
).split()

SMITH = replace(tiny.SMITH, max_blocks=6, sentence_positions=12, document_layers=1, document_positions=6)

POSITIVES = torch.tensor([[1, 0, 0, 0, 0, 0], [0, 1, 0, 0, 0, 0], [0, 0, 1, 1, 0, 0]]).bool()
EXCLUDED = torch.tensor([[0, 0, 0, 0, 0, 1], [0, 0, 1, 0, 0, 1], [0, 0, 0, 0, 0, 1]]).bool()  # the last one by all


def write_corpus(
    folder: Path,
    documents: Iterable[Document],
    *,
    pairs: Judgments | None = None,
    qrels: Judgments | None = None,
    splits: Mapping[str, Sequence[str]] | None = None,
    suffix: str = "",
) -> Path:
    folder.mkdir(exist_ok=True)
    records = [{"_id": one.doc_id, "text": one.text, "metadata": dict(one.metadata)} for one in documents]
    (folder / "corpus.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    for name, judged in (("train_pairs", pairs), ("qrels", qrels)):
        if judged is not None:
            lines = [f"{query}\t{doc}\t{grade}" for query, found in judged.items() for doc, grade in found.items()]
            (folder / f"{name}{suffix}.tsv").write_text("\n".join(["query_id\tdoc_id\trelevance", *lines, ""]))
    if splits is not None:
        (folder / f"splits{suffix}.json").write_text(json.dumps(splits))
    return folder


def training_corpus(
    documents: Sequence[Document], pairs: Judgments, *, held_out: Iterable[str] = (), valid: Judgments | None = None
) -> TrainingCorpus:
    """A corpus in memory whose relations are its pairs."""
    by_id = {document.doc_id: document for document in documents}
    return TrainingCorpus("made", by_id, pairs, pairs, held_out=frozenset(held_out), valid=valid or {})


def pairs_of_texts(n: int, *, n_words: int = 30, seed: int = 0) -> list[Document]:
    """2 n documents of random words: q0, t0, q1, t1, ...; half of the words of each pair are the same."""
    rng = np.random.default_rng(seed)

    def some() -> str:
        return " ".join(rng.choice(WORDS, n_words // 2)) + ". "

    made = []
    for number in range(n):
        shared = some()
        made += [make_document(f"q{number}", some() + shared), make_document(f"t{number}", shared + some())]
    return made


def plain_encoder(folder: Path, *, window_tokens: int = 12) -> MeanEncoder:
    """An encoder without dropout: a random backbone turns it into more noise than two texts have in common."""
    encoder = MeanEncoder(Backbone(folder, device="cpu", dtype=torch.float32), window_tokens=window_tokens)
    for module in encoder.module.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0
    return encoder


def embedded_batch() -> tuple[Embedded, PairBatch]:
    """Three queries of 3, 2 and 3 chunks, six targets of 2 or 1; vectors that resemble each other."""
    generator = torch.Generator().manual_seed(3)
    counts = [3, 2, 3, 2, 1, 2, 2, 1, 2]
    chunks = normalize(torch.randn(9, 3, 8, generator=generator) + torch.randn(8, generator=generator), dim=-1)
    mask = torch.arange(3) < torch.tensor(counts)[:, None]
    documents = normalize(torch.randn(9, 8, generator=generator) + torch.randn(8, generator=generator), dim=-1)
    lengths = [((4, 9, 1) if at < 3 else (2, 5))[:count] for at, count in enumerate(counts)]
    made_of = [_segmented(one) for one in lengths]
    batch = PairBatch(made_of[:3], made_of[3:], POSITIVES.numpy(), EXCLUDED.numpy())
    return Embedded(documents, chunks * mask[..., None], mask), batch


def _segmented(n_tokens: tuple[int, ...]) -> SegmentedDocument:
    chunks = tuple(Chunk(0, 0, 1, n) for n in n_tokens)
    return SegmentedDocument(make_document("x", "x"), chunks, ((),) * len(chunks), Coverage(1, 1))


def small_corpus() -> TrainingCorpus:
    pairs = {f"q{number}": {f"t{number}": 1} for number in range(12)}
    return training_corpus(pairs_of_texts(12), pairs, valid=pairs)


def small_fine_tuning(folder: Path) -> FineTuning:
    """Fine-tuning over `small_corpus`, with the dropout of the backbone."""
    encoder = MeanEncoder(Backbone(folder, device="cpu", dtype=torch.float32), window_tokens=12)
    return FineTuning(encoder, [Source(small_corpus(), RandomRuns(2, 2))], FineTuningSettings(queries=4, negatives=0))


def weights_of(module: nn.Module) -> dict[str, Tensor]:
    return {name: weight.detach().clone() for name, weight in module.state_dict().items()}


def assert_equal(one: Mapping[str, Tensor], other: Mapping[str, Tensor]) -> None:
    assert one.keys() == other.keys()
    assert [name for name in one if not torch.equal(one[name], other[name])] == []


def without_speed(history: History) -> list[tuple[int, str, float]]:
    return [tuple(row) for row in history.rows if "second" not in row.name]


def supervised_contrastive_by_hand(vectors: Tensor, positives: Tensor, tau: float, ignored: Tensor) -> float:
    """The loss of one anchor and one positive at a time; anchors without positives are left out."""
    losses = []
    for i in range(len(vectors)):
        others = [k for k in range(len(vectors)) if k != i and not ignored[i, k]]
        own = [j for j in others if positives[i, j]]
        if own:
            denominator = sum(exp(float(vectors[i] @ vectors[k]) / tau) for k in others)
            terms = [log(exp(float(vectors[i] @ vectors[j]) / tau) / denominator) for j in own]
            losses.append(-sum(terms) / len(own))
    return sum(losses) / len(losses) if losses else 0.0
