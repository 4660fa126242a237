"""The training loop of all models.

word2vec slides a window over the text and predicts the centre word from the context words around it. Each word has a
row v of the input matrix and a row v' of the output matrix, with D values each. For an input row x, the score of word w
is s_w = v'_w · x. Let V be the number of words, and σ(s) = 1 / (1 + e^−s). Some losses draw K words, the negatives,
from a noise distribution, which gives word w the probability q_w. The loss of predicting word o from x is

    full softmax           − log softmax(s)_o                         over all words
    class-based softmax    − log softmax(s)_c − log softmax(s)_o      over the classes, and the words of o's class c
    hierarchical softmax   − Σ_b log σ(± s_b)                         b: inner nodes on the path to o; + for code 0
    sampled softmax        − log softmax(s − log K q)_o               over o and the K negatives
    noise-contrastive      − log σ(s_o − z_o) − Σ_k log σ(z_k − s_k)  k: the K negatives; z = log(K q V)
    negative sampling      − log σ(s_o) − Σ_k log σ(−s_k)

Classes and inner nodes have rows of the output matrix, too, so they have scores like words.

A loss decides which output rows Y a prediction uses. For each of these rows it sets an offset, which is subtracted from
the score (log K q or z in the table, otherwise 0), and a target t, which is 1 if the score should rise and 0 if it
should fall. It also decides the link, which turns scores into probabilities: σ of each score, or a softmax.

The input rows X depend on the model, skip-gram or CBOW. Skip-gram predicts the centre word from each context word
separately: X (n, D) holds the rows v of n context words. (The papers predict each context word from the centre word.
Over the whole text, both give the same pairs of words.) CBOW predicts the centre word once: X (1, D) is the mean of
these rows.

So each window selects input rows X and output rows Y (m, D). In skip-gram with negative sampling, for instance, X holds
the rows of 6 context words, and Y the rows of the centre word and 5 negatives. One step computes the new X and Y, both
from the old values:

    S = X Yᵀ − offset       E = t − link(S)       X ← X + alpha E Y       Y ← Y + alpha Eᵀ X

For every loss, E is minus the gradient of the loss with respect to the scores. The step pulls an input row towards the
output rows with target 1 and pushes it away from the others. So words that occur in the same contexts are pulled
towards the same output rows, and become similar. If a word occurs twice among the context words, X contains its row
twice, and both changes are added to it. In CBOW, the change of the mean is added to the row of each context word: all
of it, as in word2vec.c, or divided by n, which is the exact gradient (`corrected`).

The step does all arithmetic of training. It is in _kernel/step_body.h and knows nothing about words. This file chooses
the rows. _kernel/worker.pxd defines the state of a thread, _kernel/deterministic.pxd the rounds of deterministic runs.
The design:

Chunks.     The corpus is a file of ids. Threads take chunks of it from one atomic counter that runs through all epochs,
            so they all finish at about the same time. Training a chunk takes a fraction of a second. The centre words
            of a chunk lie inside it, but their windows extend into the neighbouring chunks. The learning rate depends
            on the position of the token in the run, so it reaches its minimum exactly at the end, with any number of
            threads.
Randomness. All random numbers are hashes. Whether a token is subsampled depends on (seed, epoch, position), so
            neighbouring chunks agree on it. Window sizes and negatives depend on (seed, epoch, chunk). So the state of
            a run is its matrices, the number of finished chunks and the sums of their losses. A run that is stopped
            between two chunks and resumed gives the same result as a run that was never stopped.
Sessions.   With `whole_sentences`, every other word of a sentence is context, up to `window_size` words. If a sentence
            is longer, its words in the chunk are shuffled, so the words next to the centre word are drawn at random.
            The window is moved so that it stays inside the sentence, and has `window_size` context words for each
            centre word.
Sharing.    The K negatives are drawn once per window and shared by its context words (Ji et al. 2016). This turns
            scattered dot products into a small matrix product. With `per_pair`, each context word takes a step with its
            own negatives, as in word2vec.c. A step computes all changes of an output row from its old value, and the
            sum of too many changes would overshoot. So in skip-gram, a window of more than MAX_INPUTS_PER_STEP words
            takes several steps, each with its own negatives.
Sequence.   In hierarchical softmax, all context words of a window use the nodes on the centre word's path. The nodes
            near the root are in every prediction, so even the changes of one window would overshoot if all were
            computed from the old values. So these steps are sequential: each context word sees the output rows as
            updated by the words before it. If word k has the input row x_k and the error E_k for an output row, the
            words before word i have moved this row by alpha Σ_k<i E_k x_k. This adds alpha Σ_k<i E_k (x_k · x_i) to the
            score of word i. The products x_k · x_i are the matrix G = X Xᵀ. So the step still consists of matrix
            products, and gives the same result as one step per word.
Subwords.   With subwords (Bojanowski et al. 2017) the input row of a word is the mean of its own row and the rows of
            its n-grams. n-grams that occur in exactly the same words share one row; see SubwordRows. `compose` computes
            the mean of each distinct word of a chunk. The steps update these means, and `update_subwords` adds their
            changes to these rows at the end of the chunk. An n-gram receives only a share of each change. Many
            words of a chunk contain it, and all compute their changes from its value before the chunk, so the sum of
            the full changes would overshoot.
Examples.   A text with labels is an example. Its input rows are those of its words and n-grams, X is their weighted
            sum, and the word to predict is its label: all losses work over labels as over words. So for examples,
            `collect_examples` and `fill_example` replace `collect` and `fill_window`, and everything else is the same.
            A chunk has whole examples. In skip-gram, each input row of an example predicts the label separately:
            training on pairs joins up to MAX_INPUTS_PER_STEP pairs of one context to an example.
Documents.  With paragraph vectors (Le and Mikolov 2014) a sentence is a document, which begins with its tags in the
            file of ids. The rows of tags follow the rows of the V words. They are input rows of each window of the
            document: of CBOW (PV-DM), of skip-gram, or instead of the context words (PV-DBOW), where the window is 0.
            An item that is context of all windows of its session (Grbovic and Cheng 2018) is such a tag, which has the
            row of a word.
Prefetching. Output rows are accessed at random, and the matrix is larger than any cache. So the rows of a window are
            filled LOOKAHEAD windows before its step, and their cache lines are prefetched in the meantime.
Storage.    Rows can be stored as bfloat16, the upper half of a float, in half the memory. A step converts its rows to
            float, updates them, and rounds each value up or down at random, so that the mean is preserved.
Hot rows.   All threads would write the output rows of the most frequent words, or of the nodes near the root, all the
            time, and the cache lines of these rows would move between the cores. So before a chunk, each thread copies
            these hot rows (copy_hot). It updates its copies, and after the chunk it adds a share of their changes to
            the matrix (merge_hot).
Races.      Threads read and write the two matrices without locks, on purpose (Hogwild, Recht et al. 2011). They do so
            in the step, compose, update_subwords, copy_hot and merge_hot. The thread that checks for divergence reads
            some rows at the same time. The counters and the stop flag are atomic. All other state belongs to one
            thread.
Determinism. Because of these races, each run with several threads gives another result. In a deterministic run, threads
            train in rounds of one chunk each. If several threads use a row in a round, all but one of them update
            copies of it. After the round, the changes of the copies are added to the row in a fixed order; see
            _kernel/deterministic.pxd.
"""

cimport cython
from libc.math cimport INFINITY, log
from libc.stdint cimport int8_t, int32_t, int64_t, uint16_t, uint32_t, uint64_t, uintptr_t
from libc.stdlib cimport calloc, free
from libc.string cimport memset

from w2v._text._text cimport SENTENCE_END_ID
from w2v._kernel.deterministic cimport (
    BITS_IN_LINE, Team, add_changes, arrive, atomic_add, atomic_read, atomic_write, copy_rows, copy_shared_rows, enter,
    find_changes, merge_copies, release, wait_for_all,
)
from w2v._kernel.worker cimport (
    BLOCK_OUTPUTS, CACHE_LINE, LOOKAHEAD, NO_WORD, RECENT_SLOTS, STEP_PANEL, UNUSED_OFFSET, ComposedRows, KeptWords,
    Sizes, Step, StepFunctions, StepMatrix, Window, Worker, bump_allocate, draw, lay_out, lay_out_window, power_of_2,
    scramble, set_inputs, size_of, step_choose, step_column, step_columns, step_loss_start, step_loss_total,
)

import numpy as np

