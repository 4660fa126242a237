"""gensim.test: what examples take of it."""
