"""Training with a progress bar that shows loss and character error."""

from __future__ import annotations

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

import onemodel_tensors as om
from digit_lines.draws import Draws
from digit_lines.lines import (
    BLANK,
    FOR_TRAINING,
    Line,
    Scans,
    batches_of_similar_width,
    compose_lines,
    stack,
)
from digit_lines.reader import LineReader
from digit_lines.reading import character_error, read_digits
from onemodel_tensors import functional as F
from onemodel_training import AdamW, NnModule, OneCycleLR, clip_grad_norm_

PEAK_LEARNING_RATE = 4e-3
LARGEST_GRADIENT = 5.0


def train(
    scans: Scans,
    *,
    epochs: int,
    lines_per_epoch: int,
    batch_size: int,
    seed: int,
    console: Console,
) -> LineReader:
    """Train a reader on fresh lines in every epoch.

    The same arguments give the same weights, bit for bit, whatever the number of threads.
    """
    om.manual_seed(seed)
    model = LineReader()
    steps = epochs * -(-lines_per_epoch // batch_size)
    optimizer = AdamW(model.parameters(), lr=PEAK_LEARNING_RATE, weight_decay=1e-3)
    schedule = OneCycleLR(optimizer, max_lr=PEAK_LEARNING_RATE, total_steps=steps)
    model.train()
    loss_average = error_average = None
    with _progress(console) as progress:
        task = progress.add_task("training", total=steps, loss=float("nan"), error=float("nan"))
        for epoch in range(epochs):
            lines = compose_lines(
                scans, lines_per_epoch, seed, part=100 + epoch, variation=FOR_TRAINING
            )
            shuffle = Draws(seed, 2, epoch)
            for batch in batches_of_similar_width(lines, batch_size, shuffle):
                loss, error = _step(model, optimizer, batch)
                schedule.step()
                loss_average = _average(loss_average, loss)
                error_average = _average(error_average, error)
                progress.update(
                    task,
                    advance=1,
                    description=f"epoch {epoch + 1}/{epochs}",
                    loss=loss_average,
                    error=100 * error_average,
                )
    return model.eval()


def _progress(console: Console) -> Progress:
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("loss {task.fields[loss]:.3f}  character error {task.fields[error]:.1f} %"),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        console=console,
    )


def _average(average: float | None, value: float) -> float:
    return value if average is None else 0.9 * average + 0.1 * value


def _step(model: NnModule, optimizer: AdamW, batch: list[Line]) -> tuple[float, float]:
    log_probs = model(om.from_numpy(stack(batch)))
    steps = log_probs.shape[0]
    lengths = [len(line.digits) for line in batch]
    targets = np.zeros((len(batch), max(lengths)), np.int64)
    for row, line in enumerate(batch):
        targets[row, : len(line.digits)] = np.asarray(line.digits) + 1
    loss = F.ctc_loss(
        log_probs,
        om.from_numpy(targets),
        om.tensor([steps] * len(batch)),
        om.tensor(lengths),
        blank=BLANK,
        zero_infinity=True,
    )
    optimizer.zero_grad()
    loss.backward()
    clip_grad_norm_(model.parameters(), LARGEST_GRADIENT)
    optimizer.step()
    read = read_digits(log_probs.detach().numpy())
    written = [line.digits for line in batch]
    return loss.item(), character_error(zip(read, written, strict=True))
