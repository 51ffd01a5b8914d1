"""The interfaces that this package needs, checked before anything else of it is imported."""

from onemodel_kernels.interfaces import Need, require

NEEDS = (
    Need("kernels.array", "onemodel_kernels", "onemodel-kernels", (1, 4)),
    Need("trace.api", "onemodel_trace", "onemodel-trace", (1, 0)),
)

require("onemodel-training", NEEDS)
