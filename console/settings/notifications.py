"""Notifications, and where they may go."""

from console.configuration.config import env
from console.configuration.servers import address
from console.settings.location import CONSOLE_HOSTS, CONSOLE_TLS_SERVED, PORT

env.group("Notifications")
CONSOLE_URL = (
    env.text(
        "CONSOLE_URL",
        "",
        "The address of the console in messages, such as `https://console.example.org`.",
        shown="the first of CONSOLE_HOSTS",
    )
    or address(CONSOLE_HOSTS, PORT, CONSOLE_TLS_SERVED)
).rstrip("/")
CONSOLE_EGRESS_HOSTS = env.words(
    "CONSOLE_EGRESS_HOSTS",
    (),
    "Hosts inside that webhooks and chats may lie on: `chat.corp.example`, `10.1.2.3:8443`, `10.1.0.0/16`, "
    "or `http://hook.corp.example:8080` for one without encryption. Everything else has to be public.",
)
CONSOLE_EGRESS_PORTS = env.words(
    "CONSOLE_EGRESS_PORTS", ("443",), "The ports of public addresses that may be connected to."
)
CONSOLE_EGRESS_PROXY = env.text(
    "CONSOLE_EGRESS_PROXY",
    "",
    "An HTTP proxy for webhooks and chats, such as `http://proxy.corp.example:3128`; the environment's is "
    "not used.",
)
CONSOLE_EGRESS_SECONDS = env.seconds(
    "CONSOLE_EGRESS_SECONDS", 10, "An answer that takes longer is none; at most 20.", least=0.1
)
CONSOLE_NOTICE_GATHER_SECONDS = env.seconds(
    "CONSOLE_NOTICE_GATHER_SECONDS", 2, "What happens within so long of each other is one message."
)
CONSOLE_NOTICE_GAP_SECONDS = env.seconds(
    "CONSOLE_NOTICE_GAP_SECONDS", 60, "Two messages to the same channel are at least so far apart."
)
CONSOLE_NOTICE_TRIES = env.integer(
    "CONSOLE_NOTICE_TRIES",
    12,
    "A message is given up after so many tries; the twelfth is five hours later.",
    least=1,
)
CONSOLE_NOTICE_FAILURES = env.integer(
    "CONSOLE_NOTICE_FAILURES",
    5,
    "A channel is turned off after so many messages that were given up.",
    least=1,
)
CONSOLE_NOTICE_DAYS = env.integer(
    "CONSOLE_NOTICE_DAYS",
    30,
    "Notices and the record of messages are kept for so long.",
    unit="days",
    least=1,
)
