"""Install an environment: `python3 -m console.configuration.environment .venv requirements.lock`.

The Makefile calls it.  It runs with whatever Python the person has, before anything is there, so it is one
file without imports of ours, and says what is missing in one sentence.
"""

import subprocess
import sys
from pathlib import Path

OLDEST = (3, 11)


def install(environment: Path, lock: Path) -> None:
    """Make `environment` if there is none; install what `lock` lists, by hash, and this project."""
    print(f"Installing what {lock} lists into {environment}; this takes a minute or so.", flush=True)
    python = environment / "bin" / "python"
    if not python.exists():
        _call("The environment could not be made.", sys.executable, "-m", "venv", str(environment))
    pip = [str(python), "-m", "pip", "--disable-pip-version-check", "install", "--quiet"]
    _call("The packages could not be installed.", *pip, "--require-hashes", "--requirement", str(lock))
    here = str(Path(__file__).resolve().parents[2])
    _call(
        "The project could not be installed.", *pip, "--no-deps", "--no-build-isolation", "--editable", here
    )


def _call(sentence: str, *command: str) -> None:
    if subprocess.run(command, check=False).returncode:
        sys.exit(f"{sentence} The reason stands above.")


if __name__ == "__main__":
    if sys.version_info < OLDEST:
        sys.exit(
            "Python 3.11 or newer is needed: `make PYTHON=python3.12 run`, say, names another than python3."
        )
    try:
        import ensurepip  # noqa: F401
        import venv  # noqa: F401
    except ImportError:
        sys.exit("Python's venv module is missing; Debian and Ubuntu have it in the package python3-venv.")
    install(Path(sys.argv[1]), Path(sys.argv[2]))
