"""The training loop, and runs that are stopped and go on."""

from __future__ import annotations

import csv
import hashlib
import sys
from pathlib import Path
from typing import Any

import pytest

import onemodel_kernels
import onemodel_tensors as om
from onemodel_kernels.errors import AttributeValueError, OneModelError
from onemodel_training import (
    AdamW,
    BatchNorm1d,
    CosineAnnealingLR,
    DataLoader,
    Dropout,
    EarlyStopping,
    ExponentialMovingAverage,
    History,
    Linear,
    NnModule,
    Ratio,
    ReduceLROnPlateau,
    ReLU,
    Sequential,
    TensorDataset,
    Trainer,
    TrainingError,
    accuracy,
    manual_seed,
)
from onemodel_training.progress import (
    LineProgress,
    RichProgress,
    SilentProgress,
    default_progress,
    text_of,
)


def data() -> TensorDataset:
    generator = om.Generator(11)
    x = om.rand(90, 4, generator=generator) - 0.5
    return TensorDataset(x, (x[:, 0] * x[:, 1] > 0.0).to("int64"))


def step(model: NnModule, batch: Any) -> tuple[om.Tensor, dict[str, Ratio]]:
    x, target = batch
    scores = model(x)
    return om.functional.cross_entropy(scores, target), {"accuracy": accuracy(scores, target)}


def evaluate(model: NnModule, batch: Any) -> dict[str, Ratio]:
    x, target = batch
    assert not model.training
    scores = model(x)
    loss = om.functional.cross_entropy(scores, target, reduction="sum")
    return {"loss": Ratio(loss.item(), len(x)), "accuracy": accuracy(scores, target)}


class Stop(Exception):
    pass


def build(folder: Path | None, **options: Any) -> tuple[Trainer, DataLoader]:
    manual_seed(5)
    model = Sequential(Linear(4, 16), BatchNorm1d(16), ReLU(), Dropout(0.2), Linear(16, 2))
    optimizer = AdamW(model.parameters(), lr=0.02)
    settings: dict[str, Any] = {
        "evaluate": evaluate,
        "scheduler": CosineAnnealingLR(optimizer, 40),
        "ema": ExponentialMovingAverage(model, 0.9),
        "clip_norm": 1.0,
        "early_stopping": EarlyStopping("loss", patience=100),
        "checkpoints": folder,
        "progress": False,
        **options,
    }
    trainer = Trainer(model, optimizer, step, **settings)
    return trainer, DataLoader(data(), 16, shuffle=True, seed=3)


def digest(trainer: Trainer) -> str:
    found = hashlib.sha256()
    assert trainer.ema is not None
    for state in (trainer.model.state_dict(), trainer.ema.averages):
        for name, tensor in state.items():
            found.update(name.encode())
            found.update(tensor.numpy().tobytes())
    return found.hexdigest()


def rows(trainer: Trainer) -> list[dict[str, float]]:
    return [{k: v for k, v in row.items() if k != "seconds"} for row in trainer.history.rows]


def test_it_learns() -> None:
    trainer, loader = build(None)
    history = trainer.fit(loader, DataLoader(data(), 45), epochs=12)
    losses = history.column("loss")
    assert losses[-1] < 0.8 * losses[0]
    assert history.column("val_accuracy")[-1] > 0.7
    assert history.rows[-1]["step"] == 12 * 6
    assert trainer.model.training


def test_threads_do_not_change_the_weights() -> None:
    before = onemodel_kernels.get_num_threads()
    digests = set()
    try:
        for threads in (1, 2):
            onemodel_kernels.set_num_threads(threads)
            trainer, loader = build(None)
            trainer.fit(loader, epochs=2)
            digests.add(digest(trainer))
    finally:
        onemodel_kernels.set_num_threads(before)
    assert len(digests) == 1


@pytest.mark.parametrize("stop_at", [7, 12, 15])
def test_a_resumed_run_has_the_bits_of_one_that_was_not_stopped(
    tmp_path: Path, stop_at: int
) -> None:
    straight, loader = build(tmp_path / "straight")
    straight.fit(loader, DataLoader(data(), 45), epochs=4)

    stopped, loader = build(tmp_path / "stopped", checkpoint_every=1)

    def breaking(model: NnModule, batch: Any) -> Any:
        if stopped.steps == stop_at:
            raise Stop
        return step(model, batch)

    stopped.step = breaking
    with pytest.raises(Stop):
        stopped.fit(loader, DataLoader(data(), 45), epochs=4)

    manual_seed(999)
    resumed, loader = build(tmp_path / "stopped", checkpoint_every=1)
    om.rand(17)
    resumed.fit(loader, DataLoader(data(), 45), epochs=4)
    assert resumed.steps == straight.steps
    assert digest(resumed) == digest(straight)
    assert rows(resumed) == rows(straight)
    first, second = resumed.store, straight.store
    assert first is not None
    assert second is not None
    assert first.best_step() == second.best_step()


def test_workers_and_resuming_go_together(tmp_path: Path) -> None:
    straight, loader = build(None)
    straight.fit(loader, epochs=2)
    for epochs in (1, 2):
        part, loader = build(tmp_path)
        loader.num_workers = 2
        part.fit(loader, epochs=epochs)
    assert digest(part) == digest(straight)


