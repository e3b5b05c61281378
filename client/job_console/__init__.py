"""Job Console from Python: `from job_console import Client`."""

from jobs.client.answers import Endpoint, Entry, Job, Problem
from jobs.client.errors import (
    AccessDeniedError,
    AuthenticationError,
    ConflictError,
    ConsoleError,
    InvalidRequestError,
    NotFoundError,
    RateLimitError,
    UnavailableError,
    WaitTimeoutError,
)
from jobs.client.job_stream import Event
from jobs.client.python_client import Client

__all__ = [
    "AccessDeniedError",
    "AuthenticationError",
    "Client",
    "ConflictError",
    "ConsoleError",
    "Endpoint",
    "Entry",
    "Event",
    "InvalidRequestError",
    "Job",
    "NotFoundError",
    "Problem",
    "RateLimitError",
    "UnavailableError",
    "WaitTimeoutError",
]
