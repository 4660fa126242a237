"""The state of one training thread, and its layout in memory. The head of _kernels.pyx explains the design."""

from libc.stdint cimport int32_t, int64_t, uint16_t, uint32_t, uint64_t, uintptr_t

from w2v._text.hash_table cimport HashTable, Slot

cdef extern from "step.h" nogil:
    enum: STEP_PANEL
    enum: BLOCK_OUTPUTS
    const float UNUSED_OFFSET
    ctypedef struct StepLoss:
        double total
        float effective_samples
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
        int frozen_outputs
        int pooled
        const float *input_weight
        float gradient_scale
        int64_t fixed_inputs
        float alpha
        float **prefetch
        int64_t prefetch_count
        float *scratch
        int bfloat16
        uint64_t random
        StepLoss *loss
    ctypedef struct StepMatrix:
        char *rows
        int64_t row_bytes, width
        int bfloat16
        float *scratch
    ctypedef struct StepFunctions:
        int64_t lanes
        void (*step)(const Step *step) noexcept nogil
        void (*compose)(
            const StepMatrix *matrix, int64_t n, const int32_t *rows, float scale, void *to, void *copy, uint32_t random
        ) noexcept nogil
        void (*update_subwords)(
            const StepMatrix *matrix, int64_t n, const int32_t *rows, const float *shares, const void *now,
            const void *then, uint32_t random
        ) noexcept nogil
    int64_t step_column(int64_t j)
    int64_t step_columns(int64_t m)
    int64_t step_scratch(int64_t n, int64_t m, int64_t width, int pooled, int bfloat16)
    float step_bfloat16_to_float(uint16_t half)
    uint16_t step_float_to_bfloat16(float value, uint16_t chance)
    void step_loss_start(StepLoss *loss)
    double step_loss_total(StepLoss *loss)
    const StepFunctions *step_choose(const char *name)

cdef enum:
    LOOKAHEAD = 2       # a window is filled and prefetched this many windows before its step
    CACHE_LINE = 64     # bytes
    RECENT_SLOTS = 1024  # size of KeptWords.recent, a power of 2
    NO_WORD = -1        # replaces a drawn word that repeats another, and pads the drawn words


cdef struct Window:
    # The rows for one centre word. They are filled in some windows before the step that updates them.
    int64_t n              # number of context words and tags
    int64_t tags           # number of tags, whose rows are the last of the n input rows
    int64_t first_tag      # index of the first tag among the kept words
    int64_t left           # index of the first context word among the kept words
    int64_t centre_index   # index of the centre word among the kept words
    int64_t m              # number of output rows in a step
    int64_t groups         # number of groups of consecutive context words; each group takes one step
    int32_t *group_starts  # (groups + 1): the first context word of each group, then n
    int64_t output_sets    # number of sets of output rows: 1 if all groups share the set, otherwise one per group
    int64_t prefetch_from  # the first output row of a set to prefetch; rows before it stay in cache; m: too many
    int64_t target_column  # the column with target 1 in a softmax over classes or words
    int32_t centre         # the centre word
    int repeats            # whether a context word occurs twice in a group
    float alpha            # learning rate of the steps of this window
    float **inputs         # (n): rows of the context words and tags, or of an example
    const float *input_weight  # (n): the factors of the rows of an example; NULL without examples
    float **outputs        # (output_sets × m): output rows, then one input row to prefetch
    float *target          # (columns)
    float *offset          # (output_sets × columns)
    float *weight          # (output_sets × columns), if the loss has weights


cdef struct Sizes:
    # The numbers that determine the memory of a worker.
    int64_t window_size    # maximum number of context words on one side
    int64_t n              # maximum number of context words and tags in a window
    int64_t tags           # maximum number of tags of a document
    int64_t words          # V: the rows of tags follow the rows of V words
    int64_t kept           # maximum number of kept words of a chunk, with the words around it
    int64_t width          # values in a row
    int64_t row_bytes
    bint bfloat16          # whether rows are bfloat16; otherwise float32
    int64_t windows        # maximum number of windows that are filled and still wait for their step
    int64_t hot            # number of hot output rows, which each worker copies during a chunk
    int64_t copied         # maximum number of rows that a worker copies during a chunk
    int64_t set_bits       # bits in a set of rows, a power of 2; 0 if the run is not deterministic
    int64_t inputs_per_step  # maximum number of context words in a step
    int64_t m              # maximum number of output rows in a step
    int64_t columns        # number of columns of m output rows
    int64_t drawn_words    # m rounded up to full vectors
    int64_t output_sets    # maximum number of sets of output rows in a window
    int64_t negative       # K; 0 if no words are drawn
    bint weighted          # whether output rows have weights
    bint frozen_outputs    # whether only input rows are updated
    bint pooled            # whether X is the mean of the context words
    int64_t composed       # maximum number of words in a chunk with composed input rows; 0 without subwords
    int64_t vocabulary_size  # V with subwords, otherwise 0


