"""The network namespace of one replica, and its link to the router."""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import IPv4Interface, IPv4Network
from typing import Final, Self

from jobs.node import kernel
from jobs.node.network import namespaces, router
from jobs.node.network.namespaces import Router, make_in_child
from jobs.node.network.netlink import LOOPBACK, Netlink, open_netlink
from jobs.node.network.rules import SERVICE
from jobs.node.supervisor.plan import NetworkPlan, address_of

_INTERFACE: Final = "eth0"
_INDEX: Final = 2
"""That of the replica's interface: the first one after `lo`."""

_FIRST_INDEX: Final = 1000
"""Where the indexes of a router's links to its replicas begin."""


@dataclass(frozen=True, slots=True)
class ReplicaNetwork:
    """`fd` is an open descriptor of the replica's network namespace.

    The two sockets set up what belongs to it and to the router.
    """

    fd: int
    _own: Netlink
    _router: Netlink

    @classmethod
    def make(cls, router: Router) -> Self:
        """Make a namespace that is linked to nothing; raises OSError."""
        router_socket, own_socket, fd = make_in_child(router.user, router.net, _make_namespace)
        return cls(fd, Netlink(own_socket), Netlink(router_socket))

    def link(self, plan: NetworkPlan, position: int) -> None:
        """Link it to the router, with the address of the replica at a position; raises OSError.

        A link that another wrapper made for the same replica is taken away from that one's namespace.  The
        caller is the only one who may start the replica, and has rights in the router's user namespace.
        """
        name, index = f"v{position}", _FIRST_INDEX + position
        address = IPv4Interface(address_of(plan, position))
        self._own.set_up(LOOPBACK)
        self._router.remove_link(name)
        self._router.add_veth(name, _INTERFACE, self.fd, index=index, peer_index=_INDEX)
        self._router.add_route(index, address.network)
        self._own.set_up(_INDEX)
        self._own.add_address(_INDEX, address)
        self._own.add_route(_INDEX, IPv4Network(SERVICE))
        self._own.add_route(_INDEX, router.EVERYWHERE, SERVICE)


def _make_namespace() -> list[int]:
    """In the router's namespace: return a socket to it, one to a new namespace, and that one itself."""
    router_socket = open_netlink()
    kernel.unshare(kernel.CLONE_NEWNET)
    router.forbid_ipv6()
    return [router_socket, open_netlink(), namespaces.open_own()]
