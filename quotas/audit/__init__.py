"""The audit log: who did what, from where.  Its entries are written by `follow`, `log` and `log_refusal`."""

from quotas.audit.entries import MASK, follow, log, log_refusal, log_row, mask, refusals

__all__ = ["MASK", "follow", "log", "log_refusal", "log_row", "mask", "refusals"]
