"""Properties of every encoder: each kind and variant, new and loaded, is compared with a slow reference."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor

from engine.encoders.backbone import inference
from engine.encoders.colde import ColdeEncoder, Freeze, PlacedChunk
from engine.encoders.encoder import EncodedDocument, Pooling, SegmentedDocument, Variant, Vectors
from engine.encoders.files import CONFIG_FILE
from engine.encoders.loading import load_trainable
from engine.encoders.tokenizer import Tokenizer
from engine.encoders.trainable import Embedded, MeanEncoder, TrainableEncoder
from engine.errors import DocumentError, EncoderError
from engine.index import Index
from engine.search.request import Request
from engine.text.document import Document
from indexer.building.builder import build
from tests.encoders.tiny import (
    COLDE,
    ENCODERS,
    KINDS,
    SMITH,
    TDE,
    Take,
    load,
    tamper,
    tiny_colde,
    tiny_mean,
    tiny_smith,
    tiny_tde,
)
from tests.fakes import make_document

AGAIN = ", loaded"
# Encoders that leave out text, as published: the ends of long sentences, or all but the first chunks.
PARTIAL = ("smith paper", "smith released", "matchbert paper", "colde released")
OVER_HEADINGS = ("colde paper", "colde released")  # a chunk ends where it is full
WITHOUT_ATTENTION = ("mean", "matchbert", "colde released", "colde without lstm", "tde")  # these explain nothing
WITHOUT = {  # weights that no document vector depends on
    "mean": ("pooler.",),
    "colde mean": ("backbone.pooler.",),
    "tde": ("backbone.pooler.", "topics.model.rho", "topics.model.log_variance.", "head."),
}


def loaded(encoder: TrainableEncoder, folder: Path) -> TrainableEncoder:
    encoder.save_pretrained(folder)
    again = load_trainable(str(folder), device="cpu", dtype=torch.float32)
    assert isinstance(again, type(encoder))
    return again


@dataclass(frozen=True)
class Case:
    name: str
    encoder: TrainableEncoder
    encoded: Sequence[EncodedDocument]  # all documents, encoded together


@pytest.fixture(scope="module", params=[*ENCODERS, *(name + AGAIN for name in ENCODERS)])
def case(
    request: pytest.FixtureRequest,
    bert_folder: Path,
    documents: list[Document],
    tmp_path_factory: pytest.TempPathFactory,
) -> Case:
    name = request.param.removesuffix(AGAIN)
    encoder = ENCODERS[name](bert_folder)
    if name != request.param:
        encoder = loaded(encoder, tmp_path_factory.mktemp("saved"))
    return Case(name, encoder, encoder.encode(documents))


def tokenizer_of(encoder: TrainableEncoder) -> Tokenizer:
    tokenizer = getattr(encoder, "tokenizer", None) or encoder.backbone.tokenizer  # type: ignore[attr-defined]
    assert isinstance(tokenizer, Tokenizer)
    return tokenizer


def state_alone(encoder: TrainableEncoder, document: SegmentedDocument, number: int) -> Tensor:
    """(1, H), of one chunk that is read by itself."""
    ids = document.token_ids[number]
    if isinstance(encoder, ColdeEncoder):  # its states depend on the place of a chunk
        return encoder.section_states([(PlacedChunk(ids, 0, number),)])[0]
    return encoder.states([replace(document, chunks=document.chunks[number : number + 1], token_ids=(ids,))])[0]


def embed_slowly(encoder: TrainableEncoder, document: Document) -> Embedded:
    """Embed one document, a chunk at a time."""
    segmented = encoder.segment(document)
    with inference(encoder.module):
        states = torch.cat([state_alone(encoder, segmented, number) for number in range(len(segmented.chunks))])
        return encoder.combine([segmented], [states])


@pytest.mark.slow
def test_vectors_are_those_of_chunks_read_one_by_one(case: Case, documents: list[Document]) -> None:
    for document, encoded in zip(documents, case.encoded, strict=True):
        slow = embed_slowly(case.encoder, document)
        np.testing.assert_allclose(encoded.chunks, slow.chunks[0].numpy(), atol=1e-5)
        np.testing.assert_allclose(encoded.document, slow.documents[0].numpy(), atol=1e-5)


@pytest.mark.slow
def test_other_documents_and_their_order_never_change_a_vector(case: Case, documents: list[Document]) -> None:
    for document, one, other in zip(documents, case.encoded, case.encoder.encode(documents[::-1])[::-1], strict=True):
        (alone,) = case.encoder.encode([document])
        for own in (one, other):
            np.testing.assert_allclose(own.document, alone.document, atol=1e-5)
            np.testing.assert_allclose(own.sections, alone.sections, atol=1e-5)
            np.testing.assert_allclose(own.chunks, alone.chunks, atol=1e-5)


def test_embedding_a_padded_batch_is_encoding_each(case: Case, documents: list[Document]) -> None:
    with inference(case.encoder.module):
        batch = case.encoder.embed([case.encoder.segment(document) for document in documents])
    assert batch.documents.dtype == batch.chunks.dtype == torch.float32
    assert batch.mask.sum(1).tolist() == [len(encoded.chunks) for encoded in case.encoded]
    assert not batch.chunks[~batch.mask].any()
    for row, encoded in enumerate(case.encoded):
        np.testing.assert_allclose(batch.documents[row].numpy(), encoded.document, atol=1e-5)
        np.testing.assert_allclose(batch.chunks[row][batch.mask[row]].numpy(), encoded.chunks, atol=1e-5)


def section_by_hand(encoded: EncodedDocument, number: int) -> Vectors:
    total = np.zeros(encoded.chunks.shape[1])
    for chunk, vector in zip(encoded.chunk_spans, encoded.chunks, strict=True):
        if chunk.section == number:
            total += chunk.n_tokens * vector.astype(np.float64)
    return np.asarray(total / (np.linalg.norm(total) or 1), np.float32)


def test_sections_are_the_token_weighted_means_of_chunks(case: Case, documents: list[Document]) -> None:
    for document, encoded in zip(documents, case.encoded, strict=True):
        expected = np.stack([section_by_hand(encoded, number) for number in range(len(document.sections))])
        np.testing.assert_allclose(encoded.sections, expected, atol=1e-6)


def test_rows_are_unit_and_of_one_width_and_an_empty_section_is_a_row_of_zeros(case: Case) -> None:
    for encoded in case.encoded:
        full = [encoded.sections[number] for number in {chunk.section for chunk in encoded.chunk_spans}]
        rows = np.stack([encoded.document, *encoded.chunks, *full])
        assert (rows.dtype, rows.shape[1]) == (np.float32, case.encoder.width)
        np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1, atol=1e-5)
    for encoded in (case.encoded[0], case.encoded[3]):
        assert not encoded.sections[1].any()
        assert 1 not in {chunk.section for chunk in encoded.chunk_spans}


def test_chunks_lie_in_their_sections_and_show_their_tokens(case: Case, documents: list[Document]) -> None:
    tokenizer = tokenizer_of(case.encoder).fast
    for document in documents:
        segmented = case.encoder.segment(document)
        for chunk, ids in zip(segmented.chunks, segmented.token_ids, strict=True):
            section = document.sections[chunk.section]
            assert section.start <= chunk.start < min(chunk.stop, section.stop)
            assert chunk.stop <= section.stop or case.name.startswith(OVER_HEADINGS)
            assert 1 <= chunk.n_tokens == len(ids) <= case.encoder.chunk_tokens
            pieces = "".join(piece.removeprefix("##") for piece in tokenizer.convert_ids_to_tokens(ids))
            shown = "".join(document.text[chunk.start : chunk.stop].lower().split())
            assert pieces == shown or not shown.isascii()


def test_coverage_counts_the_tokens_of_chunks_which_hold_all_in_order(case: Case, documents: list[Document]) -> None:
    tokenizer = tokenizer_of(case.encoder)
    for document, encoded in zip(documents, case.encoded, strict=True):
        bodies = [document.text[section.start : section.stop] for section in document.sections]
        n_tokens = sum(len(ids) for ids, _ in tokenizer.tokenize(bodies))
        read = sum(chunk.n_tokens for chunk in encoded.chunk_spans)
        assert (encoded.coverage.tokens_read, encoded.coverage.tokens_total) == (read, n_tokens)
    assert (case.encoded[0].coverage.share < 1) is case.name.startswith(PARTIAL)
    for document in documents:
        segmented = case.encoder.segment(document)
        if segmented.coverage.share == 1:
            bodies = [document.text[section.start : section.stop] for section in document.sections]
            whole = [token for ids, _ in tokenizer.tokenize(bodies) for token in ids]
            assert [token for ids in segmented.token_ids for token in ids] == whole


@pytest.mark.parametrize("text", ["", " \n\t ", "\x00\x01"])
def test_a_document_without_a_token_is_refused(case: Case, text: str) -> None:
    with pytest.raises(DocumentError, match=r"^void: no text that the tokenizer can read$"):
        case.encoder.encode([make_document("void", text)])


@pytest.mark.parametrize("text", ["fox", "zebra", "Of."])
def test_one_word_is_a_document(case: Case, text: str) -> None:
    (encoded,) = case.encoder.encode([make_document("word", text)])
    assert (len(encoded.chunks), encoded.coverage.share) == (1, 1)
    np.testing.assert_allclose(np.linalg.norm([encoded.document, encoded.chunks[0]], axis=1), 1, atol=1e-5)


def test_identical_documents_score_one_and_others_less(case: Case, documents: list[Document]) -> None:
    one, other = case.encoder.encode([documents[0], replace(documents[0], doc_id="copy")])
    assert float(one.document @ other.document) == pytest.approx(1, abs=1e-6)
    assert float(one.document @ case.encoded[1].document) < 0.9999
    assert case.encoder.encode([]) == []


def test_a_document_loss_reaches_every_weight_that_makes_its_vector(case: Case, documents: list[Document]) -> None:
    embedded = case.encoder.embed([case.encoder.segment(document) for document in documents])
    case.encoder.module.zero_grad()
    (embedded.documents @ torch.linspace(-1, 1, case.encoder.width)).square().sum().backward()
    named = dict(case.encoder.module.named_parameters())
    without = {name for name, weight in named.items() if weight.grad is None}
    left_out = tuple(part for kind, parts in WITHOUT.items() if case.name.startswith(kind) for part in parts)
    assert without == {name for name in named if name.startswith(left_out)}
    assert all(torch.isfinite(weight.grad).all() for weight in named.values() if weight.grad is not None)
    case.encoder.module.zero_grad()


@pytest.mark.slow
@pytest.mark.parametrize("name", ENCODERS)
def test_a_saved_encoder_loads_the_same(
    name: str, bert_folder: Path, documents: list[Document], tmp_path: Path
) -> None:
    encoder = ENCODERS[name](bert_folder)
    before = torch.get_rng_state()
    again = loaded(encoder, tmp_path)
    assert torch.equal(torch.get_rng_state(), before)
    assert (again.name, again.width, again.chunk_tokens) == (str(tmp_path), encoder.width, encoder.chunk_tokens)
    assert again.fingerprint == encoder.fingerprint
    assert getattr(again, "config", None) == getattr(encoder, "config", None)
    for one, other in zip(encoder.encode(documents), again.encode(documents), strict=True):
        assert np.array_equal(one.document, other.document)
        assert np.array_equal(one.sections, other.sections)
        assert np.array_equal(one.chunks, other.chunks)
        assert (one.chunk_spans, one.coverage) == (other.chunk_spans, other.coverage)


@pytest.mark.slow
@pytest.mark.parametrize("name", ENCODERS)
def test_each_weight_that_makes_vectors_is_in_the_fingerprint(name: str, bert_folder: Path) -> None:
    encoder = ENCODERS[name](bert_folder)
    left_out = tuple(part for kind, parts in WITHOUT.items() if name.startswith(kind) for part in parts)
    seen = {encoder.fingerprint}
    weights = [weight for key, weight in encoder.module.named_parameters() if not key.startswith(left_out)]
    for weight in weights:
        with torch.no_grad():
            weight.view(-1)[0] += 0.5
        seen.add(encoder.fingerprint)
    assert len(seen) == 1 + len(weights)


@pytest.fixture(params=KINDS)
def encoder(request: pytest.FixtureRequest, bert_folder: Path) -> TrainableEncoder:
    return KINDS[request.param](bert_folder)


def weights_of(folder: Path) -> dict[str, Tensor]:
    files = sorted(folder.glob("*.safetensors"))
    return {f"{file.name} {name}": value for file in files for name, value in load_file(file).items()}


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_rounding_keeps_fingerprint_and_files_and_training_changes_both(
    encoder: TrainableEncoder, dtype: torch.dtype, documents: list[Document], tmp_path: Path
) -> None:
    encoder.save_pretrained(tmp_path / "one")
    rounded = load_trainable(str(tmp_path / "one"), device="cpu", dtype=dtype)
    assert rounded.fingerprint == encoder.fingerprint
    for one, other in zip(encoder.encode(documents), rounded.encode(documents), strict=True):
        assert float(one.document @ other.document) > 0.99
    rounded.save_pretrained(tmp_path / "two")  # the files, not what memory has rounded
    first, second = weights_of(tmp_path / "one"), weights_of(tmp_path / "two")
    assert first.keys() == second.keys() and all(torch.equal(first[name], second[name]) for name in first)
    weight = next(weight for name, weight in rounded.module.named_parameters() if name.endswith("LayerNorm.bias"))
    with torch.no_grad():
        weight.add_(1)
    assert rounded.fingerprint != encoder.fingerprint
    rounded.save_pretrained(tmp_path / "one")
    trained = load_trainable(str(tmp_path / "one"), device="cpu", dtype=dtype)
    assert np.array_equal(trained.encode(documents)[0].chunks, rounded.encode(documents)[0].chunks)
    if encoder.kind != "mean":  # whose fingerprint is of its files, unless it was trained since
        assert trained.fingerprint == rounded.fingerprint


def test_parameters_are_saved_at_a_given_precision(
    encoder: TrainableEncoder, documents: list[Document], tmp_path: Path
) -> None:
    encoder.save_pretrained(tmp_path, dtype=torch.bfloat16)
    assert {value.dtype for value in weights_of(tmp_path).values()} <= {torch.bfloat16, torch.int64}
    again = load_trainable(str(tmp_path), device="cpu", dtype=torch.float32)
    for one, other in zip(encoder.encode(documents), again.encode(documents), strict=True):
        assert float(one.document @ other.document) > 0.99


def test_encoding_leaves_training_as_it_was(encoder: TrainableEncoder, documents: list[Document]) -> None:
    assert not any(module.training for module in encoder.module.modules())
    encoder.module.train()
    one, other = (encoder.encode(documents[:1])[0] for _ in range(2))
    assert np.array_equal(one.document, other.document)  # no dropout, no sample of topics
    assert all(module.training for module in encoder.module.modules())


@pytest.mark.parametrize("make", [tiny_smith, tiny_colde, tiny_tde])
def test_a_seed_determines_all_parameters_and_leaves_torchs_random_numbers_alone(
    make: Callable[..., TrainableEncoder], bert_folder: Path
) -> None:
    torch.manual_seed(7)
    before = torch.get_rng_state()
    one, same, other = (make(bert_folder, seed=seed) for seed in (1, 1, 2))
    assert torch.equal(before, torch.get_rng_state())
    assert one.fingerprint == same.fingerprint != other.fingerprint


@pytest.mark.parametrize(
    ("make", "config", "same", "others"),
    [
        (tiny_smith, SMITH, [{"dropout": 0.3}], [{"max_blocks": 3}]),
        (
            tiny_colde,
            COLDE,
            [{"temperature": 0.1}, {"freeze": Freeze.ALL_BUT_LAST}, {"max_chunks": 9}, {"dropout": 0.2}],
            [{"chunk_tokens": 11}, {"heads": 2}, {"pooling": Pooling.MEAN}],
        ),
        (tiny_tde, TDE, [{"min_df": 0}], [{"pooling": Pooling.CLS}, {"variant": Variant.PAPER}, {"n_topics": 0}]),
    ],
)
def test_the_fingerprint_depends_on_settings_that_change_vectors_and_on_no_others(
    make: Callable[..., TrainableEncoder],
    config: Any,  # noqa: ANN401
    same: list[dict[str, Any]],
    others: list[dict[str, Any]],
    bert_folder: Path,
) -> None:
    own = make(bert_folder, config).fingerprint
    assert {make(bert_folder, replace(config, **change)).fingerprint for change in same} == {own}
    changed = {make(bert_folder, replace(config, **change)).fingerprint for change in others}
    assert len({own, *changed}) == 1 + len(others)


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("mean", "Chunks of 12 tokens, cut at sentence ends, are pooled by the backbone\n(mean; weights sha256 "),
        ("smith", "`fixed`: 2 layers read blocks of 12 tokens,\n2 layers read up to 4 blocks together"),
        ("colde", "`fixed`: chunks of 12 tokens are read"),
        ("tde", "Variant fixed, mean pooling, sentences of at most 18 tokens, 3 topics,\nvectors 38 wide."),
    ],
)
def test_the_card_states_variant_and_sizes(saved: dict[str, Path], kind: str, text: str) -> None:
    card = (saved[kind] / "README.md").read_text()
    assert card.startswith("---\nlibrary_name: longmatch\ntags: [feature-extraction, long-documents]\n---\n# ")
    assert text in card


@pytest.mark.parametrize(
    ("kind", "entry", "value", "message"),
    [
        ("mean", "window_tokens", "many", "window_tokens is 'many', not a whole number up to 1,000,000"),
        ("mean", "pooling", "max", "pooling is 'max', not one of mean, cls"),
        ("smith", "variant", None, "variant is None, not one of paper, released, fixed"),
        ("colde", "heads", "4", "heads is '4', not a whole number up to 1,000,000"),
        ("colde", "dropout", None, "dropout is None, not a number up to 1,000,000"),
        ("tde", "n_topics", "3", "n_topics is '3', not a whole number up to 1,000,000"),
        (
            "tde",
            "variant",
            "released",
            "variant is 'released', but no code of TDE was published; take 'paper' or 'fixed'",
        ),
        ("tde", "pooling", None, "pooling is None, not one of mean, cls"),
    ],
)
def test_a_damaged_configuration_names_its_file_and_entry(
    take: Take, kind: str, entry: str, value: object, message: str
) -> None:
    file = take(kind) / CONFIG_FILE
    tamper(file, **{entry: value})
    with pytest.raises(EncoderError, match=f"^{re.escape(f'{file}: {message}')}"):
        load(file.parent)


@pytest.mark.parametrize(
    ("kind", "entry", "value", "message"),
    [
        ("smith", "document_positions", 5, "document.positions.weight of shape (4, 32), the other files need (5, 32)"),
        ("colde", "lstm_width", 17, "lstm.bias_hh_l0 of shape (64,), the other files need (68,)"),
        ("tde", "n_topics", 4, "topics.model.alpha of shape (3, 6), the other files need (4, 6)"),
    ],
)
def test_parameters_that_do_not_fit_the_configuration_are_refused(
    take: Take, kind: str, entry: str, value: int, message: str
) -> None:
    folder = take(kind)
    tamper(folder / CONFIG_FILE, **{entry: value})
    file = folder / f"{kind}.safetensors"
    with pytest.raises(EncoderError, match=f"^{re.escape(f'{file} has {message}; save the encoder again')}$"):
        load(folder)
    file.unlink()
    with pytest.raises(EncoderError, match=f"^{file} cannot be read .*; save the encoder again$"):
        load(folder)


@pytest.mark.parametrize("kind", ["mean", "colde"])
def test_a_chunk_is_cut_down_to_what_the_backbone_reads(kind: str, bert_folder: Path) -> None:
    wide: TrainableEncoder = MeanEncoder(tiny_mean(bert_folder).backbone, window_tokens=510)
    if kind == "colde":
        wide = tiny_colde(bert_folder, replace(COLDE, chunk_tokens=510))
    assert wide.chunk_tokens == 46
    assert wide.encode([make_document("d", "fox " * 1000)])[0].coverage.tokens_read == 1000


WORDS = "fox dog river house bank light dark model vector search long document section chunk query target".split()


@pytest.fixture(scope="module")
def corpus() -> list[Document]:
    rng = np.random.default_rng(0)
    return [
        make_document(f"d{number}", [(part, " ".join(rng.choice(WORDS, 30)) + ".") for part in ("one", "two")])
        for number in range(6)
    ]


@pytest.mark.slow
@pytest.mark.parametrize("name", ENCODERS)
def test_search_with_every_encoder_finds_a_document_and_parts_sum_to_the_score(
    name: str, bert_folder: Path, corpus: list[Document], tmp_path: Path
) -> None:
    encoder = loaded(ENCODERS[name](bert_folder), tmp_path / "encoder")
    build(tmp_path / "x.lm", corpus, encoder=encoder, factory="Flat")
    with Index.open(tmp_path / "x.lm", encoder=encoder) as index:
        result = index.search(corpus[3], Request(k=6, with_itself=True))
    assert result.hits[0].doc_id == "d3"
    # Vectors are stored in half precision, which shows where thresholds are near 1, as with untrained encoders.
    parts = [part for pair in result.hits[0].breakdown.pairs for part in pair.parts]
    assert [part.similarity for part in parts] == pytest.approx([1] * len(parts), abs=1e-3)
    assert result.hits[0].score == pytest.approx(1, abs=2e-2)
    for hit in result.hits:
        assert hit.breakdown.score == pytest.approx(hit.score, abs=1e-5)
    assert result.query_coverage == encoder.segment(corpus[3]).coverage


@pytest.mark.slow
def test_an_encoder_explains_by_indexed_chunks_or_raises_its_reason(case: Case, documents: list[Document]) -> None:
    query, *targets = documents
    if case.name.startswith(WITHOUT_ATTENTION):
        assert case.encoder.cannot_explain
        with pytest.raises(EncoderError, match=re.escape(case.encoder.cannot_explain)):
            case.encoder.explain(query, targets)
        return
    assert case.encoder.cannot_explain is None
    found = case.encoder.explain(query, targets)
    for one, target, encoded in zip(found, targets, case.encoded[1:], strict=True):
        assert (one.query_chunks, one.target_chunks) == (case.encoded[0].chunk_spans, encoded.chunk_spans)
        assert one.pairs.shape == (len(query.sections), len(target.sections))
        assert -1 - 1e-5 <= one.total <= 1 + 1e-5
        np.testing.assert_allclose(one.pairs.sum(), one.chunk_pairs.sum(), atol=1e-5)
        assert one.encoder == case.encoder.kind
