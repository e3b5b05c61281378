"""Jobs on a Slurm cluster, by its command line or by slurmrestd.

A job becomes one sbatch script: options as the sbatch dialect writes them, a role to each component, and a
part of its own (`jobs.backends.slurm.body`) that starts the replicas, writes down how each of them ends, and
ends the job when its roles' policies say so.  What it writes lies in a folder that the console and all nodes
see under one name, so that the console knows how a job ended even after Slurm has forgotten it.

Jobs run as the console's own user, or as their owners' (`whom`): by a helper under sudo or by tokens.
"""
