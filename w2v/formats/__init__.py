"""Files: vectors in the formats of word2vec and in the native format, and codes of trees."""
