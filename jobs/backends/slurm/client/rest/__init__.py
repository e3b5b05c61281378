"""Slurm's controller by its REST API, slurmrestd.

What the server's own description announces decides how it is spoken to: `versions` knows how fields are
called in each version, `options` how a script's options become fields, `reading` how jobs and nodes are told.
"""
