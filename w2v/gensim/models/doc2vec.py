"""gensim.models.doc2vec: names for libraries that import them and use Word2Vec alone."""

from typing import Any, NamedTuple, NoReturn


class TaggedDocument(NamedTuple):
    """The words of a document, and its tags."""

    words: list[str]
    tags: list[Any]


class Doc2Vec:
    """Not there: w2v trains vectors of words."""

    def __init__(self, *_: Any, **__: Any) -> None:
        self.load()

    @classmethod
    def load(cls, *_: Any, **__: Any) -> NoReturn:
        raise NotImplementedError("w2v has no Doc2Vec: use gensim's for vectors of documents")
