"""The loops behind outputs.py: alias tables and Huffman trees, both in linear time."""

from libc.stdint cimport int8_t, int32_t, int64_t, uint32_t


def fill_alias(double[::1] weights, uint32_t[:, ::1] cells, int64_t[::1] stacks) -> None:
    """Walker's alias table by Vose's method. `weights` have mean 1 and are used up; `stacks` is room for V numbers.

    Cell i, a threshold and an alias, gives i for a uniform 32-bit number up to the threshold, and the alias otherwise.
    """
    cdef int64_t size = weights.shape[0], lean = 0, rich = size, i, donor
    with nogil:
        for i in range(size):
            cells[i, 0] = 0xFFFFFFFF
            cells[i, 1] = <uint32_t>i
            if weights[i] < 1:
                stacks[lean] = i
                lean += 1
            else:
                rich -= 1
                stacks[rich] = i
        while lean > 0 and rich < size:
            lean -= 1
            i = stacks[lean]
            donor = stacks[rich]
            cells[i, 0] = <uint32_t>(weights[i] * 4294967295.0)
            cells[i, 1] = <uint32_t>donor
            weights[donor] -= 1 - weights[i]
            if weights[donor] < 1:
                rich += 1
                stacks[lean] = donor
                lean += 1


def fill_huffman(const int64_t[::1] counts, int64_t[::1] sums, int32_t[::1] parents, int8_t[::1] bits) -> None:
    """Huffman's tree by two queues: the words from the rare end, and the inner nodes in the order they are made.

    Words are nodes 0 to V - 1, their counts falling; inner node k is node V + k and has sums[k]; the root is the last.
    """
    cdef int64_t size = counts.shape[0], word = size - 1, inner = 0, made, child
    cdef int8_t bit
    with nogil:
        for made in range(size - 1):
            sums[made] = 0
            for bit in range(2):
                if word >= 0 and (inner == made or counts[word] < sums[inner]):
                    child = word
                    sums[made] += counts[word]
                    word -= 1
                else:
                    child = size + inner
                    sums[made] += sums[inner]
                    inner += 1
                parents[child] = <int32_t>(size + made)
                bits[child] = bit


def fill_depths(const int32_t[::1] parents, int64_t[::1] depths) -> None:
    """Depth of each node under the root, which is the last; every parent stands after its children."""
    cdef int64_t node
    with nogil:
        depths[depths.shape[0] - 1] = 0
        for node in range(parents.shape[0] - 1, -1, -1):
            depths[node] = depths[parents[node]] + 1


def fill_paths(
    const int32_t[::1] parents,
    const int8_t[::1] bits,
    const int64_t[::1] starts,
    int32_t[::1] nodes,
    int8_t[::1] codes,
) -> None:
    """Each word's inner nodes, counted from 0, and code bits from the root down, from starts[word] on."""
    cdef int64_t size = starts.shape[0] - 1, word, node, at
    with nogil:
        for word in range(size):
            node = word
            for at in range(starts[word + 1] - 1, starts[word] - 1, -1):
                codes[at] = bits[node]
                node = parents[node]
                nodes[at] = <int32_t>(node - size)
