"""Deterministic runs: training with several threads that gives the same bits on every run.

The workers train in rounds. In a round each worker trains one chunk. A round has three phases, with barriers between
them:

1. Each worker fills all windows of its chunk, and marks the rows that they use in a bit set.
2. All workers take their steps at the same time. If several workers use a row, one of them, the owner, updates the row
   itself. The others update copies of it.
3. The changes of the copies are added to the rows, in the order of the workers.

A worker never sees what the others change during a round, so it does not matter which of them is faster. With the same
number of workers, every run gives the same result; another number gives another result. Rounds are short, so few rows
are copied.
"""

from libc.math cimport exp
from libc.stdint cimport int64_t, uint16_t, uint64_t
from libc.string cimport memcpy, memset

from w2v._kernel.worker cimport (
    RowCopies, Sizes, Window, Worker, draw, set_inputs, step_bfloat16_to_float, step_float_to_bfloat16,
)
from w2v._text.hash_table cimport Slot, fill_slot, find_slot, slot_number

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
    SPIN_LIMIT = 2048          # a waiting worker spins this many times, then it sleeps and frees its processor
    SLEEP_MICROSECONDS = 20
    BITS_IN_LINE = 512         # bits in a cache line


cdef struct Matrices:
    # The addresses of both matrices.
    char *inputs
    char *outputs


cdef struct Barrier:
    int64_t entered            # number of workers inside `run`; -size once a worker has returned because of `stop`
    int64_t generation         # how often the barrier has been released
    int64_t waiting            # workers waiting at the barrier


cdef struct Team:
    # The workers of a run. The barrier, bit_shift and curvature only serve deterministic runs.
    Worker **workers
    int64_t size
    const Sizes *sizes
    Matrices matrices
    Barrier barrier
    int bit_shift              # a hash shifted right by this is a bit number in a set of rows
    float curvature            # see Loss.curvature


# -- barriers -----------------------------------------------------------------------------------


cdef inline int64_t pause(int64_t pauses) noexcept nogil:
    """Spin or sleep for a moment, and return the number of pauses so far, plus one."""
    if pauses < SPIN_LIMIT:
        cpu_pause()
    else:
        usleep(SLEEP_MICROSECONDS)
    return pauses + 1


cdef inline bint enter(Team *team, int64_t *stop) noexcept nogil:
    """Wait until all workers have entered, and return True; return False if `stop` is set before that."""
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
    """Wait at the barrier. The last worker to arrive does not wait: it gets True, and must call `release`."""
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
    """Copy `count` consecutive rows to copy number `first` and the following ones."""
    cdef char *copies = worker.copies.rows + first * s.row_bytes
    cdef float *changes = worker.copies.changes + first * s.width
    cdef int64_t k
    memcpy(copies, rows, count * s.row_bytes)
    for k in range(count * s.width):  # negate the copies, not the rows, which other threads may be changing
        changes[k] = -(
            step_bfloat16_to_float((<const uint16_t *>copies)[k]) if s.bfloat16 else (<const float *>copies)[k]
        )


cdef inline void find_changes(Worker *worker, const Sizes *s, int64_t count) noexcept nogil:
    """Compute the changes of the first `count` copies since copy_rows. Call this once per chunk."""
    cdef const char *copies = worker.copies.rows
    cdef float *changes = worker.copies.changes
    cdef int64_t k
    for k in range(count * s.width):
        changes[k] += (
            step_bfloat16_to_float((<const uint16_t *>copies)[k]) if s.bfloat16 else (<const float *>copies)[k]
        )


cdef inline void add_changes(
    Worker *worker, const Sizes *s, void *rows, const float *changes, int64_t count, float share
) noexcept nogil:
    """Update `count` rows: rows ← rows + share · changes."""
    cdef int64_t k
    for k in range(count * s.width):
        if s.bfloat16:
            (<uint16_t *>rows)[k] = step_float_to_bfloat16(
                step_bfloat16_to_float((<const uint16_t *>rows)[k]) + share * changes[k], draw(worker) >> 48
            )
        else:
            (<float *>rows)[k] += share * changes[k]


# -- sets of rows -------------------------------------------------------------------------------


cdef inline uint64_t key_of_row(const Team *team, float *row, bint is_output) noexcept nogil:
    """Return a key of a row, the same on every run: its offset in its matrix, plus 1 for an output row."""
    return (<char *>row - (team.matrices.outputs if is_output else team.matrices.inputs)) + is_output


cdef inline uint64_t bit_of_key(const Team *team, uint64_t key) noexcept nogil:
    """Return the bit of a row in a set of rows.

    Several rows may share a bit. Then some rows are copied although only one worker uses them.
    """
    return (key * <uint64_t>0x9E3779B97F4A7C15) >> team.bit_shift


cdef inline int64_t owner_of_bit(const Team *team, uint64_t bit) noexcept nogil:
    """Return the worker that updates the rows of this bit in place.

    The owners of the bits alternate, so that all workers make about as many copies. If the owner does not use a row,
    the next worker that uses it replaces the owner. All bits of a cache line have the same owner.
    """
    return bit // BITS_IN_LINE % <uint64_t>team.size


