"""Optimisers, their schedules and gradient clipping."""

from typing import Any

from onemodel_tensors.left_out import missing
from onemodel_training.optim import lr_scheduler
from onemodel_training.optim.adadelta import Adadelta
from onemodel_training.optim.adagrad import Adagrad
from onemodel_training.optim.adam import Adam, AdamW
from onemodel_training.optim.clipping import clip_grad_norm_, clip_grad_value_
from onemodel_training.optim.lion import Lion
from onemodel_training.optim.optimizer import Optimizer
from onemodel_training.optim.rmsprop import RMSprop
from onemodel_training.optim.sgd import SGD

__all__ = [
    "SGD",
    "Adadelta",
    "Adagrad",
    "Adam",
    "AdamW",
    "Lion",
    "Optimizer",
    "RMSprop",
    "clip_grad_norm_",
    "clip_grad_value_",
    "lr_scheduler",
]


def __getattr__(name: str) -> Any:
    raise missing(name, "onemodel_training.optim")
