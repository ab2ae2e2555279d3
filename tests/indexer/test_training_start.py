"""What a run of training begins with: its folder, its corpora, its encoder, and which documents belong together."""

import gc
import gzip
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from engine.encoders.backbone import Backbone
from engine.encoders.colde import ColdeEncoder, Freeze
from engine.encoders.encoder import Variant
from engine.encoders.loading import load_trainable
from engine.encoders.smith import SmithEncoder
from engine.encoders.smith_config import Combination
from engine.encoders.tde import TdeEncoder
from engine.encoders.trainable import MeanEncoder, TrainableEncoder
from engine.errors import DocumentError, EncoderError, MissingExtra, TrainingError
from engine.training.corpus import TrainingCorpus
from engine.training.pair_tasks import Classes, PairGraph
from indexer.building.report import BuildReport
from indexer.training.recipe import SectionsObjective, TextPairsObjective
from indexer.training.run import (
    _IndexProgress,
    check_start,
    negatives,
    place_of,
    read_documents,
    read_with_pairs,
    section_contrast,
    text_pairs,
)
from indexer.training.start import (
    LongSizes,
    NewEncoder,
    NewKind,
    Start,
    StartingEncoder,
    long_backbone,
    make_encoder,
    set_dropout,
    starting_encoder,
    topic_texts,
)
from tests.encoders.tiny import encoded
from tests.fakes import make_corpus, make_document
from tests.indexer.training_corpus import COLDE, SMITH, TDE, write_corpus, write_documents


def test_a_new_folder_an_empty_one_and_that_of_a_run_are_accepted(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "begun" / "run").mkdir(parents=True)
    (tmp_path / "begun" / "README.md").touch()
    (tmp_path / "indexed" / "indexes").mkdir(parents=True)
    (tmp_path / "indexed" / ".gitattributes").touch()
    for name in ("new", "empty", "begun", "indexed"):
        check_start(tmp_path / name, "all-MiniLM-L6-v2", "cpu")


def test_a_folder_of_something_else_and_that_of_the_encoder_are_refused(tmp_path: Path) -> None:
    (tmp_path / "corpus.jsonl").touch()
    message = (
        rf"^{tmp_path} holds corpus.jsonl, and no run to go on with; OUT, which comes first, must be a new folder$"
    )
    with pytest.raises(TrainingError, match=message):
        check_start(tmp_path, "all-MiniLM-L6-v2", "cpu")
    with pytest.raises(TrainingError, match=rf"^{tmp_path / 'corpus.jsonl'} is a file; name a folder for the encoder$"):
        check_start(tmp_path / "corpus.jsonl", "all-MiniLM-L6-v2", "cpu")
    message = rf"^{tmp_path} is the encoder that training starts from; name another folder for the new one$"
    with pytest.raises(TrainingError, match=message):
        check_start(tmp_path, str(tmp_path / "." / ""), None)


def test_a_missing_package_or_device_is_found_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(EncoderError, match=r"^device 'tpu' cannot be used \(.+\); see what there is: longmatch d"):
        check_start(tmp_path / "new", "all-MiniLM-L6-v2", "tpu")
    monkeypatch.setitem(sys.modules, "accelerate", None)
    with pytest.raises(MissingExtra, match=r"^training needs accelerate; install it: pip install 'accelerate"):
        check_start(tmp_path / "new", "all-MiniLM-L6-v2", "cpu")


def test_a_task_is_named_by_the_suffix_of_its_files_and_a_colon_in_a_folder_is_none(tmp_path: Path) -> None:
    folder = write_corpus(tmp_path / "papers", suffix="_citation")
    assert place_of(f"{folder}:_citation") == (folder, "_citation")
    (corpus,) = read_with_pairs([f"{folder}:_citation"])
    assert corpus.name == "papers" and corpus.n_pairs == 28
    folder = write_corpus(tmp_path / "a:b")
    assert place_of(folder) == (folder, "")
    folder = write_corpus(write_corpus(tmp_path / "papers"), suffix="_citation")
    corpora = read_with_pairs([folder, f"{folder}:_citation"])
    assert [corpus.name for corpus in corpora] == ["papers", "papers_citation"]


