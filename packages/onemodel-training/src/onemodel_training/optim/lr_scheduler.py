"""The schedules, by the names of ``torch.optim.lr_scheduler``."""

from onemodel_training import schedules
from onemodel_training.schedules import *  # noqa: F403

__all__ = schedules.__all__
