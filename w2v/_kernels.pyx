"""The training loop of every model.

word2vec slides a window over the text and, from the words around its centre, predicts the centre. With v the input
rows and v' the output rows, the loss of one prediction of word o from an input row x is, by the score s_w = v'_w · x,

    full softmax           − log softmax(s)_o                         over all words
    class-based softmax    − log softmax(s)_c − log softmax(s)_o      over the classes, and the words of o's class c
    hierarchical softmax   − Σ_b log σ(± s_b)                         b: inner nodes on o's path; + for code 0
    sampled softmax        − log softmax(s − log K q)_o               over o and K words drawn from the noise q
    noise-contrastive      − log σ(s_o − z_o) − Σ_k log σ(z_k − s_k)  k: K words drawn from q; z = log(K q V)
    negative sampling      − log σ(s_o) − Σ_k log σ(−s_k)

All are a choice of output rows Y, with an offset and a target for each (1 for o, its class or a code 0, else 0), and of
a link: the logistic function σ of each score or a softmax over them. The gradient by a score is link(s) − t always.
Skip-gram predicts from each context word by itself, X = the rows v of the context words; CBOW predicts once, X = their
mean. So a window is a choice of rows, and one step moves them:

    S = X Yᵀ − offset       E = t − link(S)       X ← X + alpha E Y       Y ← Y + alpha Eᵀ X

That step is all the arithmetic there is; it lives in step_body.h and knows nothing of words. This file chooses the
rows. Its design:

Chunks.   The corpus is a file of ids. Threads take chunks of it from one atomic counter that runs through all epochs,
          so all end together; a chunk is as many ids as take a fraction of a second. It owns its centres; its windows
          reach into the neighbours. The learning rate falls with a token's place in the run, so it ends at its minimum
          exactly, however many threads there are.
Chance.   All draws are hashes. Whether a token is subsampled depends on (seed, epoch, position), so neighbouring
          chunks agree on it; windows and negatives on (seed, epoch, chunk), so the only state is how many chunks are
          done, and a run that is stopped between chunks goes on as if it never had been.
Sharing.  The K negatives are drawn once for a window and shared by its context words (Ji et al. 2016), which turns
          scattered dot products into a small matrix product; `per_pair` takes a step for each, as word2vec.c. A window
          of more than TOGETHER words takes several, each with its own: the changes of too many words, all computed
          from where an output row stood before, add up to more than any of them would have made.
          Hierarchical softmax bears no such shortcut, for the nodes near the root are in every prediction: there the
          words of a window take their turns. With G = X Xᵀ the step knows beforehand what the turns before have done
          to the scores of row i, Σ_k<i G_ik E_k. So the products are still of matrices, and the result is that of one
          step for each word.
Looking   Rows are chosen LOOKAHEAD windows before they move, and their cache lines fetched meanwhile: the output rows
ahead.    of a window are nearly random, and a matrix of them is larger than any cache.
Storage.  Rows of bfloat16, the high halves of floats, take half the memory: a step widens its rows to floats and rounds
          them, by chance, when they have moved.
Races.    Hogwild (Recht et al. 2011): threads read and write the two matrices without locks, on purpose, and only
          those: in the step, and in copy_hot and merge_hot, for of the output rows that all would write all the
          time, the nodes near the root or the most frequent words, each works on copies for a chunk. Who looks on for
          divergence reads some rows meanwhile. The position, token count and stop flag are atomic; all else belongs
          to one thread.
"""

from libc.math cimport INFINITY, log
from libc.stdint cimport int8_t, int32_t, int64_t, uint16_t, uint32_t, uint64_t, uintptr_t
from libc.stdlib cimport calloc, free
from libc.string cimport memcpy

from w2v._worker cimport (
    BLOCK_OUTPUTS, LOOKAHEAD, NO_SCORE, PANEL, Sizes, Step, StepFunction, Window, Worker, lay_out, size_of,
    step_choose, step_column, step_columns, step_loss_start, step_loss_total, step_rounded, step_widened, take,
)

import numpy as np

from w2v.losses.layers import ADAPTIVE_BLOCKS, TOGETHER

