"""Calls of every eager operator that a trace can meet, for contract tests and the operator table."""

from onemodel_trace.testing.case import Case, Given, ints, mask, real
from onemodel_trace.testing.catalogue import all_cases

__all__ = ["Case", "Given", "all_cases", "ints", "mask", "real"]