cdef inline Slot *slot_of_key(const Team *team, const Worker *worker, uint64_t key) noexcept nogil:
    return find_slot(&worker.copies.index_of_key, bit_of_key(team, key), key, 0)


cdef inline float *copy_of_row(Team *team, Worker *worker, float *row, uint64_t key, int64_t updates) noexcept nogil:
    """Return the worker's copy of a row; create it on first use. Add `updates` to the copy's update count."""
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
    Team *team, Worker *worker, float **row, bint is_output, bint make_copies, int64_t updates
) noexcept nogil:
    """Mark a row as touched in the first pass. In the second pass, redirect `row` to a copy if another worker owns it.

    `make_copies` is true in the second pass.
    """
    cdef uint64_t key = key_of_row(team, row[0], is_output), bit = bit_of_key(team, key)
    if not make_copies:
        worker.copies.touched_rows[bit >> 6] |= <uint64_t>1 << (bit & 63)
    elif worker.copies.shared_rows[bit >> 6] >> (bit & 63) & 1:
        row[0] = copy_of_row(team, worker, row[0], key, updates)


cdef inline void for_each_row(Team *team, Worker *worker, bint make_copies) noexcept nogil:
    """Call touch_or_copy for each row of the chunk's windows. The second pass also sets the windows' input rows."""
    cdef const Sizes *s = team.sizes
    cdef int64_t k, j, group, updates
    cdef Window *w
    if not s.composed:  # composed rows belong to the worker, so they need no copies
        for k in range(worker.kept.start, worker.kept.end):
            if worker.kept.words[k] >= 0:
                # A tag is in all windows of its document.
                updates = max(s.window_size, 1) if worker.kept.words[k] < s.words else worker.filled
                touch_or_copy(team, worker, &worker.kept.rows[k], False, make_copies, updates)
    for k in range(worker.filled):
        w = &worker.windows[k]
        if not w.n:
            continue
        if make_copies:
            set_inputs(worker, w, s.window_size)
        if s.frozen_outputs:  # nobody updates output rows, so all workers use the rows themselves
            continue
        for group in range(w.output_sets):
            for j in range(group * s.m, group * s.m + w.m):
                if w.outputs[j] != worker.zero_row:
                    touch_or_copy(team, worker, &w.outputs[j], True, make_copies, 1 if s.pooled else w.n)


cdef inline void copy_shared_rows(Team *team, int64_t worker_index) noexcept nogil:
    """Make this worker's windows use copies of the rows that another worker updates in this round."""
    cdef Worker *worker = team.workers[worker_index]
    cdef RowCopies *copies = &worker.copies
    cdef int64_t line, k, other
    memset(copies.touched_rows, 0, team.sizes.set_bits // 8)
    memset(copies.shared_rows, 0, team.sizes.set_bits // 8)
    for_each_row(team, worker, False)
    wait_for_all(team)
    for line in range(team.sizes.set_bits // BITS_IN_LINE):
        other = owner_of_bit(team, line * BITS_IN_LINE)
        while other != worker_index:
            for k in range(line * (BITS_IN_LINE // 64), (line + 1) * (BITS_IN_LINE // 64)):
                copies.shared_rows[k] |= copies.touched_rows[k] & team.workers[other].copies.touched_rows[k]
            other = other + 1 if other + 1 < team.size else 0
    if copies.count:
        memset(copies.index_of_key.slots, 0, (copies.index_of_key.mask + 1) * sizeof(Slot))
        copies.count = 0
    for_each_row(team, worker, True)
    wait_for_all(team)


cdef inline float share_of_change(Team *team, int64_t worker_index, int64_t k) noexcept nogil:
    """Return the share of the change of this worker's copy k that is added to the row.

    Several workers may move a row in the same direction, and the sum of their full changes would overshoot. Each worker
    moves the row a part of the way to an optimum. So scale each change by exp(-curvature · alpha · updates by all
    earlier workers), the part of the way that they have left. This assumes that each of them has updated the row as
    often as this worker.
    """
    cdef Worker *worker = team.workers[worker_index]
    cdef int64_t before = 1, other  # 1: the worker that updates the row in place
    for other in range(worker_index):
        before += slot_of_key(team, team.workers[other], worker.copies.row_keys[k]).value != 0
    return exp(-team.curvature * worker.step.alpha * before * worker.copies.updates[k])


cdef inline void merge_copies(Team *team, int64_t worker_index, int64_t other) noexcept nogil:
    """Add the changes of worker `other`'s copies to the rows that this worker owns.

    The owner does this because a row that it uses is in its cache.
    """
    cdef const Sizes *s = team.sizes
    cdef const RowCopies *copies = &team.workers[other].copies
    cdef uint64_t key
    cdef int64_t k
    cdef char *matrix
    for k in range(copies.count):
        key = copies.row_keys[k]
        if owner_of_bit(team, bit_of_key(team, key)) == worker_index:
            matrix = team.matrices.outputs if key & 1 else team.matrices.inputs
            add_changes(
                team.workers[worker_index], s, matrix + (key & ~<uint64_t>1), copies.changes + k * s.width, 1,
                share_of_change(team, other, k),
            )
