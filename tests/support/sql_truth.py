"""Random sequences of what happens to streaming queries, and an oracle that looks for each row of their source.

The source is files of numbered rows. Each row must be in the target once for the newest version of a query, and for
each older one up to where it was replaced; twice only if the deployment that made it so had said so before.
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable

from spark_events.sql_runner.store import layout
from spark_events.sql_runner.store.deployed import Meta
from spark_events.sql_runner.store.history import read_history
from spark_events.sql_runner.store.savepoints import all_savepoints
from tests.support.clocks import HOUR_MS
from tests.support.sql_oracle import Query
from tests.support.sql_world import ROWS, World
from tests.support.waiting import wait_until


class Sequence:
    """One sequence.

    Args:
        world: where it happens.
        steps: how many things happen.
        left_out: steps that are not taken.
    """

    def __init__(self, world: World, steps: int = 12, left_out: tuple[str, ...] = ()) -> None:
        self._world = world
        self._chance = world.chance
        self._steps = steps
        self._left_out = left_out

    def run(self) -> list[str]:
        """Go through it, and return what was wrong."""
        steps = self._all_steps()
        try:
            self._world.add_rows(2)
            self._world.heal()
            for number in range(self._steps):
                name = self._chance.choice(sorted(steps))
                self._world.oracle.at = f"step {number} ({name})"
                self._world.note(self._world.oracle.at)
                self._world.add_rows(self._chance.randrange(1, 4))
                steps[name]()
                if self._chance.random() < 0.5:
                    self._world.heal()
            self._world.oracle.at = "the end"
            self._world.add_rows(2)
            self._world.heal()
            self._check()
        except (AssertionError, subprocess.TimeoutExpired) as error:
            self._world.oracle.fault(f"{type(error).__name__}: {error}")
        finally:
            self._world.session.close()
            if self._world.disk is not None:
                self._world.disk.close()
            (self._world.folder / "story.txt").write_text(
                "\n".join([*self._world.log, *self._world.oracle.found])
            )
        return self._world.oracle.found

    def _all_steps(self) -> dict[str, Callable[[], None]]:
        steps = {
            "configuration": self._change_configuration,
            "query": self._change_query,
            "bad version": self._deploy_bad,
            "stop": self._stop,
            "roll back": self._roll_back,
            "roll back in place": self._roll_back_in_place,
            "damage": self._damage,
            "race": self._race,
            "prune": self._prune,
            "kill deployer": self._kill_deployer,
            "kill session": self._kill_session,
            "kill session while deploying": self._kill_both,
            "end session": self._end_session,
            "lose checkpoint": self._lose_checkpoint,
            "rename": self._rename,
            "suspend": self._suspend,
            "damaged manifest": self._damage_manifest,
        }
        if self._world.disk is not None and self._world.disk.mounted:
            steps |= {"full store": self._full_store, "read-only store": self._read_only_store}
        if self._world.has_clocks:
            steps |= {"clocks": self._clocks}
        return {name: step for name, step in steps.items() if name not in self._left_out}

    def _change(self) -> Query:
        """Change a query or its configuration, in its manifest alone."""
        query = self._world.any_query()
        if self._chance.random() < 0.5:
            query.at_once = self._chance.choice([each for each in (1, 2, 3, 7) if each != query.at_once])
        else:
            query.text += 1
        return query

    def _change_configuration(self) -> None:
        query = self._world.any_query()
        query.at_once = self._chance.choice([each for each in (1, 2, 3, 7) if each != query.at_once])
        self._world.deploy()

    def _change_query(self) -> None:
        self._world.any_query().text += 1
        self._world.deploy()

    def _deploy_bad(self) -> None:
        """A version whose first micro-batch fails; sometimes its deployer is killed, too."""
        self._world.add_rows(1)
        deployer = self._world.deployer(self._world.any_query().name)
        if self._chance.random() < 0.4:
            self._world.wait(0.5, 4.0)
            deployer.kill()
        self._world.heard(deployer.result())

    def _stop(self) -> Query:
        query = self._world.any_query()
        arguments = ["--stop", query.name, *(["--savepoint"] if self._chance.random() < 0.7 else [])]
        said = self._world.command(arguments).result()
        self._world.heard(said)
        row = self._world.status().get(query.name)
        if row is not None and said.went_well and (row.wanted or row.state == "RUNNING"):
            self._world.oracle.fault(f"{query.name} was stopped: {row}")
        return query

    def _roll_back(self) -> None:
        """Stop a query, and remove its checkpoint and all savepoints after one of them."""
        for query, meta, kept in self._rolled_back():
            self._world.oracle.may_come_twice(query, meta.query_version)
            self._world.kept.delete(meta.checkpoint)
            for savepoint in all_savepoints(self._world.kept, query.name, meta.query_version):
                if savepoint.path != kept and savepoint.at_ms >= self._world.made_ms(kept):
                    self._world.kept.delete(savepoint.path)

    def _roll_back_in_place(self) -> None:
        """Stop a query, and put a savepoint in the place of its checkpoint."""
        for query, meta, kept in self._rolled_back():
            self._world.oracle.may_come_twice(query, meta.query_version)
            for savepoint in all_savepoints(self._world.kept, query.name, meta.query_version):
                if savepoint.path != kept and savepoint.at_ms >= self._world.made_ms(kept):
                    self._world.kept.delete(savepoint.path)
            self._world.kept.delete(meta.checkpoint)
            self._world.kept.copy(kept, meta.checkpoint)
            self._world.kept.delete(f"{meta.checkpoint}/_metadata")

    def _damage(self) -> None:
        """Stop a query, lose its checkpoint, and damage the newest of its savepoints, if there are two."""
        for query, meta, _ in self._rolled_back(least=2):
            self._world.oracle.may_come_twice(query, meta.query_version)
            newest = max(
                all_savepoints(self._world.kept, query.name, meta.query_version),
                key=lambda each: (each.batch, each.at_ms),
            )
            if self._chance.random() < 0.5:
                self._world.kept.delete(f"{newest.path}/_metadata")
            else:
                self._world.kept.write(f"{newest.path}/commits/{newest.batch}", b"XX\n{}")
            self._world.kept.delete(meta.checkpoint)

    def _lose_checkpoint(self) -> None:
        """Lose a checkpoint while the session is away; sometimes the manifest is damaged, too."""
        query = self._world.any_query()
        if not self._world.deploy().went_well:  # what it has ordered may have another checkpoint
            return
        meta = self._world.meta(query)
        row = self._world.status().get(query.name)
        savepoints = all_savepoints(self._world.kept, query.name, meta.query_version) if meta else []
        if meta is None or not savepoints or row is None or not row.wanted:
            return
        self._world.session.kill(self._chance.choice(["jvm", "both"]))
        self._world.oracle.may_come_twice(query, meta.query_version)
        self._world.kept.delete(meta.checkpoint)
        if self._chance.random() < 0.3:
            self._world.kept.write(layout.manifest(query.name), b"\xff\xfe")
        self._world.session.start()
        # A deployment that comes before the session has looked would find the query about to run.
        wait_until(
            lambda: self._world.status()[query.name].state in ("FAILED", "RESTARTING"), "its loss is seen"
        )

    def _rolled_back(self, least: int = 1) -> list[tuple[Query, Meta, str]]:
        query = self._stop()
        meta, row = self._world.meta(query), self._world.status().get(query.name)
        if meta is None or (row is not None and row.state in ("RUNNING", "RESTARTING", "CANCELLING")):
            return []
        savepoints = all_savepoints(self._world.kept, query.name, meta.query_version)
        if len(savepoints) < least or row is None or row.version != meta.query_version:
            return []
        kept = self._chance.choice(savepoints).path
        self._world.note(f"{query.name} back to {kept}, of {len(savepoints)}")
        return [(query, meta, kept)]

    def _race(self) -> None:
        """Two or three deployers at once, each with another change."""
        deployers = []
        for _ in range(self._chance.randrange(2, 4)):
            self._change()
            deployers.append(self._world.deployer())
            self._world.wait(0.0, 0.4)
        if self._chance.random() < 0.3:
            self._world.wait(0.5, 3.0)
            self._chance.choice(deployers).kill()
        for deployer in deployers:
            self._world.heard(deployer.result())

    def _prune(self) -> None:
        """Deploy without one of the queries, which comes back with the next deployment."""
        gone = self._world.any_query()
        self._world.heard(self._world.deployer(without=gone.name, prune=True).result())

    def _rename(self) -> None:
        """Give a query another name, with the same target, and prune."""
        query = self._world.any_query()
        before, number = query.name, len(self._world.log)
        query.name = f"{query.kind}-{number}"
        self._world.renamed = True
        deployer = self._world.deployer(prune=True)
        for _ in range(3):
            self._world.wait(0.3, 1.5)
            self._world.add_rows(1)
        self._world.heard(deployer.result())
        self._world.note(f"{before} is {query.name} now")

    def _kill_deployer(self) -> None:
        self._change()
        deployer = self._world.deployer()
        self._world.wait(0.5, 4.0)
        deployer.kill()
        self._world.heard(deployer.result())

    def _kill_session(self) -> None:
        self._world.wait(0.0, 1.0)
        self._world.session.kill(self._chance.choice(["jvm", "python", "both"]))
        for row in self._world.status().values():
            if row.wanted and row.is_well:
                self._world.oracle.fault(f"the session was killed: {row}")
        if self._chance.random() < 0.7:
            self._world.session.start()

    def _kill_both(self) -> None:
        """Kill the session while it is told to change, and sometimes the deployer, too."""
        self._change()
        deployer = self._world.deployer()
        self._world.wait(0.5, 3.0)
        self._world.session.kill(self._chance.choice(["jvm", "python", "both"]))
        if self._chance.random() < 0.3:
            deployer.kill()
        self._world.heard(deployer.result())

    def _end_session(self) -> None:
        ran = self._world.session.runs
        self._world.session.end()
        for row in self._world.status().values():
            if ran and row.state in ("RUNNING", "GONE"):
                self._world.oracle.fault(f"the session was ended: {row}")
        self._world.add_rows(1)
        self._world.session.start()

    def _suspend(self) -> None:
        """Let a deployer, or the session, stand still for longer than it may; others go on meanwhile."""
        self._change()
        deployer = self._world.deployer()
        self._world.wait(0.5, 3.0)
        who = deployer if self._chance.random() < 0.5 else self._world.session
        deployers = [deployer]
        with who.suspended():
            if self._chance.random() < 0.5:
                self._change()
                deployers.append(self._world.deployer())
            self._world.wait(1.0, 20.0)
        for each in deployers:
            self._world.heard(each.result())

    def _clocks(self) -> None:
        """Set the clocks of the session's machine, while it runs, and of the machines that deployers are on."""
        self._world.set_session_clock(self._chance.choice((0, HOUR_MS, -HOUR_MS)))
        self._world.deployers_ahead_ms = self._chance.choice(
            ((0,), (HOUR_MS,), (-HOUR_MS,), (0, HOUR_MS, -HOUR_MS))
        )
        self._world.deploy()

    def _damage_manifest(self) -> None:
        """Damage what the store has of a query: status names it, and shows the other."""
        query = self._world.any_query()
        if self._world.meta(query) is None:
            return
        damaged = {name for name, row in self._world.status().items() if row.is_damaged}
        self._world.kept.write(layout.manifest(query.name), b"\xff\xfe")
        for name, row in self._world.status().items():
            if row.is_damaged is not (name == query.name or name in damaged):
                self._world.oracle.fault(f"the manifest of {query.name} was damaged: {row}")

    def _full_store(self) -> None:
        assert self._world.disk is not None
        with self._world.disk.full():
            self._suffer()

    def _read_only_store(self) -> None:
        assert self._world.disk is not None
        with self._world.disk.read_only():
            self._suffer()

    def _suffer(self) -> None:
        self._world.add_rows(1)
        deployer = None
        if self._chance.random() < 0.5:
            self._change()
            deployer = self._world.deployer()
        self._world.wait(1.0, 8.0)
        if not self._world.workspace.store.write_problem():
            self._world.oracle.fault("status says nothing of a store that cannot be written")
        if deployer is not None:
            deployer.kill()
            self._world.heard(deployer.result())

    def _check(self) -> None:
        """Look for each row, and at what is said of the queries."""
        world = self._world
        for query in world.queries:
            row = world.status().get(query.name)
            if row is None:
                world.oracle.fault(f"status does not have {query.name}")
                continue
            version = row.version
            world.oracle.check(query, version, world.files * ROWS)
            entries = read_history(world.kept, query.name)
            if not any(entry.version == version and entry.result.startswith("done") for entry in entries):
                world.oracle.fault(f"history of {query.name} does not have version {version}: {entries}")
