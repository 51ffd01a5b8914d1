"""11. Same model, same bytes, in any process, directory and hash seed; nothing private inside."""

from __future__ import annotations

import getpass
import hashlib
import os
import subprocess
import sys
from pathlib import Path

import onnx

PROGRAM = """
import onemodel_tensors as om
from onemodel_training import LSTM, BatchNorm2d, Conv2d, Linear, NnModule, Sequential
from onemodel_tensors import functional as F

class Reader(NnModule):
    def __init__(self):
        super().__init__()
        self.features = Sequential(Conv2d(1, 4, 3, padding=1), BatchNorm2d(4))
        self.lstm = LSTM(32, 6, num_layers=2, bidirectional=True)
        self.classify = Linear(12, 3)

    def forward(self, image):
        steps, _ = self.lstm(F.relu(self.features(image)).permute(3, 0, 1, 2).flatten(2))
        return F.log_softmax(self.classify(steps), dim=-1)

om.manual_seed(0)
traced = Reader().eval().trace(
    om.rand(3, 1, 8, 10), axis_names={"image": {0: "batch", 3: "width"}}, verify=False
)
traced.save_onnx("model.onnx")
traced.save("model.om1")
"""


def save_in(folder: Path, hash_seed: str) -> tuple[str, str]:
    folder.mkdir()
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
    subprocess.run([sys.executable, "-c", PROGRAM], cwd=folder, env=environment, check=True)
    onnx_file, v1_file = folder / "model.onnx", folder / "model.om1"
    return (
        hashlib.sha256(onnx_file.read_bytes()).hexdigest(),
        hashlib.sha256(v1_file.read_bytes()).hexdigest(),
    )


def test_bytes_do_not_depend_on_process_directory_or_hash_seed(tmp_path: Path) -> None:
    hashes = {
        save_in(tmp_path / name, seed)
        for name, seed in (("one", "0"), ("another folder", "1"), ("three", "12345"))
    }
    assert len(hashes) == 1


def test_nothing_private_is_in_the_files(tmp_path: Path) -> None:
    save_in(tmp_path / "secretfolder", "0")
    for name in ("model.onnx", "model.om1"):
        content = (tmp_path / "secretfolder" / name).read_bytes()
        private = [b"secretfolder", os.fsencode(sys.prefix), os.fsencode(Path.home()) + b"/"]
        if len(getpass.getuser()) > 4:
            private.append(getpass.getuser().encode())
        assert not [word for word in private if word in content]


def test_versions_are_those_that_consumers_read(tmp_path: Path) -> None:
    save_in(tmp_path / "here", "0")
    model = onnx.load(tmp_path / "here" / "model.onnx")
    onnx.checker.check_model(model, full_check=True)
    assert model.ir_version == 9
    assert [(entry.domain, entry.version) for entry in model.opset_import] == [("", 20)]
