"""Cloze pretrains language models from the command line. This package holds the program, and nothing to import."""
