"""The names of ``torch.nn.utils``: ported code reaches them as attributes, so the name is theirs."""

from onemodel_training.nn.utils import rnn
from onemodel_training.optim.clipping import clip_grad_norm_, clip_grad_value_
from onemodel_training.parameter_vectors import parameters_to_vector, vector_to_parameters
from onemodel_training.reparameterisation import (
    remove_spectral_norm,
    remove_weight_norm,
    spectral_norm,
    weight_norm,
)

__all__ = [
    "clip_grad_norm_",
    "clip_grad_value_",
    "parameters_to_vector",
    "remove_spectral_norm",
    "remove_weight_norm",
    "rnn",
    "spectral_norm",
    "vector_to_parameters",
    "weight_norm",
]
