"""Telling people what happened: on their page, by e-mail, to webhooks and chats.

Whatever there is to tell is an `Occasion`, written by `outbox` in the transaction that made it true.  A
worker finds out to whom (`routing`), gathers what goes to the same place into one message (`packing`) and
sends it (`sending`) until it arrives or is given up.  Each step is a guarded change of rows: a worker may be
killed anywhere, the sweep finds what is left, and what was sent twice carries the same id twice.

Others need `tell` alone.
"""

from jobs.models.kinds import Kind
from jobs.notifications.outbox import tell

__all__ = ["Kind", "tell"]
