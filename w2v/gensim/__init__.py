"""The module paths, names and arguments of gensim 4, over w2v: put `w2v.` before `gensim` in an import."""
