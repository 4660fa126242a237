"""Ordered runs: several threads that give the same bits on every run.

The workers train in rounds of one chunk each, between barriers. A round has three phases:

1. Each worker chooses all windows of its chunk and notes the rows that they use in a set of bits.
2. Where several workers use a row, one of them, the owner, updates it in place; the others make copies of it and update
   these. All workers take their steps at the same time.
3. The changes of the copies are added to the rows in the order of the workers.

So the result depends on the number of workers, but not on their speed. Rounds are short, so few rows are copied.
"""

from libc.math cimport exp
from libc.stdint cimport int64_t, uint16_t, uint64_t
from libc.string cimport memcpy, memset

from w2v.kernel.worker cimport (
    RowCopies, Sizes, Window, Worker, draw, set_inputs, step_rounded, step_widened,
)
from w2v.text.hash_table cimport Slot, fill_slot, find_slot, slot_number

cdef extern from * nogil:
    """
    #include <unistd.h>
    #define W2V_ATOMIC_ADD(where, what) __atomic_fetch_add(where, what, __ATOMIC_ACQ_REL)
    #define W2V_ATOMIC_READ(where) __atomic_load_n(where, __ATOMIC_ACQUIRE)
    #define W2V_ATOMIC_WRITE(where, what) __atomic_store_n(where, what, __ATOMIC_RELEASE)
    #ifdef __x86_64__
    #define W2V_CPU_PAUSE() __builtin_ia32_pause()
    #else
    #define W2V_CPU_PAUSE() ((void)0)
    #endif
    """
    int64_t atomic_add "W2V_ATOMIC_ADD"(int64_t *where, int64_t what)
    int64_t atomic_read "W2V_ATOMIC_READ"(int64_t *where)
    void atomic_write "W2V_ATOMIC_WRITE"(int64_t *where, int64_t what)
    bint swap_if "__sync_bool_compare_and_swap"(int64_t *where, int64_t old, int64_t new)
    void cpu_pause "W2V_CPU_PAUSE"()
    int usleep(unsigned int microseconds)

cdef enum:
    SPIN_LIMIT = 2048          # pauses of a worker that waits for the others, before it leaves them its processor
    SLEEP_MICROSECONDS = 20
    BITS_IN_LINE = 512         # bits in a cache line


cdef struct Matrices:
    # Where both matrices begin.
    char *inputs
    char *outputs


cdef struct Barrier:
    int64_t entered            # workers that have called `run`; negative if one left because of a stop before all came
    int64_t generation         # how often all workers have met
    int64_t waiting            # workers that wait


cdef struct Team:
    # The workers of an ordered run, and what they share.
    Worker **workers
    int64_t size
    const Sizes *sizes
    Matrices matrices
    Barrier barrier
    int bit_shift              # of a hash, for its bit in a set of rows
    float curvature            # see Loss.curvature


# -- barriers -----------------------------------------------------------------------------------


cdef inline int64_t pause(int64_t pauses) noexcept nogil:
    """Waits a moment, after so many pauses; returns their new number."""
    if pauses < SPIN_LIMIT:
        cpu_pause()
    else:
        usleep(SLEEP_MICROSECONDS)
    return pauses + 1


cdef inline bint enter(Team *team, int64_t *stop) noexcept nogil:
    """Waits until all workers have entered; returns False if `stop` was set before they had."""
    cdef Barrier *barrier = &team.barrier
    cdef int64_t entered, pauses = 0
    atomic_add(&barrier.entered, 1)
    while True:
        entered = atomic_read(&barrier.entered)
        if entered < 0 or entered == team.size:
            return entered > 0
        if atomic_read(stop) and swap_if(&barrier.entered, entered, -team.size):
            return False
        pauses = pause(pauses)


cdef inline bint arrive(Team *team) noexcept nogil:
    """Returns True to the last worker to arrive, which must call `release`; the others wait until it does."""
    cdef Barrier *barrier = &team.barrier
    cdef int64_t generation = atomic_read(&barrier.generation), pauses = 0
    if atomic_add(&barrier.waiting, 1) + 1 == team.size:
        return True
    while atomic_read(&barrier.generation) == generation:
        pauses = pause(pauses)
    return False


