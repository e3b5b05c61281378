"""The ways into running jobs: what they serve, SSH and terminals, their files."""

from console.configuration.config import env

env.group("Gateway")
CONSOLE_GATEWAY_CONNECTIONS = env.integer(
    "CONSOLE_GATEWAY_CONNECTIONS", 2000, "Requests and WebSockets to jobs under way at a time.", least=1
)
CONSOLE_GATEWAY_CONNECTIONS_PER_PERSON = env.integer(
    "CONSOLE_GATEWAY_CONNECTIONS_PER_PERSON", 200, "The most of them that one person may have.", least=1
)
CONSOLE_GATEWAY_RECHECK_SECONDS = env.seconds(
    "CONSOLE_GATEWAY_RECHECK_SECONDS",
    20,
    "What streams is ended so soon after a sign-out, a lost right or the job's end; at most 60.",
    least=0.05,
)
CONSOLE_GATEWAY_IDLE_SECONDS = env.seconds(
    "CONSOLE_GATEWAY_IDLE_SECONDS", 3600, "A request to which a job says nothing for so long ends.", least=1
)
CONSOLE_GATEWAY_BODY_MIB = env.integer(
    "CONSOLE_GATEWAY_BODY_MIB", 16384, "The longest body of a request to a job.", unit="MiB", least=1
)
CONSOLE_GATEWAY_MESSAGE_MIB = env.integer(
    "CONSOLE_GATEWAY_MESSAGE_MIB", 64, "The longest WebSocket message from a job.", unit="MiB", least=1
)

env.group("SSH and terminals")
CONSOLE_SSH_PORT = env.integer(
    "CONSOLE_SSH_PORT",
    2222,
    "SSH into running jobs is served here, on CONSOLE_BIND; 0 serves none.",
    most=65535,
)
CONSOLE_SSH_HOST = env.text(
    "CONSOLE_SSH_HOST",
    "",
    "The name of this machine in the SSH commands that pages show.",
    shown="the page's own",
)
CONSOLE_SSH_FAILURES = env.integer(
    "CONSOLE_SSH_FAILURES",
    30,
    "Connections from one address that offer keys in vain, before it is turned away for ten minutes.",
    least=1,
)
CONSOLE_ENTRIES = env.integer(
    "CONSOLE_ENTRIES", 500, "SSH connections and terminals that are open at a time.", least=1
)
CONSOLE_ENTRIES_PER_PERSON = env.integer(
    "CONSOLE_ENTRIES_PER_PERSON", 50, "The most of them that one person may have.", least=1
)
CONSOLE_TERMINAL_KEEP_SECONDS = env.seconds(
    "CONSOLE_TERMINAL_KEEP_SECONDS",
    1800,
    "A terminal that no page shows any more is kept for so long.",
    least=1,
)

env.group("Files of jobs")
CONSOLE_TRANSFERS = env.integer(
    "CONSOLE_TRANSFERS", 100, "Looks into jobs' folders, downloads and uploads under way at a time.", least=1
)
CONSOLE_TRANSFERS_PER_PERSON = env.integer(
    "CONSOLE_TRANSFERS_PER_PERSON", 8, "The most of them that one person may have.", least=1
)
CONSOLE_UPLOAD_MIB = env.integer(
    "CONSOLE_UPLOAD_MIB",
    10240,
    "The largest file that can be uploaded into a job's folder.",
    unit="MiB",
    least=1,
)
