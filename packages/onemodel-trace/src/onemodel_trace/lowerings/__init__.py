"""How operators that ONNX writes differently become nodes; one module a family.

An operator whose record carries an ONNX name and ONNX attributes needs no entry here: it is written
as it is. ``find`` gives the lowering of any other, ``refusal`` the reason why there is none; ``register`` adds
the lowering of an operator of your own.
"""

from onemodel_trace.lowerings.registry import Lowering, Recorded, find, refusal, register

__all__ = ["Lowering", "Recorded", "find", "refusal", "register"]
