"""States of jobs: transitions, dependencies, retries and pending reasons."""
