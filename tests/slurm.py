"""A private Slurm for one run of the tests: real daemons on this machine, on ports of their own.

Four nodes, two of them with four GPUs that are only device files; nothing outside one folder, and nothing of
it is left afterwards.  With `accounting` it also has slurmdbd, on a database of its own, and forgets ended
jobs after two seconds.
"""

import os
import pwd
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from tests.ports import free_ports
from tests.waiting import wait_for

SBIN = "/usr/sbin:/usr/local/sbin"
DAEMONS = ("munged", "slurmctld", "slurmd", "slurmrestd")
CLIENTS = ("sbatch", "squeue", "scancel", "scontrol", "srun")
ACCOUNTING = ("slurmdbd", "sacct", "sacctmgr", "mariadbd", "mariadb-install-db")
PACKAGES = "munge slurmctld slurmd slurm-client slurmrestd slurm-wlm-jwt-plugin"
PACKAGES_OF_ACCOUNTING = "slurmdbd slurm-wlm-mysql-plugin mariadb-server-core"
AS_NOBODY = ("setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups")
NODES = ("cpu1", "cpu2", "gpu1", "gpu2")
APART = "cpu1"
LOOPBACK = "127.0.0.1"
TRIES = 3
PATIENCE_S = 240
"""Whoever waits for one waits for all tests of a process: where the machine does much else, for long."""

CONFIGURATION = """\
ClusterName=bench
SlurmctldHost={host}({address})
SlurmUser={user}
SlurmdUser={user}
SlurmctldPort={ports[0]}
AuthType=auth/munge
AuthInfo=socket={base}/munge/socket
CredType=cred/munge
AuthAltTypes=auth/jwt
AuthAltParameters=jwt_key={base}/jwt.key
{listening}
StateSaveLocation={base}/state
SlurmdSpoolDir={base}/spool/%n
SlurmctldPidFile={base}/slurmctld.pid
SlurmdPidFile={base}/slurmd.%n.pid
SlurmctldLogFile={base}/slurmctld.log
SlurmdLogFile={base}/slurmd.%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
ReturnToService=2
SlurmdParameters=config_overrides
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU_Memory
GresTypes=gpu
DefMemPerCPU=100
SchedulerParameters=bf_interval=1,sched_min_interval=1000,batch_sched_delay=0,default_queue_depth=1000
{accounting}
JobCompType=jobcomp/none
JobRequeue=1
Licenses=tool:2
MinJobAge={remembered}
MaxJobCount=20000
KillWait=2
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
NodeName=DEFAULT CPUs={cpus} RealMemory={memory}
NodeName=cpu1 NodeHostname={host} NodeAddr={address} Port={ports[1]}
NodeName=cpu2 NodeHostname={host} NodeAddr={address} Port={ports[2]} Feature=slow
NodeName=gpu1 NodeHostname={host} NodeAddr={address} Port={ports[3]} Gres=gpu:a100:4 Weight=10
NodeName=gpu2 NodeHostname={host} NodeAddr={address} Port={ports[4]} Gres=gpu:titan:4 Weight=10
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE DefaultTime=1:00:00 State=UP
PartitionName=gpu Nodes=gpu[1-2] MaxTime=2:00:00 DefaultTime=1:00:00 State=UP
PartitionName=urgent Nodes=cpu2 MaxTime=INFINITE DefaultTime=1:00:00 State=UP PriorityTier=10
"""
NO_ACCOUNTING = "AccountingStorageType=accounting_storage/none"
WITH_ACCOUNTING = """\
AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageHost={address}
AccountingStoragePort={port}
AccountingStoragePass={base}/munge/socket
AccountingStorageTRES=gres/gpu,gres/gpu:a100
JobAcctGatherType=jobacct_gather/linux
JobAcctGatherFrequency=task=1
AccountingStorageEnforce=associations,limits,qos"""
DATABASE_DAEMON = """\
AuthType=auth/munge
AuthInfo=socket={base}/munge/socket
AuthAltTypes=auth/jwt
AuthAltParameters=jwt_key={base}/jwt.key
DbdHost={host}
DbdAddr={address}
DbdPort={port}
SlurmUser={user}
StorageType=accounting_storage/mysql
StorageHost=localhost
StorageUser=root
StorageLoc=accounting
LogFile={base}/slurmdbd.log
PidFile={base}/slurmdbd.pid
"""
GENERIC_RESOURCES = """\
AutoDetect=off
NodeName=gpu1 Name=gpu Type=a100 Flags=nvidia_gpu_env File={base}/dev/nvidia[0-3]
NodeName=gpu2 Name=gpu Type=titan Flags=nvidia_gpu_env File={base}/dev/nvidia[0-3]
"""