@pytest.mark.parametrize("name", ["notes.jsonl", "notes.jsonl.gz"])
def test_documents_are_read_from_a_file(tmp_path: Path, name: str) -> None:
    file = write_documents(tmp_path / "notes.jsonl", make_corpus(5))
    if name.endswith(".gz"):
        (tmp_path / name).write_bytes(gzip.compress(file.read_bytes()))
    (corpus,) = read_documents([tmp_path / name])
    assert corpus.name == "notes" and list(corpus.documents) == [f"doc{n:03d}" for n in range(5)]
    assert corpus.trainable == list(corpus.documents) and not corpus.pairs and not corpus.valid


def test_documents_are_read_from_a_folder_of_any_files_or_the_benchmarks(tmp_path: Path) -> None:
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "a.md").write_text("# A\n\nThe old fox.\n")
    (tmp_path / "notes" / "b.txt").write_text("The young dog.\n")
    (tmp_path / "notes" / "c.pdf").write_bytes(b"no pdf at all")
    (corpus,) = read_documents([tmp_path / "notes"])
    assert list(corpus.documents) == ["a.md", "b.txt"] and corpus.n_unreadable == 1
    (corpus,) = read_documents([write_corpus(tmp_path / "papers")])
    assert set(corpus.valid) == {"doc000", "doc001"} == set(corpus.documents) - set(corpus.trainable)


@pytest.mark.slow
def test_files_of_one_document_are_one_corpus(tmp_path: Path) -> None:
    (tmp_path / "notes").mkdir()
    files = [tmp_path / "notes" / name for name in ("a.md", "b.txt")]
    for file in files:
        file.write_text("The old fox.\n")
    lines = write_documents(tmp_path / "more.jsonl", make_corpus(3))
    corpora = read_documents([files[0], lines, files[1]])
    assert [(corpus.name, len(corpus.documents)) for corpus in corpora] == [("more", 3), ("notes", 2)]


def test_the_checksum_of_documents_is_that_of_their_text(tmp_path: Path) -> None:
    one, same = (write_documents(tmp_path / name / "x.jsonl", make_corpus(4)) for name in ("one", "same"))
    other = write_documents(tmp_path / "other" / "x.jsonl", make_corpus(4, seed=1))
    checksums = [read_documents([file])[0].checksum for file in (one, same, other)]
    assert checksums[0] == checksums[1] != checksums[2] and len(checksums[0]) == 12


@pytest.mark.parametrize(
    ("names", "message"),
    [
        ("one/papers other/papers", "2 corpora have the name 'papers': {0} and {1}; name each once, or rename a"),
        ("mean", "a corpus cannot have the name 'mean', which stands for the mean of all; rename it"),
        (
            "papers",
            "{0} has no train_pairs.tsv, so no pairs to learn from; add that file, or learn from the documents alone: "
            "--objective docsplit",
        ),
        ("citing", "{0} has no train_pairs.tsv, so no pairs to learn from; name one of its tasks: {0}:_citation"),
        (
            "absent",
            "{0} does not exist; pairs are read from a folder with corpus.jsonl and train_pairs.tsv, and --objective "
            "docsplit learns from documents alone",
        ),
        ("papers/corpus.jsonl", "{0} is a file; pairs are read from a folder"),
    ],
)
def test_a_corpus_without_pairs_or_without_a_name_of_its_own_is_refused(
    tmp_path: Path, names: str, message: str
) -> None:
    paths = [tmp_path / name for name in names.split()]
    for folder in ("one/papers", "other/papers", "mean"):
        write_corpus(tmp_path / folder)
    write_corpus(tmp_path / "papers", has_pairs=False)
    write_corpus(tmp_path / "citing", suffix="_citation")
    with pytest.raises(TrainingError) as raised:
        read_with_pairs(paths)
    assert str(raised.value).startswith(message.format(*paths))


