"""The state of one training thread, grouped by concern, and its layout in memory (see _kernels.pyx)."""

from libc.stdint cimport int32_t, int64_t, uint16_t, uint32_t, uint64_t, uintptr_t

from w2v.text.hash_table cimport HashTable, Slot

cdef extern from "step.h" nogil:
    enum: STEP_PANEL
    enum: BLOCK_OUTPUTS
    const float NO_SCORE
    ctypedef struct StepLoss:
        double total
        float effective
    ctypedef struct Step:
        int64_t width, n, m
        float **inputs
        float **outputs
        const float *target
        const float *offset
        const float *weight
        int64_t softmax
        int repeats
        int sequential
        int pooled
        float gradient_scale
        float alpha
        float **prefetch
        int64_t prefetch_count
        float *scratch
        int bfloat16
        uint64_t random
        StepLoss *loss
    ctypedef struct StepParts:
        char *rows
        int64_t row_bytes, width
        int bfloat16
        float *scratch
    ctypedef struct StepFunctions:
        int64_t lanes
        void (*step)(const Step *step) noexcept nogil
        void (*compose)(
            const StepParts *parts, int64_t n, const int32_t *rows, float scale, void *to, uint32_t random
        ) noexcept nogil
        void (*spread)(
            const StepParts *parts, int64_t n, const int32_t *rows, const float *shares, const void *now,
            const void *then, uint32_t random
        ) noexcept nogil
    int64_t step_column(int64_t j)
    int64_t step_columns(int64_t m)
    int64_t step_scratch(int64_t n, int64_t m, int64_t width, int pooled, int bfloat16)
    float step_widened(uint16_t half)
    uint16_t step_rounded(float value, uint16_t chance)
    void step_loss_start(StepLoss *loss)
    double step_loss_total(StepLoss *loss)
    const StepFunctions *step_choose(const char *name)

cdef enum:
    LOOKAHEAD = 2       # windows that are chosen, and prefetched, before the step of another
    CACHE_LINE = 64     # bytes
    RECENT_SLOTS = 1024  # of find_repeats; a power of 2
    NO_WORD = -1        # in the place of a word that was drawn again, and behind the words


cdef struct Window:
    # The rows of one centre word, chosen some windows before the step that updates them.
    int64_t n              # context words
    int64_t left, centre_position  # of the first context word and of the centre word among the kept words
    int64_t m              # output rows of a step
    int64_t groups         # groups of consecutive context words; each takes a step
    int32_t *group_starts  # groups + 1: the first context word of each group, and n
    int64_t output_sets    # sets of output rows: 1 if all groups share one, otherwise as many as groups
    int64_t no_prefetch    # output rows at the beginning of a set not to prefetch: in cache already, or too many
    int64_t target_column  # the column with target 1 in a softmax over classes or words
    int32_t centre
    int repeats            # whether a context word occurs twice in a group
    float alpha
    float **inputs         # n
    float **outputs        # output_sets × m, and after them an input row to prefetch
    float *target          # by column
    float *offset          # output_sets × columns
    float *weight          # output_sets × columns, of the losses with weights


cdef struct Sizes:
    # The numbers that determine the memory of a worker.
    int64_t window         # maximum of context words on one side
    int64_t n              # maximum of context words in a window
    int64_t kept           # kept words: of a chunk, and around it
    int64_t width          # values in a row
    int64_t row_bytes
    bint bfloat16          # whether rows are bfloat16; otherwise float32
    int64_t windows        # windows that are chosen and have not taken their step
    int64_t hot            # output rows that each worker copies during a chunk
    int64_t copied         # rows that a worker copies during a chunk, at most
    int64_t set_bits       # of the set of rows of a chunk, a power of 2; 0 if the run is not ordered
    int64_t inputs_per_step  # maximum of context words in a step
    int64_t m              # maximum of output rows in a step
    int64_t columns        # of m output rows
    int64_t drawn_words    # m, rounded up to whole vectors
    int64_t output_sets    # maximum of sets of output rows in a window
    int64_t negative       # K; 0 if no words are drawn
    bint weighted          # whether output rows have weights
    bint pooled            # whether X is the mean of the context words
    int64_t composed       # words whose input rows are composed of subwords in a chunk, at most; 0 without subwords
    int64_t words          # V with subwords, otherwise 0


