"""One thread of training: what it works on, how that lies in memory, and the step that it takes (see _kernels.pyx)."""

from libc.stdint cimport int32_t, int64_t, uint16_t, uint64_t, uintptr_t

cdef extern from "step.h" nogil:
    enum: PANEL
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
        int turns
        int pooled
        float spread
        float alpha
        float **ahead
        int64_t ahead_count
        float *scratch
        int bfloat16
        uint64_t random
        StepLoss *loss
    ctypedef void (*StepFunction)(const Step *step)
    int64_t step_column(int64_t j)
    int64_t step_columns(int64_t m)
    int64_t step_scratch(int64_t n, int64_t m, int64_t width, int pooled, int bfloat16)
    float step_widened(uint16_t half)
    uint16_t step_rounded(float value, uint16_t chance)
    void step_loss_start(StepLoss *loss)
    double step_loss_total(StepLoss *loss)
    StepFunction step_choose(const char *name)

cdef enum:
    LOOKAHEAD = 2     # windows
    LINE = 64         # bytes in a cache line


cdef struct Window:
    # One centre's rows, chosen ahead of the step that moves them.
    int64_t n              # context words
    int64_t m              # output rows of a group
    int64_t groups         # steps, of consecutive context words: one for the window, or more
    int32_t *firsts        # groups + 1: each step's first context word
    int64_t drawn          # groups that have output rows of their own: one, or each
    int64_t cached         # first output rows of a group that are in cache anyway, or not to be fetched
    int64_t aimed          # last column with target 1 in a softmax over classes or words
    int32_t centre
    int repeats            # whether a context word stands twice
    float alpha
    float **inputs         # n
    float **outputs        # drawn × m, and then an input row that is about to enter
    int32_t *words         # drawn × m, of the losses that draw; -1 where a word is drawn again
    int32_t *counts        # drawn × m: how often it is
    float *target          # by column
    float *offset          # drawn × columns
    float *weight          # drawn × columns, of the losses that weigh


cdef struct Sizes:
    # What decides how much memory a worker takes.
    int64_t kept           # words of a chunk, and those around it
    int64_t width          # values in a row
    int64_t row_bytes
    bint bfloat16          # whether rows are of bfloat16, or of float32
    int64_t hot            # output rows that it has copies of, at most
    int64_t n              # context words of a window, at most
    int64_t together       # context words of a step, at most
    int64_t m              # output rows of a group, at most
    int64_t columns        # of m output rows
    int64_t drawn          # groups that have output rows of their own, at most
    int64_t negative       # K, or 0 where nothing is drawn
    bint weighed           # whether draws are counted
    bint pooled            # whether a step is of their mean


cdef struct Worker:
    # One thread's state. Each lies in cache lines of its own.
    uint64_t random        # state of the chunk's SplitMix64 stream
    uint64_t *drawn        # K numbers for the next negatives
    int32_t *kept          # the chunk's tokens as words, without the unknown and the subsampled
    int32_t *ordinal       # how many known tokens of the chunk have passed at each kept one
    int64_t known          # known tokens in the chunk
    Window windows[LOOKAHEAD + 1]
    Step step
    StepLoss *loss
    int64_t blocks         # times K words drawn for a prediction
    float *blank           # a row of zeros, for columns without an output row amid others
    char *copies           # of the hot output rows
    char *originals        # what they were when they were copied
    void *memory


cdef inline void *take(uintptr_t *at, int64_t size) noexcept nogil:
    """The next piece of a worker's memory, on a cache line of its own."""
    cdef uintptr_t piece = (at[0] + LINE - 1) // LINE * LINE
    at[0] = piece + size
    return <void *>piece


cdef inline int64_t lay_out(Worker *worker, Sizes s, uintptr_t start) noexcept nogil:
    """Gives a worker its pieces of the memory in which it stands first, at `start`; returns how many bytes that is."""
    cdef uintptr_t at = start + sizeof(Worker)
    cdef int64_t words = s.drawn * s.m * sizeof(int32_t) if s.negative else 0
    cdef Window *w
    cdef int64_t k
    worker.loss = <StepLoss *>take(&at, sizeof(StepLoss))
    worker.kept = <int32_t *>take(&at, s.kept * sizeof(int32_t))
    worker.ordinal = <int32_t *>take(&at, s.kept * sizeof(int32_t))
    worker.drawn = <uint64_t *>take(&at, s.negative * sizeof(uint64_t))
    worker.blank = <float *>take(&at, s.row_bytes)
    worker.copies = <char *>take(&at, s.hot * s.row_bytes)
    worker.originals = <char *>take(&at, s.hot * s.row_bytes)
    worker.step.scratch = <float *>take(
        &at, step_scratch(s.together, s.m, s.width, s.pooled, s.bfloat16) * sizeof(float)
    )
    for k in range(LOOKAHEAD + 1):
        w = &worker.windows[k]
        w.inputs = <float **>take(&at, s.n * sizeof(float *))
        w.firsts = <int32_t *>take(&at, (s.n + 1) * sizeof(int32_t))
        w.outputs = <float **>take(&at, (s.drawn * s.m + 1) * sizeof(float *))
        w.words = <int32_t *>take(&at, words)
        w.counts = <int32_t *>take(&at, words)
        w.target = <float *>take(&at, s.columns * sizeof(float))
        w.offset = <float *>take(&at, s.drawn * s.columns * sizeof(float))
        w.weight = <float *>take(&at, s.drawn * s.columns * sizeof(float) if s.weighed else 0)
    return at - start


cdef inline int64_t size_of(Sizes s) noexcept nogil:
    """The bytes of a worker, wherever they begin."""
    cdef Worker worker
    return lay_out(&worker, s, 0) + LINE