def test_documents_need_a_path_that_exists_and_can_be_read(tmp_path: Path) -> None:
    with pytest.raises(DocumentError, match=f"^{tmp_path / 'absent'} does not exist and no file matches it"):
        read_documents([tmp_path / "absent"])
    with pytest.raises(TrainingError, match=r"^no corpus was named; name one folder at least$"):
        read_documents([])
    (tmp_path / "bad.pdf").write_bytes(b"no pdf at all")
    message = rf"^{tmp_path / 'bad.pdf'} holds no readable document \(1 not read\)$"
    with pytest.raises(TrainingError, match=message):
        read_documents([tmp_path / "bad.pdf"])


def begun(start: Start) -> MeanEncoder:
    made = starting_encoder(start, (), seed=0, device="cpu", is_resumed=False, log=lambda line: None)
    assert isinstance(made.encoder, MeanEncoder)
    return made.encoder


def test_dropout_is_that_of_the_saved_encoder_or_none(bert_folder: Path) -> None:
    encoder = begun(Start(str(bert_folder)))
    assert {part.p for part in encoder.module.modules() if isinstance(part, nn.Dropout)} == {0.1}
    set_dropout(encoder.module, 0.3)
    assert {part.p for part in encoder.module.modules() if isinstance(part, nn.Dropout)} == {0.3}
    encoder = begun(Start(str(bert_folder), dropout=0.0))
    sequences = [[7, 8, 9, 10], [11, 12]]
    read = encoder.backbone.embed(sequences, 64)
    encoder.module.train()
    torch.testing.assert_close(encoder.backbone.embed(sequences, 64), read)


def test_plain_attention_gives_the_same_vectors(bert_folder: Path, mean_encoder: MeanEncoder) -> None:
    encoder = begun(Start(str(bert_folder)))
    assert encoder.backbone.model.config._attn_implementation == "eager"
    sequences = [[7, 8, 9, 10, 11], [12], [13, 14]]
    found, expected = encoded(encoder.backbone, sequences, 64), encoded(mean_encoder.backbone, sequences, 64)
    torch.testing.assert_close(torch.from_numpy(found), torch.from_numpy(expected), atol=1e-5, rtol=0)


SIZES = LongSizes(max_tokens=96, window=8, block_tokens=4, random_blocks=1)


@pytest.mark.parametrize("attention", [NewKind.LONGFORMER, NewKind.BIGBIRD])
def test_a_text_that_the_attention_covers_has_the_vector_of_the_bert(attention: NewKind, bert_folder: Path) -> None:
    bert = Backbone(bert_folder, device="cpu", dtype=torch.float32)
    long = long_backbone(bert_folder, attention, SIZES, device="cpu")
    short = [list(range(5, 9)), [7]]  # with special tokens, half a window
    np.testing.assert_allclose(encoded(long, short, 100), encoded(bert, short, 100), atol=1e-5)


@pytest.mark.parametrize("attention", [NewKind.LONGFORMER, NewKind.BIGBIRD])
def test_positions_are_those_of_the_bert_repeated(attention: NewKind, bert_folder: Path) -> None:
    bert = Backbone(bert_folder, device="cpu", dtype=torch.float32)
    long = long_backbone(bert_folder, attention, SIZES, device="cpu")
    assert (bert.max_tokens, long.max_tokens) == (46, 94)
    own = bert.model.embeddings.position_embeddings.weight
    rows = long.model.embeddings.position_embeddings.weight[-96:]
    torch.testing.assert_close(rows, torch.cat([own, own]))
    assert np.isfinite(encoded(long, [list(range(5, 90))], 100)).all()


def test_a_new_longformer_reads_whole_sections_and_is_saved_as_any_encoder(bert_folder: Path, tmp_path: Path) -> None:
    new = NewEncoder(NewKind.LONGFORMER, sizes={"max_tokens": "96", "window": "8"})
    made = make_encoder(new, str(bert_folder), (), seed=0, device="cpu")
    assert made.inherited == " (with the attention of longformer, positions repeated)"
    document = make_document("d", [("", "the old red fox " * 16)])
    made.encoder.save_pretrained(tmp_path)
    kept = made.encoder.encode([document])[0]
    del made
    gc.collect()
    read = load_trainable(str(tmp_path), device="cpu", dtype=torch.float32).encode([document])[0]
    assert [span.n_tokens for span in read.chunk_spans] == [64]
    np.testing.assert_allclose(read.document, kept.document, atol=1e-6)


