"""gensim.similarities: approximate search."""
