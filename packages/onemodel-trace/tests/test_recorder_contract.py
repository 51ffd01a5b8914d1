"""The tracer keeps the contract of the recording seam."""

from __future__ import annotations

import contextlib

from onemodel_tensors.testing import RecorderContract
from onemodel_trace import Tracer


class TestTracer(RecorderContract):
    @contextlib.contextmanager
    def begin(self):
        with Tracer.begin() as tracer:
            yield lambda example: tracer.input("x", example)
