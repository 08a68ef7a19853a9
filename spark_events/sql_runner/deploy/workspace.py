"""What a command of ``spark-events sql`` works with: the store, the applications, the analyst."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from spark_events.sql_runner.analysis.analyst import Analyst
from spark_events.sql_runner.deploy import launch
from spark_events.sql_runner.deploy.current import Current, Hosts, find_current, look_at_hosts
from spark_events.sql_runner.deploy.deployer import Deployer
from spark_events.sql_runner.deploy.host_link import HostLink
from spark_events.sql_runner.deploy.placement import Placement
from spark_events.sql_runner.deploy.planner import Planner
from spark_events.sql_runner.manifest import properties as props
from spark_events.sql_runner.store import layout
from spark_events.sql_runner.store.deployed import Deployed, deployed_names
from spark_events.sql_runner.store.lease import Lease
from spark_events.sql_runner.store.store import Store

_DEPLOY_LEASE_MS = 60_000


class Workspace:
    """What a command works with.

    Args:
        url: the store's.
        placement: where queries run.

    Raises:
        ConfigError: the store cannot be used, or reached.
    """

    def __init__(self, url: str, placement: Placement) -> None:
        self.store = Store(url)
        self.store.check()
        self.placement = placement
        self._lease = Lease(
            self.store, layout.DEPLOY_LEASE, "another deployment is at work", _DEPLOY_LEASE_MS
        )

    def link(self, host: str, guard: Callable[[], None] = lambda: None) -> HostLink:
        """Return the link to an application."""
        return HostLink(self.store, host, guard)

    def currents(self) -> dict[str, Current]:
        """Return what there is of each query that is deployed, or on its way there, by its name.

        Raises:
            ConfigError: a manifest in the store, or an order, cannot be understood.
            StoreError: the store cannot be read.
        """
        hosts = look_at_hosts(self.store, self.link)
        ordered = (name for host in hosts.values() for name in host.orders)
        return {
            name: find_current(self.store, name, self._host_with(name, hosts), hosts, self.link)
            for name in sorted({*deployed_names(self.store), *ordered})
        }

    def _host_with(self, name: str, hosts: Hosts) -> str:
        return next((host for host in hosts if name in hosts[host].orders), self.placement.host_of(name))

    def planner(self, analyst: Analyst, guard: Callable[[], None] = lambda: None) -> Planner:
        """Return what decides."""
        return Planner(self.store, analyst, self.placement.host_of, lambda host: self.link(host, guard))

    @contextmanager
    def deploying(self) -> Iterator[Callable[[], None]]:
        """Hold the lease to deploy, and give what makes sure that it is still held.

        Raises:
            ConfigError: somebody else deploys.
            StoreError: the store cannot be written.
        """
        with self._lease.held():
            yield self._lease.check

    def deployer(self, analyst: Analyst | None, guard: Callable[[], None]) -> Deployer:
        """Return what carries decisions out; without an analyst it can only stop."""
        return Deployer(
            self.store,
            self._lease,
            lambda host: self.link(host, guard),
            analyst.spark_version if analyst else "",
            analyst.statements if analyst else (),
            self._submit,
            self.placement.timeout_s,
        )

    def submit_command(self, host: str, *, single: bool, conf: Mapping[str, str]) -> list[str]:
        """Return the command line of an application.

        Raises:
            ConfigError: there is no Spark, or no Java for it.
        """
        options = self.placement.options
        if self.placement.master:
            options = ["--master", self.placement.master, *options]
        return launch.submit_command(
            self.store.url,
            host,
            single=single,
            conf={**self.placement.conf, **conf},
            options=options,
            poll_ms=self.placement.poll_ms,
            lease_ms=self.placement.lease_ms,
        )

    def _submit(self, deployed: Deployed) -> tuple[subprocess.Popen[bytes], Path]:
        log = self.placement.log_dir / f"{deployed.manifest.name}.log"
        conf = props.of_session(deployed.manifest.spark_properties)
        return launch.submit(self.submit_command(deployed.meta.host, single=True, conf=conf), log), log
