"""gensim.models.doc2vec: placeholders for libraries that import these names, but use only Word2Vec."""

from typing import Any, NamedTuple, NoReturn

from w2v.gensim.fall_through import attributes_of


class TaggedDocument(NamedTuple):
    """The words and the tags of a document."""

    words: list[str]
    tags: list[Any]


class Doc2Vec:
    """A placeholder that raises NotImplementedError: w2v trains only word vectors."""

    def __init__(self, *_: Any, **__: Any) -> None:
        self.load()

    @classmethod
    def load(cls, *_: Any, **__: Any) -> NoReturn:
        raise NotImplementedError("w2v has no Doc2Vec: use gensim's for document vectors")


__getattr__ = attributes_of(__name__)