def test_resuming_with_other_parts_is_refused(tmp_path: Path) -> None:
    trainer, loader = build(tmp_path)
    trainer.fit(loader, epochs=1)
    other, loader = build(tmp_path, ema=None)
    with pytest.raises(TrainingError, match="made with ema"):
        other.fit(loader, epochs=2)
    fresh, loader = build(tmp_path, ema=None)
    fresh.fit(loader, epochs=1, resume=False)
    assert len(fresh.history.rows) == 1


def test_early_stopping_ends_and_marks_the_best(tmp_path: Path) -> None:
    trainer, loader = build(tmp_path, early_stopping=EarlyStopping("val_loss", patience=2))
    values = iter([3.0, 1.0, 2.0, 2.0, 0.0])
    trainer.evaluate = lambda model, batch: {"loss": Ratio(next(values), 1.0)}
    history = trainer.fit(loader, [0], epochs=50)
    assert history.column("val_loss") == [3.0, 1.0, 2.0, 2.0]
    assert trainer.store is not None
    assert trainer.store.best_step() == 12
    assert trainer.store.best() is not None


def test_csv_and_picture(tmp_path: Path) -> None:
    trainer, loader = build(None, csv=tmp_path / "h.csv", curves=tmp_path / "h.png")
    trainer.fit(loader, DataLoader(data(), 45), epochs=2)
    with (tmp_path / "h.csv").open() as file:
        table = list(csv.DictReader(file))
    assert [row["epoch"] for row in table] == ["1", "2"]
    assert float(table[1]["val_loss"]) == trainer.history.rows[1]["val_loss"]
    assert (tmp_path / "h.png").read_bytes().startswith(b"\x89PNG\r\n\x1a\n")


def test_a_loss_that_is_not_finite_ends_the_run() -> None:
    trainer, loader = build(None)
    trainer.step = lambda model, batch: model(batch[0]).sum() * float("nan")
    with pytest.raises(TrainingError, match="finite loss, got nan at step 1"):
        trainer.fit(loader, epochs=1)


def test_schedules_per_epoch_and_on_a_plateau() -> None:
    trainer, loader = build(None, early_stopping=EarlyStopping("val_loss", patience=100))
    trainer.scheduler = ReduceLROnPlateau(trainer.optimizer, factor=0.5, patience=0)
    trainer.schedule_per = "epoch"
    trainer.evaluate = lambda model, batch: {"loss": Ratio(1.0, 1.0)}
    trainer.fit(loader, [0], epochs=3)
    assert trainer.optimizer.param_groups[0]["lr"] == pytest.approx(0.02 / 4)
    with pytest.raises(AttributeValueError, match="needs schedule_per='epoch'"):
        build(None, scheduler=ReduceLROnPlateau(trainer.optimizer))
    with pytest.raises(AttributeValueError, match="step or epoch, got 'day'"):
        build(None, schedule_per="day")


def test_the_average_follows_and_comes_off_again() -> None:
    layer = Linear(1, 1, bias=False)
    with om.no_grad():
        layer.weight.fill_(0.0)
    ema = ExponentialMovingAverage(layer, decay=0.75)
    with om.no_grad():
        layer.weight.fill_(1.0)
    ema.update()
    ema.update()
    assert ema.averages["weight"].item() == 1 - 0.75**2
    with ema.applied() as averaged:
        assert averaged.weight.item() == 0.4375
    assert layer.weight.item() == 1.0
    warm = ExponentialMovingAverage(layer, decay=0.999, warmup=True)
    with om.no_grad():
        layer.weight.fill_(0.0)
    warm.update()
    assert warm.averages["weight"].item() == pytest.approx(2 / 11)


def test_progress_shows_the_figures(capsys: pytest.CaptureFixture[str]) -> None:
    trainer, loader = build(None, progress=LineProgress())
    trainer.fit(loader, DataLoader(data(), 45), epochs=1)
    text = capsys.readouterr().err
    assert text.startswith("epoch 1/1  lr ")
    assert "val_accuracy 0." in text
    trainer, loader = build(None, progress=RichProgress())
    trainer.fit(loader, epochs=1)
    assert "epoch 1/1" in capsys.readouterr().err
    assert text_of({"epoch": 1, "loss": 0.5}) == "loss 0.5000"
    SilentProgress().end_epoch({})


def test_a_missing_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [m for m in sys.modules if m.partition(".")[0] in ("rich", "matplotlib")]:
        monkeypatch.delitem(sys.modules, name)
    for name in ("rich", "matplotlib"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(OneModelError, match=r"pip install 'onemodel-training\[progress\]'"):
        RichProgress()
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    assert isinstance(default_progress(), LineProgress)
    with pytest.raises(OneModelError, match=r"pip install 'onemodel-training\[plots\]'"):
        History().write_png(tmp_path / "curves.png")


def test_memory_is_flat_over_many_steps() -> None:
    trainer, loader = build(None)
    trainer.fit(loader, epochs=5)
    import resource

    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    trainer.fit(loader, epochs=170)
    assert trainer.steps == 1020
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert grown < 4096, f"{grown} KiB grew over 990 steps"