NEVER_ON_DISK = (
    "--innodb-flush-method=nosync",
    "--innodb-flush-log-at-trx-commit=0",
    "--innodb-log-file-size=8M",
)
"""A database that is not kept need not wait for the disk."""

ACCOUNTS = (
    ("cluster", "bench"),
    ("qos", "onegpu"),
    ("qos", "onejob", "set", "MaxJobsPerUser=1", "Priority=100"),
    ("account", "vision", "Description=Vision"),
    ("account", "vision-a", "parent=vision"),
    ("account", "speech", "Description=Speech"),
    ("user", "root", "account=vision,speech", "QosLevel=normal,onegpu,onejob"),
)
"""What its accounting has before slurmctld first asks for it: later it may miss some of it."""

LIMITS = (
    ("qos", "onegpu", "set", "MaxTRESPerUser=gres/gpu=1"),
    ("account", "vision", "set", "GrpTRES=cpu=40,gres/gpu=2"),
    (
        "account",
        "vision-a",
        "set",
        "GrpTRES=cpu=50,mem=102400,gres/gpu=1,gres/gpu:a100=1",
        "GrpJobs=5",
        "MaxWall=60",
    ),
    ("account", "vision-a", "set", "MaxJobs=2"),
)
"""And what it has of what slurmctld counts, GPUs for one."""


def missing(*, accounting: bool = False) -> str:
    """What this machine lacks to start one, or nothing."""
    wanted = (*DAEMONS, *CLIENTS, *(ACCOUNTING if accounting else ()))
    packages = f"{PACKAGES} {PACKAGES_OF_ACCOUNTING}" if accounting else PACKAGES
    absent = [name for name in wanted if _program(name) is None]
    if os.geteuid():
        return "only root can make the device files that stand for GPUs"
    return f"there is no {', '.join(absent)} (Debian: {packages})" if absent else ""


