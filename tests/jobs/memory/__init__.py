"""The package of the backend in memory (`tests.jobs.engine`), as the registry finds it."""
