"""gensim.scripts: programs that scripts call as functions."""
