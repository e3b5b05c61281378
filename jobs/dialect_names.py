"""The names of the dialects, for whoever is to name them before one is read."""

from typing import Final

NAMES: Final = ("openpai-v1", "openpai-v2", "dlc", "dlc-params", "aihc", "kubeflow", "sbatch")
