"""Networks of attempts: a router for each attempt, and a network namespace for each of its replicas."""
