"""What implementers of :class:`~onemodel_tensors.recording.Recorder` test themselves with."""

from onemodel_tensors.testing.contract import RecorderContract
from onemodel_tensors.testing.noting import NotedValue, NotingRecorder, Refused

__all__ = ["NotedValue", "NotingRecorder", "RecorderContract", "Refused"]
