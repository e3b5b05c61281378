"""The contract of every backend, on a real Kubernetes."""

from tests.jobs.backends.test_contract import *  # noqa: F403 all of it, with the bench of this folder
