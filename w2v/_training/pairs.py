"""The run of pairs: inputs predict their contexts, each from a vocabulary of its own."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from w2v._errors import NothingToTrain, SettingsError, pluralise
from w2v._graph.graph import Graph
from w2v._graph.pairs import PREFIX, PairSource
from w2v._kernel.plan import Plan
from w2v._kernels import MAX_CHUNK_SIZE, chunk_size
from w2v._losses.registry import Settings, loss_for
from w2v._losses.sampling import SamplingLoss, draw_from_groups
from w2v._settings import MAX_INPUTS_PER_STEP
from w2v._system.files import temporary_folder
from w2v._text.examples import Examples, starts_of
from w2v._text.idstore import TypeCounts, temporary_array
from w2v._text.vocabulary import Vocabulary, extend_vocabulary
from w2v._text.words import Words, encode
from w2v._training.checkpoint import Checkpoint
from w2v._training.config import RunConfig
from w2v._training.model import View
from w2v._training.planning import plan_examples
from w2v._training.reading import ReadText
from w2v._training.run import Run
from w2v._training.start import Initialisation, initialise_from_model, initialise_from_vectors
from w2v._vectors.keyed import KeyedVectors

PAIRS_AT_ONCE = 1 << 22  # repetitions of pairs that are arranged at a time


@dataclass(frozen=True)
class PairExamples:
    """The pairs of a run, after they were read.

    Attributes:
        inputs: The vocabulary of the inputs.
        contexts: The vocabulary of the contexts; the same object if there is one vocabulary.
        examples: The pairs; see `examples_of`.
        source: The view that the run continues, or the vectors that inputs start with, or None.
        groups: The number of the group of each context, for `negatives_from`, or None.
    """

    inputs: Vocabulary
    contexts: Vocabulary
    examples: Examples
    source: View | KeyedVectors | None
    groups: NDArray[np.int64] | None

    @classmethod
    def of(
        cls, text: ReadText, config: RunConfig, source: View | KeyedVectors | None, checkpoint: Checkpoint | None
    ) -> PairExamples:
        """Choose the vocabularies of the pairs that were read, and arrange the pairs for training.

        Args:
            text: The pairs.
            config: The description of the run.
            source: The view to continue, or the vectors to start inputs with.
            checkpoint: The checkpoint to resume from, which has the vocabularies.

        Raises:
            NothingToTrain: There are fewer than two contexts, or no pair is left.
            SettingsError: The model to continue has other vocabularies.
        """
        assert isinstance(text.corpus, PairSource)
        graph, settings = text.corpus.graph, config.settings
        pairs = _Pairs.of(graph)
        names, is_context = _names_of(graph)
        both = not is_context.any()
        totals = np.bincount(pairs.contexts, pairs.weights, graph.nodes)
        totals += np.bincount(pairs.inputs, pairs.weights, graph.nodes)
        counts = np.ceil(totals).astype(np.int64)
        sides = [np.flatnonzero(counts > 0)] if both else [np.flatnonzero(is_context == side) for side in (False, True)]
        if checkpoint:
            vocabularies = [checkpoint.vocabulary, checkpoint.contexts or checkpoint.vocabulary]
        elif isinstance(source, View):
            if config.vocab == "union":
                raise SettingsError("vocab union: a model of pairs keeps its vocabularies: choose old")
            if (source.contexts is None) != both:
                kinds = "one vocabulary", "two vocabularies"
                raise SettingsError(f"the continued model has {kinds[both]}: leave out --bipartite and --unipartite")
            vocabularies = [each.copy() for each in (source.vocabulary, source.contexts) if each]
        else:
            vocabularies = [_choose(names.take(side), counts[side], settings, graph) for side in sides]
        inputs, contexts = vocabularies[0], vocabularies[-1]
        if len(contexts) < 2:
            raise NothingToTrain(f"{text.corpus} has one context, {contexts.words[0][:60]!r}: at least 2 are needed")
        own, places = np.full(graph.nodes, -1, np.int32), np.full(graph.nodes, -1, np.int32)
        own[sides[0]] = inputs.words.rows_of(names.take(sides[0]))
        places[sides[-1]] = contexts.words.rows_of(names.take(sides[-1]))
        pairs = pairs.renumbered(own, places).thinned(inputs, contexts, settings)
        if not len(pairs.inputs):
            raise NothingToTrain(f"{text.corpus}: no pair is left after min_count and subsampling: lower --min-count")
        size = 1 if settings.per_pair else MAX_INPUTS_PER_STEP
        examples = examples_of(pairs, size, settings.seed, temporary_folder(config.reading.cache))
        of_name = text.corpus.groups  # an input may be no context, and then has no group
        groups = [of_name.get(encode(word), b"") for word in contexts.words]
        numbers = np.unique(groups, return_inverse=True)[1] if of_name else None
        return cls(inputs, contexts, examples, source, numbers)

    def initialise(self, config: RunConfig, types: TypeCounts, checkpoint: Checkpoint | None = None) -> Initialisation:
        """Return the contexts and the matrices of a run at its start, or at the checkpoint that it resumes from."""
        source = self.source
        if checkpoint:
            own, instruction_set = (checkpoint.loss, checkpoint.parameters), checkpoint.resume_info.instruction_set
            return Initialisation(self.contexts, *own, frozen=checkpoint.frozen, instruction_set=instruction_set)
        if isinstance(source, KeyedVectors):
            initial = initialise_from_vectors(source, self.inputs, config.freeze)
            return replace(initial, vocabulary=self.contexts)
        if source is None:
            return Initialisation(self.contexts)
        source = replace(source, vocabulary=self.contexts)
        return initialise_from_model(source, config.vocab, config.settings, types, config.ignore_memory)


@dataclass(frozen=True)
class _Pairs:
    """N different pairs, those of a context one after the other.

    Attributes:
        contexts, inputs: int32 (N,), numbers of contexts and inputs.
        weights: float64 (N,).
    """

    contexts: NDArray[np.int32]
    inputs: NDArray[np.int32]
    weights: NDArray[np.float64]

    @classmethod
    def of(cls, graph: Graph) -> _Pairs:
        """Return the edges of a graph."""
        assert graph.weights is not None
        contexts = np.repeat(np.arange(graph.nodes, dtype=np.int32), np.diff(graph.indptr))
        return cls(contexts, graph.neighbours.view(np.int32), graph.weights.astype(np.float64))

    def chosen(self, keep: NDArray[np.bool_]) -> _Pairs:
        return _Pairs(self.contexts[keep], self.inputs[keep], self.weights[keep])

    def renumbered(self, inputs: NDArray[np.int32], contexts: NDArray[np.int32]) -> _Pairs:
        """Return the pairs with new numbers, without those whose new number is -1."""
        pairs = _Pairs(contexts[self.contexts], inputs[self.inputs], self.weights)
        return pairs.chosen((pairs.contexts >= 0) & (pairs.inputs >= 0))

    def thinned(self, inputs: Vocabulary, contexts: Vocabulary, settings: Settings) -> _Pairs:
        """Return the pairs after subsampling, which drops repetitions of pairs with a frequent input or context."""
        if not settings.sample:
            return self
        keep = [each.keep_probabilities(settings.sample, settings.sample_formula) for each in (inputs, contexts)]
        probabilities = keep[0][self.inputs].astype(np.float64) * keep[1][self.contexts]
        generator, whole = np.random.default_rng(settings.seed), np.floor(self.weights)
        part = np.where(generator.random(len(whole)) < probabilities, self.weights - whole, 0)
        kept = part + generator.binomial(whole.astype(np.int64), probabilities).astype(np.float64)
        return replace(self, weights=kept).chosen(kept > 0)


def examples_of(pairs: _Pairs, size: int, seed: int, folder: Path) -> Examples:
    """Arrange pairs as examples: each is a context with up to `size` different inputs, in random order.

    A pair of weight w is trained as w repetitions. What is left of w beyond a whole number is one more repetition with
    this share of the learning rate; it shares an example only with pairs of the same share. If a context has N whole
    repetitions in G examples, repetition i belongs to example i mod G. Those of a pair follow each other, and G is at
    least their number, so that the inputs of an example are different.

    Args:
        pairs: The pairs.
        size: The maximum number of inputs in an example.
        seed: The seed of the order.
        folder: The folder for a temporary file with the inputs.
    """
    whole = np.floor(pairs.weights).astype(np.int64)
    first = np.flatnonzero(np.diff(pairs.contexts, prepend=-1))  # the first pair of each context
    totals, largest = np.add.reduceat(whole, first), np.maximum.reduceat(whole, first)
    groups = np.maximum(largest, -(-totals // size))
    group_starts, repetition_starts = starts_of(groups), starts_of(totals)
    owner = np.repeat(np.arange(len(first)), groups)
    number = np.arange(group_starts[-1]) - group_starts[owner]
    sizes = -((number - totals[owner]) // groups[owner])

    share = pairs.weights - whole
    parts = np.flatnonzero(share > 0)
    parts = parts[np.lexsort((share[parts], pairs.contexts[parts]))]
    is_new = (np.diff(pairs.contexts[parts], prepend=-1) != 0) | (np.diff(share[parts], prepend=-1) != 0)
    runs = np.flatnonzero(is_new)
    place = np.arange(len(parts)) - np.repeat(runs, np.diff(np.append(runs, len(parts))))
    begins = np.flatnonzero(place % size == 0)

    labels = np.append(pairs.contexts[first][owner], pairs.contexts[parts[begins]])
    importance = np.append(np.ones(len(owner)), share[parts[begins]]).astype(np.float32)
    sizes = np.append(sizes, np.diff(np.append(begins, len(parts))))
    order = np.random.default_rng(seed).permutation(len(sizes))
    starts = starts_of(sizes[order])
    places = np.empty(len(sizes), np.int64)
    places[order] = starts[:-1]
    rows = temporary_array(int(starts[-1]), np.int32, folder)
    part_groups = np.repeat(np.arange(len(owner), len(sizes)), sizes[len(owner) :])
    rows[places[part_groups] + place % size] = pairs.inputs[parts]
    ends = np.append(first, len(whole))
    begin = 0
    while begin < len(first):
        end = max(begin + 1, int(np.searchsorted(repetition_starts, repetition_starts[begin] + PAIRS_AT_ONCE)) - 1)
        some = slice(ends[begin], ends[end])
        context = np.repeat(np.arange(begin, end), totals[begin:end])
        index = np.arange(repetition_starts[begin], repetition_starts[end]) - repetition_starts[context]
        at = places[group_starts[context] + index % groups[context]] + index // groups[context]
        rows[at] = np.repeat(pairs.inputs[some], whole[some])
        begin = end
    label_starts = np.arange(len(sizes) + 1)
    return Examples(starts, rows, np.empty(0, np.float32), label_starts, labels[order], importance[order])


def _names_of(graph: Graph) -> tuple[Words, NDArray[np.bool_]]:
    """Return the names of the nodes without PREFIX, and which nodes are contexts: none with one vocabulary."""
    is_context = graph.names.start_with(PREFIX)
    offsets, is_kept = graph.names.offsets, np.ones(len(graph.names.blob), bool)
    is_kept[offsets[:-1][is_context, np.newaxis] + np.arange(len(PREFIX))] = False
    lengths = np.diff(offsets) - len(PREFIX) * is_context
    return Words(graph.names.blob[is_kept], starts_of(lengths)), is_context


def _choose(words: Words, counts: NDArray[np.int64], settings: Settings, graph: Graph) -> Vocabulary:
    """Return the inputs or the contexts that are frequent enough. Raise NothingToTrain if there are none."""
    if counts.max() < settings.min_count:
        found = f"the most frequent, {words[int(counts.argmax())][:60]!r}, has {counts.max():,}"
        wanted = pluralise(settings.min_count, "pair")
        raise NothingToTrain(f"no input, or no context, has {wanted}: {found}; lower --min-count (min_count=)")
    return extend_vocabulary(None, words, counts, settings.min_count, settings.max_vocab, graph.key_type)[0]


class PairRun(Run):
    """A run that trains inputs to predict contexts. Its vocabulary are the contexts, because the loss predicts them."""

    def __init__(self, pairs: PairExamples, config: RunConfig, initial: Initialisation, *args: Any, **more: Any):
        self._pairs = pairs
        super().__init__(config, initial, *args, **more)

    def _plan(self, initial: Initialisation) -> Plan:
        loss = initial.loss or loss_for(self.settings, initial.vocabulary)
        if self._pairs.groups is not None:
            assert isinstance(loss, SamplingLoss)
            loss = draw_from_groups(loss, self._pairs.groups)
        size = min(MAX_CHUNK_SIZE, chunk_size(loss.expected_rows, self.settings.vector_size, 1))
        initial = replace(initial, loss=loss)
        return plan_examples(self.settings, initial, self._pairs.examples, len(self._pairs.inputs), False, size)

    @property
    def _vocabularies(self) -> dict[str, Any]:
        inputs, contexts = self._pairs.inputs, self._pairs.contexts
        return {"vocabulary": inputs, "contexts": None if inputs is contexts else contexts}

    def make_checkpoint(self) -> Checkpoint:
        return replace(super().make_checkpoint(), **self._vocabularies)

    def view(self) -> View:
        return replace(super().view(), **self._vocabularies)
