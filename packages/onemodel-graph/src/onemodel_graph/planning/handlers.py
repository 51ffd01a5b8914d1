"""Imports every module that registers handlers, so that the table of operators is complete."""

from onemodel_graph.planning import (
    control_flow,
    detection,
    region_pooling,
    reinterpretation,
    sequences,
    text_operators,
)

__all__ = [
    "control_flow",
    "detection",
    "region_pooling",
    "reinterpretation",
    "sequences",
    "text_operators",
]
