cpdef enum:
    SENTENCE_END_ID = 0  # the id of a sentence end; words have ids from FIRST_TYPE on