def test_what_is_no_bert_and_sizes_out_of_range_are_refused(bert_folder: Path, tmp_path: Path) -> None:
    long_backbone(bert_folder, NewKind.BIGBIRD, SIZES).save_pretrained(tmp_path)
    with pytest.raises(EncoderError, match="holds a big_bird; a longformer is made from a BERT"):
        long_backbone(tmp_path, NewKind.LONGFORMER, SIZES)
    with pytest.raises(EncoderError, match="a window of 7 tokens has no equal halves"):
        LongSizes(window=7)
    with pytest.raises(EncoderError, match="random_blocks is 0; it must be at least 1"):
        LongSizes(random_blocks=0)
    with pytest.raises(TrainingError, match="longformer has no size 'layers'; it has max_tokens, window"):
        make_encoder(NewEncoder(NewKind.LONGFORMER, sizes={"layers": "2"}), str(bert_folder), (), seed=0, device=None)


TEXTS = ["The old fox runs over the river bank.", "The old fox and the young dog.", "A river runs over the bank."]
# As the backbone of the tests: the same width, layers and heads.
SAME = {**SMITH, "sentence_layers": "2", "sentence_heads": "4", "sentence_ffn": "64"}


def make(new: NewEncoder, backbone: Path, *, seed: int = 0) -> StartingEncoder:
    return make_encoder(new, str(backbone), TEXTS, seed=seed, device="cpu")


def words(encoder: SmithEncoder) -> torch.Tensor:
    return encoder.module.sentence.bert.get_input_embeddings().weight


def test_a_smith_takes_the_sentence_encoder_or_the_word_embeddings_of_a_bert(bert_folder: Path) -> None:
    other = make(NewEncoder(NewKind.SMITH, sizes={**SMITH, "width": "64"}), bert_folder)
    made = make(NewEncoder(NewKind.SMITH, sizes=SMITH), bert_folder)
    published = make(NewEncoder(NewKind.COLDE, sizes=COLDE), bert_folder).encoder.backbone.model
    assert other.inherited is None and other.encoder.config.width == 64
    assert made.inherited == " (the word embeddings alone)"
    n = len(words(made.encoder))
    torch.testing.assert_close(words(made.encoder), published.get_input_embeddings().weight[:n], rtol=0, atol=0)
    made = make(NewEncoder(NewKind.SMITH, sizes=SAME), bert_folder)
    published = make(NewEncoder(NewKind.COLDE, sizes=COLDE), bert_folder).encoder.backbone.model.state_dict()
    assert made.inherited == " (in the sentence encoder)"
    name = "encoder.layer.1.output.dense.weight"
    assert torch.equal(made.encoder.module.sentence.bert.state_dict()[name], published[name])


def test_the_seed_alone_decides_the_parameters(bert_folder: Path) -> None:
    new = NewEncoder(NewKind.COLDE, sizes=COLDE)
    one, same, other = (make(new, bert_folder, seed=seed).encoder.fingerprint for seed in (0, 0, 1))
    assert one == same != other


def test_variants_and_sizes_bring_their_own_choices(bert_folder: Path) -> None:
    smith = make(NewEncoder(NewKind.SMITH, Variant.RELEASED, SMITH), bert_folder).encoder
    colde = make(NewEncoder(NewKind.COLDE, Variant.RELEASED, COLDE), bert_folder).encoder
    assert isinstance(smith, SmithEncoder) and smith.config.variant is Variant.RELEASED
    assert isinstance(colde, ColdeEncoder) and colde.config.freeze is Freeze.ALL_BUT_LAST
    with pytest.raises(EncoderError, match="no code of TDE was published"):
        make(NewEncoder(NewKind.TDE, Variant.RELEASED), bert_folder)
    sizes = {**SMITH, "combination": "attention", "dropout": "0.2"}
    config = make(NewEncoder(NewKind.SMITH, sizes=sizes), bert_folder).encoder.config
    assert (config.combination, config.dropout) == (Combination.ATTENTION, 0.2)
    tde = make(NewEncoder(NewKind.TDE, sizes={**TDE, "pooling": "cls"}), bert_folder).encoder
    assert isinstance(tde, TdeEncoder) and tde.config.pooling == "cls" and tde.config.n_topics == 2


