"""A training run's bits depend on its seed alone: not on threads, and not on the instruction set."""

from __future__ import annotations

import os
import subprocess
import sys

import onemodel_kernels

SCRIPT = """
import hashlib, sys
import onemodel_kernels
onemodel_kernels.set_num_threads(int(sys.argv[1]))
import onemodel_tensors as om
from onemodel_tensors import functional as F
from onemodel_training import *

class Reader(NnModule):
    def __init__(self):
        super().__init__()
        self.features = Sequential(
            Conv2d(1, 8, 3, padding=1, bias=False), BatchNorm2d(8), ReLU(), MaxPool2d((2, 2)),
            Conv2d(8, 12, 3, padding=1), GroupNorm(3, 12), GELU(), AvgPool2d((2, 1)), Dropout(0.1),
        )
        self.lstm = LSTM(24, 10, num_layers=2, bidirectional=True, dropout=0.1)
        self.norm = LayerNorm(20)
        self.out = Linear(20, 6)

    def forward(self, x):
        steps, _ = self.lstm(self.features(x).permute(3, 0, 1, 2).flatten(2))
        return F.log_softmax(self.out(self.norm(steps)), -1)

manual_seed(1)
model = Reader()
optimizer = AdamW(model.parameters(), lr=4e-3)
schedule = OneCycleLR(optimizer, 4e-3, total_steps=4)
loss = CTCLoss(zero_infinity=True)
draw = om.Generator(2)
for _ in range(4):
    image = om.rand(5, 1, 8, 22, generator=draw)
    target = om.randint(1, 6, (5, 3), generator=draw)
    scores = model(image)
    lengths = om.full((5,), scores.shape[0], dtype="int64"), om.full((5,), 3, dtype="int64")
    optimizer.zero_grad()
    loss(scores, target, *lengths).backward()
    clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    schedule.step()

class Translator(NnModule):
    def __init__(self):
        super().__init__()
        self.words = Embedding(20, 16)
        self.layer = TransformerEncoderLayer(16, 2, 24, 0.1, "gelu", batch_first=True)
        self.norm, self.gru = RMSNorm(16), GRU(16, 6, batch_first=True)
        self.up = ConvTranspose2d(6, 2, 2, stride=2)
        self.out = Linear(56, 20)

    def forward(self, ids):
        x = self.norm(self.layer(self.words(ids)))
        y = self.gru(x)[0].transpose(1, 2).unsqueeze(2)
        return self.out(F.silu(self.up(y)).flatten(1))

text = Translator()
steps = SGD(text.parameters(), lr=0.1, momentum=0.9, nesterov=True, weight_decay=1e-3)
for _ in range(3):
    ids = om.randint(0, 20, (4, 7), generator=draw)
    labels = om.randint(0, 20, (4,), generator=draw)
    steps.zero_grad()
    F.cross_entropy(text(ids), labels, label_smoothing=0.1).backward()
    steps.step()
digest = hashlib.sha256()
for name, tensor in [*model.state_dict().items(), *text.state_dict().items()]:
    digest.update(name.encode() + tensor.numpy().tobytes())
print(onemodel_kernels.isa(), digest.hexdigest())
"""


def run(threads: int, isa: str | None) -> tuple[str, str]:
    environment = {k: v for k, v in os.environ.items() if k != "ONEMODEL_KERNELS_ISA"}
    if isa is not None:
        environment["ONEMODEL_KERNELS_ISA"] = isa
    found = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(threads)],
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
    )
    used, digest = found.stdout.split()
    return used, digest


def test_weights_have_one_hash_over_threads_and_instruction_sets() -> None:
    own = onemodel_kernels.isa()
    below = {"avx512": ["avx2", "scalar"], "avx2": ["scalar"], "neon": ["scalar"], "scalar": []}[
        own
    ]
    used, digest = run(2, None)
    assert run(1, None) == (used, digest)
    for isa in below:
        assert run(2, isa) == (isa, digest)
