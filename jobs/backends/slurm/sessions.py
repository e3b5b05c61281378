"""Sessions beside replicas: steps of Slurm in which a session agent runs.

The step shares the allocation of the job (`srun --overlap`), and ends with it.  The console starts it, or the
job's user does by the sudo helper; where neither can, the job's own script starts a session listener.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from jobs.backends.base import ReplicaRef
from jobs.backends.remote import attempts, bundle
from jobs.backends.remote.bundle import ISOLATED
from jobs.backends.remote.replica_sessions import ReplicaSessions
from jobs.backends.remote.transport import ProcessTransport, Transport
from jobs.backends.sessions import Barrier, NoEntry
from jobs.backends.slurm.client.addresses import SlurmAddresses
from jobs.backends.slurm.client.programs import NO_ANSWER, NO_CONNECTION, Programs
from jobs.backends.slurm.config import DOOR, SlurmConfig
from jobs.backends.slurm.handles import SlurmJob
from jobs.backends.slurm.identity.as_user import session_options
from jobs.backends.slurm.identity.helper import SudoHelper
from jobs.backends.slurm.status import recovery

NO_JOB: Final = ("invalid job id", "expired or invalid job", "already completing or completed")
"""srun's errors where there is no such job, or none any more."""


class StepSessions(ReplicaSessions):
    """Sessions beside one replica of one run of a job on Slurm."""

    def __init__(
        self, config: SlurmConfig, job: SlurmJob, replica: ReplicaRef, addresses: SlurmAddresses
    ) -> None:
        """Read the attempt's record.  Raises NoEntry."""
        super().__init__(config.root, job.key, replica, config.timeout_s)
        self._config, self._addresses = config, addresses
        self._number = recovery.current_number(self._folder, job)

    def _transport(self, node: str) -> Transport:
        """Return the transport to an agent on the replica's node, in its component of the job."""
        try:
            if self._config.enters == DOOR:
                return self._listener(node, f"{self._config.python} {self._bundle()}")
            where = (str(self._number), str(self._place) if len(self._record.roles) > 1 else "-", node)
            if self._record.user:
                return self._as_user("enter", *where)
            programs, agent = Programs(self._config), [*ISOLATED, str(self._bundle())]
            command = programs.command("srun", *session_options(*where), self._config.python, *agent)
            return ProcessTransport(command, programs.environment(), self.classify)
        except OSError as error:
            raise NoEntry(Barrier.FAILED, str(error)) from error

    def _address(self, node: str) -> str:
        """See `ReplicaSessions`."""
        return self._addresses.of_job((self._number, self._run), node)

    def _node_folder(self) -> Path:
        """See `ReplicaSessions`."""
        if not self._record.apart:
            return self._folder
        return attempts.node_folder(self._config.nodes_folder, self._key)

    def _bundle(self) -> Path:
        """Return the path of the node bundle on the node.  Raises OSError."""
        path = bundle.publish(self._config.root, for_all=bool(self._record.user))
        if not self._record.apart:
            return path
        return attempts.node_root(self._config.nodes_folder, self._key) / path.name

    def _as_user(self, verb: str, *words: str) -> ProcessTransport:
        """Return the transport to an agent that the sudo helper starts.  Raises OSError."""
        helper = SudoHelper(self._config, self._record.user)
        name = bundle.publish(self._config.root, for_all=True).name
        return ProcessTransport(helper.command(verb, *words, name), {"LANG": "C.UTF-8"}, self.classify)

    def _remains_transport(self) -> Transport | None:
        """See `ReplicaSessions`."""
        is_theirs = self._config.has_helper and self._record.user
        return self._as_user("look", self._key) if is_theirs else None

    @staticmethod
    def classify(complaint: str) -> Barrier:
        """Return the barrier that an error of srun means."""
        low = complaint.lower()
        if any(phrase in low for phrase in (*NO_CONNECTION, *NO_ANSWER)):
            return Barrier.ENGINE_AWAY
        return Barrier.NOT_RUNNING if any(phrase in low for phrase in NO_JOB) else Barrier.FAILED