@dataclass
class Slurm:
    """A running Slurm; `environment` is what its programs need to find it."""

    base: Path
    running: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)
    rest_port: int = 0
    accounting: bool = False
    cpus: int = 16
    address: str = LOOPBACK

    @property
    def configuration(self) -> Path:
        """Its slurm.conf."""
        return self.base / "slurm.conf"

    def call(self, *arguments: str) -> str:
        """What a program of Slurm's prints."""
        environ = {**os.environ, "SLURM_CONF": str(self.configuration)}
        done = subprocess.run(arguments, env=environ, check=True, capture_output=True, text=True, timeout=60)
        return done.stdout

    @property
    def rest(self) -> str:
        """Where slurmrestd listens."""
        return f"http://{self.address}:{self.rest_port}"

    @property
    def rest_socket(self) -> str:
        """Where it listens on this machine alone."""
        return f"unix:{self.base}/rest/socket"

    def token(self, lifespan: int = 36_000) -> str:
        """A token for slurmrestd."""
        made = self.call("scontrol", "token", "username=root", f"lifespan={lifespan}")
        return made.strip().removeprefix("SLURM_JWT=")

    def start_rest(self) -> None:
        """Start slurmrestd, which does not run as root, and wait until it listens."""
        (self.base / "rest" / "socket").unlink(missing_ok=True)
        as_nobody = (*AS_NOBODY, "--pdeathsig=KILL")
        plugins = "openapi/v0.0.38,openapi/dbv0.0.38" if self.accounting else "openapi/v0.0.38"
        speaks = ("-a", "rest_auth/jwt", "-s", plugins)
        where = (self.rest.removeprefix("http://"), self.rest_socket)
        program = str(_program("slurmrestd"))
        self.start("slurmrestd", *as_nobody, "env", "SLURM_JWT=daemon", program, *speaks, *where)
        wait_for(self._listens, PATIENCE_S)

    def _listens(self) -> bool:
        with socket.socket() as tried:
            return tried.connect_ex((self.address, self.rest_port)) == 0

    def start(self, name: str, *arguments: str) -> None:
        """Start a daemon, under `name`."""
        program = _program(arguments[0])
        assert program is not None
        with (self.base / f"{name}.out").open("ab") as out:
            self.running[name] = subprocess.Popen(
                ["setpriv", "--pdeathsig", "KILL", program, *arguments[1:]],
                env={**os.environ, "SLURM_CONF": str(self.configuration)},
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                start_new_session=True,
            )

    def kill(self, name: str) -> None:
        """End a daemon as a crash would."""
        process = self.running.pop(name)
        process.kill()
        process.wait()

    def start_controller(self, *arguments: str) -> None:
        """Start slurmctld and wait until it answers."""
        self.start("slurmctld", "slurmctld", "-D", *arguments)
        wait_for(self._answers, PATIENCE_S)

    def start_database(self) -> None:
        """Make the database of its accounting, and start what serves it, which does not run as root."""
        place = self.base / "database"
        place.mkdir()
        shutil.chown(place, "nobody", "nogroup")
        options = ("--no-defaults", f"--datadir={place}/data", *NEVER_ON_DISK)
        plain = ("--auth-root-authentication-method=normal", "--skip-test-db")
        made = [*AS_NOBODY, str(_program("mariadb-install-db")), *options, *plain]
        subprocess.run(made, check=True, capture_output=True, timeout=PATIENCE_S)
        where = (f"--socket={place}/socket", f"--pid-file={place}/pid", "--skip-networking")
        as_nobody = (*AS_NOBODY, "--pdeathsig=KILL")
        self.start("mariadbd", *as_nobody, str(_program("mariadbd")), *options, *where)
        wait_for((place / "socket").exists, PATIENCE_S)

    def start_accounting(self) -> None:
        """Start slurmdbd and wait until it answers."""
        self._start_slurmdbd()
        wait_for(self._accounts, PATIENCE_S, 0.1)

    def _start_slurmdbd(self) -> None:
        database = f"MYSQL_UNIX_PORT={self.base}/database/socket"
        self.start("slurmdbd", "env", database, str(_program("slurmdbd")), "-D")

    def _accounts(self) -> bool:
        if self.running["slurmdbd"].poll() is not None:  # its port was taken for a moment
            self._start_slurmdbd()
        try:
            self.call("sacctmgr", "--noheader", "list", "cluster")
        except (subprocess.SubprocessError, OSError):
            return False
        return True

    def is_registered(self) -> bool:
        """Whether slurmdbd knows slurmctld, and tells it of changes, and what it counts."""
        host = self.call("sacctmgr", "--noheader", "--parsable2", "list", "cluster", "format=ControlPort")
        return host.strip() not in ("", "0") and "gpu" in self.call("sacctmgr", "--noheader", "list", "tres")

    def wait_until_saved(self) -> None:
        """Slurm writes all its jobs down every five seconds: where one that is made now stands, all that was
        before does too.
        """
        name = f"saved-{secrets.token_hex(8)}"
        mark = self.call("sbatch", "--parsable", "--hold", f"--job-name={name}", "--wrap=true").strip()
        wait_for(lambda: name.encode() in self._saved(), PATIENCE_S)
        self.call("scancel", mark)

    def _saved(self) -> bytes:
        """Slurm puts a new file in place of the old one: for a moment there is none."""
        try:
            return (self.base / "state" / "job_state").read_bytes()
        except FileNotFoundError:
            return b""

    def start_node(self, name: str) -> None:
        """Start the slurmd of one node; one of them has a view of files of its own."""
        apart = ("unshare", "--mount") if name == APART else ()
        self.start(name, *apart, "slurmd", "-D", "-N", name)

    def in_apart(self, *command: str) -> None:
        """Run a command in that node's view of files."""
        where = f"--target={self.running[APART].pid}"
        subprocess.run(["nsenter", where, "--mount", *command], check=True, capture_output=True, timeout=60)

    def processes(self) -> list[int]:
        """Its daemons, and all that runs on its nodes."""
        return list(_steps_of(self.base))

    def close(self) -> None:
        """End all of it: jobs first, so that none outlives its node."""
        if "slurmctld" in self.running:
            with suppress(subprocess.SubprocessError, OSError):
                self.call(
                    "scancel", "--state=PENDING,RUNNING,SUSPENDED", "--quiet", "--full", "--signal=KILL"
                )
        for process in self.running.values():
            process.kill()
        for process in self.running.values():
            process.wait()
        for pid in _steps_of(self.base):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        shutil.rmtree(self.base, ignore_errors=True)

    def _answers(self) -> bool:
        try:
            return "UP" in self.call("scontrol", "ping")
        except (subprocess.SubprocessError, OSError):
            return False

    def ready(self) -> bool:
        """Whether every node takes jobs."""
        try:
            states = self.call("sinfo", "--noheader", "--Node", "--format=%N %T").split()
        except subprocess.SubprocessError:  # it has too much to do
            return False
        return set(states[::2]) == set(NODES) and set(states[1::2]) == {"idle"}