from w2v._settings import MAX_ADAPTIVE_BATCHES, MAX_INPUTS_PER_STEP

cdef extern from * nogil:
    """
    #define W2V_HIGH_HALF(a, b) ((uint64_t)(((unsigned __int128)(a) * (b)) >> 64))
    #define W2V_PREFETCH(pointer) __builtin_prefetch(pointer)
    #define W2V_READ(pointer) ((void)*(const volatile char *)(pointer))
    /* Count the pairs j, k with words[j] = words[k]. The result is `count` if all words differ. The array must be
     * padded to a multiple of W2V_WORD_VECTOR with values that differ from all words. */
    enum { W2V_WORD_VECTOR = 4 };
    static inline int64_t w2v_equal_pairs(const int32_t *words, int64_t count) {
        typedef int32_t vector __attribute__((vector_size(4 * W2V_WORD_VECTOR), may_alias));
        vector pairs = {0};
        for (int64_t j = 0; j < count; j++)
            for (int64_t k = 0; k < count; k += W2V_WORD_VECTOR)
                pairs -= *(const vector *)(words + k) == words[j];
        return pairs[0] + pairs[1] + pairs[2] + pairs[3];
    }
    """
    uint64_t high_half "W2V_HIGH_HALF"(uint64_t a, uint64_t b)
    void prefetch "W2V_PREFETCH"(const void *pointer)
    void read "W2V_READ"(const void *pointer)
    enum: WORD_VECTOR "W2V_WORD_VECTOR"  # number of words that one instruction compares
    int64_t equal_pairs "w2v_equal_pairs"(const int32_t *words, int64_t count)

cpdef enum:
    MAX_CHUNK_SIZE = 16384
    END_OF_SENTENCE = -1  # marks the end of a sentence among a chunk's kept words

cdef enum:
    CACHED_NODES = 256         # inner nodes nearest to the root that are not prefetched, because they stay in cache
    HOT_NODES = 512            # inner nodes nearest to the root that the workers copy; divided by the number of workers
    HOT_WORDS = 16             # most frequent words; each worker copies their output rows
    MIN_CHUNKS_TO_COPY = 64    # chunks per worker: with fewer, copies would be merged too rarely, so none are made
    MAX_REDRAWS = 64           # redraw a repeated negative at most this often, then take the next unused word
    IDS_AHEAD = 16             # words are prefetched this many ids before they are read
    WORDS_AHEAD = 3            # the subwords of a word are prefetched this many words before they are read
    MAX_PREFETCHED_ROWS = 64   # prefetch no more output rows: the first would be evicted before the step uses them
    BITS_PER_ROW = 16          # bits of a row set for each row that workers may touch; fewer cause more needless copies

# The maximum of ids × output rows × width × window for a chunk, so that training it takes a fraction of a second.
cdef int64_t CHUNK_WORK = 1 << 30
cdef int64_t MAX_BATCHES = MAX_ADAPTIVE_BATCHES  # a prediction draws at most this many times K words


def chunk_size(double rows, int64_t width, int64_t window_size) -> int:
    """Return the number of ids in a chunk if a prediction uses about `rows` output rows."""
    return max(1, min(MAX_CHUNK_SIZE, <int64_t>(CHUNK_WORK / (rows * width * window_size))))


cdef enum OutputRows:  # how the output rows that predict a word are chosen
    DRAWN     # the word, and words drawn as negatives
    PATH      # the inner nodes on the path from the root of a tree to the word
    CLASSES   # all classes, and all words of the word's class
    EVERY_WORD

cdef struct LossKind:
    OutputRows rows
    bint weighted      # a word drawn twice counts twice; if False, another word is drawn instead
    bint softmax       # the link is a softmax; if False, the logistic function
    bint sequential    # each input row sees the output rows as updated by the input rows before it
    int64_t hot_rows   # number of output rows that each worker copies, because all workers write them all the time
    bint hot_at_end    # hot rows are the last rows of the matrix; if False, the first
    float hot_share    # a hot row receives the mean of the workers' changes times this number; see merge_hot

# The keys are the values of Loss.branch.
LOSS_KINDS = {
    "ns": LossKind(
        rows=DRAWN, weighted=False, softmax=False, sequential=False, hot_rows=HOT_WORDS, hot_at_end=False, hot_share=1.5
    ),
    "nce": LossKind(
        rows=DRAWN, weighted=True, softmax=False, sequential=False, hot_rows=HOT_WORDS, hot_at_end=False, hot_share=1.5
    ),
    "sampled": LossKind(
        rows=DRAWN, weighted=True, softmax=True, sequential=False, hot_rows=HOT_WORDS, hot_at_end=False, hot_share=1.5
    ),
    "hs": LossKind(
        rows=PATH, weighted=False, softmax=False, sequential=True, hot_rows=HOT_NODES, hot_at_end=True, hot_share=1.0
    ),
    "class": LossKind(
        rows=CLASSES, weighted=False, softmax=True, sequential=False, hot_rows=0, hot_at_end=False, hot_share=1.5
    ),
    "softmax": LossKind(
        rows=EVERY_WORD, weighted=False, softmax=True, sequential=False, hot_rows=0, hot_at_end=False, hot_share=1.5
    ),
    "ova": LossKind(
        rows=EVERY_WORD, weighted=False, softmax=False, sequential=False, hot_rows=0, hot_at_end=False, hot_share=1.5
    ),
}

cdef enum Purpose:    # the purpose of a random number: numbers for different purposes are independent
    SUBSAMPLING = 1
    WINDOWS = 2


cdef inline uint64_t key_of(uint64_t seed, uint64_t epoch, uint64_t purpose) noexcept nogil:
    """Return the key with which hash_of computes the random numbers of an epoch for one purpose."""
    return scramble(scramble(seed) + (epoch << 8) + purpose)


cdef inline uint64_t hash_of(uint64_t key, uint64_t counter) noexcept nogil:
    """Return the random number that belongs to this key and counter."""
    return scramble(key + counter * <uint64_t>0x9E3779B97F4A7C15)


cdef inline int32_t alias_of(const uint32_t *alias_table, uint64_t random, uint64_t size) noexcept nogil:
    """Return a word drawn from the alias table.

    The high half of random × size is the entry. The low half chooses between the entry's two words.
    """
    cdef uint32_t entry = <uint32_t>high_half(random, size), chance = <uint32_t>((random * size) >> 32)
    cdef uint32_t threshold = alias_table[2 * entry], alias = alias_table[2 * entry + 1]
    # This selects one of two words without a branch, because the processor could not predict the branch:
    return <int32_t>(entry ^ ((entry ^ alias) & -<uint32_t>(chance > threshold)))


cdef inline int64_t round_up(int64_t count, int64_t unit) noexcept nogil:
    """Round `count` up to a multiple of `unit`."""
    return (count + unit - 1) // unit * unit


cdef inline int64_t round_up_to_blocks(int64_t rows) noexcept nogil:
    """Round a number of output rows up to full blocks of the step."""
    return round_up(rows, BLOCK_OUTPUTS)


cdef struct Counters:
    int64_t next_chunk     # number of chunks handed out, in all epochs; see Kernel.position
    int64_t tokens         # number of known tokens trained
    int64_t stop           # nonzero: threads return after their current chunk
    # Only deterministic runs use these:
    int64_t first, count   # first chunk of this round, and number of chunks in it
    int64_t end            # chunk at which `run` returns


def step_for(name: str) -> bool:
    """Return True if this machine can run the step compiled for the instruction set `name`."""
    return step_choose(name.encode()) != NULL


def worker_bytes(plan) -> int:
    """Return the bytes of memory that a Kernel allocates for each thread."""
    return size_of(sizes_of(plan))


