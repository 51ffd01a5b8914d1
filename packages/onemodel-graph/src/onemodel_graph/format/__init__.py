"""The library's own file format, version 1."""

from onemodel_graph.format.v1 import is_v1, read_v1, save_v1

__all__ = ["is_v1", "read_v1", "save_v1"]
