"""Requests to Slurm: by its commands, by SSH, by slurmrestd."""
