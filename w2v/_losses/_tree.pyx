"""The loops of sampling.py and tree.py: alias tables and Huffman trees, both in linear time."""

from libc.stdint cimport int8_t, int32_t, int64_t, uint32_t


def fill_alias(double[::1] weights, uint32_t[:, ::1] alias_table, int64_t[::1] stacks) -> None:
    """Fill Walker's alias table by Vose's method (1991).

    Args:
        weights: float64 (V,), with mean 1; overwritten.
        alias_table: uint32 (V, 2), filled with a threshold and an alias per entry. Entry i draws i if a uniform 32-bit
            number is at most the threshold, otherwise the alias.
        stacks: int64 (V,), working memory. The stack of entries with weight below 1 grows from the left, the stack of
            all other entries from the right.
    """
    cdef int64_t size = weights.shape[0], small = 0, large = size, i, donor
    with nogil:
        for i in range(size):
            alias_table[i, 0] = 0xFFFFFFFF
            alias_table[i, 1] = <uint32_t>i
            if weights[i] < 1:
                stacks[small] = i
                small += 1
            else:
                large -= 1
                stacks[large] = i
        while small > 0 and large < size:
            small -= 1
            i = stacks[small]
            donor = stacks[large]
            alias_table[i, 0] = <uint32_t>(weights[i] * 4294967295.0)
            alias_table[i, 1] = <uint32_t>donor
            weights[donor] -= 1 - weights[i]
            if weights[donor] < 1:
                large += 1
                stacks[small] = donor
                small += 1


def fill_huffman(const int64_t[::1] counts, int64_t[::1] sums, int32_t[::1] parents, int8_t[::1] bits) -> None:
    """Fill Huffman's tree, with two queues: the words, the rarest first, and the inner nodes in order of creation.

    Words are nodes 0 to V - 1, in descending order of counts. Inner node k is node V + k, and the last one is the root.

    Args:
        counts: The count of each word, int64 (V,).
        sums: Filled with the count of each inner node, int64 (V - 1,).
        parents, bits: Filled with the parent and the code bit of each node except the root, (2V - 2,).
    """
    cdef int64_t size = counts.shape[0], word = size - 1, inner = 0, new, child
    cdef int8_t bit
    with nogil:
        for new in range(size - 1):
            sums[new] = 0
            for bit in range(2):
                if word >= 0 and (inner == new or counts[word] < sums[inner]):
                    child = word
                    sums[new] += counts[word]
                    word -= 1
                else:
                    child = size + inner
                    sums[new] += sums[inner]
                    inner += 1
                parents[child] = <int32_t>(size + new)
                bits[child] = bit


def fill_depths(const int32_t[::1] parents, int64_t[::1] depths) -> None:
    """Fill the depth of each node. The root must be the last node, and every parent must come after its children."""
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
    """Fill the inner nodes, numbered from 0, and the code bits of the path of each word from the root down.

    The path of a word begins at starts[word].
    """
    cdef int64_t size = starts.shape[0] - 1, word, node, k
    with nogil:
        for word in range(size):
            node = word
            for k in range(starts[word + 1] - 1, starts[word] - 1, -1):
                codes[k] = bits[node]
                node = parents[node]
                nodes[k] = <int32_t>(node - size)