cdef struct KeptWords:
    # The words of a chunk, and of its neighbours as far as windows reach, without unknown and subsampled words. With
    # documents, their tags, too. All arrays but `recent` have one entry per kept word.
    int32_t *words
    int64_t start, end     # the first and the last index, which have an END_OF_SENTENCE
    float **rows           # input rows of the words
    int32_t *before        # number of words in the sentence before a word
    int32_t *after         # number of words in the sentence after a word
    int32_t *first_tag     # index of the first tag of a word's document; set only with documents
    int32_t *token_number  # number of known tokens in the chunk up to a word
    int64_t known          # number of known tokens in the chunk
    int32_t *previous_occurrence  # see find_repeats
    int32_t *latest_repeat        # the highest previous_occurrence up to a word
    int32_t *recent        # (RECENT_SLOTS): index of the last word with these low bits


cdef struct Draws:
    # The words drawn as negatives.
    uint64_t *next_random  # (K): random numbers for the next negatives
    int32_t *words         # (drawn_words): the centre word, then the words drawn for a step
    int32_t *counts        # (m): how often each word was drawn
    int64_t batches        # a prediction draws `batches` times K words


cdef struct ComposedRows:
    # The input rows of the chunk's distinct words. Each is the mean of the rows of the word's subwords.
    StepMatrix matrix      # the input matrix
    int32_t *slots         # (V): the index of a word among the distinct words; undefined for words outside the chunk
    int32_t *words         # the distinct words
    int64_t count          # their number
    char *rows             # their input rows, which the steps update
    char *rows_before      # their input rows before the first step of the chunk


cdef struct RowCopies:
    # A worker's copies of rows that several workers update.
    char *rows
    float *changes         # copy_rows stores minus the old values, and find_changes adds the trained values
    # Only deterministic runs use these:
    int64_t count          # number of copies
    uint64_t *row_keys     # the key of each copied row; see key_of_row
    int64_t *updates       # how often the steps of the chunk update each copy
    HashTable index_of_key  # the index of the copy of each key, plus 1
    uint64_t *touched_rows  # bit set of the rows that the chunk uses
    uint64_t *shared_rows   # bit set of the rows that the worker must copy


cdef struct Worker:
    # The state of one thread. Each array starts on a cache line.
    uint64_t random        # state of the chunk's SplitMix64 stream
    KeptWords kept
    Draws draws
    Window *windows        # a ring buffer; in a deterministic run, all windows of the chunk
    int64_t filled         # number of windows of the chunk that are filled
    int64_t done           # number of windows of the chunk that have taken their step
    Step step
    StepLoss *loss
    double chunk_loss      # summed loss of the last chunk
    int64_t predictions    # number of predictions in the last chunk
    float *zero_row        # zeros: the output row of a column that must have a row but has no word
    ComposedRows composed
    RowCopies copies
    void *memory


cdef inline void *bump_allocate(uintptr_t *at, int64_t size) noexcept nogil:
    """Return the address of the next `size` bytes of memory, aligned to a cache line, and advance `at` beyond them."""
    cdef uintptr_t begin = (at[0] + CACHE_LINE - 1) // CACHE_LINE * CACHE_LINE
    at[0] = begin + size
    return <void *>begin


cdef inline int64_t power_of_2(int64_t minimum) noexcept nogil:
    """Return the lowest power of 2 that is at least `minimum`."""
    cdef int64_t power = 1
    while power < minimum:
        power *= 2
    return power


