"""Log forwarding: each line of a workspace's jobs goes to its log sinks, at least once, in order."""

from jobs.log_forwarding.forwarder import forward
from jobs.log_forwarding.positions import follow, lags

__all__ = ["follow", "forward", "lags"]
