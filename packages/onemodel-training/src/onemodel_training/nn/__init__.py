"""The names of ``torch.nn``, for models that are ported by changing imports.

``from onemodel_training import nn`` gives ``nn.Module``, ``nn.Parameter``, every layer and loss,
``nn.functional`` and ``nn.init``.
"""

from typing import Any

from onemodel_tensors import functional
from onemodel_tensors.left_out import missing
from onemodel_training import init, layers, losses
from onemodel_training.layers import *  # noqa: F403
from onemodel_training.losses import *  # noqa: F403
from onemodel_training.module import NnModule as Module
from onemodel_training.nn import utils
from onemodel_training.parameter import Parameter
from onemodel_training.reparameterisation import (
    remove_spectral_norm,
    remove_weight_norm,
    spectral_norm,
    weight_norm,
)

__all__ = [
    "Module",
    "Parameter",
    "functional",
    "init",
    "remove_spectral_norm",
    "remove_weight_norm",
    "spectral_norm",
    "utils",
    "weight_norm",
]
__all__ += layers.__all__
__all__ += losses.__all__


def __getattr__(name: str) -> Any:
    raise missing(name, "onemodel_training.nn")
