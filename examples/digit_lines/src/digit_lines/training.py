"""Training with a progress bar that shows loss and character error."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

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
from onemodel_training import (
    AdamW,
    CTCLoss,
    DataLoader,
    NnModule,
    OneCycleLR,
    Ratio,
    Trainer,
    character_error_rate,
    ctc_greedy_decode,
    manual_seed,
)

PEAK_LEARNING_RATE = 3e-3
LARGEST_GRADIENT = 5.0
FIRST_TRAINING_PART = 100


class Batch(NamedTuple):
    """Lines of about one width, as the loss takes them."""

    image: om.Tensor
    labels: list[tuple[int, ...]]
    targets: om.Tensor
    target_lengths: om.Tensor


class FreshLines:
    """A dataset that composes new lines for every epoch."""

    def __init__(self, scans: Scans, count: int, batch_size: int, seed: int) -> None:
        self.scans = scans
        self.count = count
        self.batch_size = batch_size
        self.seed = seed
        self._epoch = -1
        self._lines: list[Line] = []

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> Line:
        return self._lines[index]

    def batches(self, epoch: int) -> list[list[int]]:
        """The lines of each batch of an epoch, by index."""
        if epoch != self._epoch:
            part = FIRST_TRAINING_PART + epoch
            self._lines = compose_lines(self.scans, self.count, self.seed, part, FOR_TRAINING)
            self._epoch = epoch
        shuffle = Draws(self.seed, 2, epoch)
        return batches_of_similar_width(self._lines, self.batch_size, shuffle)


def collate(lines: Sequence[Line]) -> Batch:
    """The lines as one batch, targets padded with blanks."""
    labels = [line.labels for line in lines]
    longest = max(map(len, labels))
    padded = [list(row) + [BLANK] * (longest - len(row)) for row in labels]
    return Batch(
        om.from_numpy(stack(lines)), labels, om.tensor(padded), om.tensor([*map(len, labels)])
    )


def train(
    scans: Scans,
    *,
    epochs: int,
    lines_per_epoch: int,
    batch_size: int,
    seed: int,
    progress: bool = True,
) -> LineReader:
    """Train a reader on fresh lines in every epoch.

    The same arguments give the same weights, bit for bit, whatever the number of threads.
    """
    manual_seed(seed)
    model = LineReader()
    lines = FreshLines(scans, lines_per_epoch, batch_size, seed)
    loader = DataLoader(lines, batches=lines.batches, collate_fn=collate)
    optimizer = AdamW(model.parameters(), lr=PEAK_LEARNING_RATE, weight_decay=1e-2)
    steps = epochs * -(-lines_per_epoch // batch_size)
    trainer = Trainer(
        model,
        optimizer,
        training_step,
        scheduler=OneCycleLR(
            optimizer, max_lr=PEAK_LEARNING_RATE, total_steps=steps, pct_start=0.2
        ),
        clip_norm=LARGEST_GRADIENT,
        progress=progress,
    )
    trainer.fit(loader, epochs=epochs)
    return model.eval()


def training_step(model: NnModule, batch: Batch) -> tuple[om.Tensor, dict[str, Ratio]]:
    """The loss of a batch, and its character error."""
    log_probs = model(batch.image)
    steps, size, _ = log_probs.shape
    loss = CTCLoss(blank=BLANK, zero_infinity=True)(
        log_probs, batch.targets, om.tensor([steps] * size), batch.target_lengths
    )
    read = ctc_greedy_decode(log_probs, blank=BLANK)
    return loss, {"character error": character_error_rate(read, batch.labels)}
