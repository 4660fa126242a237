"""gensim.models.fasttext: a name for libraries that import it and use Word2Vec alone."""

from typing import Any, NoReturn


class FastText:
    """Not there: w2v.train trains subwords."""

    def __init__(self, *_: Any, **__: Any) -> None:
        self.load()

    @classmethod
    def load(cls, *_: Any, **__: Any) -> NoReturn:
        raise NotImplementedError(
            "w2v.gensim has no FastText: w2v.train(text, subwords='3-6') trains subwords, and w2v.load reads files of "
            "fastText"
        )
