"""Readers and writers of vector files and model files, one module per format."""
