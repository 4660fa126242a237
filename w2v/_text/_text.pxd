cpdef enum:
    SENTENCE_END_ID = 0  # the id of a sentence end
    PRUNED_TYPE = 1  # the id of words that pruning has dropped
    FIRST_TYPE = 2  # words have ids from this one on
