"""E-mail over the wire, to a server that speaks SMTP: confirmed first, in threads, ended by one click."""

from __future__ import annotations

import email
import email.policy
import socketserver
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from email.message import EmailMessage
from urllib.parse import urlsplit

import pytest
from django.core import mail as django_mail
from django.test import Client
from django.utils import timezone
from pytest_django import Settings

from jobs.lifecycle import transitions
from jobs.models import Channel, Delivery, Job, NotificationRule
from jobs.models.kinds import CHOICES
from jobs.notifications import channels, composition, deliveries, routing
from jobs.states import Reason, ReasonCode, State
from tests.factories import attempt_of, make_job
from tests.jobs.web.conftest import People, seen

pytestmark = pytest.mark.django_db(transaction=True)


@dataclass
class Post:
    """What came, and with which code each command is answered otherwise."""

    port: int = 0
    came: list[EmailMessage] = field(default_factory=list)
    envelopes: list[tuple[str, str]] = field(default_factory=list)
    says: dict[str, str] = field(default_factory=dict)


class Session(socketserver.StreamRequestHandler):
    """One conversation (RFC 5321), as much of it as senders need."""

    def handle(self) -> None:
        post: Post = self.server.post  # type: ignore[attr-defined]
        self.say("220 mail.test ESMTP")
        sender = recipient = ""
        while line := self.rfile.readline().decode().strip():
            verb, _space, rest = line.partition(" ")
            verb = verb.upper()
            if verb in post.says:
                self.say(post.says[verb])
            elif verb in {"EHLO", "HELO"}:
                self.say("250-mail.test\r\n250-8BITMIME\r\n250 SIZE 1000000")
            elif verb == "MAIL":
                sender = rest
                self.say("250 2.1.0 OK")
            elif verb == "RCPT":
                recipient = rest
                self.say("250 2.1.5 OK")
            elif verb == "DATA":
                self.say("354 Go ahead")
                post.came.append(self.body())
                post.envelopes.append((sender, recipient))
                self.say("250 2.0.0 Queued")
            elif verb == "QUIT":
                self.say("221 Bye")
                return
            else:
                self.say("250 OK")

    def say(self, text: str) -> None:
        self.wfile.write(f"{text}\r\n".encode())

    def body(self) -> EmailMessage:
        lines = []
        while (line := self.rfile.readline()) != b".\r\n":
            lines.append(line.removeprefix(b".") if line.startswith(b"..") else line)
        return email.message_from_bytes(b"".join(lines), policy=email.policy.default)


@pytest.fixture
def post(settings: Settings) -> Iterator[Post]:
    class Server(socketserver.ThreadingTCPServer):
        allow_reuse_address = True
        daemon_threads = True

    with Server(("127.0.0.1", 0), Session) as server:
        found = Post(server.server_address[1])
        server.post = found  # type: ignore[attr-defined]
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        thread.start()
        settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
        settings.EMAIL_HOST, settings.EMAIL_PORT = "127.0.0.1", found.port
        settings.EMAIL_USE_TLS = settings.EMAIL_USE_SSL = False
        settings.CONSOLE_MAIL = "smtp://mail.test"
        settings.CONSOLE_MAIL_FROM = "Job Console <console@example.org>"
        settings.CONSOLE_URL = "https://console.example.org"
        settings.CONSOLE_NOTICE_GATHER_SECONDS = settings.CONSOLE_NOTICE_GAP_SECONDS = 0
        yield found
        server.shutdown()
        thread.join()


@pytest.fixture
def inbox(people: People, post: Post) -> Channel:
    """The owner's address, confirmed."""
    row = Channel(person=people.owner, kind="email", verified_at=timezone.now(), shown="alice@example.org")
    row.encrypt({"to": "alice@example.org"})
    row.save()
    NotificationRule.objects.create(channel=row, events=[value for value, _label in CHOICES])
    return row


def fail(people: People, job: Job | None = None) -> Job:
    job = job or make_job(State.RUNNING, owner=people.owner, quota=people.quota, name="bert")
    transitions.end(job, attempt_of(job), State.FAILED, Reason(ReasonCode.EXIT_CODE, {"exit_code": 1}))
    return job


def work() -> None:
    routing.route()
    deliveries.pack()
    deliveries.send()


def part(message: EmailMessage, kind: str) -> str:
    found = message.get_body((kind,))
    assert found is not None
    return str(found.get_content())


def test_mail_of_failure_has_text_and_html(people: People, inbox: Channel, post: Post) -> None:
    job = fail(people)
    work()
    [came] = post.came
    [(sender, recipient)] = post.envelopes
    assert (sender.split()[0], recipient) == ("FROM:<console@example.org>", "TO:<alice@example.org>")
    assert came["Subject"] == "[Job Console] bert failed."
    assert came["To"] == "alice@example.org"
    link = f"https://console.example.org/jobs/{job.public_id}/"
    assert link in part(came, "plain")
    assert f'<a href="{link}">bert failed.</a>' in part(came, "html")
    assert came["Auto-Submitted"] == "auto-generated"
    assert came["Message-ID"] == f"<{Delivery.objects.get().public_id}@console.example.org>"
    assert Delivery.objects.get().code == 250


