"""The state of one training thread, its layout in memory, and the step that it calls (see _kernels.pyx)."""

from libc.stdint cimport int32_t, int64_t, uint16_t, uint32_t, uint64_t, uintptr_t

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
    LOOKAHEAD = 2     # windows that are chosen, and prefetched, before the step of another
    LINE = 64         # bytes in a cache line
    TWIN_PLACES = 1024  # of find_twins; a power of 2
    NO_WORD = -1      # in the place of a word that was drawn again, and behind the words


cdef struct Window:
    # The rows of one centre word, chosen some windows before the step that updates them.
    int64_t n              # context words
    int64_t left, place    # the first of them and the centre word in `kept`
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
    int64_t kept           # words in `kept`: of a chunk, and around it
    int64_t width          # values in a row
    int64_t row_bytes
    bint bfloat16          # whether rows are bfloat16; otherwise float32
    int64_t windows        # windows that are chosen and have not taken their step
    int64_t hot            # output rows that each worker copies during a chunk
    int64_t copied         # rows that a worker copies during a chunk, at most
    int64_t bits           # of the set of rows of a chunk, a power of 2; 0 if the run is not ordered
    int64_t n              # maximum of context words in a window
    int64_t inputs_per_step  # maximum of context words in a step
    int64_t m              # maximum of output rows in a step
    int64_t columns        # of m output rows
    int64_t word_places    # for m words, in whole vectors
    int64_t output_sets    # maximum of sets of output rows in a window
    int64_t negative       # K; 0 if no words are drawn
    bint weighted          # whether output rows have weights
    bint pooled            # whether X is the mean of the context words
    int64_t composed       # words whose input rows are composed of subwords in a chunk, at most; 0 without subwords
    int64_t words          # V with subwords, otherwise 0


cdef struct Worker:
    # The state of one thread. Each array starts on a cache line.
    uint64_t random        # state of the chunk's SplitMix64 stream
    uint64_t *predrawn     # K random numbers for the next negatives
    int32_t *drawn         # word_places: the centre word and the words drawn for a step
    int32_t *drawn_counts  # m: how often each was drawn
    int32_t *kept          # the chunk's words, without unknown and subsampled ones, and its neighbours'
    int64_t start, end     # of the kept words, with the neighbours'
    float **rows           # of each kept word: its input row
    int32_t *before        # of each kept word: the words of its sentence before it, and after it, in `kept`
    int32_t *after
    int32_t *twins         # of each kept word: see find_twins
    int32_t *twin_places   # TWIN_PLACES: where a word with these last bits stood last
    int32_t *last_twin     # of each kept word: the highest twin up to it
    int32_t *token_number  # of each kept word: number of known tokens in the chunk up to it
    int64_t known          # known tokens in the chunk
    double chunk_loss      # of the last chunk, and its predictions
    int64_t predictions
    Window *windows        # a ring
    int64_t chosen, done   # windows of the chunk that are chosen, and that have taken their step
    Step step
    StepLoss *loss
    int64_t blocks         # a prediction draws this many times K words
    float *zero_row        # zeros: the output row of columns in use without a word
    StepParts parts        # the input matrix, and those below, of models with subwords
    int32_t *slots         # V: the place of a word among the chunk's words; not set for others
    int32_t *distinct      # the chunk's words, each once
    int64_t distinct_count
    char *composed         # their input rows, which the steps update
    char *composed_before  # the same before the chunk
    char *copies           # the worker's copies of rows
    float *changes         # their values when they were copied, negated; after find_changes what has changed
    int64_t copy_count     # in an ordered run ...
    uint64_t *homes        # ... the keys of the rows that are copied; see Kernel.key_of_row
    int64_t *updates       # ... how often the steps of the chunk update them
    int32_t *places        # ... a hash table of their indices + 1, twice as large as `copies` or more
    uint64_t *used         # ... a set of hashed keys: the rows that the chunk uses
    uint64_t *contested    # ... and those of them that it copies
    void *memory


cdef inline void *take(uintptr_t *at, int64_t size) noexcept nogil:
    """Takes the next `size` bytes of memory, beginning at a cache line."""
    cdef uintptr_t piece = (at[0] + LINE - 1) // LINE * LINE
    at[0] = piece + size
    return <void *>piece