cdef inline void release(Team *team) noexcept nogil:
    atomic_write(&team.barrier.waiting, 0)
    atomic_add(&team.barrier.generation, 1)


cdef inline void wait_for_all(Team *team) noexcept nogil:
    if arrive(team):
        release(team)


# -- copies of rows -----------------------------------------------------------------------------


cdef inline void copy_rows(
    Worker *worker, const Sizes *s, int64_t first, const void *rows, int64_t count
) noexcept nogil:
    """Makes copies of rows that follow each other, from copy `first` on."""
    cdef char *copies = worker.copies.rows + first * s.row_bytes
    cdef float *changes = worker.copies.changes + first * s.width
    cdef int64_t k
    memcpy(copies, rows, count * s.row_bytes)
    for k in range(count * s.width):  # of the copies: other threads may be changing the rows
        changes[k] = -(step_widened((<const uint16_t *>copies)[k]) if s.bfloat16 else (<const float *>copies)[k])


cdef inline void find_changes(Worker *worker, const Sizes *s, int64_t count) noexcept nogil:
    """Turns `changes` into what has changed in the first `count` copies. Call it once a chunk."""
    cdef const char *copies = worker.copies.rows
    cdef float *changes = worker.copies.changes
    cdef int64_t k
    for k in range(count * s.width):
        changes[k] += step_widened((<const uint16_t *>copies)[k]) if s.bfloat16 else (<const float *>copies)[k]


cdef inline void add_changes(
    Worker *worker, const Sizes *s, void *rows, const float *changes, int64_t count, float share
) noexcept nogil:
    """rows ← rows + share · changes, of `count` rows."""
    cdef int64_t k
    for k in range(count * s.width):
        if s.bfloat16:
            (<uint16_t *>rows)[k] = step_rounded(
                step_widened((<const uint16_t *>rows)[k]) + share * changes[k], draw(worker) >> 48
            )
        else:
            (<float *>rows)[k] += share * changes[k]


# -- sets of rows -------------------------------------------------------------------------------


cdef inline uint64_t key_of_row(const Team *team, float *row, bint is_output) noexcept nogil:
    """A number for a row of either matrix, the same on every run: its offset, plus 1 for an output row."""
    return (<char *>row - (team.matrices.outputs if is_output else team.matrices.inputs)) + is_output


cdef inline uint64_t bit_of_key(const Team *team, uint64_t key) noexcept nogil:
    """The bit of a row in a set. It may stand for several rows; then a few are copied that only one worker uses."""
    return (key * <uint64_t>0x9E3779B97F4A7C15) >> team.bit_shift


cdef inline int64_t owner_of_bit(const Team *team, uint64_t bit) noexcept nogil:
    """The worker that updates the rows of a bit in place.

    Workers own the bits in turns, so that all copy equally many. Where the owner does not use a row, the next worker
    that does takes its place. All bits of a cache line have the same owner.
    """
    return bit // BITS_IN_LINE % <uint64_t>team.size


cdef inline Slot *slot_of_key(const Team *team, const Worker *worker, uint64_t key) noexcept nogil:
    return find_slot(&worker.copies.index_of_key, bit_of_key(team, key), key, 0)


cdef inline float *copy_of_row(Team *team, Worker *worker, float *row, uint64_t key, int64_t updates) noexcept nogil:
    """The worker's copy of a row, which so many steps more will update."""
    cdef RowCopies *copies = &worker.copies
    cdef Slot *slot = slot_of_key(team, worker, key)
    cdef int64_t k = <int64_t>slot_number(slot.value) - 1
    if k < 0:
        k = copies.count
        copies.count += 1
        fill_slot(slot, key, copies.count)
        copies.row_keys[k], copies.updates[k] = key, 0
        copy_rows(worker, team.sizes, k, row, 1)
    copies.updates[k] += updates
    return <float *>(copies.rows + k * team.sizes.row_bytes)


