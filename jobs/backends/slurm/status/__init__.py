"""Status of jobs: from Slurm's lists, its accounting and the job's own files."""
