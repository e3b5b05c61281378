"""Scripts for Slurm's sbatch: the `#SBATCH` lines are understood, the commands behind them are not touched.

How a script becomes a job (the whole table is in docs/dialects.md):

- Slurm runs a script once, on the first node of its allocation; what runs elsewhere is started by the
  srun calls inside of it.  So a script is one role, `main`, whose command is everything behind the
  options, and a replica is a node's share of what was asked for.  With several replicas, or where the
  commands call srun, the job's framework is `slurm`: only Slurm starts such a job as it is meant.
- A heterogeneous job is one role for each component, `main`, `hetjob-1` …, all with the same command.
- A job with several roles or replicas that is not Slurm's own becomes a script that starts each role with
  an srun of its own (`launcher`), in a component of its own; there a replica is a task.  That script is
  read back as what it was made of.
- An option without a neutral meaning is kept in the extras and told.
- With `--array` the script is for many jobs: what they have in common is read, and which they are (`arrays`);
  `jobs.submission.sweeps` makes them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final

from jobs.dialects.base import MAX_BYTES, Fix, Guess, Refused
from jobs.dialects.common import CommonDialect
from jobs.dialects.document import Document
from jobs.dialects.field_map import rows
from jobs.dialects.sbatch import options, parser, renderer, secrets
from jobs.dialects.sbatch.header import Script, commands_at, read

FIELDS: Final = rows((*options.PARTS, *options.RULES))
"""What a script can say, part by part and option by option."""

_DIRECTIVE: Final = re.compile(r"^[ \t]*+(?:\d{1,6}[ \t]*+)?#(?:SBATCH|SLURM)(?=[ \t-])", re.MULTILINE)
_SHEBANG: Final = re.compile(r"\ufeff?[ \t]*+(?:\d{1,6}[ \t]+)?#!")


class Sbatch(CommonDialect):
    """The dialect."""

    name: str = renderer.NAME
    title = "Slurm sbatch script, options"
    schema_keys = options.RULES
    parse = staticmethod(parser.parse)
    render = staticmethod(renderer.render)

    def read(self, document: Document) -> Script:
        """See `CommonDialect`."""
        return read(document)

    def sniff(self, document: Document) -> Guess | None:
        """Guess by its `#SBATCH` lines; any other script could be one too."""
        if len(document.text) > MAX_BYTES:
            return None
        if _DIRECTIVE.search(document.text, 0, max(commands_at(document.text), 1)):
            return Guess(100, "sbatch_lines")
        if _DIRECTIVE.search(document.text) and _SHEBANG.match(document.text):
            return Guess(90, "sbatch_lines")
        return Guess(60, "shebang") if _SHEBANG.match(document.text) else None

    def apply_fixes(self, document: Document, fixes: Iterable[Fix]) -> str:
        """See `base.Dialect`."""
        return renderer.apply_fixes(document, fixes)

    def with_secrets(self, document: Document, values: Mapping[str, str]) -> str:
        """See `base.Dialect`; each value is quoted for the place where it stands."""
        try:
            script = read(document)
        except Refused:
            return document.text
        told = secrets.read(script)
        return secrets.rewrite(script, told, secrets.fill_in(told, values))


DIALECT: Final = Sbatch()