@contextmanager
def server(*, accounting: bool = False, cpus: int = 16, address: str = LOOPBACK) -> Iterator[Slurm]:
    """A new Slurm for the length of a `with`, whose nodes have so many cores each, and this address."""
    slurm = _started(accounting, cpus, address)
    try:
        yield slurm
    finally:
        slurm.close()


def _started(accounting: bool, cpus: int, address: str) -> Slurm:
    """One that answers.  Whoever else runs here may take a port that was free a moment ago: then another."""
    for tries in range(1, TRIES + 1):
        base = Path(tempfile.mkdtemp(prefix="slurm-", dir="/var/tmp"))
        base.chmod(0o755)
        slurm = Slurm(base, accounting=accounting, cpus=cpus, address=address)
        try:
            _start(slurm)
        except BaseException as error:
            slurm.close()
            if tries == TRIES or not isinstance(error, AssertionError | subprocess.SubprocessError):
                raise
        else:
            return slurm
    raise AssertionError


def _start(slurm: Slurm) -> None:
    base, accounting = slurm.base, slurm.accounting
    if accounting:
        slurm.start_database()
    _lay_out(slurm)
    slurm.start("munged", "munged", "--foreground", *of_munge(base))
    wait_for((base / "munge" / "socket").exists, PATIENCE_S)
    if accounting:
        slurm.start_accounting()
        for thing in ACCOUNTS:
            slurm.call("sacctmgr", "--immediate", "add", *thing)
    slurm.start_controller()
    if accounting:
        wait_for(slurm.is_registered, PATIENCE_S, 0.1)
        for limit in LIMITS:
            slurm.call("sacctmgr", "--immediate", "modify", *limit)
    slurm.start_rest()
    for name in NODES:
        slurm.start_node(name)
    wait_for(slurm.ready, PATIENCE_S, 0.1)


def _lay_out(slurm: Slurm) -> None:
    base = slurm.base
    for name in ("munge", "state", "spool", "dev", *(f"spool/{node}" for node in NODES)):
        (base / name).mkdir(mode=0o755)
    (base / "rest").mkdir(mode=0o755)
    shutil.chown(base / "rest", "nobody", "nogroup")
    (base / "jwt.key").write_bytes(os.urandom(32))
    (base / "jwt.key").chmod(0o600)
    for index in range(4):
        os.mknod(base / "dev" / f"nvidia{index}", 0o20666, os.makedev(1, 3))
    first = free_ports(7)
    *ports, slurm.rest_port, database_port = range(first, first + 7)
    key = base / "munge" / "key"
    key.write_bytes(os.urandom(128))
    key.chmod(0o400)
    said = {
        "base": base,
        "address": slurm.address,
        "host": socket.gethostname().split(".")[0],
        "user": _user(),
        "ports": ports,
        "port": database_port,
        "cpus": slurm.cpus,
        "memory": 4000 * slurm.cpus,
        "remembered": 2 if slurm.accounting else 3600,
    }
    # Otherwise they listen at the address that the host's name leads to, whatever theirs is.
    own = slurm.address == LOOPBACK
    said["listening"] = "CommunicationParameters=NoCtldInAddrAny,NoInAddrAny" if own else ""
    said["accounting"] = (WITH_ACCOUNTING if slurm.accounting else NO_ACCOUNTING).format(**said)
    slurm.configuration.write_text(CONFIGURATION.format(**said))
    (base / "gres.conf").write_text(GENERIC_RESOURCES.format(**said))
    (base / "cgroup.conf").write_text("CgroupAutomount=no\n")
    if slurm.accounting:
        daemon = base / "slurmdbd.conf"
        daemon.touch(mode=0o600)
        daemon.write_text(DATABASE_DAEMON.format(**said))


def of_munge(base: Path) -> list[str]:
    """What a munged is told that has its things there."""
    places = {
        "key-file": "key",
        "socket": "socket",
        "pid-file": "pid",
        "log-file": "log",
        "seed-file": "seed",
    }
    return [f"--{option}={base}/munge/{name}" for option, name in places.items()]


def _user() -> str:
    return pwd.getpwuid(os.geteuid()).pw_name


def _program(name: str) -> str | None:
    return shutil.which(name, path=f"{os.environ.get('PATH', '')}:{SBIN}")


def _steps_of(base: Path) -> Iterator[int]:
    """What was started on its nodes and outlives them."""
    mark = f"SLURM_CONF={base}/slurm.conf".encode()
    for path in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if int(path.name) != os.getpid() and mark in (path / "environ").read_bytes().split(b"\0"):
                yield int(path.name)
