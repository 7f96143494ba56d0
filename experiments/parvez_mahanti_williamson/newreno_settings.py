"""Common settings of both experiments on NewReno's two forms: one flow of each, at the same time.

slow-but-steady:  sender1 ──┐                   ┌── receiver1
                            ├─ left ═════ right ┤
impatient:        sender2 ──┘                   └── receiver2
"""

from __future__ import annotations

from testbed.scenario.losses import Loss
from testbed.scenario.model import CapturePoint, Flow, FlowKind

WARM_UP = 0.25  # of the duration: the paper leaves out 250 of 1000 s
CAPTURES = (CapturePoint.SENDERS, CapturePoint.RECEIVERS)  # from which p and m are measured
NEWRENO_SAMPLE_MS = 50.0
NEWRENO_DRAWN_SHARE = (
    0.05  # of delays and buffers, so that an answer is of networks like the paper's
)
FORMS = {"sbs": (1, "newreno"), "imp": (2, "newreno-impatient")}


def flows(
    rto_min_ms: int, window_bytes: int, start_s: float = 0.0, loss: Loss | None = None
) -> tuple[Flow, ...]:
    """Return a flow of each form."""
    return tuple(
        Flow(
            name,
            FlowKind.TCP,
            f"sender{pair}",
            f"receiver{pair}",
            start_s=start_s,
            variant=variant,
            window_bytes=window_bytes,
            rto_min_ms=rto_min_ms,
            loss=loss,
        )
        for name, (pair, variant) in FORMS.items()
    )
