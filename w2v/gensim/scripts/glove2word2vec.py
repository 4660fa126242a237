"""gensim.scripts.glove2word2vec: GloVe's files with a header."""

from w2v.gensim.models.keyedvectors import KeyedVectors
from w2v.system.files import PathLike


def glove2word2vec(glove_input_file: PathLike, word2vec_output_file: PathLike) -> tuple[int, int]:
    """Write word2vec's text format of a file of GloVe's; returns (words, values of each)."""
    vectors = KeyedVectors.load_word2vec_format(glove_input_file, no_header=True)
    vectors.save_word2vec_format(word2vec_output_file)
    return len(vectors), vectors.vector_size
