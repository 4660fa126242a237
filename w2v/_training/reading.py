"""`read_text`: open and read the text of a run, or make random walks on its graph."""

from __future__ import annotations

import time
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, cast
from zlib import crc32

import numpy as np

from w2v._errors import NothingToTrain, W2VError, one_line
from w2v._graph.graph import Graph, is_graph
from w2v._graph.pairs import PairSource
from w2v._graph.source import GraphSource
from w2v._graph.walks import walk_store
from w2v._options import refuse
from w2v._progress import Report
from w2v._system.files import temporary_folder
from w2v._system.version import __version__
from w2v._text.columns import has_columns
from w2v._text.corpus import Corpus, Source
from w2v._text.encodings import UTF_8
from w2v._text.idstore import IdStore, TypeCounts, read_corpus
from w2v._text.labels import LabelledTexts
from w2v._text.phrases import Phrases
from w2v._text.tagging import TaggedTexts, join_tagged
from w2v._text.words import NOUNS, OWN_PREFIX, KeyType, Words
from w2v._training.checkpoint import Checkpoint
from w2v._training.communicator import Communicator, OneProcess
from w2v._training.config import RunConfig
from w2v._training.documents import take_tags
from w2v._training.identity import check_identity


@dataclass
class ReadText:
    """The text of a run, after it was read.

    Attributes:
        store: The ids of the text, or of this rank's part of it.
        types: The types of the whole text: `store` itself, unless several ranks train.
        phrases: The phrases that were joined in the text, if any.
        corpus: The text before it was read; None if it is not known.
        inputs: The checksums that identify the text, by name in messages; empty until `identify` is called. If several
            ranks train, only the words are compared: each rank has a part of the text.
        ranks: The ranks that train.
        seconds: The time spent on reading.
        held_out: The texts that score a classifier after each epoch; None if they are a part of this text.
        tags: The tags of documents, or None.
    """

    store: IdStore
    types: TypeCounts
    phrases: Phrases | None = None
    corpus: Corpus | GraphSource | PairSource | TaggedTexts | LabelledTexts | None = None
    inputs: dict[str, str] = field(default_factory=dict)
    ranks: OneProcess = field(default_factory=OneProcess)
    seconds: float = 0.0
    held_out: ReadText | None = None
    tags: Words | None = None

    def identify(self) -> None:
        """Compute `inputs`."""
        self.inputs = {"words": self.types.types_checksum()}
        if self.types is self.store:
            weights = self.corpus.checksum() if isinstance(self.corpus, LabelledTexts | PairSource) else ""
            self.inputs["text"] = self.store.checksum() + weights
        if self.held_out:
            self.held_out.identify()
            self.inputs["held-out texts"] = self.held_out.inputs.get("text", "")

    def check_same_text(self, checkpoint: Checkpoint) -> None:
        """Raise W2VError if a checkpoint belongs to a run with another text. Call `identify` before."""
        stored, found = checkpoint.identity, replace(checkpoint.identity, inputs=self.inputs)
        if not stored.inputs.keys() & found.inputs.keys() & {"text"}:
            stored, found = (replace(each, inputs=each.inputs | {"text": ""}) for each in (stored, found))
        remedy = f"name its text and other files instead of {self.corpus}, or start a new run"
        check_identity(checkpoint.path, stored, found, remedy)


