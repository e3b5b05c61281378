"""Runs, parameters and metrics that programs of running jobs log by MLflow's client."""
