"""The interfaces that this package needs, checked before anything else of it is imported."""

from onemodel_kernels.interfaces import Need, require

NEEDS = (
    Need("kernels.array", "onemodel_kernels", "onemodel-kernels", (1, 7)),
    Need("kernels.ops", "onemodel_kernels.ops", "onemodel-kernels", (1, 2)),
)

require("onemodel-graph", NEEDS)
