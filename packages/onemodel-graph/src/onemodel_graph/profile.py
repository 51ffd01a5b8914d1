"""Where the time of a run went."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from onemodel_kernels import Array, Program


@dataclass(slots=True)
class Profile:
    """The kernel calls of one run.

    Attributes:
        entries: (node, nanoseconds) of each call, in order.
        outputs: The outputs of the run.
    """

    entries: list[tuple[str, int]] = field(default_factory=list)
    outputs: list[Any] = field(default_factory=list)

    def observe(self, program: Program, labels: list[str], arrays: list[Array]) -> list[Array]:
        """Runs a program and notes its times."""
        outputs, times = program.run_profiled(arrays)
        self.entries.extend(zip(labels, times, strict=True))
        return outputs

    @property
    def total(self) -> int:
        """Nanoseconds of all calls together."""
        return sum(time for _, time in self.entries)

    def by_operator(self) -> list[tuple[str, int, int]]:
        """(operator, calls, nanoseconds), the slowest first."""
        found: dict[str, list[int]] = {}
        for label, time in self.entries:
            entry = found.setdefault(label.partition(" ")[0], [0, 0])
            entry[0] += 1
            entry[1] += time
        ordered = sorted(found.items(), key=lambda item: -item[1][1])
        return [(name, calls, time) for name, (calls, time) in ordered]

    def table(self) -> str:
        """Time by operator as text."""
        total = max(self.total, 1)
        lines = [f"{'operator':24s} {'calls':>6s} {'ms':>10s} {'share':>7s}"]
        for name, calls, time in self.by_operator():
            lines.append(f"{name:24s} {calls:6d} {time / 1e6:10.3f} {time / total:7.1%}")
        lines.append(f"{'total':24s} {len(self.entries):6d} {self.total / 1e6:10.3f}")
        return "\n".join(lines)

    def chrome_trace(self) -> str:
        """The run as JSON for Chrome's trace viewer (``chrome://tracing``) and Perfetto."""
        events = []
        at = 0
        for label, time in self.entries:
            events.append(
                {"name": label, "ph": "X", "ts": at / 1000, "dur": time / 1000, "pid": 0, "tid": 0}
            )
            at += time
        return json.dumps({"traceEvents": events})
