"""gensim.test: the helpers that gensim's examples import."""