@pytest.mark.parametrize("kind", [NewKind.SMITH_SHORT, NewKind.MATCHBERT])
def test_the_smaller_smiths_can_be_made(kind: NewKind, bert_folder: Path) -> None:
    sizes = {**SAME, "max_blocks": "1" if kind is NewKind.MATCHBERT else "3"}
    del sizes["document_layers"]
    made = make(NewEncoder(kind, sizes=sizes), bert_folder).encoder
    assert made.config.is_hierarchical == (kind is NewKind.SMITH_SHORT)


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ({"widht": "128"}, "smith has no size 'widht'; it has block_tokens, max_blocks, width, "),
        ({"width": "wide"}, "size width cannot be 'wide'; give a whole number"),
        ({"tied": "false"}, "smith has no size 'tied'; it has block_tokens, max_blocks, width, "),
        ({"combination": "most"}, "size combination cannot be 'most'; give normal, sum, mean, attention"),
        ({"variant": "paper"}, "smith has no size 'variant'; it has "),
    ],
)
def test_wrong_sizes_are_refused(sizes: dict[str, str], message: str, bert_folder: Path) -> None:
    with pytest.raises(TrainingError) as raised:
        make(NewEncoder(NewKind.SMITH, sizes=sizes), bert_folder)
    assert str(raised.value).startswith(message)


def test_topic_texts_are_documents_and_drawn_sentences_of_each() -> None:
    documents = [make_document("a", "One. Two. Three."), make_document("b", "Four.")]
    texts = topic_texts(documents, seed=0, most=4)
    assert texts[:2] == ["One. Two. Three.", "Four."]
    assert (
        len(texts) == 5 and texts[4] == "Four." and {text.strip() for text in texts[2:4]} < {"One.", "Two.", "Three."}
    )
    assert len(topic_texts(documents, seed=0)) == 6


TEXT = "The old fox runs over the river bank. A young dog sleeps."
SECTIONS = SectionsObjective()


def corpus_of(
    name: str, pairs: dict[str, list[str]] | None = None, topics: list[object] | None = None
) -> TrainingCorpus:
    """Documents a to f, of which f is blank."""
    documents = {
        doc_id: make_document(doc_id, " " if doc_id == "f" else f"{TEXT} {name} {doc_id}.", metadata={"topic": topic})
        for doc_id, topic in zip("abcdef", topics or range(6), strict=True)
    }
    judged = {query: dict.fromkeys(targets, 1) for query, targets in (pairs or {}).items()}
    return TrainingCorpus(name, documents, pairs=judged, related=judged)


@pytest.fixture(scope="module")
def colde(bert_folder: Path) -> TrainableEncoder:
    new = NewEncoder(NewKind.COLDE, sizes=COLDE)
    return make_encoder(new, str(bert_folder), (), seed=0, device="cpu").encoder


@pytest.fixture(scope="module")
def tde(bert_folder: Path) -> TrainableEncoder:
    new = NewEncoder(NewKind.TDE, sizes={**TDE, "max_df": "1", "min_df": "1"})
    return make_encoder(new, str(bert_folder), [TEXT], seed=0, device="cpu").encoder


def test_pairs_of_several_corpora_make_one_graph(colde: TrainableEncoder) -> None:
    corpora = [corpus_of("one", {"a": ["b", "f"]}), corpus_of("two", {"a": ["c"]})]
    task = section_contrast(colde, corpora, SECTIONS, seed=5)
    assert [one.document.text[-6:] for one in task.documents] == ["one a.", "one b.", "two a.", "two c."]
    assert isinstance(task.relation, PairGraph) and task.settings.seed == 5
    assert task.relation.neighbours == [{1}, {0}, {3}, {2}]


