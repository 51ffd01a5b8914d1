"""The training loop."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import onemodel_tensors as om
from onemodel_kernels.errors import AttributeValueError, OneModelError
from onemodel_tensors import Tensor
from onemodel_training.checkpoint import CheckpointStore
from onemodel_training.data import DataLoader
from onemodel_training.distributed import (
    Communicator,
    average_gradients,
    broadcast_buffers,
    broadcast_state,
)
from onemodel_training.ema import ExponentialMovingAverage
from onemodel_training.history import History
from onemodel_training.metrics import Ratio
from onemodel_training.module import NnModule
from onemodel_training.optim import Optimizer, clip_grad_norm_
from onemodel_training.progress import Progress, SilentProgress, default_progress
from onemodel_training.schedules import ReduceLROnPlateau

__all__ = ["EarlyStopping", "Trainer", "TrainingError"]

StepFunction = Callable[[NnModule, Any], Tensor | tuple[Tensor, Mapping[str, Ratio]]]
EvaluateFunction = Callable[[NnModule, Any], Mapping[str, Ratio]]


class TrainingError(OneModelError):
    """A training run that cannot go on."""


class EarlyStopping:
    """Remembers the best value of a figure and says when it has not improved for long.

    Args:
        metric: a column of the history, such as ``val_loss``.
        patience: epochs without improvement after which training stops.
        mode: min or max, which way is better. min_delta: the improvement that counts.
    """

    def __init__(
        self, metric: str, patience: int = 10, mode: str = "min", min_delta: float = 0.0
    ) -> None:
        if mode not in ("min", "max"):
            raise AttributeValueError(f"EarlyStopping: expected mode min or max, got {mode!r}")
        self.metric = metric
        self.patience = patience
        self.mode = mode
        self.min_delta = min_delta
        self.best: float | None = None
        self.waited = 0

    def update(self, row: Mapping[str, float]) -> bool:
        """Looks at an epoch's row; True when it is the best so far."""
        if self.metric not in row:
            raise TrainingError(
                f"EarlyStopping: expected the figure {self.metric!r}, the epoch has "
                f"{', '.join(row)}"
            )
        value = row[self.metric]
        gain = (
            math.inf
            if self.best is None
            else (value - self.best if self.mode == "max" else self.best - value)
        )
        if not math.isnan(value) and gain > self.min_delta:
            self.best = value
            self.waited = 0
            return True
        self.waited += 1
        return False

    @property
    def stop(self) -> bool:
        """Whether training should end."""
        return self.waited >= self.patience

    def state_dict(self) -> dict[str, Any]:
        """Plain values."""
        return {"best": self.best, "waited": self.waited}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Goes to where the other one was."""
        self.best = state["best"]
        self.waited = int(state["waited"])


class Trainer:
    """Trains a model and keeps everything that a later run needs to go on with the same bits.

    Args:
        model: trained in place.
        optimizer: over its parameters.
        step: ``step(model, batch)`` gives the loss, or the loss and figures of the batch as
            :class:`~onemodel_training.metrics.Ratio`.
        evaluate: ``evaluate(model, batch)`` gives figures of a validation batch; called in
            evaluation mode, without gradients, on the averaged weights if there are any.
        scheduler: stepped after each batch or epoch, as ``schedule_per`` says.
        ema: updated after each batch.
        clip_norm: the largest joint gradient norm.
        early_stopping: watches the history; its best epoch is marked in the checkpoints.
        checkpoints: a directory or store; a checkpoint is saved after each epoch and, with
            ``checkpoint_every``, after so many batches.
        progress: True for a bar or lines, False for silence, or an object that is told.
        csv: a file that gets the history after each epoch. curves: a PNG likewise.
        communicator: trains data-parallel over its ranks; the loader gives each rank its part of
            a batch, figures are of all ranks, and the first rank writes.

    A run that is interrupted and resumed ends with the same bits as one that was not: weights,
    optimiser and schedule state, order of the data and the default generator all come back.
    """

    def __init__(
        self,
        model: NnModule,
        optimizer: Optimizer,
        step: StepFunction,
        *,
        evaluate: EvaluateFunction | None = None,
        scheduler: Any = None,
        schedule_per: str = "step",
        ema: ExponentialMovingAverage | None = None,
        clip_norm: float | None = None,
        early_stopping: EarlyStopping | None = None,
        checkpoints: str | Path | CheckpointStore | None = None,
        checkpoint_every: int | None = None,
        progress: bool | Progress = True,
        csv: str | Path | None = None,
        curves: str | Path | None = None,
        communicator: Communicator | None = None,
    ) -> None:
        if schedule_per not in ("step", "epoch"):
            raise AttributeValueError(
                f"Trainer: expected schedule_per step or epoch, got {schedule_per!r}"
            )
        if isinstance(scheduler, ReduceLROnPlateau) and (
            schedule_per != "epoch" or early_stopping is None
        ):
            raise AttributeValueError(
                "Trainer: ReduceLROnPlateau needs schedule_per='epoch' and early_stopping, whose "
                "figure it watches"
            )
        if checkpoint_every is not None and checkpoint_every < 1:
            raise AttributeValueError(
                f"Trainer: expected checkpoint_every of 1 or more, got {checkpoint_every}"
            )
        self.model = model
        self.optimizer = optimizer
        self.step = step
        self.evaluate = evaluate
        self.scheduler = scheduler
        self.schedule_per = schedule_per
        self.ema = ema
        self.clip_norm = clip_norm
        self.early_stopping = early_stopping
        self.store = (
            CheckpointStore(checkpoints) if isinstance(checkpoints, (str, Path)) else checkpoints
        )
        self.checkpoint_every = checkpoint_every
        self.progress = progress
        self.csv = csv
        self.curves = curves
        self.communicator = communicator
        self._writes = communicator is None or communicator.rank == 0
        self.history = History()
        self.steps = 0
        self._sums: dict[str, Ratio] = {}

    def fit(
        self,
        train: DataLoader,
        validation: Iterable[Any] | None = None,
        *,
        epochs: int,
        resume: bool = True,
    ) -> History:
        """Trains until ``epochs`` epochs are done, or early stopping ends it.

        Args:
            train: its epoch and position are part of the checkpoints.
            validation: batches for ``evaluate``.
            epochs: in all, those of the run that is resumed included.
            resume: whether to go on from the newest checkpoint, if there is one.

        Raises:
            TrainingError: the loss is infinite or NaN.
        """
        if validation is not None and self.evaluate is None:
            raise TrainingError("Trainer.fit: validation batches need evaluate(model, batch)")
        saved = self.store.latest() if resume and self.store is not None else None
        if saved is not None:
            self._load(saved, train)
        if self.communicator is not None:
            broadcast_state(self.model, self.communicator)
        progress: Progress = (
            self.progress
            if not isinstance(self.progress, bool)
            else default_progress()
            if self.progress and self._writes
            else SilentProgress()
        )
        try:
            while train.epoch < epochs and not self._stopped():
                self._epoch(train, validation, epochs, progress)
        finally:
            progress.close()
        return self.history

    def _stopped(self) -> bool:
        return self.early_stopping is not None and self.early_stopping.stop

    def _epoch(
        self, train: DataLoader, validation: Iterable[Any] | None, epochs: int, progress: Progress
    ) -> None:
        started = time.perf_counter()
        self.model.train()
        epoch = train.epoch + 1
        progress.start_epoch(epoch, epochs, len(train), train.position)
        for batch in train:
            self._train_on(batch)
            progress.advance({name: ratio.value for name, ratio in self._sums.items()})
            if self.checkpoint_every and self.steps % self.checkpoint_every == 0:
                self._save(train, best=False)
        row: dict[str, float] = {"epoch": epoch, "step": self.steps}
        row["lr"] = float(self.optimizer.param_groups[0]["lr"])
        row.update((name, ratio.value) for name, ratio in self._over_ranks(self._sums).items())
        self._sums = {}
        if validation is not None:
            row.update(self.validate(validation))
        best = self.early_stopping.update(row) if self.early_stopping is not None else False
        if self.scheduler is not None and self.schedule_per == "epoch":
            if isinstance(self.scheduler, ReduceLROnPlateau) and self.early_stopping is not None:
                self.scheduler.step(row[self.early_stopping.metric])
            else:
                self.scheduler.step()
        row["seconds"] = time.perf_counter() - started
        self.history.append(row)
        progress.end_epoch(row)
        self._save(train, best=best)
        if self.csv is not None and self._writes:
            self.history.write_csv(self.csv)
        if self.curves is not None and self._writes:
            self.history.write_png(self.curves)

    def _over_ranks(self, sums: dict[str, Ratio]) -> dict[str, Ratio]:
        if self.communicator is None:
            return sums
        total: dict[str, Ratio] = {}
        for part in self.communicator.allgather(sums):
            for name, ratio in part.items():
                total[name] = total[name] + ratio if name in total else ratio
        return total

    def _train_on(self, batch: Any) -> None:
        self.optimizer.zero_grad()
        if self.communicator is not None:
            broadcast_buffers(self.model, self.communicator)
        result = self.step(self.model, batch)
        loss, figures = result if isinstance(result, tuple) else (result, {})
        value = float(loss.item())
        if not math.isfinite(value):
            raise TrainingError(
                f"Trainer: expected a finite loss, got {value} at step {self.steps + 1}; lower "
                "the learning rate, clip gradients or look at the batch"
            )
        loss.backward()
        if self.communicator is not None:
            average_gradients(self.model.parameters(), self.communicator)
        if self.clip_norm is not None:
            clip_grad_norm_(self.model.parameters(), self.clip_norm)
        self.optimizer.step()
        self.steps += 1
        if self.scheduler is not None and self.schedule_per == "step":
            self.scheduler.step()
        if self.ema is not None:
            self.ema.update()
        for name, ratio in {"loss": Ratio(value, 1.0), **figures}.items():
            self._sums[name] = self._sums[name] + ratio if name in self._sums else ratio

    def validate(self, batches: Iterable[Any]) -> dict[str, float]:
        """Figures over all batches in evaluation mode, named ``val_…``; the mode is put back."""
        if self.evaluate is None:
            raise TrainingError("Trainer.validate: expected evaluate(model, batch)")
        if self.communicator is not None:
            broadcast_buffers(self.model, self.communicator)
        modes = [(module, module.training) for module in self.model.modules()]
        self.model.eval()
        sums: dict[str, Ratio] = {}
        try:
            with om.no_grad():
                if self.ema is None:
                    self._evaluate_all(batches, sums)
                else:
                    with self.ema.applied():
                        self._evaluate_all(batches, sums)
        finally:
            for module, mode in modes:
                module.training = mode
        totals = self._over_ranks(sums)
        return {f"val_{name}": ratio.value for name, ratio in totals.items()}

    def _evaluate_all(self, batches: Iterable[Any], sums: dict[str, Ratio]) -> None:
        if self.evaluate is None:
            return
        for batch in batches:
            for name, ratio in self.evaluate(self.model, batch).items():
                sums[name] = sums[name] + ratio if name in sums else ratio

    def _save(self, train: DataLoader, *, best: bool) -> None:
        if self.store is None or not self._writes:
            return
        state: dict[str, Any] = {
            "steps": self.steps,
            "model": self.model.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "loader": train.state_dict(),
            "generator": om.default_generator.get_state(),
            "history": self.history.rows,
            "sums": {name: list(ratio) for name, ratio in self._sums.items()},
        }
        for name in ("scheduler", "ema", "early_stopping"):
            part = getattr(self, name)
            state[name] = None if part is None else part.state_dict()
        self.store.save(self.steps, state, best=best)

    def _load(self, state: Mapping[str, Any], train: DataLoader) -> None:
        self.model.load_state_dict(state["model"])
        self.optimizer.load_state_dict(state["optimizer"])
        for name in ("scheduler", "ema", "early_stopping"):
            part = getattr(self, name)
            if (part is None) != (state[name] is None):
                raise TrainingError(
                    f"Trainer: the checkpoint was made {'with' if part is None else 'without'} "
                    f"{name}; build the trainer in the same way, or give resume=False"
                )
            if part is not None:
                part.load_state_dict(state[name])
        train.load_state_dict(state["loader"])
        om.default_generator.set_state(state["generator"])
        self.steps = int(state["steps"])
        self.history.rows = [dict(row) for row in state["history"]]
        self._sums = {name: Ratio(*values) for name, values in state["sums"].items()}
