"""Settings of the console that are laid over those of clusters."""

from console.configuration.config import env

env.group("Clusters")
CONSOLE_LOCAL = env.mapping(
    "CONSOLE_LOCAL",
    "What local clusters are told beside their own settings, the inventory for one: "
    '`{"cpu_milli": 8000, "memory_mib": 65536, "gpus": {"TITANX": 2}}`.',
)

CONSOLE_DISK_FLOOR_MIB = env.integer(
    "CONSOLE_DISK_FLOOR_MIB",
    5120,
    "While less is free on the disk of CONSOLE_HOME, no new job starts on this machine and /healthz is red. "
    "Below half of it jobs' logs are cut short. 0 switches this off.",
    unit="MiB",
)

CONSOLE_SLURM_FOLDER = env.text(
    "CONSOLE_SLURM_FOLDER",
    "",
    "A folder where the files and logs of jobs on Slurm lie. Every node sees it under this name, but where a "
    "cluster's `nodes_folder` says otherwise. Empty: the folder `jobs` in CONSOLE_HOME.",
)
CONSOLE_SLURM_TOKEN_COMMAND = env.words(
    "CONSOLE_SLURM_TOKEN_COMMAND",
    (),
    "The command that prints a token for slurmrestd, for Slurm clusters that are asked by it: "
    "`scontrol,token,username={user},lifespan=600`. With identity `jwt` also one for each user as whom jobs "
    "run. `{url}` stands for where slurmrestd listens.",
)
