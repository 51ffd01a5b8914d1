"""A mismatch between distributions is one clear error at import, with the line that mends it."""

from __future__ import annotations

import importlib
import subprocess
import sys
import types
from collections.abc import Iterator

import pytest

from onemodel_kernels.errors import InterfaceMismatchError, OneModelError
from onemodel_kernels.interfaces import Need, require

CONSUMERS = ("onemodel_tensors", "onemodel_graph", "onemodel_trace", "onemodel_training")


@pytest.fixture
def provider() -> Iterator[types.ModuleType]:
    """A module that provides an interface in version 2.3, as if onemodel-kernels shipped it."""
    module = types.ModuleType("onemodel_provided_for_this_test")
    module.INTERFACE_VERSION = (2, 3)
    sys.modules[module.__name__] = module
    yield module
    del sys.modules[module.__name__]


def need(module: types.ModuleType, version: tuple[int, int]) -> Need:
    return Need("kernels.test", module.__name__, "onemodel-kernels", version)


@pytest.mark.parametrize("version", [(2, 0), (2, 2), (2, 3)])
def test_same_major_and_smaller_minor_serve(
    provider: types.ModuleType, version: tuple[int, int]
) -> None:
    require("onemodel-graph", [need(provider, version)])


@pytest.mark.parametrize("version", [(2, 4), (1, 0), (3, 0), (1, 9)])
def test_anything_else_is_a_mismatch(provider: types.ModuleType, version: tuple[int, int]) -> None:
    with pytest.raises(InterfaceMismatchError) as caught:
        require("onemodel-graph", [need(provider, version)])
    assert isinstance(caught.value, ImportError)
    assert isinstance(caught.value, OneModelError)


def test_message_names_both_distributions_versions_and_the_pip_line(
    provider: types.ModuleType,
) -> None:
    from importlib.metadata import version

    with pytest.raises(InterfaceMismatchError) as caught:
        require("onemodel-graph", [need(provider, (2, 4))])
    text = str(caught.value)
    assert f"onemodel-graph {version('onemodel-graph')} needs interface kernels.test 2.4" in text
    assert f"onemodel-kernels {version('onemodel-kernels')} provides 2.3" in text
    assert text.endswith('pip install --upgrade "onemodel-kernels>=0.1,<0.2"')


def test_a_provider_that_went_ahead_asks_for_both(provider: types.ModuleType) -> None:
    with pytest.raises(InterfaceMismatchError) as caught:
        require("onemodel-graph", [need(provider, (1, 0))])
    assert str(caught.value).endswith('pip install --upgrade "onemodel-graph" "onemodel-kernels"')


def test_an_absent_interface_is_a_mismatch() -> None:
    absent = Need("kernels.test", "onemodel_kernels.absent", "onemodel-kernels", (1, 0))
    with pytest.raises(InterfaceMismatchError, match="does not provide it"):
        require("onemodel-graph", [absent])


@pytest.mark.parametrize("consumer", CONSUMERS)
def test_each_consumer_states_its_needs(consumer: str) -> None:
    needs = importlib.import_module(f"{consumer}._interfaces").NEEDS
    assert needs
    for stated in needs:
        assert stated.provider == stated.module.partition(".")[0].replace("_", "-")
        require(consumer.replace("_", "-"), [stated])


@pytest.mark.parametrize("consumer", CONSUMERS)
def test_the_check_comes_before_anything_else_of_the_package(consumer: str) -> None:
    """With an interface of another major, no other module of the package was imported."""
    program = (
        "import sys, importlib\n"
        f"stated = {importlib.import_module(f'{consumer}._interfaces').NEEDS[-1].module!r}\n"
        "importlib.import_module(stated).INTERFACE_VERSION = (99, 0)\n"
        "try:\n"
        f"    import {consumer}\n"
        "except ImportError as error:\n"
        f"    loaded = sorted(m for m in sys.modules if m.startswith({consumer + '.'!r}))\n"
        "    print(type(error).__name__, loaded)\n"
    )
    result = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert result.stdout.strip() == "InterfaceMismatchError []"
