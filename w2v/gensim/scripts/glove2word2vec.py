"""gensim.scripts.glove2word2vec: convert GloVe's files, which lack a header, to word2vec's format."""

from w2v.gensim.fall_through import attributes_of
from w2v.gensim.models.keyedvectors import KeyedVectors
from w2v.system.files import PathLike


def glove2word2vec(glove_input_file: PathLike, word2vec_output_file: PathLike) -> tuple[int, int]:
    """Convert a GloVe file to word2vec's text format. Return the numbers of words and of dimensions."""
    vectors = KeyedVectors.load_word2vec_format(glove_input_file)
    vectors.save_word2vec_format(word2vec_output_file)
    return len(vectors), vectors.vector_size


__getattr__ = attributes_of(__name__)