cdef inline int64_t lay_out(Worker *worker, Sizes s, uintptr_t start) noexcept nogil:
    """Point a worker at its arrays, and return the size of the worker and its arrays.

    The worker begins at `start`, which is aligned to a cache line, and the arrays follow it.
    """
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
    kept.first_tag = <int32_t *>bump_allocate(&at, s.kept * sizeof(int32_t) if s.tags else 0)
    kept.previous_occurrence = <int32_t *>bump_allocate(&at, s.kept * sizeof(int32_t))
    kept.recent = <int32_t *>bump_allocate(&at, RECENT_SLOTS * sizeof(int32_t))
    kept.latest_repeat = <int32_t *>bump_allocate(&at, s.kept * sizeof(int32_t))
    kept.token_number = <int32_t *>bump_allocate(&at, s.kept * sizeof(int32_t))
    draws.next_random = <uint64_t *>bump_allocate(&at, s.negative * sizeof(uint64_t))
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
    composed.matrix.scratch = <float *>bump_allocate(&at, 2 * s.width * sizeof(float) if s.composed else 0)
    composed.slots = <int32_t *>bump_allocate(&at, s.vocabulary_size * sizeof(int32_t))
    composed.words = <int32_t *>bump_allocate(&at, s.composed * sizeof(int32_t))
    composed.rows = <char *>bump_allocate(&at, s.composed * s.row_bytes)
    composed.rows_before = <char *>bump_allocate(&at, s.composed * s.row_bytes)
    worker.step.scratch = <float *>bump_allocate(
        &at, step_scratch(s.inputs_per_step, s.m, s.width, s.pooled, s.bfloat16) * sizeof(float)
    )
    worker.windows = <Window *>bump_allocate(&at, s.windows * sizeof(Window))
    return <uintptr_t>bump_allocate(&at, 0) - start


cdef inline int64_t lay_out_window(Window *w, Sizes s, uintptr_t start) noexcept nogil:
    """Point a window at its arrays, which begin at `start`, aligned to a cache line, and return their size."""
    cdef uintptr_t at = start
    w.inputs = <float **>bump_allocate(&at, (2 * s.window_size + s.tags) * sizeof(float *))
    w.group_starts = <int32_t *>bump_allocate(&at, (2 if s.pooled else s.n + 1) * sizeof(int32_t))
    w.outputs = <float **>bump_allocate(&at, (s.output_sets * s.m + 1) * sizeof(float *))
    w.target = <float *>bump_allocate(&at, s.columns * sizeof(float))
    w.offset = <float *>bump_allocate(&at, s.output_sets * s.columns * sizeof(float))
    w.weight = <float *>bump_allocate(&at, s.output_sets * s.columns * sizeof(float) if s.weighted else 0)
    return <uintptr_t>bump_allocate(&at, 0) - start


cdef inline int64_t size_of(Sizes s) noexcept nogil:
    """Return the bytes to allocate for a worker and its windows; the allocation need not be aligned."""
    cdef Worker worker
    cdef Window window
    return lay_out(&worker, s, 0) + s.windows * lay_out_window(&window, s, 0) + CACHE_LINE


cdef inline uint64_t scramble(uint64_t x) noexcept nogil:
    """Hash 64 bits to 64 bits by SplitMix64's finaliser (Steele et al. 2014)."""
    x = (x ^ (x >> 30)) * <uint64_t>0xBF58476D1CE4E5B9
    x = (x ^ (x >> 27)) * <uint64_t>0x94D049BB133111EB
    return x ^ (x >> 31)


cdef inline uint64_t draw(Worker *worker) noexcept nogil:
    """Return the next 64 random bits of the worker's stream for this chunk."""
    worker.random += <uint64_t>0x9E3779B97F4A7C15
    return scramble(worker.random)


cdef inline void set_inputs(Worker *worker, Window *w, int64_t window_size) noexcept nogil:
    """Set the input rows of the context words and the tags.

    The first two loops run as often as for the largest window, because the processor can predict a constant number. The
    rows that the first loop reads beyond the centre word are overwritten; those beyond the window are not used.
    """
    cdef int64_t k, before = w.centre_index - w.left
    for k in range(window_size):
        w.inputs[k] = worker.kept.rows[w.left + k]
    for k in range(window_size):
        w.inputs[before + k] = worker.kept.rows[w.centre_index + 1 + k]
    for k in range(w.tags):
        w.inputs[w.n - w.tags + k] = worker.kept.rows[w.first_tag + k]
