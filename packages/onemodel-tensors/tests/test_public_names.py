"""The public names: complete, documented, each exercised by some test."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
from pathlib import Path

import pytest

import onemodel_tensors as om
from onemodel_tensors import functional, ops
from onemodel_tensors.operator_methods import OperatorMethods

MODULES = [
    importlib.import_module(f"onemodel_tensors.ops.{info.name}")
    for info in pkgutil.iter_modules(ops.__path__)
]
TESTS = "\n".join(path.read_text(encoding="utf-8") for path in Path(__file__).parent.glob("*.py"))
#: Modules and functions that operators are made of.
INTERNAL = {"arrays", "sizes", "promotion", "casts", "in_place"}
PARTS = {"gather_axis", "slice_axes"}


def operators():
    for module in MODULES:
        if module.__name__.split(".")[-1] in INTERNAL:
            continue
        for name in getattr(module, "__all__", ()):
            if name not in PARTS and inspect.isfunction(getattr(module, name)):
                yield module, name


@pytest.mark.parametrize(
    ("module", "name"), list(operators()), ids=lambda value: getattr(value, "__name__", value)
)
def test_operator_is_documented_and_exercised(module, name):
    assert inspect.getdoc(getattr(module, name))
    assert re.search(rf"\b{name}\b", TESTS), f"no test names {name}"


@pytest.mark.parametrize("namespace", [om, functional])
def test_all_lists_what_is_there(namespace):
    for name in namespace.__all__:
        assert hasattr(namespace, name)
    assert sorted(set(namespace.__all__)) == sorted(namespace.__all__)


def test_every_method_of_the_table_is_on_the_class():
    for name, function in vars(OperatorMethods).items():
        if callable(function):
            assert vars(om.Tensor)[name] is function
