"""Sessions beside replicas on a real Ray, and connections to what they serve."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from jobs.backends.base import EndpointSeen, Handle, Observation
from jobs.backends.remote.port_agent import close_agents
from jobs.backends.sessions import Barrier, Ended, NoEntry, SessionKind, SessionRequest, Size, Terminal
from jobs.spec import Port, TensorBoard
from jobs.states import PortSource, State
from tests.jobs.backends.benches import log_of, replica, role, wait_until_over
from tests.jobs.backends.beside import REPLICA, beside, enterable, list_files, run, until
from tests.jobs.backends.ray_bench import RayBench
from tests.waiting import wait_for

pytestmark = pytest.mark.ray

ANNOUNCE = """\
echo '{"label": "notebook", "port": '$PAI_CONTAINER_HOST_nb_PORT_LIST', "path": "/lab", "probe": "/"}' \
>>"$JOB_CONSOLE_ENDPOINTS"
python3 -m http.server $PAI_CONTAINER_HOST_nb_PORT_LIST >/dev/null 2>&1 &
python3 -m http.server $PAI_CONTAINER_HOST_web_PORT_LIST >/dev/null 2>&1 &
echo kept >note; echo up; exec sleep 600
"""


def endpoint(bench: RayBench, handle: Handle, holds: Callable[[EndpointSeen], bool]) -> EndpointSeen:
    """The first port of which that holds, once there is one."""

    def find() -> EndpointSeen | None:
        seen = bench.backend.observe([handle])[handle]
        assert isinstance(seen, Observation)
        return next(filter(holds, replica(seen).endpoints), None)

    return wait_for(find, interval=0.3)


async def test_replica_is_entered_by_listener_and_its_ports_are_reached(on_ray: RayBench) -> None:
    command = role(ANNOUNCE, ports=(Port(label="web"), Port(label="nb")))
    handle = on_ray.backend.submit(on_ray.submission(command, env={"COLOUR": "green"}))
    await asyncio.to_thread(wait_for, lambda: log_of(on_ray.backend, handle))
    said, ended = await run(on_ray, handle, "cat note; echo $COLOUR $PAI_TASK_INDEX; exit 7")
    assert (said, ended) == ("kept\ngreen 0\n", Ended(exit_code=7))
    assert "note" in await list_files(on_ray, handle)
    shell = SessionRequest(SessionKind.SHELL, terminal=Terminal("xterm", Size(columns=91, rows=33)))
    async with beside(on_ray, handle, shell) as session:
        await session.write(b"PS1=; stty size; echo d''one\n")
        assert "33 91" in await until(session, "done")
    web = await asyncio.to_thread(endpoint, on_ray, handle, lambda seen: seen.ready and seen.label == "web")
    assert web.host.startswith(on_ray.cluster.network)
    announced = await asyncio.to_thread(
        endpoint, on_ray, handle, lambda seen: seen.path == "/lab" and seen.ready
    )
    assert announced.source is PortSource.ASKED
    with await enterable(on_ray).connect(handle, REPLICA, "localhost", web.port) as made:
        loop = asyncio.get_running_loop()
        await loop.sock_sendall(made, b"GET /note HTTP/1.0\r\n\r\n")
        answer = b""
        while more := await loop.sock_recv(made, 65536):
            answer += more
    assert answer.endswith(b"kept\n")
    with pytest.raises(NoEntry) as refused:
        await enterable(on_ray).connect(handle, REPLICA, "localhost", on_ray.cluster.ports + 1)
    assert refused.value.barrier is Barrier.NOT_ITS_OWN
    await close_agents()
    on_ray.backend.stop(handle, grace_s=0, signal="KILL")
    seen = await asyncio.to_thread(wait_until_over, on_ray.backend, handle)
    assert seen.state is State.STOPPED
    assert not any((on_ray.attempt(handle) / name).exists() for name in ("door", "door-key"))
    with pytest.raises(NoEntry):
        await enterable(on_ray).exec(handle, REPLICA, SessionRequest(SessionKind.LINE, line="true"))


async def test_session_on_node_without_bundle_of_the_job_is_refused(on_ray: RayBench) -> None:
    handle = on_ray.backend.submit(on_ray.submission(role("echo up; exec sleep 600")))
    started = on_ray.attempt(handle) / "run-1" / "started" / "worker-0"
    await asyncio.to_thread(wait_for, started.exists)
    node, rest = started.read_text().split(" ", 1)
    started.write_text(f"{'ampere' if node == 'titans' else 'titans'} {rest}")
    with pytest.raises(NoEntry) as refused:
        await enterable(on_ray).exec(handle, REPLICA, SessionRequest(SessionKind.LINE, line="true"))
    assert refused.value.barrier is Barrier.NOT_RUNNING


def test_tensorboard_runs_beside_the_replica_and_is_announced(on_ray: RayBench, tmp_path: Path) -> None:
    program = tmp_path / "bin" / "tensorboard"
    program.parent.mkdir()
    program.write_text('#!/bin/sh\ncd "$2" && exec python3 -m http.server "$6"\n')
    program.chmod(0o755)
    command = role("echo up; exec sleep 600")
    environment = {"PATH": f"{program.parent}:/usr/bin:/bin"}
    board = TensorBoard(enabled=True)
    handle = on_ray.backend.submit(on_ray.submission(command, env=environment, tensorboard=board))
    found = endpoint(on_ray, handle, lambda seen: seen.label == "tensorboard" and seen.ready)
    assert found.source is PortSource.ANNOUNCED