cdef inline void touch_or_copy(
    Team *team, Worker *worker, float **row, bint is_output, bint copies, int64_t updates
) noexcept nogil:
    """Notes a row as touched; or, with `copies`, makes `row` point to a copy if other workers use the row, too."""
    cdef uint64_t key = key_of_row(team, row[0], is_output), bit = bit_of_key(team, key)
    if not copies:
        worker.copies.touched_rows[bit >> 6] |= <uint64_t>1 << (bit & 63)
    elif worker.copies.shared_rows[bit >> 6] >> (bit & 63) & 1:
        row[0] = copy_of_row(team, worker, row[0], key, updates)


cdef inline void for_each_row(Team *team, Worker *worker, bint copies) noexcept nogil:
    """Calls touch_or_copy for each row of the chunk's windows; with `copies`, sets the windows' input rows after it."""
    cdef const Sizes *s = team.sizes
    cdef int64_t k, j, group
    cdef Window *w
    if not s.composed:  # composed rows are the worker's own
        for k in range(worker.kept.start, worker.kept.end):
            if worker.kept.words[k] >= 0:
                touch_or_copy(team, worker, &worker.kept.rows[k], False, copies, s.window)
    for k in range(worker.chosen):
        w = &worker.windows[k]
        if not w.n:
            continue
        if copies:
            set_inputs(worker, w, s.window)
        for group in range(w.output_sets):
            for j in range(group * s.m, group * s.m + w.m):
                if w.outputs[j] != worker.zero_row:
                    touch_or_copy(team, worker, &w.outputs[j], True, copies, 1 if s.pooled else w.n)


cdef inline void copy_shared_rows(Team *team, int64_t number) noexcept nogil:
    """Makes the windows of worker `number` use copies of the rows that another worker updates in the same round."""
    cdef Worker *worker = team.workers[number]
    cdef RowCopies *copies = &worker.copies
    cdef int64_t line, k, other
    memset(copies.touched_rows, 0, team.sizes.set_bits // 8)
    memset(copies.shared_rows, 0, team.sizes.set_bits // 8)
    for_each_row(team, worker, False)
    wait_for_all(team)
    for line in range(team.sizes.set_bits // BITS_IN_LINE):
        other = owner_of_bit(team, line * BITS_IN_LINE)
        while other != number:
            for k in range(line * (BITS_IN_LINE // 64), (line + 1) * (BITS_IN_LINE // 64)):
                copies.shared_rows[k] |= copies.touched_rows[k] & team.workers[other].copies.touched_rows[k]
            other = other + 1 if other + 1 < team.size else 0
    if copies.count:
        memset(copies.index_of_key.slots, 0, (copies.index_of_key.mask + 1) * sizeof(Slot))
        copies.count = 0
    for_each_row(team, worker, True)
    wait_for_all(team)


cdef inline float share_of_change(Team *team, int64_t number, int64_t k) noexcept nogil:
    """The share of the change of worker `number`'s copy k that the row receives.

    Changes of a row in one direction would overshoot in sum: each has the share of the way that those before it,
    taken to be as long, have left.
    """
    cdef Worker *worker = team.workers[number]
    cdef int64_t before = 1, other  # the worker that updates the row in place
    for other in range(number):
        before += slot_of_key(team, team.workers[other], worker.copies.row_keys[k]).value != 0
    return exp(-team.curvature * worker.step.alpha * before * worker.copies.updates[k])


cdef inline void merge_copies(Team *team, int64_t number, int64_t other) noexcept nogil:
    """Adds the changes of worker `other`'s copies to the rows that worker `number` owns.

    The owner has a row in its cache if it uses it.
    """
    cdef const Sizes *s = team.sizes
    cdef const RowCopies *copies = &team.workers[other].copies
    cdef uint64_t key
    cdef int64_t k
    cdef char *matrix
    for k in range(copies.count):
        key = copies.row_keys[k]
        if owner_of_bit(team, bit_of_key(team, key)) == number:
            matrix = team.matrices.outputs if key & 1 else team.matrices.inputs
            add_changes(
                team.workers[number], s, matrix + (key & ~<uint64_t>1), copies.changes + k * s.width, 1,
                share_of_change(team, other, k),
            )
