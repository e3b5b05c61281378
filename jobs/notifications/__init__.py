"""Notifications: on a person's page, by e-mail, to webhooks and chats.

An event is a `NotificationEvent` row, written by `outbox` in the transaction that made it true.  A worker
finds its recipients (`routing`), gathers the items of one channel in a message, and sends it until it
arrives or is given up (`deliveries`).  Each step is a guarded change of rows: a worker may be killed
anywhere, the periodic task finds the rest, and a message that is sent twice has the same id twice.

Other packages call `tell` alone.
"""

from jobs.models.kinds import Kind
from jobs.notifications.outbox import tell

__all__ = ["Kind", "tell"]