cdef extern from * nogil:
    """
    #define ATOMIC_ADD(where, what) __atomic_fetch_add(where, what, __ATOMIC_RELAXED)
    #define ATOMIC_READ(where) __atomic_load_n(where, __ATOMIC_RELAXED)
    #define ATOMIC_WRITE(where, what) __atomic_store_n(where, what, __ATOMIC_RELAXED)
    #define HIGH_HALF(a, b) ((uint64_t)(((unsigned __int128)(a) * (b)) >> 64))
    #define PREFETCH(pointer) __builtin_prefetch(pointer)
    #define READ(pointer) ((void)*(const volatile char *)(pointer))
    """
    int64_t ATOMIC_ADD(int64_t *where, int64_t what)
    int64_t ATOMIC_READ(int64_t *where)
    void ATOMIC_WRITE(int64_t *where, int64_t what)
    uint64_t HIGH_HALF(uint64_t a, uint64_t b)
    void PREFETCH(const void *pointer)
    void READ(const void *pointer)

cdef enum:
    MOST_IDS = 16384  # of a chunk
    SENTENCE_END = -1
    CACHED = 256      # inner nodes next to the root that need not be fetched
    HOT_NODES = 512   # inner nodes next to the root, over the number of workers, that each worker has copies of
    HOT_WORDS = 16    # most frequent words of whose output rows it has copies
    ENOUGH = 64       # chunks of each worker, with which averaging now and then is no loss
    REDRAWS = 64      # of a negative that is taken already, before the next free word is
    FETCHED = 64      # output rows at most that are fetched ahead: of more, the first would be gone before they move

MOST_CHUNK_IDS = MOST_IDS
cdef int64_t CHUNK_WORK = 1 << 30  # multiply-adds of the scores of one context word a window, in a chunk at most
cdef int64_t MOST_BLOCKS = ADAPTIVE_BLOCKS, MOST_TOGETHER = TOGETHER


def chunk_ids(double rows, int64_t width, int64_t window) -> int:
    """Ids of a chunk where a prediction takes about so many output `rows`."""
    return max(1, min(MOST_IDS, <int64_t>(CHUNK_WORK / (rows * width * window))))


LOSSES = ("ns", "nce", "sampled", "hs", "class", "softmax")

cdef enum Loss:
    NS
    NCE
    SAMPLED
    HS
    CLASS
    SOFTMAX

cdef enum Stream:     # what a draw is for: keeps the hashes of different purposes apart
    SUBSAMPLING = 1
    WINDOWS = 2


cdef inline uint64_t scramble(uint64_t x) noexcept nogil:
    """SplitMix64's finaliser (Steele et al. 2014): a hash of 64 bits to 64 bits."""
    x = (x ^ (x >> 30)) * <uint64_t>0xBF58476D1CE4E5B9
    x = (x ^ (x >> 27)) * <uint64_t>0x94D049BB133111EB
    return x ^ (x >> 31)


cdef inline uint64_t key_of(uint64_t seed, uint64_t epoch, uint64_t stream) noexcept nogil:
    return scramble(scramble(seed) + (epoch << 8) + stream)


cdef inline uint64_t hash_of(uint64_t key, uint64_t number) noexcept nogil:
    return scramble(key + number * <uint64_t>0x9E3779B97F4A7C15)


cdef inline int32_t alias_of(const uint32_t *cells, uint64_t random, uint64_t size) noexcept nogil:
    """A word by the alias table: the high half of random × size is a cell, and the low half decides in it."""
    cdef uint32_t cell = <uint32_t>HIGH_HALF(random, size), chance = <uint32_t>((random * size) >> 32)
    cdef uint32_t threshold = cells[2 * cell], alias = cells[2 * cell + 1]
    return <int32_t>(alias if chance > threshold else cell)


cdef inline int64_t whole_blocks(int64_t rows) noexcept nogil:
    """So many rows, and those missing in the last block of the step."""
    return (rows + BLOCK_OUTPUTS - 1) // BLOCK_OUTPUTS * BLOCK_OUTPUTS


cdef struct Counters:
    int64_t position       # chunks handed out, through all epochs
    int64_t tokens         # known tokens trained
    int64_t stop           # whether threads shall end after their chunk


