"""The graph in memory: values, nodes, graphs, models and the builder that makes them.

This is the pinned interface ``graph.ir``: plain dataclasses without protobuf, so that a tracer or
an importer writes them and every pass reads them.
"""

from onemodel_graph.ir.builder import GraphBuilder
from onemodel_graph.ir.graph import Graph, Model
from onemodel_graph.ir.node import Node
from onemodel_graph.ir.validate import validate
from onemodel_graph.ir.value import Dimension, Value

INTERFACE_VERSION = (1, 0)
__all__ = [
    "INTERFACE_VERSION",
    "Dimension",
    "Graph",
    "GraphBuilder",
    "Model",
    "Node",
    "Value",
    "validate",
]
