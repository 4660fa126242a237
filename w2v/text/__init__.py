"""From text to ids: readers, the id store, vocabularies."""