cdef inline uint64_t draw(Worker *worker) noexcept nogil:
    worker.random += <uint64_t>0x9E3779B97F4A7C15
    return scramble(worker.random)


def step_for(name: str) -> bool:
    """Whether this machine runs the step compiled for the instruction set `name`."""
    return step_choose(name.encode()) != NULL


def worker_bytes(
    layer, *, int64_t width, int64_t window, bint cbow, bint per_pair, int64_t chunk, int64_t workers,
    bint bfloat16,
) -> int:
    """The memory that each of a Kernel's threads takes for itself."""
    return size_of(sizes_of(layer, width, window, cbow, per_pair, chunk, workers, bfloat16))


cdef class Kernel:
    """A training run: what it reads, what it moves and how far it is. `run` is called once in each thread.

    Args (C-contiguous arrays; V words, R output rows):
        ids: uint32 (N,), the corpus, 0 for a sentence end; words: int32 (types,), each id's word or -1.
        tokens_before: int64 (chunks + 1,), the known tokens of an epoch before each chunk, and all of them.
        keep: uint32 (V,): a token is kept when a uniform 32-bit number is <= keep[word].
        inputs, outputs: float32, or uint16 that are bfloat16, (V, width) and (R, width); each row aligned to 64 bytes;
            moved.
        layer: which output rows predict a word. chunk: ids of a chunk.
    """

    cdef const uint32_t[::1] ids
    cdef const int32_t[::1] words
    cdef const uint32_t[::1] keep
    cdef char[:, ::1] inputs                 # rows, in bytes
    cdef char[:, ::1] outputs
    cdef const uint32_t[:, ::1] cells
    cdef const int64_t[::1] starts
    cdef const int32_t[::1] nodes
    cdef const int8_t[::1] codes
    cdef const float[::1] offsets
    cdef const int32_t[::1] class_of
    cdef Loss loss
    cdef int window, negative, shrink, cbow, corrected, adaptive, distinct
    cdef int64_t epochs, chunk, chunks, count, most, columns, lookahead
    cdef Sizes sizes
    cdef const int64_t[::1] tokens_before
    cdef float alpha, min_alpha
    cdef uint64_t seed
    cdef StepFunction step
    cdef int64_t hot, first_hot       # so many output rows, from that one on, are copied by each worker
    cdef Counters *counters
    cdef Worker **workers
    cdef int64_t worker_count
    cdef double[:, ::1] worker_losses        # (workers, epochs)
    cdef int64_t[:, ::1] worker_predictions  # (workers, epochs)

    def __cinit__(self):
        self.counters = NULL
        self.workers = NULL

    def __init__(
        self, *, ids, words, tokens_before, keep, inputs, outputs, layer,
        bint cbow, bint corrected, int window, bint shrink_windows, bint per_pair,
        float alpha, float min_alpha, int64_t epochs, uint64_t seed, int64_t chunk, int64_t workers,
        str instruction_set,
    ):
        cdef int64_t k
        self.ids, self.words, self.keep = ids, words, keep
        self.inputs, self.outputs = inputs.view(np.int8), outputs.view(np.int8)
        self.loss = LOSSES.index(layer.loss)
        self.sizes = sizes_of(
            layer, inputs.shape[1], window, cbow, per_pair, chunk, workers, inputs.dtype == np.uint16
        )
        self.most, self.columns, self.negative = self.sizes.m, self.sizes.columns, self.sizes.negative
        self.adaptive = self.negative and layer.adaptive
        if self.loss == HS:
            self.starts, self.nodes, self.codes = layer.starts, layer.nodes, layer.codes
        elif self.loss == CLASS:
            self.starts, self.class_of = layer.starts, layer.class_of
        elif self.loss != SOFTMAX:
            self.cells, self.offsets = layer.cells, layer.offsets
        self.lookahead = 0 if self.adaptive else LOOKAHEAD
        self.cbow, self.corrected = cbow, corrected
        self.window, self.shrink = window, shrink_windows
        self.distinct = self.loss == HS and not cbow  # the context words of a step
        self.alpha, self.min_alpha, self.epochs, self.seed = alpha, min_alpha, epochs, seed
        self.count = self.ids.shape[0]
        self.chunk = chunk
        self.chunks = (self.count + chunk - 1) // chunk
        self.tokens_before = tokens_before
        self.step = step_choose(instruction_set.encode())
        self.hot = self.sizes.hot if epochs * self.chunks >= ENOUGH * workers else 0
        self.first_hot = self.outputs.shape[0] - self.hot if self.loss == HS else 0  # the root is the last row
        self.worker_losses = np.zeros((workers, epochs))
        self.worker_predictions = np.zeros((workers, epochs), np.int64)
        self.counters = <Counters *>calloc(1, sizeof(Counters))
        self.workers = <Worker **>calloc(workers, sizeof(Worker *))
        if self.counters == NULL or self.workers == NULL:
            raise MemoryError
        self.worker_count = workers
        for k in range(workers):
            self.workers[k] = self.new_worker()

    def __dealloc__(self):
        cdef int64_t k
        if self.workers != NULL:
            for k in range(self.worker_count):
                if self.workers[k] != NULL:
                    free(self.workers[k].memory)
        free(self.workers)
        free(self.counters)

    cdef Worker *new_worker(self) except NULL:
        """A worker for the largest windows, in one piece of memory."""
        cdef void *memory = calloc(1, size_of(self.sizes))
        if memory == NULL:
            raise MemoryError
        cdef uintptr_t start = <uintptr_t>memory
        cdef Worker *worker = <Worker *>take(&start, 0)
        cdef Window *w
        cdef int64_t k, j, m = self.most, drawn = self.sizes.drawn
        lay_out(worker, self.sizes, start)
        worker.memory = memory
        step_loss_start(worker.loss)
        worker.step.loss = worker.loss
        worker.step.width = self.sizes.width
        worker.step.bfloat16 = self.sizes.bfloat16
        worker.step.pooled = self.cbow
        worker.step.turns = self.loss == HS
        if self.loss == CLASS:
            worker.step.softmax = step_columns(self.starts.shape[0] - 1)
        elif self.loss == SAMPLED or self.loss == SOFTMAX:
            worker.step.softmax = self.columns
        for k in range(LOOKAHEAD + 1):
            w = &worker.windows[k]
            for j in range(drawn * self.columns):
                w.offset[j] = NO_SCORE
                if self.sizes.weighed:
                    w.weight[j] = 1
            if self.negative:
                w.target[0] = 1
                for j in range(drawn * m):
                    w.offset[j // m * self.columns + step_column(j % m)] = 0
            elif self.loss == SOFTMAX:
                w.m = m
                for j in range(m):
                    w.outputs[j] = self.output_row(worker, j)
                    w.offset[step_column(j)] = 0
            elif self.loss == CLASS:
                for j in range(self.starts.shape[0] - 1):
                    w.outputs[j] = self.output_row(worker, self.class_of.shape[0] + j)
                    w.offset[step_column(j)] = 0
                for j in range(self.starts.shape[0] - 1, m):
                    w.outputs[j] = worker.blank
        return worker

    def run(self, int64_t worker) -> None:
        """Trains chunks until none is left or `stop` is called. Each thread has a `worker` number of its own."""
        cdef int64_t item
        with nogil:
            while not ATOMIC_READ(&self.counters.stop):
                item = ATOMIC_ADD(&self.counters.position, 1)
                if item >= self.epochs * self.chunks:
                    break
                self.train_chunk(worker, item // self.chunks, item % self.chunks)

    def stop(self) -> None:
        """Makes every `run` return at the end of its chunk."""
        ATOMIC_WRITE(&self.counters.stop, 1)

    def restore(self, int64_t position, losses, predictions) -> None:
        """At rest, makes `run` go on after the first `position` chunks, as if these had been trained here.

        losses, predictions: what the properties of these names were then.
        """
        cdef int64_t epoch = position // self.chunks, chunk = position % self.chunks
        np.asarray(self.worker_losses)[:] = 0
        np.asarray(self.worker_predictions)[:] = 0
        np.asarray(self.worker_losses)[0] = losses
        np.asarray(self.worker_predictions)[0] = predictions
        ATOMIC_WRITE(&self.counters.position, position)
        ATOMIC_WRITE(&self.counters.tokens, epoch * self.tokens_before[self.chunks] + self.tokens_before[chunk])
        ATOMIC_WRITE(&self.counters.stop, 0)

    @property
    def position(self) -> int:
        """Chunks handed out, through all epochs; at rest, chunks done."""
        return min(ATOMIC_READ(&self.counters.position), self.epochs * self.chunks)

    @property
    def tokens_trained(self) -> int:
        return ATOMIC_READ(&self.counters.tokens)

    @property
    def losses(self):
        """Summed loss of each epoch, float64 (epochs,). Read it, and `predictions`, at rest."""
        return np.asarray(self.worker_losses).sum(axis=0)

    @property
    def predictions(self):
        """Predictions made in each epoch, int64 (epochs,)."""
        return np.asarray(self.worker_predictions).sum(axis=0)

    cdef void train_chunk(self, int64_t number, int64_t epoch, int64_t chunk) noexcept nogil:
        cdef Worker *worker = self.workers[number]
        cdef int64_t begin = chunk * self.chunk, end = min(begin + self.chunk, self.count)
        cdef int64_t first = self.window + 1, last, k, ready = 0, done = 0
        cdef int64_t before = epoch * self.tokens_before[self.chunks] + self.tokens_before[chunk]
        cdef int64_t predictions = 0
        cdef Window *window
        worker.loss.total = 0
        worker.random = hash_of(key_of(self.seed, epoch, WINDOWS), chunk)
        worker.blocks = 1
        self.draw_negatives(worker)
        last = self.collect(worker, key_of(self.seed, epoch, SUBSAMPLING), begin, end)
        self.copy_hot(worker)
        for k in range(first, last):
            if worker.kept[k] == SENTENCE_END:
                continue
            window = &worker.windows[ready % (LOOKAHEAD + 1)]
            predictions += self.choose(worker, window, k, before)
            ready += 1
            if ready > self.lookahead:
                self.move(worker, &worker.windows[done % (LOOKAHEAD + 1)], window if self.lookahead else NULL)
                done += 1
        while done < ready:
            self.move(worker, &worker.windows[done % (LOOKAHEAD + 1)], NULL)
            done += 1
        self.merge_hot(worker)
        self.worker_losses[number, epoch] += step_loss_total(worker.loss)
        self.worker_predictions[number, epoch] += predictions
        ATOMIC_ADD(&self.counters.tokens, worker.known)

    cdef void copy_hot(self, Worker *worker) noexcept nogil:
        """Takes copies of the rows that every thread writes all the time, lest their lines travel between caches."""
        cdef int64_t size = self.hot * self.sizes.row_bytes
        if size:
            memcpy(worker.copies, &self.outputs[self.first_hot, 0], size)
            memcpy(worker.originals, worker.copies, size)

    cdef void merge_hot(self, Worker *worker) noexcept nogil:
        """Adds this worker's share of what it has changed in them.

        In a chunk the copies come near to what they tend to; as many times as there are workers would be far beyond
        it. So nodes get the mean of the workers' changes, words one and a half times that, for they come less near
        (bench/NOTES.md); and it must be the most often visited rows only.
        """
        cdef int64_t size = self.hot * self.sizes.width, k
        cdef float share = (1.0 if self.loss == HS else 1.5) / self.worker_count
        cdef void *hot = &self.outputs[self.first_hot, 0] if size else NULL
        cdef void *now = worker.copies
        cdef void *then = worker.originals
        if self.sizes.bfloat16:
            for k in range(size):
                (<uint16_t *>hot)[k] = step_rounded(
                    step_widened((<uint16_t *>hot)[k])
                    + share * (step_widened((<uint16_t *>now)[k]) - step_widened((<uint16_t *>then)[k])),
                    draw(worker) >> 48,
                )
        else:
            for k in range(size):
                (<float *>hot)[k] += share * ((<float *>now)[k] - (<float *>then)[k])

    cdef int64_t collect(self, Worker *worker, uint64_t key, int64_t begin, int64_t end) noexcept nogil:
        """Fills `kept` with the chunk's words from index window + 1 on; returns where they end.

        Before and after them stand as many of the neighbours' as a window can reach, SENTENCE_END at either end.
        """
        cdef int64_t first = self.window + 1, last = first, k, position
        cdef int32_t word
        worker.known = 0
        for position in range(begin, end):
            if self.ids[position] == 0:
                worker.kept[last] = SENTENCE_END
                last += 1
                continue
            word = self.words[self.ids[position]]
            if word < 0:
                continue
            worker.known += 1
            worker.kept[last] = word
            worker.ordinal[last] = <int32_t>worker.known
            last += self.is_kept(key, position, word)
        if last == first:
            return last
        k, position = first - 1, begin - 1
        while k > 0 and position >= 0 and self.ids[position] != 0:
            word = self.words[self.ids[position]]
            if word >= 0 and self.is_kept(key, position, word):
                worker.kept[k] = word
                k -= 1
            position -= 1
        worker.kept[k] = SENTENCE_END
        k, position = last, end
        while k < last + self.window and position < self.count and self.ids[position] != 0:
            word = self.words[self.ids[position]]
            if word >= 0 and self.is_kept(key, position, word):
                worker.kept[k] = word
                k += 1
            position += 1
        worker.kept[k] = SENTENCE_END
        return last

    cdef inline bint is_kept(self, uint64_t key, int64_t position, int32_t word) noexcept nogil:
        return <uint32_t>(hash_of(key, position) >> 32) <= self.keep[word]

    cdef int64_t choose(self, Worker *worker, Window *w, int64_t centre, int64_t before) noexcept nogil:
        """Chooses the rows of the window around kept[centre]; returns how many predictions it makes."""
        cdef int32_t *kept = worker.kept
        cdef int64_t reach = self.window, left = centre, right = centre, first, k, j, group
        cdef bint again
        cdef double total = self.epochs * self.tokens_before[self.chunks]
        cdef float progress = (before + worker.ordinal[centre]) / total
        w.alpha = max(self.min_alpha, self.alpha + (self.min_alpha - self.alpha) * progress)
        if self.shrink:
            reach -= HIGH_HALF(draw(worker), self.window)
        while centre - left < reach and kept[left - 1] != SENTENCE_END:
            left -= 1
        while right - centre < reach and kept[right + 1] != SENTENCE_END:
            right += 1
        w.n = w.groups = w.repeats = 0
        if left == right:
            return 0
        first = left
        for k in range(left, right + 1):
            if k == centre:
                continue
            again = False
            for j in range(first, k):
                again |= kept[j] == kept[k] and j != centre
            # Steps of one input each are the definition of turns; one of many is the same if no word stands twice.
            if w.n == 0 or w.n - w.firsts[w.groups - 1] == self.sizes.together or (again and self.distinct):
                w.firsts[w.groups] = w.n
                w.groups += 1
                first = k
            else:
                w.repeats |= again
            w.inputs[w.n] = self.input_row(kept[k])
            w.n += 1
        w.firsts[w.groups] = w.n
        w.drawn = w.groups if self.negative else 1
        w.centre = kept[centre]
        w.cached = 0
        if self.negative:
            w.m = worker.blocks * self.negative + 1
            for group in range(w.groups):
                for k in range(worker.blocks):
                    self.choose_words(worker, w, group, k * self.negative)
                if self.loss != NS:
                    self.set_offsets(w, group, worker.blocks)
        elif self.loss == HS:
            self.choose_path(worker, w)
            self.fetch_path(kept, centre)
        elif self.loss == CLASS:
            self.choose_class(worker, w)
        else:
            self.aim(w, w.centre)
            w.cached = w.m
        # The row that may enter a window here first; past a sentence's end it is at least a row that comes soon.
        k = kept[centre + self.window]
        w.outputs[(w.drawn - 1) * self.most + w.m] = self.input_row(k) if k >= 0 else w.inputs[0]
        return 1 if self.cbow else w.n

    cdef void draw_negatives(self, Worker *worker) noexcept nogil:
        """Draws K random numbers for the next group, and fetches the cells of the alias table that they point to."""
        cdef int64_t j
        for j in range(self.negative):
            worker.drawn[j] = draw(worker)
            PREFETCH(&self.cells[HIGH_HALF(worker.drawn[j], self.cells.shape[0]), 0])

    cdef void choose_words(self, Worker *worker, Window *w, int64_t group, int64_t first) noexcept nogil:
        """The centre word and, after the `first` that are there already, K others, drawn by the alias table.

        Negative sampling draws again what it has; the other losses count it, for each draw has its part in them.
        """
        cdef int64_t size = self.cells.shape[0], j, k, tries
        cdef int32_t word
        cdef float **outputs = w.outputs + group * self.most
        cdef int32_t *words = w.words + group * self.most
        cdef int32_t *counts = w.counts + group * self.most
        cdef bint taken
        words[0] = w.centre
        outputs[0] = self.output_row(worker, w.centre)
        if first == 0:
            counts[0] = 0
        for j in range(first + 1, first + self.negative + 1):
            word = alias_of(&self.cells[0, 0], worker.drawn[j - 1 - first], size)
            tries = 0
            while True:
                taken = False
                for k in range(j):
                    taken |= words[k] == word
                if not taken:
                    break
                if self.loss != NS:
                    for k in range(j):
                        counts[k] += words[k] == word
                    word = -1
                    break
                tries += 1
                word = alias_of(&self.cells[0, 0], draw(worker), size) if tries < REDRAWS else (word + 1) % size
            words[j] = word
            counts[j] = 1
            outputs[j] = self.output_row(worker, word) if word >= 0 else worker.blank
        self.draw_negatives(worker)

    cdef void set_offsets(self, Window *w, int64_t group, int64_t blocks) noexcept nogil:
        """Offset and weight of the centre word and the words drawn."""
        cdef int64_t j, column
        cdef int32_t word
        cdef float scale = 0
        cdef float *offset = w.offset + group * self.columns
        cdef float *weight = w.weight + group * self.columns
        if self.loss == SAMPLED:
            scale = log(blocks)
        for j in range(blocks * self.negative + 1):
            column = step_column(j)
            word = w.words[group * self.most + j]
            weight[column] = w.counts[group * self.most + j] + (j == 0)
            offset[column] = self.offsets[word] + scale if word >= 0 else NO_SCORE
            if self.loss == SAMPLED and weight[column] > 1:
                offset[column] -= log(weight[column])
        for j in range(blocks * self.negative + 1, whole_blocks(blocks * self.negative + 1)):
            offset[step_column(j)] = NO_SCORE

    cdef inline float *input_row(self, int64_t row) noexcept nogil:
        return <float *>(&self.inputs[0, 0] + row * self.sizes.row_bytes)

    cdef inline float *output_row(self, Worker *worker, int64_t row) noexcept nogil:
        """Where this worker finds an output row: among its copies or in the matrix."""
        cdef int64_t hot = row - self.first_hot
        return <float *>(worker.copies + hot * self.sizes.row_bytes if 0 <= hot < self.hot
                         else &self.outputs[0, 0] + row * self.sizes.row_bytes)

    cdef void choose_path(self, Worker *worker, Window *w) noexcept nogil:
        """The inner nodes from the root to the centre word; target 1 - code."""
        cdef int64_t start = self.starts[w.centre], j, node
        self.set_columns(w, 0, self.starts[w.centre + 1] - start)
        for j in range(w.m):
            node = self.nodes[start + j]
            w.outputs[j] = self.output_row(worker, node)
            w.cached += node >= self.outputs.shape[0] - CACHED
            w.target[step_column(j)] = 1 - self.codes[start + j]

    cdef void choose_class(self, Worker *worker, Window *w) noexcept nogil:
        """The words of the centre word's class; the rows of the classes stand before them always."""
        cdef int64_t group = self.class_of[w.centre], j
        cdef int64_t first = whole_blocks(self.starts.shape[0] - 1), words = self.starts[group + 1] - self.starts[group]
        self.aim(w, group)
        self.set_columns(w, first, first + words)
        for j in range(words):
            w.outputs[first + j] = self.output_row(worker, self.starts[group] + j)
        w.target[step_column(first + w.centre - self.starts[group])] = 1
        w.cached = first if words <= FETCHED else w.m

    cdef void aim(self, Window *w, int64_t row) noexcept nogil:
        """Moves the target of the first softmax to an output row."""
        w.target[w.aimed] = 0
        w.aimed = step_column(row)
        w.target[w.aimed] = 1

    cdef void set_columns(self, Window *w, int64_t first, int64_t m) noexcept nogil:
        """Gives the window m output rows, of which those from `first` on have target 0 and offset 0."""
        cdef int64_t j
        w.m = m
        for j in range(step_columns(m) - PANEL, step_columns(m)):
            w.offset[j] = NO_SCORE
            w.target[j] = 0
        for j in range(first, m):
            w.offset[step_column(j)] = 0
            w.target[step_column(j)] = 0

    cdef inline void fetch_path(self, const int32_t *kept, int64_t centre) noexcept nogil:
        """Fetches what choose_path will read for the words that are the centre soon.

        The first node is read, for a prefetch left it to be waited for (bench/NOTES.md).
        """
        if kept[centre + 1] >= 0:
            READ(&self.nodes[self.starts[kept[centre + 1]]])
            PREFETCH(&self.nodes[self.starts[kept[centre + 1] + 1] - 1])
            PREFETCH(&self.codes[self.starts[kept[centre + 1]]])
        if self.window > 1 and kept[centre + 2] >= 0:
            PREFETCH(&self.starts[kept[centre + 2]])

    cdef void move(self, Worker *worker, Window *w, Window *ahead) noexcept nogil:
        """Takes the window's step, or one for each of its groups, while the rows of `ahead` are fetched."""
        cdef Step *step = &worker.step
        cdef int64_t group, drawn
        step.m, step.target, step.alpha = w.m, w.target, w.alpha
        step.repeats = w.repeats
        step.spread = 1.0 / w.n if self.corrected and w.n else 1.0
        for group in range(w.groups):
            drawn = group if w.drawn > 1 else 0
            step.n = w.firsts[group + 1] - w.firsts[group]
            step.inputs = w.inputs + w.firsts[group]
            step.outputs = w.outputs + drawn * self.most
            step.offset = w.offset + drawn * self.columns
            step.weight = w.weight + drawn * self.columns if self.sizes.weighed else NULL
            if self.sizes.bfloat16:
                step.random = draw(worker)
            step.ahead_count = 0
            if ahead != NULL and ahead.groups and group < ahead.drawn:
                step.ahead = ahead.outputs + group * self.most + ahead.cached
                step.ahead_count = ahead.m - ahead.cached + (group + 1 == ahead.drawn)
            self.step(step)
        if self.adaptive and w.groups:
            self.adapt(worker)

    cdef void adapt(self, Worker *worker) noexcept nogil:
        """Doubles the words to draw while the window's effective number of samples is below K / 2; halves it above K.

        What is drawn must not be chosen by what it is, so the window's own sample stays as it was.
        """
        if worker.loss.effective < 0.5 * self.negative:
            worker.blocks = min(2 * worker.blocks, MOST_BLOCKS)
        elif self.negative < worker.loss.effective < INFINITY:
            worker.blocks = max(worker.blocks // 2, 1)
        worker.loss.effective = INFINITY


cdef Sizes sizes_of(
    layer, int64_t width, int64_t window, bint cbow, bint per_pair, int64_t chunk, int64_t workers, bint bfloat16
) except *:
    """Those of a worker for the largest windows of a run."""
    cdef Loss loss = LOSSES.index(layer.loss)
    cdef Sizes s
    s.kept, s.width, s.n, s.m = chunk + 2 * (window + 1), width, 2 * window, layer.most_rows
    s.bfloat16, s.row_bytes = bfloat16, width * (sizeof(uint16_t) if bfloat16 else sizeof(float))
    if loss == CLASS:
        s.m += whole_blocks(layer.classes) - layer.classes
    s.columns = step_columns(s.m)
    s.negative = layer.negative if loss in (NS, NCE, SAMPLED) else 0
    s.together = s.n if cbow else 1 if per_pair else min(s.n, MOST_TOGETHER)
    s.drawn = (s.n + s.together - 1) // s.together if s.negative else 1
    s.weighed, s.pooled = loss in (NCE, SAMPLED), cbow
    s.hot = HOT_NODES // workers if loss == HS else HOT_WORDS if s.negative else 0
    s.hot = min(layer.rows, s.hot) if workers > 1 else 0
    return s
