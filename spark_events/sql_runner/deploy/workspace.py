"""The library behind the commands of ``spark-events sql``: one store, and where its queries run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from spark_events.api import ConfigError
from spark_events.sql_runner.analysis.analyst import Analyst
from spark_events.sql_runner.deploy.deployer import Deployer, DeployResult
from spark_events.sql_runner.deploy.host_link import HostLink
from spark_events.sql_runner.deploy.placement import Placement
from spark_events.sql_runner.deploy.planner import PlannedQuery, Planner
from spark_events.sql_runner.deploy.query_row import QueryRow
from spark_events.sql_runner.deploy.snapshot import QuerySnapshot, Snapshot
from spark_events.sql_runner.manifest.folder import Manifests
from spark_events.sql_runner.store import layout
from spark_events.sql_runner.store.lease import Lease
from spark_events.sql_runner.store.store import DamagedFile, Store, StoreError

_DEPLOY_LEASE_MS = 60_000


@dataclass(frozen=True, slots=True)
class StoreStatus:
    """What ``spark-events sql status`` shows.

    Attributes:
        rows: of each query, in the order of their names.
        problems: files of the store that cannot be understood, and are not about a single query.
    """

    rows: tuple[QueryRow, ...]
    problems: tuple[str, ...]


class Workspace:
    """A store of queries, and where they run.

    Each method raises ``StoreError`` if the store cannot be read or written; all but ``status`` and ``rows``
    raise ``DamagedFile`` if the orders or the status of an application cannot be understood.

    Args:
        url: the store's.
        placement: where queries run.
        makes_store: whether a store that does not exist is made.

    Attributes:
        lack_of_store: a sentence that there is no store, and what to do; empty if there is, or if it is made.

    Raises:
        ConfigError: the store cannot be used, or reached.
    """

    def __init__(self, url: str, placement: Placement, *, makes_store: bool = True) -> None:
        self.store = Store(url)
        self.store.check()
        self.placement = placement
        self.lack_of_store = ""
        # A mount that is missing leaves an empty folder.
        if not makes_store and layout.FOLDERS.isdisjoint(self.store.names("")):
            self.lack_of_store = (
                f"store {self.store.url}: there is no store of queries; check its name, and that its file "
                "system is mounted: `spark-events sql deploy` or `session` makes a new one"
            )
            return
        # One that cannot be written, because it is full or these are a reader's rights, may still be read.
        with suppress(StoreError):
            self.store.set_clock()

    @classmethod
    def of_existing(cls, url: str, placement: Placement) -> Workspace:
        """Return the workspace of a store that exists.

        Raises:
            ConfigError: there is no store, or it cannot be used, or reached.
        """
        workspace = cls(url, placement, makes_store=False)
        if workspace.lack_of_store:
            raise ConfigError(workspace.lack_of_store)
        return workspace

    def link(self, host: str) -> HostLink:
        """Return the link to an application."""
        return HostLink(self.store, host)

    def queries(self) -> dict[str, QuerySnapshot]:
        """Return, by name, the current state of each query that is, or is being, deployed."""
        snapshot = Snapshot(self.store)
        snapshot.demand_whole()
        return snapshot.queries(self.placement.host_of)

    def status(self) -> StoreStatus:
        """Return the status of each query; files that cannot be understood do not hide others."""
        snapshot, problems = Snapshot(self.store), []
        deploying = False
        try:
            deploying = self._deploy_lease().holder() is not None
        except DamagedFile as error:
            problems.append(str(error))
        queries = snapshot.queries(self.placement.host_of)
        rows = [QueryRow.of(query, deploying) for query in queries.values()]
        return StoreStatus(tuple(rows), (*snapshot.damaged.values(), *problems))

    def rows(self) -> list[QueryRow]:
        """Return the status of each query, in the order of their names."""
        return list(self.status().rows)

    def plan(
        self, analyst: Analyst, manifests: Manifests, *, prune: bool = False, clean: bool = False
    ) -> list[PlannedQuery]:
        """Decide what a deployment does: see ``Planner.plan``."""
        return Planner(self.store, analyst, self.placement).plan(manifests, prune, clean)

    @contextmanager
    def deploying(self) -> Iterator[Lease]:
        """Hold the deployment lease.

        Raises:
            ConfigError: somebody else deploys.
        """
        lease = self._deploy_lease()
        with lease.held():
            for folder in (layout.MANIFESTS, layout.LOCKS, layout.DEPLOY_LEASE):
                self.store.sweep(folder)
            yield lease

    def _deploy_lease(self) -> Lease:
        subject = "another deployment is running"
        return Lease(self.store, layout.DEPLOY_LEASE, subject, _DEPLOY_LEASE_MS, holder="deployment")

    def deployer(self, lease: Lease, analyst: Analyst | None) -> Deployer:
        """Return a deployer that works under a lease; without an analyst, it can only stop queries."""
        return Deployer(self.store, lease, self.placement, analyst)

    def stop(self, name: str, savepoint: bool) -> DeployResult | None:
        """Stop a query after its current micro-batch; if its application is gone, when that is back.

        Returns:
            How it went; None if it is not to run.

        Raises:
            ConfigError: there is no such query, it cannot be understood, or somebody else deploys.
            LeaseLost: another deployment has taken over.
        """
        self._query(name)
        with self.deploying() as lease:
            query = self._query(name)
            if query.damage and query.deployed is None:
                raise ConfigError(query.damage)
            return self.deployer(lease, None).stop(query, savepoint) if query.may_write else None

    def forget(self, name: str, *, state: bool) -> None:
        """Remove a query that has been stopped.

        Args:
            name: the query's.
            state: whether its checkpoints, savepoints and history are removed, too; also of one that could
                never be deployed, or was forgotten without them.

        Raises:
            ConfigError: there is no such query, it is to run, or somebody else deploys.
            LeaseLost: another deployment has taken over.
        """
        if not (state and self._has_state(name)):
            self._query(name)
        with self.deploying() as lease:
            if state and name not in self.queries() and self._has_state(name):
                self._remove_state(name)
                return
            query = self._query(name)
            if query.may_write:
                how = "is to run" if query.wanted else "has not stopped yet"
                raise ConfigError(f"{name!r}: {how}; stop it first with `spark-events sql stop {name}`")
            for host in (query.host, *query.elsewhere):
                HostLink(self.store, host.link.host, lease.check).give(name, None)
                if host.link.is_single and not host.is_alive:
                    self.store.delete(layout.host(host.link.host))
            if state:
                self._remove_state(name)
            self.store.delete(layout.manifest(name))

    def _has_state(self, name: str) -> bool:
        # As they are listed, for the name may be anything, such as "..".
        parents = (folder.removesuffix(f"/{name}") for folder in _folders_of(name))
        return any(name in self.store.names(parent) for parent in parents)

    def _remove_state(self, name: str) -> None:
        for folder in _folders_of(name):
            self.store.delete(folder)

    def _query(self, name: str) -> QuerySnapshot:
        queries = self.queries()
        if name not in queries:
            there = ", ".join(queries) or "none"
            raise ConfigError(f"{name!r}: no such query in {self.store.url}; there is {there}")
        return queries[name]

    def demand_sessions(self, hosts: Iterable[str]) -> list[HostLink]:
        """Raise if a session that is to run queries is neither running nor starting.

        Args:
            hosts: names of applications; those of single queries may be gone.

        Returns:
            The sessions that are starting.

        Raises:
            ConfigError: a session is not running; the message says how to start it.
        """
        start = f"spark-events sql session --store {self.store.url} --session {self.placement.session}"
        starting = []
        for link in map(self.link, sorted(hosts)):
            if link.is_single or (session := link.snapshot()).is_alive:
                continue
            if not session.is_starting:
                raise ConfigError(f"{session.why_gone()}; start it with `{start}`: it resumes its queries")
            starting.append(link)
        return starting

    def await_session(self, link: HostLink) -> None:
        """Wait for a session that is starting.

        Raises:
            DeploymentError: it has ended, or it takes too long.
        """
        link.wait_alive(
            self.placement.timeout_s, lambda: "" if link.is_starting else "has ended while it was starting"
        )


def _folders_of(name: str) -> tuple[str, ...]:
    """Return the folders of what a query leaves: checkpoints, savepoints and history."""
    return layout.checkpoints(name), layout.savepoints(name), layout.history(name)
