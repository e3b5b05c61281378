"""Code that people send along."""

from console.configuration.config import env

env.group("Uploaded code")
CONSOLE_CODE_FILE_MIB = env.integer(
    "CONSOLE_CODE_FILE_MIB", 1024, "The largest file of uploaded code.", unit="MiB", least=1
)
CONSOLE_CODE_MIB = env.integer(
    "CONSOLE_CODE_MIB", 2048, "What one uploaded folder of code may have in it.", unit="MiB", least=1
)
CONSOLE_CODE_FILES = env.integer(
    "CONSOLE_CODE_FILES", 150_000, "So many files, links and folders may be in it.", least=1
)
CONSOLE_CODE_PERSON_MIB = env.integer(
    "CONSOLE_CODE_PERSON_MIB",
    20_480,
    "What one person may have uploaded at a time, equal files counted once.",
    unit="MiB",
    least=1,
)
CONSOLE_CODE_DAYS = env.integer(
    "CONSOLE_CODE_DAYS",
    30,
    "Uploaded code that no job and no draft uses is kept so long after it was last asked for.",
    unit="days",
    least=1,
)
