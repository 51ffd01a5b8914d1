"""The whole road on real handwriting: train a line reader, trace it, save it, run it, compare."""
