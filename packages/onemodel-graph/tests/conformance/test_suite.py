"""The numbers that the session must reach on ONNX's backend suite."""

import pytest
import suite

from onemodel_kernels import Kernel, ops

MISSING = {spec.kernel for spec in ops.all() if spec.kernel and not spec.in_shape} - set(
    Kernel.names()
)

#: Cases whose expected outputs nobody can reach: masks drawn by numpy's generator.
UNREACHABLE = {
    "test_training_dropout_default",
    "test_training_dropout_default_mask",
    "test_training_dropout",
    "test_training_dropout_mask",
}


@pytest.mark.skipif(bool(MISSING), reason=f"this build lacks the kernels {sorted(MISSING)[:5]} …")
@pytest.mark.parametrize(
    ("group", "span", "at_least"),
    [
        ("core", "opset to 20", 935),
        ("core", "opset 21 to 26", 505),
        ("core", "opset from 27", 146),
        ("float16 and float64", None, 90),
    ],
)
def test_counts(group, span, at_least):
    chosen = [
        case
        for case in suite.load()
        if case.group == group
        and (span is None or suite.span(case) == span)
        and case.name not in UNREACHABLE
    ]
    results = [(case.name, *suite.run(case)) for case in chosen]
    failed = [entry for entry in results if entry[1] != "pass"]
    shown = "\n".join(f"{name} {status}: {text[:160]}" for name, status, text in failed)
    assert len(results) - len(failed) >= at_least, f"{len(failed)} of {len(results)} fail:\n{shown}"