def test_mail_thread_is_one_per_job(people: People, inbox: Channel, post: Post) -> None:
    fail(people)
    work()
    fail(people)
    work()
    first, second = (came["References"] for came in post.came)
    assert first != second
    assert post.came[0]["In-Reply-To"] == first


def test_mail_shows_job_name_as_text(people: People, inbox: Channel, post: Post) -> None:
    name = "<script>alert(1)</script>\r\nBcc: everybody@example.org"
    fail(people, make_job(State.RUNNING, owner=people.owner, quota=people.quota, name=name))
    work()
    [came] = post.came
    assert "Bcc" not in came
    assert "<script>" not in part(came, "html")


def test_mail_unsubscribe_takes_one_click(people: People, inbox: Channel, post: Post) -> None:
    fail(people)
    work()
    [came] = post.came
    assert came["List-Unsubscribe-Post"] == "List-Unsubscribe=One-Click"
    path = urlsplit(str(came["List-Unsubscribe"]).strip(" \r\n<>")).path
    strict = Client(enforce_csrf_checks=True)
    assert strict.get(path).status_code == 200
    assert Channel.objects.get(pk=inbox.pk).off == "", "looking at it changes nothing"
    assert strict.post(path, {"List-Unsubscribe": "One-Click"}).status_code == 200
    assert Channel.objects.get(pk=inbox.pk).off == Channel.Off.UNSUBSCRIBED
    fail(people)
    work()
    assert len(post.came) == 1


def test_mail_address_is_confirmed_before_notifications(people: People, post: Post) -> None:
    made = channels.add(people.owner, "email", {"to": "alice@example.org"}).channel
    fail(people)
    work()
    [came] = post.came
    assert came["Subject"] == "[Job Console] Confirm this address for notifications"
    assert "bert" not in part(came, "plain")
    path = next(urlsplit(word).path for word in part(came, "plain").split() if "/confirm/" in word)
    browser = Client()
    assert "alice@example.org" in seen(browser.get(path))
    assert Channel.objects.get(pk=made.pk).verified_at is None
    assert browser.post(path).status_code == 200
    assert Channel.objects.get(pk=made.pk).verified_at is not None
    fail(people)
    work()
    assert post.came[-1]["Subject"] == "[Job Console] bert failed."


@pytest.mark.parametrize("name", ["channel_confirm", "unsubscribe"])
def test_mail_link_with_invalid_ticket_is_not_found(inbox: Channel, name: str) -> None:
    path = {"channel_confirm": "/notices/confirm/", "unsubscribe": "/notices/stop/"}[name]
    other = {"channel_confirm": "off", "unsubscribe": "on"}[name]
    for ticket in ("x", "a:b:c", composition.ticket(inbox, other)):
        for method in ("get", "post"):
            assert getattr(Client(), method)(path + ticket).status_code == 404
    assert Channel.objects.get(pk=inbox.pk).off == ""


def test_mail_link_is_valid_only_for_its_address(inbox: Channel) -> None:
    ticket = composition.ticket(inbox, "off")
    Channel.objects.filter(pk=inbox.pk).update(shown="somebody@else.example")
    assert Client().post(f"/notices/stop/{ticket}").status_code == 404


@pytest.mark.parametrize(
    ("verb", "says", "state", "error"),
    [
        ("RCPT", "550 5.1.1 No such user", "failed", "rejected"),
        ("RCPT", "451 4.7.1 Greylisted", "waiting", "busy"),
        ("MAIL", "552 5.2.2 Too much", "failed", "rejected"),
        ("DATA", "421 4.3.2 Shutting down", "waiting", "busy"),
    ],
)
def test_mail_server_answer_decides_on_retry(
    people: People, inbox: Channel, post: Post, verb: str, says: str, state: str, error: str
) -> None:
    post.says[verb] = says
    fail(people)
    work()
    delivery = Delivery.objects.get()
    assert (delivery.state, delivery.error, delivery.code) == (state, error, int(says[:3]))


def test_mail_to_unreachable_server_is_retried(
    people: People, inbox: Channel, post: Post, settings: Settings
) -> None:
    settings.EMAIL_PORT = 1
    fail(people)
    work()
    assert (Delivery.objects.get().state, Delivery.objects.get().error) == ("waiting", "connect")


def test_mail_without_server_is_not_sent(
    people: People, inbox: Channel, post: Post, settings: Settings
) -> None:
    settings.CONSOLE_MAIL = ""
    fail(people)
    work()
    assert Delivery.objects.get().error == "no_mail"
    assert not django_mail.outbox


def test_mail_combines_several_events(people: People, inbox: Channel, post: Post) -> None:
    for _each in range(3):
        fail(people)
    work()
    [came] = post.came
    assert came["Subject"] == "[Job Console] bert failed. And 2 more."
    assert "References" not in came
