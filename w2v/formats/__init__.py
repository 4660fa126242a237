"""Vector files: the formats of word2vec and the native one."""