cdef inline int64_t power_of_2(int64_t least) noexcept nogil:
    """The lowest power of 2 that is not less."""
    cdef int64_t power = 1
    while power < least:
        power *= 2
    return power


cdef inline int64_t lay_out(Worker *worker, Sizes s, uintptr_t start) noexcept nogil:
    """Points a worker at its arrays, in memory from `start` on, a cache line; returns their size and its own."""
    cdef uintptr_t at = start + sizeof(Worker)
    worker.loss = <StepLoss *>take(&at, sizeof(StepLoss))
    worker.kept = <int32_t *>take(&at, s.kept * sizeof(int32_t))
    worker.rows = <float **>take(&at, s.kept * sizeof(float *))
    worker.before = <int32_t *>take(&at, s.kept * sizeof(int32_t))
    worker.after = <int32_t *>take(&at, s.kept * sizeof(int32_t))
    worker.twins = <int32_t *>take(&at, s.kept * sizeof(int32_t))
    worker.twin_places = <int32_t *>take(&at, TWIN_PLACES * sizeof(int32_t))
    worker.last_twin = <int32_t *>take(&at, s.kept * sizeof(int32_t))
    worker.token_number = <int32_t *>take(&at, s.kept * sizeof(int32_t))
    worker.predrawn = <uint64_t *>take(&at, s.negative * sizeof(uint64_t))
    worker.drawn = <int32_t *>take(&at, s.word_places * sizeof(int32_t) if s.negative else 0)
    worker.drawn_counts = <int32_t *>take(&at, s.m * sizeof(int32_t) if s.weighted else 0)
    worker.zero_row = <float *>take(&at, s.row_bytes)
    worker.copies = <char *>take(&at, s.copied * s.row_bytes)
    worker.changes = <float *>take(&at, s.copied * s.width * sizeof(float))
    worker.homes = <uint64_t *>take(&at, s.copied * sizeof(uint64_t) if s.bits else 0)
    worker.updates = <int64_t *>take(&at, s.copied * sizeof(int64_t) if s.bits else 0)
    worker.places = <int32_t *>take(&at, power_of_2(2 * s.copied) * sizeof(int32_t) if s.bits else 0)
    worker.used = <uint64_t *>take(&at, s.bits // 8)
    worker.contested = <uint64_t *>take(&at, s.bits // 8)
    worker.parts.scratch = <float *>take(&at, 2 * s.width * sizeof(float) if s.composed else 0)
    worker.slots = <int32_t *>take(&at, s.words * sizeof(int32_t))
    worker.distinct = <int32_t *>take(&at, s.composed * sizeof(int32_t))
    worker.composed = <char *>take(&at, s.composed * s.row_bytes)
    worker.composed_before = <char *>take(&at, s.composed * s.row_bytes)
    worker.step.scratch = <float *>take(
        &at, step_scratch(s.inputs_per_step, s.m, s.width, s.pooled, s.bfloat16) * sizeof(float)
    )
    worker.windows = <Window *>take(&at, s.windows * sizeof(Window))
    return <uintptr_t>take(&at, 0) - start


cdef inline int64_t lay_out_window(Window *w, Sizes s, uintptr_t start) noexcept nogil:
    """Points a window at its arrays, in memory from `start` on, a cache line; returns their size."""
    cdef uintptr_t at = start
    w.inputs = <float **>take(&at, s.n * sizeof(float *))
    w.group_starts = <int32_t *>take(&at, (s.n + 1) * sizeof(int32_t))
    w.outputs = <float **>take(&at, (s.output_sets * s.m + 1) * sizeof(float *))
    w.target = <float *>take(&at, s.columns * sizeof(float))
    w.offset = <float *>take(&at, s.output_sets * s.columns * sizeof(float))
    w.weight = <float *>take(&at, s.output_sets * s.columns * sizeof(float) if s.weighted else 0)
    return <uintptr_t>take(&at, 0) - start


cdef inline int64_t size_of(Sizes s) noexcept nogil:
    """The bytes to allocate for a worker and its windows, at any alignment."""
    cdef Worker worker
    cdef Window window
    return lay_out(&worker, s, 0) + s.windows * lay_out_window(&window, s, 0) + LINE
