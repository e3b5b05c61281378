"""Jobs on a Slurm cluster, by its command line or by slurmrestd.

A job becomes one sbatch script: options as the sbatch dialect renders them, a role to each component, and a
common part (`script/job_script.sh`) that starts the replicas, writes how each of them ends, and ends the job
when its roles' policies say so.  Its files lie in a folder that the console and all nodes see under one name,
so that the console knows how a job ended even after Slurm has forgotten it; or the node relay copies them.

Jobs run as the console's own user, or as their owners' (`identity`): by a helper under sudo or by tokens.
"""