def test_labels_make_classes_that_corpora_do_not_share(colde: TrainableEncoder) -> None:
    topics = [1, 1, ["x", "y"], ["x"], None, 1]
    corpora = [corpus_of("one", topics=topics), corpus_of("two", topics=topics)]
    task = section_contrast(colde, corpora, replace(SECTIONS, label="topic"), seed=0)
    assert isinstance(task.relation, Classes) and task.relation.labels.tolist() == [0, 0, 1, 1, 2, 2, 3, 3]
    assert [one.document.doc_id for one in task.documents] == list("abcd") * 2


def test_pairs_and_labels_do_not_mix_and_an_unknown_label_is_refused(colde: TrainableEncoder) -> None:
    message = r"^two has no pairs, the other corpora have; train on one kind at a time$"
    with pytest.raises(TrainingError, match=message):
        section_contrast(
            colde, [corpus_of("one", {"a": ["b"]}), corpus_of("two")], replace(SECTIONS, label="topic"), seed=0
        )
    with pytest.raises(TrainingError, match=r"^no document has the metadata field 'colour'; they have topic$"):
        section_contrast(colde, [corpus_of("one")], replace(SECTIONS, label="colour"), seed=0)


def test_text_pairs_are_the_pairs_and_negatives_of_their_corpus(tde: TrainableEncoder) -> None:
    corpora = [corpus_of("one", {"a": ["b", "c"], "b": ["f"]}), corpus_of("two", {"a": ["b"]})]
    objective = TextPairsObjective(negatives_per_positive=2)
    task = text_pairs(tde, corpora, [lambda query_id: ["e"], None], objective, seed=0)
    ids = [text.document.text[-6:-1] for text in task.texts]
    found = [(ids[pair.query], ids[pair.target], pair.matches) for pair in task.pairs]
    assert {pair for pair in found if pair[2]} == {
        ("one a", "one b", True),
        ("one a", "one c", True),
        ("two a", "two b", True),
    }
    unmatched: dict[str, list[str]] = {}
    for query, target, matches in found:
        if not matches:
            unmatched.setdefault(query, []).append(target)
    assert sorted(unmatched) == ["one a", "one b", "two a"]
    assert sorted(unmatched["one a"]) == ["one d", "one e"]  # wanted: 4; there are d, e and the blank f
    hard, drawn = unmatched["one b"]
    assert hard == "one e" and drawn in ("one a", "one c", "one d")
    assert set(unmatched["two a"]) < {"two c", "two d", "two e"}
    assert len(set(unmatched["two a"])) == len(unmatched["two a"])  # 2, or 1 where the blank f is drawn
    assert not any("f" in target for _, target, _ in found)  # blank


def test_of_many_positives_some_are_drawn_and_negatives_are_hard_first_and_never_related(tde: TrainableEncoder) -> None:
    objective = TextPairsObjective(positives_per_query=2)
    everyone = {doc_id: [other for other in "abcde" if other != doc_id] for doc_id in "abcde"}
    task = text_pairs(tde, [corpus_of("one", everyone)], [None], objective, seed=0)
    assert sum(pair.matches for pair in task.pairs) == 10
    assert torch.tensor([pair.query for pair in task.pairs if pair.matches]).bincount().tolist() == [2] * 5
    corpus = corpus_of("one", {"a": ["b"]})
    for seed in range(20):
        drawn = negatives(corpus, "a", ["c", "d"], 3, np.random.default_rng(seed))
        assert set(drawn[:2]) == {"c", "d"} and drawn[2] in ("e", "f")
    assert set(negatives(corpus, "a", (), 9, np.random.default_rng(0))) == set("cdef")
    assert negatives(corpus, "a", ["c"], 0, np.random.default_rng(0)) == []


def test_progress_of_indexing_is_logged_at_intervals() -> None:
    lines: list[str] = []
    documents = {one.doc_id: one for one in make_corpus(40)}
    progress = _IndexProgress(TrainingCorpus("papers", documents), lines.append)
    progress(BuildReport(n_unchanged=10))
    assert lines == []  # too soon
    progress._last -= 60
    progress(BuildReport(n_unchanged=20))
    progress(BuildReport(n_unchanged=30))
    assert lines == ["papers: 20 of 40 documents indexed"]
