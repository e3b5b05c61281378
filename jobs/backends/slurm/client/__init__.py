"""Slurm as the console asks it: by its commands, by SSH, by slurmrestd."""