def read_text(
    config: RunConfig,
    corpus: Source | Corpus | Graph | PairSource | TaggedTexts | LabelledTexts,
    *,
    checkpoints: list[Checkpoint],
    ranks: OneProcess,
    progress: Report | None,
) -> ReadText:
    """Read the text of a run. The caller closes the file of its ids, `store`.

    Args:
        config: The description of the run.
        corpus: The text.
        checkpoints: The checkpoints that the run resumes from; empty for a new run.
        ranks: The ranks that train. Each reads a part of the text.
        progress: See `train`.

    Raises:
        W2VError: The text cannot be used, or it is not the text of the checkpoints.
    """
    started = time.perf_counter()
    with ranks.collective_errors():
        opened = _open_corpus(config, corpus)
        for checkpoint in checkpoints:
            _check_file_sizes(checkpoint, opened.sizes)
        if ranks.size > 1:
            _check_options_for_ranks(config)
    part = opened
    if ranks.size > 1:
        whole = (opened.source or opened.corpus) if isinstance(opened, LabelledTexts) else opened
        assert isinstance(whole, Corpus)
        ranks.assert_same(_values_all_ranks_share(config, whole, checkpoints))
        is_table = has_columns(config.reading.column) or config.reading.item is not None
        with ranks.collective_errors():
            part = _open_corpus(config, whole.part(ranks.rank, ranks.size, is_table))
    with ExitStack() as stack:
        with ranks.collective_errors():
            store, joined_phrases = read_words(part, config, progress)
            stack.enter_context(store)
            tags = take_tags(store) if config.settings.documents or config.reading.also_context else None
            tags = tags if config.settings.documents else None
        types = _merge_types(ranks, store)
        with ranks.collective_errors():
            if not types.tokens:
                raise NothingToTrain(f"{opened} holds no {types.noun}s")
        stack.pop_all()
    seconds = time.perf_counter() - started
    return ReadText(store, types, joined_phrases, opened, ranks=ranks, seconds=seconds, tags=tags)


def _open_corpus(
    config: RunConfig, corpus: Source | Corpus | Graph | PairSource | TaggedTexts | LabelledTexts
) -> Corpus | GraphSource | PairSource | TaggedTexts | LabelledTexts:
    """Return the text or graph of a run. Raise W2VError if a text is needed and this is a graph."""
    if config.walks:
        return GraphSource(corpus)
    if config.pairs:
        return corpus if isinstance(corpus, PairSource) else PairSource(corpus)
    if is_graph(corpus):
        raise W2VError("the corpus is a graph, and the run began with a text: give the same text again")
    if isinstance(corpus, LabelledTexts):
        return corpus
    if config.settings.documents:
        return LabelledTexts.of_documents(corpus, config.tags, config.reading)
    opened = corpus if isinstance(corpus, Corpus | TaggedTexts) else Corpus(cast(Source, corpus))
    if config.labels and config.labels.labels and isinstance(opened, Corpus):
        reading = config.reading
        opened.header = opened.header if reading.header is None else reading.header
        return LabelledTexts.of_table(opened, reading.column, config.labels.labels, reading.encoding, reading.errors)
    return opened


def _check_file_sizes(checkpoint: Checkpoint, sizes: list[tuple[str, int]] | None) -> None:
    """Raise W2VError if the sizes of the files have changed. This needs no reading, unlike the checksum of the text."""
    for (old_path, old_size), (path, size) in zip(checkpoint.resume_info.files or [], sizes or [], strict=False):
        if old_size != size:
            original = f"{one_line(old_path)} had {old_size:,} bytes when the run began"
            raise W2VError(
                f"the text has changed: {original}, and now {path} has {size:,}: name the original text, or start a "
                "new run"
            )


def read_words(
    text: Corpus | TaggedTexts | GraphSource | PairSource | LabelledTexts, config: RunConfig, progress: Report | None
) -> tuple[IdStore, Phrases | None]:
    """Read texts and join the words of their phrases, or read a graph and make random walks on it.

    Args:
        text: The text, texts or graph.
        config: The description of the run.
        progress: See `train`.

    Returns:
        The ids of the words, and the phrases that were joined; None without phrases.

    Raises:
        W2VError: If the text or graph cannot be read.
        SettingsError: If an option does not suit items or nodes.
    """
    cache = config.reading.cache
    phrases = config.phrases if isinstance(config.phrases, bool) else Phrases.load(config.phrases)
    resources: dict[str, Any] = {"workers": config.settings.threads, "progress": progress}
    if isinstance(text, GraphSource):
        assert config.walks
        graph = text.read(config.walks, **resources)
        config.check_items(str(text), graph.key_type)
        return walk_store(graph, config.walks, seed=config.settings.seed, folder=cache, **resources), None
    if isinstance(text, PairSource):
        assert config.pairs
        return text.read(config.pairs, config.negatives_from, folder=cache, **resources), None
    if isinstance(text, TaggedTexts):
        joined_phrases = None
        with ExitStack() as stack:
            stores = {}
            for name, corpus in text.corpora.items():
                part, joined_phrases = read_words(corpus, config, progress)
                stores[name] = stack.enter_context(part)
            return join_tagged(stores, text.words, temporary_folder(cache)), joined_phrases
    prefix = config.labels.label_prefix if config.labels else ""
    reading = config.reading
    if isinstance(text, LabelledTexts):
        text, prefix, reading = text.corpus, OWN_PREFIX, replace(reading, column=None, encoding=UTF_8)
    store = read_corpus(text, reading, check_items=config.check_items, label_prefix=prefix, **resources)
    with ExitStack() as stack:
        stack.enter_context(store)
        if not store.is_text:  # the items may come from the cache, or only now turn out to be numbers
            config.check_items(str(text), store.key_type)
        if phrases is not False:
            found = Phrases.find(store, **resources) if phrases is True else phrases
            return found.join(store, folder=cache, **resources), found
        stack.pop_all()
    return store, None


