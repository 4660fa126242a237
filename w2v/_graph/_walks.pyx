"""Random walks of node2vec (Grover and Leskovec 2016) by rejection sampling (KnightKing, Yang et al. 2019).

From node v, which was reached from node t, a walk goes on to neighbour x with probability proportional to w_vx · a(x):

    a(x) = 1/p if x = t,  1 if there is an edge t–x,  1/q otherwise

The first step has a(x) = 1. For each other step, a neighbour is drawn by weight and accepted with probability
a(x) / bound, where bound = max(1, 1/q). If 1/p is above the bound, the edge back to t has a part of its own, of
w_vt · (1/p − bound), that is drawn without rejection. So no tables are needed. A row that rejects more draws than it
has neighbours is added up instead, which bounds the time of a step for every p and q.

Each walk has a stream of random numbers of its own, which depends only on the seed, the turn and the first node. So
the walks are the same for any number of threads, and each can be made again on its own. A thread makes GROUP walks
step by step together: while the memory of one walk's row arrives, it works on the others.
"""

cimport cython
from libc.stdint cimport int64_t, uint32_t, uint64_t

from w2v._graph.rows cimport find_neighbour, has_neighbour
from w2v._kernel.worker cimport scramble
from w2v._text._text cimport FIRST_TYPE, SENTENCE_END_ID

import numpy as np

cdef extern from "_text.h" nogil:
    void prefetch(const void *address)

cdef enum:
    WAY_BACK = -2  # instead of the position of the edge back to the node before, until it is searched for
    GROUP = 64  # number of walks that a thread makes together
    FEISTEL_ROUNDS = 4
    EXTRA_DRAWS = 8  # a row may reject this many draws more than it has neighbours before it is added up

cdef uint64_t GOLDEN = 0x9E3779B97F4A7C15u  # the increment of SplitMix64's stream


cdef struct Walk:
    uint64_t random    # state of the walk's SplitMix64 stream
    int64_t node       # the node reached
    int64_t start, degree  # its row
    int64_t previous   # the node before it, or -1
    int64_t previous_start, previous_degree  # the row of that node
    int64_t drawn      # position of the edge drawn from the row of `node`, or WAY_BACK
    int64_t tries      # number of edges drawn from this row
    double total       # what the edges of the row weigh together, times `bound`
    double extra       # what the way back weighs in addition
    int64_t length     # number of nodes so far
    uint32_t *ids


cdef inline uint64_t draw(Walk *walk) noexcept nogil:
    """Return the next 64 random bits of the walk's stream."""
    walk.random += GOLDEN
    return scramble(walk.random)


cdef inline double uniform(uint64_t bits) noexcept nogil:
    """Map 64 random bits to a number from 0 to 1, 1 excluded."""
    return (bits >> 11) * (1.0 / 9007199254740992.0)


