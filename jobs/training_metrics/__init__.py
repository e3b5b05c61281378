"""Training metrics: the numbers that a job prints by step, as series that pages and the API show."""

from jobs.training_metrics.collection import collect, follow

__all__ = ["collect", "follow"]