def _check_options_for_ranks(config: RunConfig) -> None:
    """Raise SettingsError for options that need the whole text; with several ranks, each one reads only a part."""
    reading = config.reading
    refused: dict[str, object] = {
        "--graph (graph=True): a graph cannot be divided among ranks": config.walks,
        "--documents (documents=): each rank would train its own rows of tags": config.settings.documents,
        "--pairs (pairs=True): pairs cannot be divided among ranks": config.pairs,
        "--stop-early (stop_early) holds out the end of the whole text": config.settings.stop_early,
        "--item (item=): a session may have rows in the parts of several ranks": reading.item is not None,
        "--strip-markup (strip_markup=True): the text cannot be divided among ranks inside markup": (
            reading.strip_markup and not has_columns(reading.column)
        ),
    }
    others: dict[str, object] = {
        f"--encoding {reading.encoding} (encoding): only UTF-8 can be divided among ranks: convert the text with "
        "iconv": reading.encoding != UTF_8,
        "--phrases (phrases=True) finds phrases in the whole text, but each rank reads only a part: find them first "
        "with w2v phrases --save-phrases, and give that file": config.phrases is True,
    }
    refuse({f"{reason}: train in one process": is_chosen for reason, is_chosen in refused.items()} | others)


def _values_all_ranks_share(config: RunConfig, text: Corpus, checkpoints: list[Checkpoint]) -> dict[str, Any]:
    """Return the values that must be the same on all ranks of a run."""
    values = {"w2v": __version__, **config.settings.as_dict(), **asdict(config.reading)}
    del values["workers"], values["cache"]
    if not isinstance(config.phrases, bool):
        values["checksum of the phrases"] = crc32(Path(config.phrases).read_bytes())
    values |= {"files of the text": len(text.files), "bytes of the text": text.total_bytes}
    if text.sizes:
        values["checksum of samples of the text"] = text.checksum(sampled=True)
    return values | {"checkpoints": [[each.config.run_id, each.resume_info.done] for each in checkpoints]}


def _merge_types(ranks: OneProcess, store: IdStore) -> TypeCounts:
    """Return the types of the whole text, in the same order as one process would find them.

    The parts of the text follow each other in the order of the ranks.
    """
    if not isinstance(ranks, Communicator):
        return store
    merged: TypeCounts | None = None
    for rank in range(ranks.size):
        kinds = [store.key_type == "int", NOUNS.index(store.noun)]
        sizes = np.array([len(store.counts), len(store.strings), store.pruned, *kinds], np.int64)
        ranks.broadcast(sizes, rank)
        counts, strings = np.empty(sizes[0], np.int64), np.empty(sizes[1], np.uint8)
        offsets = np.empty(sizes[0] + 1, np.int64)
        if rank == ranks.rank:
            counts[:], strings[:], offsets[:] = store.counts, store.strings, store.offsets
        for array in (counts, strings, offsets):
            ranks.broadcast(array, rank)
        key_type: KeyType = "int" if sizes[3] else "str"
        part = TypeCounts(counts, strings, offsets, int(sizes[2]), key_type, NOUNS[sizes[4]])
        merged = part if merged is None else merged.concat(part)
    assert merged
    return merged