@cython.final
cdef class Walker:
    """Makes random walks on a graph. Any number of threads may use one Walker.

    Args:
        indptr: int64 (nodes + 1,), the start of each node's row.
        neighbours: uint32 (edges,), the neighbours of each node, sorted in each row.
        weights: float32 (edges,), positive, or None if all edges weigh the same.
        p, q: The parameters of node2vec, positive.
        length: The number of nodes of a walk.
        seed: The seed of the random numbers.
    """
    cdef const int64_t[::1] indptr
    cdef const uint32_t[::1] neighbours
    cdef const double[::1] sums  # (edges,): the weights of a row up to and including an edge, or None
    cdef int64_t nodes, length
    cdef uint64_t seed, half_mask
    cdef int half_bits
    cdef double back, bound, lowest  # 1/p, max(1, 1/q), min(1/p, 1, 1/q)
    cdef double[2] near  # 1/q and 1: a(x) if the node before has no edge to x, and if it has
    cdef bint second_order

    def __init__(self, const int64_t[::1] indptr not None, const uint32_t[::1] neighbours not None,
                 const float[::1] weights, double p, double q, int64_t length, uint64_t seed):
        self.indptr, self.neighbours, self.length = indptr, neighbours, length
        self.nodes, self.seed = indptr.shape[0] - 1, scramble(seed + GOLDEN)
        self.back, self.bound, self.near = 1 / p, max(1.0, 1 / q), [1 / q, 1]
        self.lowest = min(1 / p, 1.0, 1 / q)
        self.second_order = p != 1 or q != 1
        self.half_bits = (int(max(self.nodes - 1, 3)).bit_length() + 1) // 2
        self.half_mask = (<uint64_t>1 << self.half_bits) - 1
        self.sums = None if weights is None else sums_of_rows(indptr, weights)

    def walks(self, int64_t first, int64_t last):
        """Make the walks from number `first` to `last` − 1 of all turns: uint32 (n,). The GIL is released.

        Walk i starts in turn i // nodes. Each turn has every node once as the first node, in an order of its own.
        The ids of the nodes begin with FIRST_TYPE, and SENTENCE_END_ID ends each walk.
        """
        cdef int64_t stride = self.length + 1, number, k, size = 0
        ids = np.empty((last - first) * stride, np.uint32)
        cdef uint32_t[::1] view = ids
        cdef Walk[GROUP] group
        cdef int64_t count
        with nogil:
            number = first
            while number < last:
                count = min(last - number, GROUP)
                for k in range(count):
                    self.begin(&group[k], number + k, &view[(number - first + k) * stride])
                self.finish(group, count)
                # Walks that ended early leave gaps, which the next walks fill.
                for k in range(count):
                    size = move_walk(&group[k], &view[0], size)
                number += count
        return ids[:size]

    cdef void begin(self, Walk *walk, int64_t number, uint32_t *ids) noexcept nogil:
        """Start walk `number` at its first node."""
        cdef uint64_t turn = <uint64_t>(number // self.nodes)
        walk.node = self.first_node(turn, <uint64_t>(number % self.nodes))
        walk.random = scramble(scramble(self.seed ^ turn) + <uint64_t>walk.node)
        walk.previous, walk.previous_degree, walk.length, walk.ids = -1, 0, 1, ids
        ids[0] = <uint32_t>walk.node + FIRST_TYPE
        prefetch(&self.indptr[walk.node])

    cdef int64_t first_node(self, uint64_t turn, uint64_t position) noexcept nogil:
        """Return the node at a position of the random order of a turn.

        The order is a Feistel network of 2 · half_bits bits, keyed by the seed and the turn. It is applied again while
        its result is not a node.
        """
        cdef uint64_t x = position, left, right, key = scramble(self.seed + turn)
        cdef int k
        while True:
            left, right = x >> self.half_bits, x & self.half_mask
            for k in range(FEISTEL_ROUNDS):
                left, right = right, left ^ (scramble(key + <uint64_t>k * GOLDEN ^ right) & self.half_mask)
            x = left << self.half_bits | right
            if x < <uint64_t>self.nodes:
                return <int64_t>x

    cdef void finish(self, Walk *group, int64_t count) noexcept nogil:
        """Make all steps of some walks. At each step, the walks that rejected their edge draw again together."""
        cdef int64_t k, alive = count, pending, rejected
        cdef Walk *walk
        cdef Walk *walks[GROUP]
        cdef Walk *waiting[GROUP]
        for k in range(count):
            walks[k] = &group[k]
        for _ in range(1, self.length):
            count, alive = alive, 0
            for k in range(count):
                walk = walks[k]
                walk.start = self.indptr[walk.node]
                walk.degree = self.indptr[walk.node + 1] - walk.start
                walks[alive] = waiting[alive] = walk
                alive += walk.degree > 0  # otherwise the walk has ended
            for k in range(alive):
                self.begin_step(waiting[k])
            pending = alive
            while pending:
                for k in range(pending):
                    self.draw_edge(waiting[k])
                rejected = 0
                for k in range(pending):
                    waiting[rejected] = waiting[k]
                    rejected += not self.accept(waiting[k])
                pending = rejected
            for k in range(alive):
                walk = walks[k]
                walk.previous, walk.previous_start, walk.previous_degree = walk.node, walk.start, walk.degree
                walk.node = self.neighbours[walk.drawn]
                prefetch(&self.indptr[walk.node])
                walk.ids[walk.length] = <uint32_t>walk.node + FIRST_TYPE
                walk.length += 1

    cdef inline void begin_step(self, Walk *walk) noexcept nogil:
        """Compute the sums that `draw_edge` needs."""
        cdef int64_t way_back
        if self.second_order:  # the row will be searched in this step and in the next
            prefetch(&self.neighbours[0] + walk.start)
            prefetch(&self.neighbours[0] + walk.start + walk.degree // 2)
            prefetch(&self.neighbours[0] + walk.start + walk.degree - 1)
        walk.tries, walk.extra = 0, 0
        walk.total = self.bound
        walk.total *= walk.degree if self.sums is None else self.sums[walk.start + walk.degree - 1]
        if self.back > self.bound and walk.previous >= 0:
            walk.extra = self.back - self.bound
            if self.sums is not None:
                way_back = self.find_edge(walk, <uint32_t>walk.previous)
                walk.extra *= self.weight(walk, way_back) if way_back >= 0 else 0

    cdef inline void draw_edge(self, Walk *walk) noexcept nogil:
        """Draw an edge of the walk's node by weight, or the way back in addition."""
        cdef double position = uniform(draw(walk)) * (walk.total + walk.extra)
        if position >= walk.total:
            walk.drawn = WAY_BACK if walk.extra else walk.start + walk.degree - 1
        elif self.sums is None:
            walk.drawn = walk.start + min(<int64_t>(position / self.bound), walk.degree - 1)
        else:
            walk.drawn = self.edge_at(walk, position / self.bound)
        prefetch(&self.neighbours[0] + walk.drawn)

    cdef inline bint accept(self, Walk *walk) noexcept nogil:
        """Return whether to follow the drawn edge, so that each has its probability of node2vec."""
        cdef bint accepted = True
        cdef double threshold
        if self.second_order and walk.previous >= 0:
            if walk.drawn == WAY_BACK:
                walk.drawn = self.find_edge(walk, <uint32_t>walk.previous)
                if walk.drawn >= 0:
                    return True
                walk.extra = 0  # a directed graph may lack this edge
                accepted = False
            else:
                threshold = uniform(draw(walk)) * self.bound
                accepted = threshold < self.lowest or threshold < self.bias(walk, self.neighbours[walk.drawn])
            walk.tries += 1
            if not accepted and walk.tries > walk.degree + EXTRA_DRAWS:
                self.add_up(walk)
                return True
        return accepted

    cdef inline int64_t edge_at(self, Walk *walk, double position) noexcept nogil:
        """Return the edge that a position in the summed weights of the row falls on."""
        cdef int64_t low = walk.start, high = walk.start + walk.degree - 1, middle
        while low < high:
            middle = (low + high) // 2
            if self.sums[middle] <= position:
                low = middle + 1
            else:
                high = middle
        return low

    cdef inline double weight(self, Walk *walk, int64_t edge) noexcept nogil:
        """Return the weight of an edge of the walk's node."""
        if self.sums is None:
            return 1
        return self.sums[edge] - (self.sums[edge - 1] if edge > walk.start else 0)

    cdef inline int64_t find_edge(self, Walk *walk, uint32_t neighbour) noexcept nogil:
        """Return the position of an edge of the walk's node, or -1 if it does not exist."""
        cdef int64_t found = find_neighbour(&self.neighbours[0] + walk.start, walk.degree, neighbour)
        return walk.start + found if found >= 0 else -1

    cdef inline double bias(self, Walk *walk, uint32_t neighbour) noexcept nogil:
        """Return a(x) of a neighbour x of the walk's node."""
        cdef const uint32_t *row = &self.neighbours[0] + walk.previous_start
        cdef const uint32_t *end = &self.neighbours[0] + self.neighbours.shape[0]
        cdef double found = self.near[has_neighbour(row, walk.previous_degree, end, neighbour)]
        return self.back if neighbour == walk.previous else found

    cdef void add_up(self, Walk *walk) noexcept nogil:
        """Draw an edge from the summed probabilities of the row."""
        cdef double total = 0, position = 0
        cdef int64_t edge
        cdef int turn
        for turn in range(2):
            if turn == 1:
                position, total = uniform(draw(walk)) * total, 0
            for edge in range(walk.start, walk.start + walk.degree):
                total += self.weight(walk, edge) * self.bias(walk, self.neighbours[edge])
                walk.drawn = edge
                if turn == 1 and total > position:
                    return


cdef inline int64_t move_walk(const Walk *walk, uint32_t *ids, int64_t size) noexcept nogil:
    """Move a finished walk to ids[size], behind the earlier walks, end it, and return the new size."""
    cdef int64_t i
    if walk.ids != ids + size:
        for i in range(walk.length):
            ids[size + i] = walk.ids[i]
    ids[size + walk.length] = SENTENCE_END_ID
    return size + walk.length + 1


cdef sums_of_rows(const int64_t[::1] indptr, const float[::1] weights):
    """Return the sum of the weights of each row up to and including an edge: float64 (edges,)."""
    cdef double[::1] sums = np.empty(weights.shape[0], np.float64)
    cdef int64_t node, edge
    cdef double total
    with nogil:
        for node in range(indptr.shape[0] - 1):
            total = 0
            for edge in range(indptr[node], indptr[node + 1]):
                total += weights[edge]
                sums[edge] = total
    return np.asarray(sums)


def count_ids(const uint32_t[::1] ids not None, int64_t[::1] counts not None):
    """Add the number of times that each id occurs to its count. The GIL is released."""
    cdef int64_t i
    with nogil:
        for i in range(ids.shape[0]):
            counts[ids[i]] += 1
