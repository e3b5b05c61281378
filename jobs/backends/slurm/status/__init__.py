"""What became of a job: from Slurm's list, its accounting and the job's own files."""