cdef struct KeptWords:
    # The chunk's words, without unknown and subsampled ones, and its neighbours'. Arrays are by position among them.
    int32_t *words
    int64_t start, end     # of the kept words, with the neighbours'
    float **rows           # input rows
    int32_t *before        # the number of words of the sentence before a word, and after it
    int32_t *after
    int32_t *token_number  # the number of known tokens in the chunk up to a word
    int64_t known          # known tokens in the chunk
    int32_t *previous_occurrence  # see find_repeats
    int32_t *latest_repeat        # the highest previous_occurrence up to a word
    int32_t *recent        # RECENT_SLOTS: the last position of a word with these last bits


cdef struct Draws:
    # The words drawn as negatives.
    uint64_t *ahead        # K random numbers for the next negatives
    int32_t *words         # drawn_words: the centre word and the words drawn for a step
    int32_t *counts        # m: how often each was drawn
    int64_t blocks         # a prediction draws this many times K words


cdef struct ComposedRows:
    # The input rows of the chunk's words, made of those of their subwords.
    StepParts parts        # the input matrix
    int32_t *slots         # V: the index of a word among the distinct words; not set for others
    int32_t *words         # the chunk's words, each once
    int64_t count
    char *rows             # their input rows, which the steps update
    char *rows_before      # the same before the chunk


cdef struct RowCopies:
    # A worker's copies of rows that several workers update.
    char *rows
    float *changes         # their values when they were copied, negated; after find_changes what has changed
    int64_t count          # in an ordered run, like all that follows
    uint64_t *row_keys     # of the rows that are copied; see ordered.pxd
    int64_t *updates       # how often the steps of the chunk update them
    HashTable index_of_key  # their indices + 1
    uint64_t *touched_rows  # a set of hashed keys: the rows that the chunk uses
    uint64_t *shared_rows   # those of them that it copies


cdef struct Worker:
    # The state of one thread. Each array starts on a cache line.
    uint64_t random        # state of the chunk's SplitMix64 stream
    KeptWords kept
    Draws draws
    Window *windows        # a ring
    int64_t chosen, done   # windows of the chunk that are chosen, and that have taken their step
    Step step
    StepLoss *loss
    double chunk_loss      # of the last chunk, and its predictions
    int64_t predictions
    float *zero_row        # zeros: the output row of columns in use without a word
    ComposedRows composed
    RowCopies copies
    void *memory


cdef inline void *bump_allocate(uintptr_t *at, int64_t size) noexcept nogil:
    """Takes the next `size` bytes of memory, beginning at a cache line."""
    cdef uintptr_t begin = (at[0] + CACHE_LINE - 1) // CACHE_LINE * CACHE_LINE
    at[0] = begin + size
    return <void *>begin


cdef inline int64_t power_of_2(int64_t least) noexcept nogil:
    """The lowest power of 2 that is not less."""
    cdef int64_t power = 1
    while power < least:
        power *= 2
    return power


