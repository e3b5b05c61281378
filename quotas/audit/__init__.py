"""The audit log: who did what, from where.  Its entries are written by `follow`, `log` and `log_refusal`."""

from quotas.audit.entries import (
    MASK,
    SECRET_NAME,
    follow,
    log,
    log_refusal,
    log_row,
    mask,
    mask_text,
    refusals,
    safe,
)

__all__ = [
    "MASK",
    "SECRET_NAME",
    "follow",
    "log",
    "log_refusal",
    "log_row",
    "mask",
    "mask_text",
    "refusals",
    "safe",
]
