"""What there is of each query now: what is deployed, what was ordered, what its application says."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from spark_events.sql_runner.deploy.host_link import HostLink, HostView
from spark_events.sql_runner.store import layout
from spark_events.sql_runner.store.deployed import Deployed, read_deployed
from spark_events.sql_runner.store.documents import RUN, Order
from spark_events.sql_runner.store.store import Store

Hosts = Mapping[str, HostView]
"""All applications that ever were, by their names, as they were at one moment."""


@dataclass(frozen=True)
class Current:
    """What there is of a query.

    Attributes:
        name: the query's.
        deployed: the manifest that is deployed, or on its way there; None where the query is new.
        recorded: the manifest in the store; None where there is none.
        host: the application that has the order for it, or is to have it.
    """

    name: str
    deployed: Deployed | None
    recorded: Deployed | None
    host: HostView

    @property
    def link(self) -> HostLink:
        """The link to its application."""
        return self.host.link

    @property
    def order(self) -> Order | None:
        """The last order for it."""
        return self.host.orders.get(self.name)

    @property
    def running(self) -> bool:
        """Whether it runs, or is about to."""
        return self.host.is_running(self.name)

    @property
    def pending(self) -> bool:
        """Whether a deployment was broken off before it was written down."""
        return self.deployed is not None and self.deployed is not self.recorded


def look_at_hosts(store: Store, link: Callable[[str], HostLink]) -> Hosts:
    """Return what there is of all applications.

    Args:
        store: knows them.
        link: gives the link to one, by its name.

    Raises:
        StoreError: the store cannot be read.
    """
    return {host: link(host).look() for host in store.names(layout.HOSTS)}


def find_current(
    store: Store, name: str, default: str, hosts: Hosts, link: Callable[[str], HostLink]
) -> Current:
    """Return what there is of a query.

    Args:
        store: knows what is deployed.
        name: the query's.
        default: the application of one that is not deployed.
        hosts: all of them: a deployment into any may have been broken off.
        link: gives the link to an application that never was, by its name.

    Raises:
        ConfigError: the manifest in the store, or an order, cannot be understood.
        StoreError: the store cannot be read.
    """
    recorded = read_deployed(store, name)
    for host in hosts.values():
        order = host.orders.get(name)
        if order and order.action == RUN and (not recorded or order.id != recorded.meta.deployment):
            return Current(name, Deployed.parse(order.deployed, f"the order for {name}"), recorded, host)
    where = recorded.meta.host if recorded else default
    return Current(name, recorded, recorded, hosts.get(where) or HostView(link(where), {}, False, None))