@cython.final
cdef class Kernel:
    """A training run: the corpus it reads, the matrices it updates and its progress. Call `run` once in each thread.

    Args:
        plan: The text, the loss and the schedule; see Plan.
        inputs: The input matrix, (V, width). With subwords, the rows of n-grams follow the rows of the V words; with
            documents, the rows of tags.
        outputs: The output matrix, (R, width), with R output rows.

    Both matrices are float32, or uint16 that hold bfloat16. They are C-contiguous, each row is aligned to 64 bytes, and
    `run` updates them in place.
    """

    cdef const uint32_t[::1] ids
    cdef const int32_t[::1] word_of_type
    cdef const int32_t[::1] output_words     # see Plan
    cdef bint shares_outputs                 # whether words share output rows
    cdef const uint32_t[::1] keep_thresholds
    cdef char[:, ::1] inputs                 # (V or more, bytes in a row)
    cdef char[:, ::1] outputs                # (R, bytes in a row)
    cdef const uint32_t[:, ::1] alias_table
    cdef const int64_t[::1] starts
    cdef const int32_t[::1] nodes
    cdef const int8_t[::1] codes
    cdef const float[::1] offsets
    cdef bint has_groups                     # whether negatives come from the group of the centre word
    cdef const int64_t[::1] noise_start, noise_size  # see draw_from_groups
    cdef const int32_t[::1] noise_words
    cdef const int32_t[::1] class_of
    cdef LossKind kind
    cdef int64_t first_kept                  # index of the first kept word of a chunk
    cdef bint has_tags, fixed_words, tags_are_words  # see Tags
    cdef const int64_t[::1] document_starts
    cdef int window_size, negative, shrink_windows, cbow, corrected_gradient, adaptive
    cdef bint whole_sentences                # see GeneralOptions
    cdef int split_at_repeats                # whether a repeated context word begins a new step
    cdef int track_repeats                   # whether steps need to know that a context word repeats
    cdef int64_t epochs, chunk_size, chunks, id_count  # chunks: in an epoch
    cdef int64_t max_rows, columns           # maximum of output rows in a step, and their columns; see _kernel/step.h
    cdef int64_t step_width                  # number of values of a row that the steps use
    cdef int64_t fill_ahead                  # how many windows ahead of the step a window is filled
    cdef int64_t prefetch_distance           # how many windows ahead of the step its rows are prefetched; 0: not at all
    cdef Sizes sizes
    cdef const int64_t[::1] tokens_before
    cdef const int32_t[:, ::1] sides_by_size  # see Plan
    cdef float alpha, min_alpha
    cdef uint64_t seed
    cdef const StepFunctions *functions
    cdef const int64_t[::1] subword_starts   # SubwordRows.starts
    cdef const int32_t[::1] subword_rows, subword_counts
    cdef const float[::1] shares             # the share of a word's change that each of its subwords receives
    cdef bint has_subwords                   # whether input rows are composed of subwords
    cdef bint one_vs_all                     # whether each word has a logistic regression of its own
    cdef bint has_examples                   # whether the run trains examples instead of windows; see Plan.examples
    cdef const int64_t[::1] example_starts, label_starts, chunk_starts
    cdef const int32_t[::1] example_rows, labels
    cdef const float[::1] row_weights, importance
    cdef float low_target                    # of one-vs-all: the target of labels that a text does not have
    cdef int64_t hot, first_hot              # each worker copies output rows first_hot to first_hot + hot
    cdef bint deterministic                  # whether several threads give the same bits on every run
    cdef Counters *counters
    cdef Team team
    cdef double[:, ::1] worker_losses        # (workers, epochs)
    cdef int64_t[:, ::1] worker_predictions  # (workers, epochs)

    def __cinit__(self):
        self.counters = NULL
        self.team.workers = NULL

    def __init__(self, plan, inputs, outputs):
        cdef int64_t k, workers = plan.workers, epochs = plan.epochs
        settings, loss, data = plan.settings, plan.loss, plan.loss.data
        self.ids, self.word_of_type, self.tokens_before = plan.ids, plan.word_of_type, plan.tokens_before
        self.keep_thresholds = plan.keep_thresholds
        self.shares_outputs = plan.output_words is not None
        if self.shares_outputs:
            self.output_words = plan.output_words
        self.inputs, self.outputs = inputs.view(np.int8), outputs.view(np.int8)
        self.kind = LOSS_KINDS[loss.branch]
        self.one_vs_all = self.kind.rows == EVERY_WORD and not self.kind.softmax
        self.sizes = sizes_of(plan)
        self.max_rows, self.columns, self.negative = self.sizes.m, self.sizes.columns, self.sizes.negative
        self.adaptive = self.negative and loss.adaptive
        if self.kind.rows == DRAWN:
            self.alias_table, self.offsets = data["alias_table"], data["offsets"]
            self.has_groups = "noise_words" in data
            if self.has_groups:
                self.noise_start, self.noise_size = data["noise_start"], data["noise_size"]
                self.noise_words = data["noise_words"]
        elif self.kind.rows == PATH:
            self.starts, self.nodes, self.codes = data["starts"], data["nodes"], data["codes"]
        elif self.kind.rows == CLASSES:
            self.starts, self.class_of = data["starts"], data["class_of"]
        self.low_target = data.get("smoothing", 0) / 2
        self.deterministic = self.sizes.set_bits > 0
        self.prefetch_distance = 0 if self.adaptive else LOOKAHEAD
        self.fill_ahead = self.sizes.windows if self.deterministic else self.prefetch_distance
        self.cbow, self.corrected_gradient = self.sizes.pooled, settings.cbow_gradient == "corrected"
        self.window_size, self.sides_by_size = self.sizes.window_size, plan.sides_by_size
        self.first_kept = self.window_size + 1 + self.sizes.tags
        self.whole_sentences = settings.whole_sentences and self.window_size
        self.shrink_windows = settings.shrink_windows and self.window_size and not self.whole_sentences
        self.has_tags = plan.tags is not None
        if self.has_tags:
            self.document_starts, self.fixed_words = plan.tags.document_starts, plan.tags.fixed_words
            self.tags_are_words = plan.tags.are_words
        self.split_at_repeats = self.kind.sequential and not self.cbow
        # A mean of float32 rows may contain a row twice. The rows of an example are distinct.
        self.track_repeats = (self.sizes.bfloat16 or not self.cbow) and plan.examples is None
        self.alpha, self.min_alpha, self.epochs = settings.start_alpha, settings.end_alpha, epochs
        self.seed = settings.seed
        self.id_count = self.ids.shape[0]
        self.chunk_size = plan.chunk_size
        self.chunks = plan.chunks
        self.has_examples = plan.examples is not None
        if self.has_examples:
            self.example_starts, self.example_rows = plan.examples.starts, plan.examples.rows
            self.label_starts, self.labels = plan.examples.label_starts, plan.examples.labels
            self.row_weights, self.importance = plan.examples.weights, plan.examples.importance
            self.chunk_starts = plan.chunk_starts
        self.functions = step_choose(plan.instruction_set.encode())
        self.step_width = self.sizes.width
        if not self.sizes.bfloat16:  # skip the padding where registers are shorter than cache lines
            self.step_width = round_up(settings.vector_size, self.functions.lanes)
        self.has_subwords = plan.subwords is not None
        if self.has_subwords:
            self.subword_starts, self.subword_rows, self.shares = plan.subwords.starts, plan.subwords.rows, plan.shares
            self.subword_counts = plan.subwords.counts
        self.hot = self.sizes.hot if epochs * self.chunks >= MIN_CHUNKS_TO_COPY * workers else 0
        self.first_hot = self.outputs.shape[0] - self.hot if self.kind.hot_at_end else 0
        self.worker_losses = np.zeros((workers, epochs))
        self.worker_predictions = np.zeros((workers, epochs), np.int64)
        self.counters = <Counters *>calloc(1, sizeof(Counters))
        self.team.workers = <Worker **>calloc(workers, sizeof(Worker *))
        if self.counters == NULL or self.team.workers == NULL:
            raise MemoryError
        self.team.size, self.team.sizes, self.team.curvature = workers, &self.sizes, loss.curvature
        self.team.matrices.inputs, self.team.matrices.outputs = &self.inputs[0, 0], &self.outputs[0, 0]
        self.team.bit_shift = 65 - int(self.sizes.set_bits).bit_length()
        for k in range(workers):
            self.team.workers[k] = self.new_worker()

    def __dealloc__(self):
        cdef int64_t k
        if self.team.workers != NULL:
            for k in range(self.team.size):
                if self.team.workers[k] != NULL:
                    free(self.team.workers[k].memory)
        free(self.team.workers)
        free(self.counters)

    cdef Worker *new_worker(self) except NULL:
        """Allocate a worker, with its windows, in one piece of memory."""
        cdef void *memory = calloc(1, size_of(self.sizes))
        if memory == NULL:
            raise MemoryError
        cdef uintptr_t start = <uintptr_t>memory
        cdef Worker *worker = <Worker *>bump_allocate(&start, 0)
        cdef int64_t k
        start += lay_out(worker, self.sizes, start)
        worker.memory = memory
        step_loss_start(worker.loss)
        if self.negative:
            for k in range(self.sizes.drawn_words):
                worker.draws.words[k] = NO_WORD
        worker.step.loss = worker.loss
        worker.step.width = self.step_width
        worker.step.bfloat16 = worker.composed.matrix.bfloat16 = self.sizes.bfloat16
        worker.composed.matrix.rows, worker.composed.matrix.row_bytes = &self.inputs[0, 0], self.sizes.row_bytes
        worker.composed.matrix.width = self.step_width
        worker.step.pooled = self.cbow
        worker.step.frozen_outputs = self.sizes.frozen_outputs
        worker.step.sequential = self.kind.sequential and not self.sizes.frozen_outputs
        if self.kind.softmax:  # with classes, the columns of the first of two softmaxes
            worker.step.softmax = step_columns(self.starts.shape[0] - 1) if self.kind.rows == CLASSES else self.columns
        for k in range(self.sizes.windows):
            start += lay_out_window(&worker.windows[k], self.sizes, start)
            self.prepare_window(worker, &worker.windows[k])
        return worker

    cdef void prepare_window(self, Worker *worker, Window *w) noexcept nogil:
        """Set the values of a window that are the same for all centre words."""
        cdef int64_t j, m = self.max_rows, sets = self.sizes.output_sets
        for j in range(sets * self.columns):
            w.offset[j] = UNUSED_OFFSET
            if self.sizes.weighted:
                w.weight[j] = 1
        if self.negative:
            w.target[0] = 1
            for j in range(sets * m):
                w.offset[j // m * self.columns + step_column(j % m)] = 0
        elif self.kind.rows == EVERY_WORD:
            w.m = m
            for j in range(m):
                w.offset[step_column(j)] = 0
        elif self.kind.rows == CLASSES:
            for j in range(self.starts.shape[0] - 1):
                w.offset[step_column(j)] = 0
            for j in range(self.starts.shape[0] - 1, m):
                w.outputs[j] = worker.zero_row
        self.set_common_rows(worker, w)

    cdef void set_common_rows(self, Worker *worker, Window *w) noexcept nogil:
        """Set the output rows that are the same for all centre words: of all words, or of all classes."""
        cdef int64_t j
        if self.kind.rows == EVERY_WORD:
            for j in range(w.m):
                w.outputs[j] = self.output_row(worker, j)
        elif self.kind.rows == CLASSES:
            for j in range(self.starts.shape[0] - 1):
                w.outputs[j] = self.output_row(worker, self.class_of.shape[0] + j)

    def run(self, int64_t worker_index, end=None) -> None:
        """Train chunks until position `end`, by default the end of the run, or until `stop` is called.

        Each thread passes a different `worker_index`, and the same `end`. A deterministic run always finishes its
        round, so it may train up to (threads - 1) chunks past `end`.
        """
        cdef int64_t end_chunk = self.epochs * self.chunks if end is None else end
        with nogil:
            if self.deterministic:
                self.run_rounds(worker_index, end_chunk)
            else:
                self.run_chunks(worker_index, end_chunk)

    def stop(self) -> None:
        """Make every `run` return at the end of its current chunk; later calls return at once, until `restore`."""
        atomic_write(&self.counters.stop, 1)

    def restore(self, int64_t position, losses, predictions) -> None:
        """Make `run` continue after the first `position` chunks, also after `stop`. Call it while no thread runs.

        Args:
            position: The number of finished chunks, in all epochs.
            losses: The value of `losses` at that position.
            predictions: The value of `predictions` at that position.
        """
        cdef int64_t epoch = position // self.chunks, chunk = position % self.chunks
        np.asarray(self.worker_losses)[:] = 0
        np.asarray(self.worker_predictions)[:] = 0
        np.asarray(self.worker_losses)[0] = losses
        np.asarray(self.worker_predictions)[0] = predictions
        atomic_write(&self.counters.next_chunk, position)
        atomic_write(&self.counters.tokens, epoch * self.tokens_before[self.chunks] + self.tokens_before[chunk])
        atomic_write(&self.counters.stop, 0)
        atomic_write(&self.team.barrier.entered, 0)

    @property
    def position(self) -> int:
        """The number of chunks handed out, in all epochs.

        A thread returns only when it has finished its chunk. So while no thread runs, all of these chunks are trained.
        """
        return min(atomic_read(&self.counters.next_chunk), self.epochs * self.chunks)

    @property
    def tokens_trained(self) -> int:
        """The number of known tokens in the chunks trained, in all epochs."""
        return atomic_read(&self.counters.tokens)

    @property
    def losses(self):
        """The summed loss of each epoch, float64 (epochs,). Read this and `predictions` while no thread runs."""
        return np.asarray(self.worker_losses).sum(axis=0)

    @property
    def predictions(self):
        """The number of predictions in each epoch, int64 (epochs,)."""
        return np.asarray(self.worker_predictions).sum(axis=0)

    # -- a chunk --------------------------------------------------------------------------------

    cdef void run_chunks(self, int64_t worker_index, int64_t end) noexcept nogil:
        """Take chunks from the counter and train them, until chunk `end`."""
        cdef int64_t chunk
        while not atomic_read(&self.counters.stop):
            chunk = atomic_add(&self.counters.next_chunk, 1)
            if chunk >= end:
                atomic_add(&self.counters.next_chunk, -1)  # give the chunk back: a later call begins with it
                break
            self.train_chunk(worker_index, chunk // self.chunks, chunk % self.chunks)

    cdef void train_chunk(self, int64_t worker_index, int64_t epoch, int64_t chunk) noexcept nogil:
        """Train the centre words of a chunk: collect the words, choose the rows of each window, and take the steps."""
        cdef Worker *worker = self.team.workers[worker_index]
        cdef int64_t first_token = min(chunk * self.chunk_size, self.id_count)
        cdef int64_t end_token = min(first_token + self.chunk_size, self.id_count)
        cdef int64_t first = self.first_kept, end, centre  # indices of kept words, or of examples
        cdef Window *w
        cdef int64_t tokens_before = epoch * self.tokens_before[self.chunks] + self.tokens_before[chunk]
        worker.loss.total = 0
        worker.random = hash_of(key_of(self.seed, epoch, WINDOWS), chunk)
        worker.draws.batches = 1
        worker.filled = worker.done = worker.predictions = 0
        self.draw_negatives(worker)
        if self.has_examples:
            first, end = 0, self.collect_examples(worker, chunk)
        else:
            end = self.collect(worker, key_of(self.seed, epoch, SUBSAMPLING), chunk, first_token, end_token)
        if self.whole_sentences:
            self.shuffle_long_sentences(worker, first, end)
        if self.track_repeats:
            self.find_repeats(worker, end)
        self.find_distinct(worker)
        self.find_rows(worker)
        if not self.deterministic:
            self.copy_hot(worker)
            self.compose(worker)
        for centre in range(first, end):
            w = self.window_at(worker, worker.filled)
            if self.has_examples:
                worker.predictions += self.fill_example(worker, w, centre, chunk, tokens_before)
            elif self.is_word(worker.kept.words[centre]):
                worker.predictions += self.fill_window(worker, w, centre, tokens_before)
            else:
                continue
            worker.filled += 1
            if worker.filled > self.fill_ahead:
                self.train_next_window(worker)
        if self.deterministic:
            self.compose(worker)
            copy_shared_rows(&self.team, worker_index)
        while worker.done < worker.filled:
            self.train_next_window(worker)
        worker.chunk_loss = step_loss_total(worker.loss)
        atomic_add(&self.counters.tokens, worker.kept.known)
        if self.deterministic:
            self.merge_changes(worker_index)
        else:
            self.count_loss(worker_index, worker_index, epoch)
            self.merge_hot(worker)
            self.update_subwords(worker, worker, 0, self.sizes.row_bytes)

    cdef inline void count_loss(self, int64_t row, int64_t worker_index, int64_t epoch) noexcept nogil:
        """Add the loss and the predictions of a worker's last chunk to a row of the sums."""
        self.worker_losses[row, epoch] += self.team.workers[worker_index].chunk_loss
        self.worker_predictions[row, epoch] += self.team.workers[worker_index].predictions

    cdef inline Window *window_at(self, Worker *worker, int64_t k) noexcept nogil:
        """Return the place of window k of the chunk."""
        return &worker.windows[k if self.deterministic else <uint32_t>k % (LOOKAHEAD + 1)]

    cdef inline void train_next_window(self, Worker *worker) noexcept nogil:
        """Take the steps of the next window of the chunk, and prefetch the rows of a later window."""
        cdef int64_t later = worker.done + self.prefetch_distance
        self.take_steps(
            worker, self.window_at(worker, worker.done),
            self.window_at(worker, later) if self.prefetch_distance and later < worker.filled else NULL,
        )
        worker.done += 1

    cdef void copy_hot(self, Worker *worker) noexcept nogil:
        """Copy the hot rows. If all threads wrote the same rows, their cache lines would move between cores."""
        if self.hot:
            copy_rows(worker, &self.sizes, 0, &self.outputs[self.first_hot, 0], self.hot)

    cdef void merge_hot(self, Worker *worker) noexcept nogil:
        """Add a share of this worker's changes to the hot rows of the matrix.

        The copies nearly converge within a chunk, so the sum of all workers' changes would overshoot. Nodes receive
        the mean of the changes. Words converge less, so they receive one and a half times the mean (bench/NOTES.md).
        Rows that are updated less often do not converge within a chunk, so they are not copied.
        """
        if self.hot:
            find_changes(worker, &self.sizes, self.hot)
            add_changes(worker, &self.sizes, &self.outputs[self.first_hot, 0], worker.copies.changes, self.hot,
                        self.kind.hot_share / self.team.size)

    cdef void find_distinct(self, Worker *worker) noexcept nogil:
        """List the distinct words of the chunk if their input rows are composed of subwords."""
        cdef int64_t k
        worker.composed.count = 0
        if self.has_subwords:
            for k in range(worker.kept.start, worker.kept.end):
                self.add_distinct(&worker.composed, worker.kept.words[k])

    cdef inline void add_distinct(self, ComposedRows *composed, int32_t word) noexcept nogil:
        """Add a word to the chunk's distinct words, unless it is in them already or marks the end of a sentence."""
        cdef int64_t slot
        if word == END_OF_SENTENCE:
            return
        slot = composed.slots[word]
        if slot >= composed.count or composed.words[slot] != word:
            composed.slots[word] = <int32_t>composed.count
            composed.words[composed.count] = word
            composed.count += 1

    cdef void find_rows(self, Worker *worker) noexcept nogil:
        """Set the input row of each kept word: a composed row of the chunk, or a row of the matrix."""
        cdef KeptWords *kept = &worker.kept
        cdef char *first = worker.composed.rows if self.has_subwords else &self.inputs[0, 0]
        cdef int64_t k
        cdef int32_t word
        for k in range(kept.start, kept.end):
            word = kept.words[k]
            if self.tags_are_words and word >= self.sizes.words:
                word -= self.sizes.words
            if word != END_OF_SENTENCE:
                kept.rows[k] = <float *>(first + (worker.composed.slots[word] if self.has_subwords else word)
                                         * self.sizes.row_bytes)

    cdef void compose(self, Worker *worker) noexcept nogil:
        """Compose the input rows of the chunk's distinct words: the means of their subwords."""
        cdef ComposedRows *composed = &worker.composed
        cdef int64_t k, start
        cdef int32_t word
        for k in range(composed.count):
            self.prefetch_subwords(composed, k)
            word = composed.words[k]
            start = self.subword_starts[word]
            self.functions.compose(
                &composed.matrix, self.subword_starts[word + 1] - start, &self.subword_rows[start],
                <float>1 / self.subword_counts[word], composed.rows + k * self.sizes.row_bytes,
                composed.rows_before + k * self.sizes.row_bytes, <uint32_t>draw(worker) if self.sizes.bfloat16 else 0,
            )

    cdef inline void prefetch_subwords(self, const ComposedRows *composed, int64_t k) noexcept nogil:
        """Prefetch the lists of the subwords of later words, which are read at random."""
        cdef int64_t start
        if k + 2 * WORDS_AHEAD < composed.count:
            prefetch(&self.subword_starts[composed.words[k + 2 * WORDS_AHEAD]])
            start = self.subword_starts[composed.words[k + WORDS_AHEAD]]
            prefetch(&self.subword_rows[start])
            prefetch(&self.shares[start])

    cdef void update_subwords(self, Worker *worker, Worker *other, int64_t begin, int64_t end) noexcept nogil:
        """Add the changes of the other worker's composed rows to the subwords, in bytes `begin` to `end` of a row."""
        cdef const ComposedRows *composed = &other.composed
        cdef int64_t k, start
        cdef int32_t word
        cdef StepMatrix matrix = worker.composed.matrix
        if begin == end:
            return
        matrix.rows += begin
        matrix.width = min(end * self.sizes.width // self.sizes.row_bytes, matrix.width)
        matrix.width -= begin * self.sizes.width // self.sizes.row_bytes
        for k in range(composed.count):
            self.prefetch_subwords(composed, k)
            word = composed.words[k]
            start = self.subword_starts[word]
            self.functions.update_subwords(
                &matrix, self.subword_starts[word + 1] - start, &self.subword_rows[start], &self.shares[start],
                composed.rows + k * self.sizes.row_bytes + begin,
                composed.rows_before + k * self.sizes.row_bytes + begin,
                <uint32_t>draw(worker) if self.sizes.bfloat16 else 0,
            )

    # -- deterministic runs: rounds of one chunk for each worker, see _kernel/deterministic.pxd ----

    cdef void run_rounds(self, int64_t worker_index, int64_t end) noexcept nogil:
        """Train this worker's chunk in each round, until a round ends at or after chunk `end`."""
        cdef Counters *c = self.counters
        atomic_write(&c.end, end)
        if not enter(&self.team, &c.stop):
            return
        self.start_next_round()
        while c.count:
            # A worker without a chunk trains an empty one, because it must arrive at all barriers.
            self.train_chunk(worker_index, c.first // self.chunks,
                             c.first % self.chunks + worker_index if worker_index < c.count else self.chunks)

    cdef void start_next_round(self) noexcept nogil:
        """Wait until all workers have arrived here. The last one to arrive assigns the chunks of the next round."""
        if arrive(&self.team):
            self.assign_chunks()
            release(&self.team)

    cdef void assign_chunks(self) noexcept nogil:
        """End the current round, if there is one, and assign the chunks of the next round.

        A round stays within one epoch. No round begins at or after `end`, or after `stop`: it then has no chunks.
        """
        cdef Counters *c = self.counters
        cdef int64_t worker_index
        for worker_index in range(c.count):
            self.count_loss(0, worker_index, c.first // self.chunks)
        c.first = c.next_chunk
        c.count = min(self.team.size, self.chunks - c.first % self.chunks)
        if c.first >= c.end or atomic_read(&c.stop):
            c.count = self.team.barrier.entered = 0
        atomic_write(&c.next_chunk, c.first + c.count)

    cdef void merge_changes(self, int64_t worker_index) noexcept nogil:
        """Add the changes of all workers' copies to the matrices, in the order of the workers.

        Each worker adds the changes to the rows that it owns, and to some columns of the subword rows.
        """
        cdef Worker *worker = self.team.workers[worker_index]
        cdef int64_t other, lines = self.sizes.row_bytes // CACHE_LINE
        find_changes(worker, &self.sizes, worker.copies.count)
        # Wait until all workers have found their changes. One barrier serves two purposes, so the last worker to arrive
        # already assigns the chunks of the next round, before the changes of this round are merged.
        self.start_next_round()
        for other in range(self.team.size):
            merge_copies(&self.team, worker_index, other)
            if self.has_subwords:
                self.update_subwords(
                    worker, self.team.workers[other], worker_index * lines // self.team.size * CACHE_LINE,
                    (worker_index + 1) * lines // self.team.size * CACHE_LINE,
                )
        if self.has_subwords:
            wait_for_all(&self.team)

    # -- the words of a chunk -------------------------------------------------------------------

    cdef int64_t collect(
        self, Worker *worker, uint64_t key, int64_t chunk, int64_t first_token, int64_t end_token
    ) noexcept nogil:
        """Collect the chunk's words that subsampling keeps, from index `first_kept` on, and return their end.

        Also collect the words of the neighbouring chunks that a window can reach, before and after them, and put an
        END_OF_SENTENCE on both sides. Subsampling keeps all tags.
        """
        cdef int64_t first = self.first_kept, end = first, token
        cdef int32_t word
        cdef KeptWords *kept = &worker.kept
        kept.known = kept.start = kept.end = 0
        for token in range(first_token, end_token):
            self.prefetch_word(token)
            if self.ids[token] == SENTENCE_END_ID:
                kept.words[end] = END_OF_SENTENCE
                end += 1
                continue
            word = self.word_of_type[self.ids[token]]
            if word < 0:
                continue
            kept.known += self.is_word(word)
            kept.words[end] = word
            kept.token_number[end] = <int32_t>kept.known
            end += self.is_kept(key, token, word)
        if end > first:
            kept.start = self.collect_neighbours(kept.words, key, first_token - 1, first - 1, -1)
            kept.end = self.collect_neighbours(kept.words, key, end_token, end, 1)
            self.find_sentences(kept, kept.start, kept.end)
            if self.has_tags:
                self.find_tags(kept, self.document_starts[chunk])
        return end

    cdef inline bint is_word(self, int32_t word) noexcept nogil:
        """Return False for an END_OF_SENTENCE and for a tag."""
        return <uint64_t>word < <uint64_t>self.sizes.words

    cdef int64_t collect_neighbours(
        self, int32_t *words, uint64_t key, int64_t token, int64_t k, int64_t step
    ) noexcept nogil:
        """Collect the words next to a chunk that a window can reach, from `token` on; `step` is 1 or -1, the direction.

        The words go to `words` from index k on, in the same direction. An END_OF_SENTENCE follows them; return its
        index.
        """
        cdef int64_t end = k + step * self.window_size
        cdef int32_t word
        while k != end and 0 <= token < self.id_count and self.ids[token] != SENTENCE_END_ID:
            word = self.word_of_type[self.ids[token]]
            if self.is_word(word) and self.is_kept(key, token, word):
                words[k] = word
                k += step
            token += step
        words[k] = END_OF_SENTENCE
        return k

    cdef inline void prefetch_word(self, int64_t token) noexcept nogil:
        """Prefetch the entries of later ids in `word_of_type` and `keep_thresholds`, which are read at random."""
        if token + 2 * IDS_AHEAD < self.id_count:
            prefetch(&self.word_of_type[self.ids[token + 2 * IDS_AHEAD]])
            prefetch(&self.keep_thresholds[max(self.word_of_type[self.ids[token + IDS_AHEAD]], 0)])

    cdef void find_sentences(self, KeptWords *kept, int64_t start, int64_t end) noexcept nogil:
        """Count the words before and after each word in its sentence; `start` and `end` are ends of sentences."""
        cdef int64_t k
        kept.before[start] = kept.after[end] = -1
        for k in range(start + 1, end):
            kept.before[k] = kept.before[k - 1] + 1 if self.is_word(kept.words[k]) else -1
        for k in range(end - 1, start, -1):
            kept.after[k] = kept.after[k + 1] + 1 if self.is_word(kept.words[k]) else -1

    cdef void find_tags(self, KeptWords *kept, int64_t document_start) noexcept nogil:
        """Set the first tag of each word, and collect the tags of the document in which the chunk begins.

        These tags go before the collected words, and the tags of this document that the chunk has are not used.
        """
        cdef int64_t token = document_start, first_tag, k, start = kept.start
        while token < self.id_count and self.ids[token] != SENTENCE_END_ID:
            if self.is_word(self.word_of_type[self.ids[token]]):
                break
            token += 1
        while token > document_start:
            token -= 1
            if self.word_of_type[self.ids[token]] >= 0:
                kept.start -= 1
                kept.words[kept.start] = self.word_of_type[self.ids[token]]
        first_tag = kept.start
        for k in range(start, kept.end):
            if kept.words[k] == END_OF_SENTENCE and k > start:
                first_tag = k + 1
            kept.first_tag[k] = <int32_t>first_tag

    cdef void shuffle_long_sentences(self, Worker *worker, int64_t first, int64_t end) noexcept nogil:
        """Shuffle the words of each sentence that is longer than a window.

        Any words near the centre word are then a random sample of its sentence. Only words of the chunk are shuffled.
        """
        cdef int32_t *words = worker.kept.words
        cdef int64_t k, j
        for k in range(end - 1, first - 1, -1):  # Fisher-Yates, in each sentence from its end to its beginning
            if words[k] == END_OF_SENTENCE or worker.kept.before[k] + worker.kept.after[k] <= self.window_size:
                continue
            j = k - high_half(draw(worker), min(worker.kept.before[k], k - first) + 1)
            words[k], words[j] = words[j], words[k]

    cdef inline bint is_kept(self, uint64_t key, int64_t token, int32_t word) noexcept nogil:
        return <uint32_t>(hash_of(key, token) >> 32) <= self.keep_thresholds[word]

    cdef void find_repeats(self, Worker *worker, int64_t end) noexcept nogil:
        """Find words that occur twice within the reach of one window.

        Set previous_occurrence of each word: the previous index of the same word, or 0 if no window can contain both.
        Set latest_repeat of each word: the highest previous_occurrence up to this word. The chunk's centre words end at
        `end`.
        """
        cdef KeptWords *kept = &worker.kept
        cdef const int32_t *words = kept.words
        cdef int64_t k, j, first, slot
        memset(kept.recent, 0, RECENT_SLOTS * sizeof(int32_t))
        kept.latest_repeat[0] = 0
        for k in range(1, end + self.window_size):
            first = max(k - 2 * self.window_size, 1)
            slot = words[k] & (RECENT_SLOTS - 1)
            j = kept.recent[slot]
            kept.recent[slot] = <int32_t>k
            while j >= first and words[j] != words[k]:  # another word used the same slot
                j -= 1
            kept.previous_occurrence[k] = <int32_t>j if j >= first else 0
            kept.latest_repeat[k] = max(kept.latest_repeat[k - 1], kept.previous_occurrence[k])

    cdef int64_t collect_examples(self, Worker *worker, int64_t chunk) noexcept nogil:
        """Collect the input rows of a chunk of examples, and return the number of examples."""
        cdef KeptWords *kept = &worker.kept
        cdef int64_t next_chunk = min(chunk + 1, self.chunks), k  # an empty chunk follows the last
        cdef int64_t first = self.chunk_starts[chunk], end = self.chunk_starts[next_chunk]
        cdef int64_t start = self.example_starts[first]
        kept.known = self.tokens_before[next_chunk] - self.tokens_before[chunk]
        kept.start, kept.end = 0, self.example_starts[end] - start
        for k in range(kept.end):
            kept.words[k] = self.example_rows[start + k]
        for k in range(end - first):  # an example has at least one row, so there is room
            kept.token_number[k] = <int32_t>(kept.known * (k + 1) // (end - first))
        return end - first

    # -- a window: learning rate, context words, groups, output rows, prefetch ------------------

    cdef int64_t fill_example(
        self, Worker *worker, Window *w, int64_t k, int64_t chunk, int64_t tokens_before
    ) noexcept nogil:
        """Set the rows and the learning rate of example k of a chunk. Return the number of its predictions."""
        cdef int64_t example = self.chunk_starts[chunk] + k, start = self.example_starts[example]
        cdef int64_t label = self.label_starts[example], labels = self.label_starts[example + 1] - label, j
        w.alpha = self.importance[example] * self.learning_rate(tokens_before + worker.kept.token_number[k])
        w.inputs = worker.kept.rows + start - self.example_starts[self.chunk_starts[chunk]]
        w.n = self.example_starts[example + 1] - start
        w.input_weight = &self.row_weights[start] if self.cbow else NULL
        w.groups, w.group_starts[0], w.group_starts[1] = 1, 0, <int32_t>w.n
        # Each visit trains one of the labels, as in fastText.
        j = high_half(draw(worker), labels) if labels > 1 else 0
        self.choose_outputs(worker, w, self.labels[label + j])
        if self.one_vs_all:  # but this loss trains all of them
            for j in range(label, label + labels):
                w.target[step_column(self.labels[j])] = 1 - self.low_target
        self.prefetch_example(w)
        w.outputs[(w.output_sets - 1) * self.max_rows + w.m] = worker.zero_row  # where a window has its next word
        return 1 if self.cbow else w.n

    cdef inline void prefetch_example(self, const Window *w) noexcept nogil:
        """Prefetch the input rows of an example, which are read at random."""
        cdef int64_t k, at
        for k in range(w.n):
            for at in range(self.sizes.row_bytes // CACHE_LINE):
                prefetch(<const char *>w.inputs[k] + at * CACHE_LINE)

    cdef int64_t fill_window(self, Worker *worker, Window *w, int64_t centre, int64_t tokens_before) noexcept nogil:
        """Set the rows and the learning rate of the window around kept word `centre`.

        Return the number of its predictions.
        """
        cdef int64_t size = self.window_size, left, right
        cdef int32_t word = worker.kept.words[centre]
        w.alpha = self.learning_rate(tokens_before + worker.kept.token_number[centre])
        if self.shrink_windows:
            size -= high_half(draw(worker), self.window_size)
        left = centre - min(self.sides_by_size[0, size], worker.kept.before[centre])
        right = centre + min(self.sides_by_size[1, size], worker.kept.after[centre])
        if self.whole_sentences:  # a window of `window_size` + 1 words, moved so that it stays inside the sentence
            left = max(left, min(centre - self.window_size // 2, right - self.window_size))
            right = min(right, left + self.window_size)
        self.form_groups(worker, w, left, centre, right)
        if w.n == 0:
            return 0
        self.choose_outputs(worker, w, self.output_words[word] if self.shares_outputs else word)
        self.prefetch_inputs(worker, w, centre)
        return 1 if self.cbow else w.n

    cdef inline float learning_rate(self, int64_t tokens) noexcept nogil:
        """Return the learning rate after this many known tokens: linear, from alpha down to min_alpha."""
        cdef double total = self.epochs * self.tokens_before[self.chunks]
        cdef float progress = tokens / total
        return max(self.min_alpha, self.alpha + (self.min_alpha - self.alpha) * progress)

    cdef inline void form_groups(
        self, Worker *worker, Window *w, int64_t left, int64_t centre, int64_t right
    ) noexcept nogil:
        """Set the groups of context words and tags that take a step together, and their input rows.

        In a deterministic run the input rows are set later, when copy_shared_rows has copied some of them.
        """
        w.left, w.centre_index, w.repeats = left, centre, 0
        cdef bint repeats = self.track_repeats and worker.kept.latest_repeat[right] >= left
        w.tags = 0
        if self.has_tags:
            w.first_tag = worker.kept.first_tag[centre]
            while worker.kept.words[w.first_tag + w.tags] >= self.sizes.words:
                w.tags += 1
            repeats = repeats or (self.track_repeats and self.tags_are_words and w.tags > 0)
        if right - left + w.tags > self.sizes.inputs_per_step or repeats:
            self.form_several_groups(worker, w, right)
        else:
            w.n = right - left + w.tags
            w.groups = w.n > 0
            w.group_starts[0], w.group_starts[1] = 0, <int32_t>w.n
        if not self.deterministic:
            set_inputs(worker, w, self.window_size)

    cdef void form_several_groups(self, Worker *worker, Window *w, int64_t right) noexcept nogil:
        """Set the groups if there are too many words for one step, or if a word may occur twice."""
        cdef int64_t first = w.left, k, j  # first: the index of the group's first word
        cdef const int32_t *previous = worker.kept.previous_occurrence
        cdef bint repeated
        w.n = w.groups = 0
        for k in range(w.left, right + 1 + w.tags):  # the tags follow the words
            if k == w.centre_index:
                continue
            repeated = False
            if self.track_repeats and k <= right:
                # The centre word is not in the group, so skip it:
                j = previous[k] if previous[k] != w.centre_index else previous[w.centre_index]
                repeated = j >= first
            elif k > right:
                repeated = self.track_repeats and self.tags_are_words  # it may be a context word, too
            # A repeated word begins a new group if the loss is sequential, because the step computes all scores from
            # the old values of the input rows.
            if (w.n == 0 or w.n - w.group_starts[w.groups - 1] == self.sizes.inputs_per_step
                    or (repeated and self.split_at_repeats)):
                w.group_starts[w.groups] = w.n
                w.groups += 1
                first = k
            else:
                w.repeats |= repeated
            w.n += 1
        w.group_starts[w.groups] = w.n

    cdef inline void choose_outputs(self, Worker *worker, Window *w, int32_t centre) noexcept nogil:
        """Set the output rows that predict the centre word, with their targets and offsets."""
        cdef int64_t j
        w.output_sets = w.groups if self.negative else 1
        w.centre = centre
        if self.deterministic:  # an earlier chunk may have replaced rows by copies
            self.set_common_rows(worker, w)
        w.prefetch_from = 0
        if self.negative:
            self.choose_samples(worker, w)
        elif self.kind.rows == PATH:
            self.choose_path(worker, w)
        elif self.kind.rows == CLASSES:
            self.choose_class(worker, w)
        elif self.one_vs_all:
            for j in range(w.m):
                w.target[step_column(j)] = self.low_target
            w.target[step_column(w.centre)] = 1 - self.low_target
            w.prefetch_from = w.m
        else:
            self.set_target(w, w.centre)
            w.prefetch_from = w.m

    cdef inline void prefetch_inputs(self, Worker *worker, Window *w, int64_t centre) noexcept nogil:
        """Also prefetch the input row of the next word to enter a window.

        The row is appended to the window's output rows, which are prefetched.
        """
        if self.kind.rows == PATH:
            self.prefetch_path(worker.kept.words, centre)
        # After the end of a sentence, this may be a row that no window uses. Prefetching it does no harm.
        w.outputs[(w.output_sets - 1) * self.max_rows + w.m] = worker.kept.rows[centre + self.window_size]

    cdef inline float *output_row(self, Worker *worker, int64_t row) noexcept nogil:
        """Return the address of an output row for this worker: in its copies if it is hot, otherwise in the matrix."""
        cdef int64_t hot = row - self.first_hot
        return <float *>(worker.copies.rows + hot * self.sizes.row_bytes if 0 <= hot < self.hot
                         else &self.outputs[0, 0] + row * self.sizes.row_bytes)

    # -- output rows: negative sampling, noise-contrastive estimation, sampled softmax ----------

    cdef void choose_samples(self, Worker *worker, Window *w) noexcept nogil:
        """Choose the output rows of each group: the centre word, and `batches` times K drawn words."""
        cdef int64_t group, batch
        w.m = worker.draws.batches * self.negative + 1
        for group in range(w.groups):
            for batch in range(worker.draws.batches):
                self.draw_words(worker, w, group, batch * self.negative)
            if self.kind.weighted:
                self.set_offsets(worker, w, group)

    cdef void draw_negatives(self, Worker *worker) noexcept nogil:
        """Draw the K random numbers for the next negatives, and prefetch their entries in the alias table."""
        cdef int64_t j
        for j in range(self.negative):
            worker.draws.next_random[j] = draw(worker)
            prefetch(&self.alias_table[high_half(worker.draws.next_random[j], self.alias_table.shape[0]), 0])

    cdef inline int32_t word_of(self, uint64_t random, int32_t centre) noexcept nogil:
        """Return the word that is drawn by a random number as a negative of the centre word."""
        cdef int64_t first
        if not self.has_groups:
            return alias_of(&self.alias_table[0, 0], random, self.alias_table.shape[0])
        first = self.noise_start[centre]
        return self.noise_words[first + alias_of(&self.alias_table[first, 0], random, self.noise_size[centre])]

    cdef void draw_words(self, Worker *worker, Window *w, int64_t group, int64_t first) noexcept nogil:
        """Draw K words for a group, which has drawn `first` words so far, and set its output rows."""
        cdef int64_t j
        cdef int32_t *words = worker.draws.words
        cdef float **outputs = w.outputs + group * self.max_rows
        words[0] = w.centre
        for j in range(self.negative):
            words[first + 1 + j] = self.word_of(worker.draws.next_random[j], w.centre)
        if self.kind.weighted:
            self.count_words(words, worker.draws.counts, first)
        elif equal_pairs(words, self.negative + 1) > self.negative + 1:
            self.redraw_words(worker, words)
        for j in range(first, first + self.negative + 1):
            outputs[j] = self.output_row(worker, words[j]) if words[j] >= 0 else worker.zero_row
        self.draw_negatives(worker)

    cdef void count_words(self, int32_t *words, int32_t *counts, int64_t first) noexcept nogil:
        """Count how often each word was drawn, since each draw is a term of the loss. Replace repeats by NO_WORD.

        Only the last K words are new: those after the `first` words drawn before.
        """
        cdef int64_t j, k
        if first == 0:
            counts[0] = 0
        for j in range(first + 1, first + self.negative + 1):
            counts[j] = 1
            for k in range(j):
                if words[k] == words[j]:
                    counts[k] += 1
                    words[j] = NO_WORD
                    break

    cdef void redraw_words(self, Worker *worker, int32_t *words) noexcept nogil:
        """Replace drawn words that repeat an earlier one by new draws."""
        cdef int64_t j, k, tries
        for j in range(1, self.negative + 1):
            tries = k = 0
            while k < j:
                if words[k] != words[j]:
                    k += 1
                    continue
                tries += 1
                k = 0
                if tries < MAX_REDRAWS:
                    words[j] = self.word_of(draw(worker), words[0])
                elif self.has_groups:
                    words[j] = self.noise_words[
                        self.noise_start[words[0]] + (tries - MAX_REDRAWS) % self.noise_size[words[0]]
                    ]
                else:
                    words[j] = (words[j] + 1) % self.alias_table.shape[0]

    cdef void set_offsets(self, Worker *worker, Window *w, int64_t group) noexcept nogil:
        """Set the offsets and weights of the centre word and the drawn words."""
        cdef int64_t j, column, batches = worker.draws.batches
        cdef int32_t word
        cdef float scale = 0
        cdef float *offset = w.offset + group * self.columns
        cdef float *weight = w.weight + group * self.columns
        if self.kind.softmax:
            scale = log(batches)
        for j in range(batches * self.negative + 1):
            column = step_column(j)
            word = worker.draws.words[j]
            weight[column] = worker.draws.counts[j] + (j == 0)
            offset[column] = self.offsets[word] + scale if word >= 0 else UNUSED_OFFSET
            if self.kind.softmax and weight[column] > 1:
                offset[column] -= log(weight[column])
        for j in range(batches * self.negative + 1, round_up_to_blocks(batches * self.negative + 1)):
            offset[step_column(j)] = UNUSED_OFFSET

    # -- output rows: hierarchical and class-based softmax --------------------------------------

    cdef void choose_path(self, Worker *worker, Window *w) noexcept nogil:
        """Choose the inner nodes on the path from the root to the centre word, with target 1 − code."""
        cdef int64_t start = self.starts[w.centre], j, node
        self.set_columns(w, 0, self.starts[w.centre + 1] - start)
        for j in range(w.m):
            node = self.nodes[start + j]
            w.outputs[j] = self.output_row(worker, node)
            w.prefetch_from += node >= self.outputs.shape[0] - CACHED_NODES
            w.target[step_column(j)] = 1 - self.codes[start + j]

    cdef inline void prefetch_path(self, const int32_t *kept, int64_t centre) noexcept nogil:
        """Prefetch the memory that choose_path reads for the next centre words.

        The first node is read rather than prefetched: after a prefetch the loop still waited for it (bench/NOTES.md).
        """
        if kept[centre + 1] >= 0:
            read(&self.nodes[self.starts[kept[centre + 1]]])
            prefetch(&self.nodes[self.starts[kept[centre + 1] + 1] - 1])
            prefetch(&self.codes[self.starts[kept[centre + 1]]])
        if self.window_size > 1 and kept[centre + 2] >= 0:
            prefetch(&self.starts[kept[centre + 2]])

    cdef void choose_class(self, Worker *worker, Window *w) noexcept nogil:
        """Choose the words of the centre word's class. The rows of all classes come first; prepare_window sets them."""
        cdef int64_t own = self.class_of[w.centre], j
        cdef int64_t first = round_up_to_blocks(self.starts.shape[0] - 1)
        cdef int64_t words = self.starts[own + 1] - self.starts[own]
        self.set_target(w, own)
        self.set_columns(w, first, first + words)
        for j in range(words):
            w.outputs[first + j] = self.output_row(worker, self.starts[own] + j)
        w.target[step_column(first + w.centre - self.starts[own])] = 1
        w.prefetch_from = first if words <= MAX_PREFETCHED_ROWS else w.m

    cdef void set_target(self, Window *w, int64_t row) noexcept nogil:
        """Make an output row the target of the first softmax, instead of the previous target."""
        w.target[w.target_column] = 0
        w.target_column = step_column(row)
        w.target[w.target_column] = 1

    cdef void set_columns(self, Window *w, int64_t first, int64_t m) noexcept nogil:
        """Set the number of output rows to m, and the targets and offsets of row `first` and later rows to 0."""
        cdef int64_t j
        w.m = m
        for j in range(step_columns(m) - STEP_PANEL, step_columns(m)):
            w.offset[j] = UNUSED_OFFSET
            w.target[j] = 0
        for j in range(first, m):
            w.offset[step_column(j)] = 0
            w.target[step_column(j)] = 0

    # -- the step -------------------------------------------------------------------------------

    cdef void take_steps(self, Worker *worker, Window *w, Window *later) noexcept nogil:
        """Take a step for each group of the window, at the learning rate that `fill_window` has set.

        During the step, prefetch the rows of the `later` window.
        """
        cdef Step *step = &worker.step
        cdef int64_t group, output_set
        step.m, step.target, step.alpha = w.m, w.target, w.alpha
        step.repeats = w.repeats
        step.gradient_scale = 1.0 / w.n if self.corrected_gradient and w.n else 1.0
        step.input_weight = w.input_weight
        step.fixed_inputs = w.n - w.tags if self.fixed_words else 0
        for group in range(w.groups):
            output_set = group if w.output_sets > 1 else 0
            step.n = w.group_starts[group + 1] - w.group_starts[group]
            step.inputs = w.inputs + w.group_starts[group]
            step.outputs = w.outputs + output_set * self.max_rows
            step.offset = w.offset + output_set * self.columns
            step.weight = w.weight + output_set * self.columns if self.sizes.weighted else NULL
            if self.sizes.bfloat16:
                step.random = draw(worker)
            step.prefetch_count = 0
            if later != NULL and later.groups and group < later.output_sets:
                step.prefetch = later.outputs + group * self.max_rows + later.prefetch_from
                step.prefetch_count = later.m - later.prefetch_from + (group + 1 == later.output_sets)
            self.functions.step(step)
        if self.adaptive and w.groups:
            self.adapt_samples(worker)

    cdef void adapt_samples(self, Worker *worker) noexcept nogil:
        """Double the number of drawn words if the effective sample size is below K / 2; halve it if it is above K.

        The new number applies to the next window. If the words drawn for a window decided on their own number, their
        estimate of the softmax would be biased.
        """
        if worker.loss.effective_samples < 0.5 * self.negative:
            worker.draws.batches = min(2 * worker.draws.batches, MAX_BATCHES)
        elif self.negative < worker.loss.effective_samples < INFINITY:
            worker.draws.batches = max(worker.draws.batches // 2, 1)
        worker.loss.effective_samples = INFINITY


cdef Sizes sizes_of(plan) except *:
    """Return the sizes of a worker that has room for the largest windows of a run."""
    cdef LossKind kind = LOSS_KINDS[plan.loss.branch]
    cdef int64_t classes
    cdef Sizes s
    settings = plan.settings
    s.window_size, s.tags = plan.window_size, plan.tags.most if plan.tags else 0
    s.words = plan.words
    s.n, s.m = plan.max_context, plan.loss.max_rows
    s.kept, s.width = plan.chunk_size + 2 * (s.window_size + 1) + s.tags, plan.width
    s.bfloat16, s.pooled = settings.storage == "bf16", settings.model != "skipgram"
    s.row_bytes = s.width * (sizeof(uint16_t) if s.bfloat16 else sizeof(float))
    if kind.rows == CLASSES:
        classes = len(plan.loss.data["starts"]) - 1
        s.m += round_up_to_blocks(classes) - classes
    s.columns = step_columns(s.m)
    s.drawn_words = round_up(s.m, WORD_VECTOR)
    s.negative = plan.loss.negative if kind.rows == DRAWN else 0
    s.inputs_per_step = s.n if s.pooled else 1 if settings.per_pair else min(s.n, MAX_INPUTS_PER_STEP)
    s.output_sets = (s.n + s.inputs_per_step - 1) // s.inputs_per_step if s.negative else 1
    s.weighted, s.frozen_outputs = kind.weighted, plan.frozen_outputs
    s.composed = s.kept if plan.subwords else 0
    s.vocabulary_size = len(plan.keep_thresholds) if plan.subwords else 0
    s.hot = kind.hot_rows // plan.workers if kind.rows == PATH else kind.hot_rows
    s.hot = s.copied = min(plan.loss.rows, s.hot) if plan.workers > 1 and not s.frozen_outputs else 0
    s.windows, s.set_bits = LOOKAHEAD + 1, 0
    if settings.deterministic and plan.workers > 1:
        s.hot = 0
        s.windows = plan.max_windows
        s.copied = min(s.kept + s.windows * s.output_sets * s.m, len(plan.keep_thresholds) + plan.loss.rows)
        s.set_bits = max(BITS_IN_LINE, power_of_2(BITS_PER_ROW * plan.workers * s.copied))
    return s
