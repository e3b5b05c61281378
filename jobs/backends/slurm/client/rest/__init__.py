"""Slurm's controller by its REST API, slurmrestd, in the newest version that both sides support."""
