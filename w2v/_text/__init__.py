"""Read text, normalise it, store it as ids, and build vocabularies, phrases and subwords."""
