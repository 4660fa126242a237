"""gensim.scripts: command-line programs of gensim, as functions."""
