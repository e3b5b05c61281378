"""UNIX users as whom the console acts at Slurm."""