cdef inline int64_t lay_out(Worker *worker, Sizes s, uintptr_t start) noexcept nogil:
    """Points a worker at its arrays, in memory from `start` on, a cache line; returns their size and its own."""
    cdef uintptr_t at = start + sizeof(Worker)
    cdef KeptWords *kept = &worker.kept
    cdef Draws *draws = &worker.draws
    cdef ComposedRows *composed = &worker.composed
    cdef RowCopies *copies = &worker.copies
    cdef int64_t slots = power_of_2(2 * s.copied) if s.set_bits else 0
    worker.loss = <StepLoss *>bump_allocate(&at, sizeof(StepLoss))
    kept.words = <int32_t *>bump_allocate(&at, s.kept * sizeof(int32_t))
    kept.rows = <float **>bump_allocate(&at, s.kept * sizeof(float *))
    kept.before = <int32_t *>bump_allocate(&at, s.kept * sizeof(int32_t))
    kept.after = <int32_t *>bump_allocate(&at, s.kept * sizeof(int32_t))
    kept.previous_occurrence = <int32_t *>bump_allocate(&at, s.kept * sizeof(int32_t))
    kept.recent = <int32_t *>bump_allocate(&at, RECENT_SLOTS * sizeof(int32_t))
    kept.latest_repeat = <int32_t *>bump_allocate(&at, s.kept * sizeof(int32_t))
    kept.token_number = <int32_t *>bump_allocate(&at, s.kept * sizeof(int32_t))
    draws.ahead = <uint64_t *>bump_allocate(&at, s.negative * sizeof(uint64_t))
    draws.words = <int32_t *>bump_allocate(&at, s.drawn_words * sizeof(int32_t) if s.negative else 0)
    draws.counts = <int32_t *>bump_allocate(&at, s.m * sizeof(int32_t) if s.weighted else 0)
    worker.zero_row = <float *>bump_allocate(&at, s.row_bytes)
    copies.rows = <char *>bump_allocate(&at, s.copied * s.row_bytes)
    copies.changes = <float *>bump_allocate(&at, s.copied * s.width * sizeof(float))
    copies.row_keys = <uint64_t *>bump_allocate(&at, s.copied * sizeof(uint64_t) if s.set_bits else 0)
    copies.updates = <int64_t *>bump_allocate(&at, s.copied * sizeof(int64_t) if s.set_bits else 0)
    copies.index_of_key = HashTable(<Slot *>bump_allocate(&at, slots * sizeof(Slot)), slots - 1)
    copies.touched_rows = <uint64_t *>bump_allocate(&at, s.set_bits // 8)
    copies.shared_rows = <uint64_t *>bump_allocate(&at, s.set_bits // 8)
    composed.parts.scratch = <float *>bump_allocate(&at, 2 * s.width * sizeof(float) if s.composed else 0)
    composed.slots = <int32_t *>bump_allocate(&at, s.words * sizeof(int32_t))
    composed.words = <int32_t *>bump_allocate(&at, s.composed * sizeof(int32_t))
    composed.rows = <char *>bump_allocate(&at, s.composed * s.row_bytes)
    composed.rows_before = <char *>bump_allocate(&at, s.composed * s.row_bytes)
    worker.step.scratch = <float *>bump_allocate(
        &at, step_scratch(s.inputs_per_step, s.m, s.width, s.pooled, s.bfloat16) * sizeof(float)
    )
    worker.windows = <Window *>bump_allocate(&at, s.windows * sizeof(Window))
    return <uintptr_t>bump_allocate(&at, 0) - start


cdef inline int64_t lay_out_window(Window *w, Sizes s, uintptr_t start) noexcept nogil:
    """Points a window at its arrays, in memory from `start` on, a cache line; returns their size."""
    cdef uintptr_t at = start
    w.inputs = <float **>bump_allocate(&at, s.n * sizeof(float *))
    w.group_starts = <int32_t *>bump_allocate(&at, (s.n + 1) * sizeof(int32_t))
    w.outputs = <float **>bump_allocate(&at, (s.output_sets * s.m + 1) * sizeof(float *))
    w.target = <float *>bump_allocate(&at, s.columns * sizeof(float))
    w.offset = <float *>bump_allocate(&at, s.output_sets * s.columns * sizeof(float))
    w.weight = <float *>bump_allocate(&at, s.output_sets * s.columns * sizeof(float) if s.weighted else 0)
    return <uintptr_t>bump_allocate(&at, 0) - start


cdef inline int64_t size_of(Sizes s) noexcept nogil:
    """The bytes to allocate for a worker and its windows, at any alignment."""
    cdef Worker worker
    cdef Window window
    return lay_out(&worker, s, 0) + s.windows * lay_out_window(&window, s, 0) + CACHE_LINE


cdef inline uint64_t scramble(uint64_t x) noexcept nogil:
    """SplitMix64's finaliser (Steele et al. 2014): a hash of 64 bits to 64 bits."""
    x = (x ^ (x >> 30)) * <uint64_t>0xBF58476D1CE4E5B9
    x = (x ^ (x >> 27)) * <uint64_t>0x94D049BB133111EB
    return x ^ (x >> 31)


cdef inline uint64_t draw(Worker *worker) noexcept nogil:
    """The next 64 random bits of the worker's stream for this chunk."""
    worker.random += <uint64_t>0x9E3779B97F4A7C15
    return scramble(worker.random)


cdef inline void set_inputs(Worker *worker, Window *w, int64_t window) noexcept nogil:
    """Sets the input rows of the context words.

    Each side's loop is as long as the longest window's, because the processor can predict that; rows beyond the
    window are overwritten or not used.
    """
    cdef int64_t k, before = w.centre_position - w.left
    for k in range(window):
        w.inputs[k] = worker.kept.rows[w.left + k]
    for k in range(window):
        w.inputs[before + k] = worker.kept.rows[w.centre_position + 1 + k]
