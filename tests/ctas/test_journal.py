"""The journal: of two that want the next step one gets it."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from spark_events import ctas
from spark_events.api import ConfigError
from spark_events.ctas.errors import JournalError
from spark_events.ctas.settings import CtasSettings, read_settings
from spark_events.ctas.transactions.journal import TransactionJournal
from spark_events.ctas.transactions.transaction import State, Transaction, new_txid
from spark_events.runtime.redaction import read_patterns
from spark_events.spark.owner import Owner
from tests.support.ctas_journals import ME, OTHER, journal_at, transaction
from tests.support.waiting import wait_until

pytestmark = pytest.mark.spark


@pytest.fixture
def journal(session: Any, tmp_path: Path) -> TransactionJournal:
    return journal_at(session, tmp_path, ME)


def test_who_was_ended_by_another_lets_go(session: Any, tmp_path: Path) -> None:
    """Otherwise its lease would be renewed, and read by everybody, for as long as its driver lives."""
    mine, other = (journal_at(session, tmp_path, owner) for owner in (ME, OTHER))
    over, running = transaction(), transaction(name="u")
    mine.begin(over)
    mine.begin(running)
    other.advance(over, State.ABORTED)
    with pytest.raises(ctas.FencedError):
        mine.advance(over, State.PREPARED)
    lease = tmp_path / f"{running.txid}.lease"
    for _ in range(2):  # in whichever order
        lease.unlink()
        wait_until(lease.exists, "the leases are renewed")

    assert [each.txid for each in mine.unfinished()] == [running.txid]


class Full:
    """The storage of a process that can write leases, but no entries."""

    def __init__(self, storage: Any) -> None:
        self._storage = storage

    def __getattr__(self, name: str) -> Any:
        return getattr(self._storage, name)

    def putIfAbsent(self, name: str, text: str) -> bool:  # noqa: N802 - Java's name
        return bool(self._storage.putIfAbsent("/proc/none/entry.json", text))


def test_who_cannot_begin_keeps_no_lease(session: Any, tmp_path: Path) -> None:
    """Otherwise it would be renewed for as long as the driver lives."""
    works = journal_at(session, tmp_path, ME)
    running, never = transaction(), transaction(name="u")
    works.begin(running)
    fails = TransactionJournal(Full(works._storage), works._leases, works._settings, ME)
    with pytest.raises(JournalError, match="cannot write to the journal"):
        fails.begin(never)
    lease = tmp_path / f"{running.txid}.lease"
    for _ in range(2):
        lease.unlink()
        wait_until(lease.exists, "the leases are renewed")

    assert [path.name for path in tmp_path.glob("*.lease")] == [lease.name]


def test_files_that_a_killed_process_leaves_are_removed_once_they_are_old(
    session: Any, tmp_path: Path
) -> None:
    journal = journal_at(session, tmp_path, ME)
    running = transaction(OTHER)
    journal_at(session, tmp_path, OTHER).begin(running)
    names = (f"{new_txid()}.lease", ".clock-abc", ".new-abc")
    for name in names:
        (tmp_path / name).write_text("")
    journal.forget_old()
    assert {path.name for path in tmp_path.iterdir()} >= set(names)
    long_ago = time.time() - 3_600
    for name in (*names, f"{running.txid}.0000.json"):
        os.utime(tmp_path / name, (long_ago, long_ago))
    journal.forget_old()

    assert not {path.name for path in tmp_path.iterdir()} & set(names)
    assert [each.txid for each in journal.unfinished()] == [running.txid]


def test_who_was_ended_and_forgotten_cannot_go_on(session: Any, tmp_path: Path) -> None:
    """A driver that was frozen for long, or another one whose clock is ahead: the files are gone."""
    mine, ahead = (
        journal_at(session, tmp_path, ME),
        journal_at(session, tmp_path, OTHER, retention_ms=-3_600_000),
    )
    one = transaction()
    mine.begin(one)
    ahead.advance(one, State.ABORTED)
    ahead.forget_old()
    with pytest.raises(ctas.FencedError, match="was ended and forgotten"):
        mine.advance(one, State.COMMITTING)

    assert mine.all() == []


def test_what_was_written_is_read_again(journal: TransactionJournal) -> None:
    one = transaction()
    journal.begin(one)
    assert journal.read(one.txid) == one
    two = journal.advance(one, State.PREPARED, written={"rows": 3})
    assert (journal.read(one.txid), journal.unfinished(), journal.all()) == (two, [two], [two])
    three = journal.advance(journal.advance(two, State.ABORTING, reason="why"), State.ABORTED)
    assert (journal.unfinished(), journal.all()) == ([], [three])
    assert Transaction.from_json(three.to_json()) == three
    with pytest.raises(ctas.JournalError, match="has no transaction 'nothing'"):
        journal.read("nothing")


def test_secrets_of_options_are_not_shown() -> None:
    secret, _, _ = read_patterns({})
    one = replace(transaction(), table={"options": {"fs.secret.key": "hush", "header": "true"}})
    assert one.masked(secret).table["options"] == {"fs.secret.key": "******", "header": "true"}
    assert "hush" in one.to_json()


def test_of_many_one_takes_the_next_step(journal: TransactionJournal) -> None:
    one = transaction()
    journal.begin(one)

    def step(state: State) -> bool:
        try:
            journal.advance(one, state)
        except ctas.FencedError:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        won = list(pool.map(step, [State.COMMITTING, State.ABORTING] * 8))
    assert sum(won) == 1


def test_an_entry_that_is_torn_was_never_acted_upon(journal: TransactionJournal, tmp_path: Path) -> None:
    one = transaction()
    journal.begin(one)
    (tmp_path / f"{one.txid}.0001.json").write_text("")
    found = journal.read(one.txid)
    assert (found.state, found.number) == (State.INTENT, 1)
    assert journal.advance(found, State.ABORTING).number == 2


def test_files_of_others_are_passed_over(journal: TransactionJournal, tmp_path: Path) -> None:
    """A copy that somebody has made beside an entry, or a lock in place of an id, stops nothing."""
    one = transaction()
    journal.begin(one)
    journal.lock(one, lambda holder: None)
    for name in (f"{one.txid}.copy.json", f"{one.txid}.0000 (1).json", "notes.of.me.json"):
        (tmp_path / name).write_text("{}")

    assert journal.all() == [one]
    assert journal.advance(one, State.PREPARED).number == 1
    for txid in ("lock", "notes", "../x", ""):
        with pytest.raises(JournalError, match="has no transaction"):
            journal.read(txid)


def test_a_lease_that_is_not_renewed_is_over(session: Any, tmp_path: Path) -> None:
    journal = journal_at(session, tmp_path, ME, lease_ms=60_000)
    theirs = journal_at(session, tmp_path, OTHER)
    one = transaction(OTHER)
    theirs.begin(one)
    assert not journal.is_abandoned(one)
    hasty = journal_at(session, tmp_path, ME, lease_ms=-1)
    assert hasty.is_abandoned(one)
    (tmp_path / f"{one.txid}.lease").unlink()
    assert journal.is_abandoned(one)


def test_a_process_of_this_machine_that_is_gone_is_known_to_be() -> None:
    code = "from spark_events.spark.owner import Owner; print(repr(Owner.this_process('a')))"
    text = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    gone = eval(text, {"Owner": Owner})
    assert gone.is_dead
    assert not ME.is_dead
    assert replace(ME, started="1").is_dead
    assert not replace(ME, pid=gone.pid, host="elsewhere").is_dead
    assert not replace(gone, space="another boot").is_dead


def test_one_commit_to_a_table_at_a_time(journal: TransactionJournal, tmp_path: Path, session: Any) -> None:
    first, second, other = transaction(), transaction(), transaction(name="u")
    for one in (first, second, other):
        journal.begin(one)
    ended: list[Transaction] = []
    journal.lock(first, ended.append)
    journal.lock(first, ended.append)
    journal.lock(other, ended.append)
    with pytest.raises(ctas.CommitConflictError, match=r"spark.events.ctas.lock.timeout \(300 ms\)"):
        journal.lock(second, ended.append)
    assert ended == []
    journal.advance(journal.advance(first, State.COMMITTING), State.COMMITTED)
    journal.lock(second, ended.append)
    assert len(list(tmp_path.glob("lock.*.json"))) == 2


class PausedAfterListing:
    """The storage of a process that is paused just after it has listed the journal for the first time."""

    def __init__(self, storage: Any, meanwhile: Callable[[], None]) -> None:
        self._storage = storage
        self._meanwhile: Callable[[], None] | None = meanwhile

    def __getattr__(self, name: str) -> Any:
        return getattr(self._storage, name)

    def list(self, folder: str) -> Any:
        names = list(self._storage.list(folder))
        if self._meanwhile is not None:
            meanwhile, self._meanwhile = self._meanwhile, None
            meanwhile()
        return names


def test_a_lock_whose_number_has_come_and_gone(journal: TransactionJournal, tmp_path: Path) -> None:
    """Who was paused takes it no second time, beside a later one that is held."""
    over, quick, holder, paused = (transaction() for _ in range(4))
    for one in (over, quick, holder, paused):
        journal.begin(one)
    journal.lock(over, print)
    journal.advance(journal.advance(over, State.COMMITTING), State.COMMITTED)

    def others_go_on() -> None:
        journal.lock(quick, print)
        journal.advance(journal.advance(quick, State.COMMITTING), State.COMMITTED)
        journal.lock(holder, print)

    storage = PausedAfterListing(journal._storage, others_go_on)
    late = TransactionJournal(storage, journal._leases, journal._settings, ME)
    with pytest.raises(ctas.CommitConflictError):
        late.lock(paused, print)
    assert [path.name[-13:] for path in tmp_path.glob("lock.*.json")] == ["00000002.json"]
    journal.advance(journal.advance(holder, State.COMMITTING), State.COMMITTED)
    late.lock(paused, print)


def test_who_holds_a_table_and_is_gone_is_ended(journal: TransactionJournal) -> None:
    first, second = transaction(), transaction()
    journal.begin(first)
    journal.begin(second)
    journal.lock(first, print)
    journal.let_go(first)
    ended: list[str] = []

    def end(holder: Transaction) -> None:
        ended.append(holder.txid)
        journal.advance(journal.advance(holder, State.ABORTING), State.ABORTED)

    journal.lock(second, end)
    assert ended == [first.txid]


def committed(journal: TransactionJournal) -> Transaction:
    one = transaction()
    journal.begin(one)
    return journal.advance(journal.advance(one, State.COMMITTING), State.COMMITTED)


def test_nobody_commits_to_a_table_while_remains_of_its_replacement_are_removed(
    journal: TransactionJournal, session: Any, tmp_path: Path
) -> None:
    """What is removed may write the table back as it was; whoever commits waits, for longer than for others."""
    other = journal_at(session, tmp_path, OTHER)
    commits = transaction(OTHER)
    other.begin(commits)
    with ThreadPoolExecutor() as pool:
        with journal.collecting(committed(journal), print):
            waits = pool.submit(other.lock, commits, print)
            started = time.monotonic()
            wait_until(lambda: time.monotonic() - started > 1 or waits.done(), "it has waited or not")
            assert not waits.done()
        waits.result(30)
    with pytest.raises(ctas.CommitConflictError), journal.collecting(committed(journal), print):
        pytest.fail("the other commits")
    assert len(list(tmp_path.glob("lock.*.json"))) == 1


def test_who_was_removing_remains_and_is_gone_holds_up_nobody(
    journal: TransactionJournal, session: Any, tmp_path: Path
) -> None:
    gone = journal_at(session, tmp_path, OTHER)
    held = gone.collecting(committed(gone), print)
    held.__enter__()
    (file,) = tmp_path.glob("*.held")
    gone._leases.leave(str(file))
    quick = journal_at(session, tmp_path, ME, lease_ms=500)
    commits = transaction()
    quick.begin(commits)
    quick.lock(commits, print)
    with pytest.raises(ctas.CommitConflictError), quick.collecting(committed(quick), print):
        pytest.fail("it was taken from who is gone")
    assert not list(tmp_path.glob("*.held"))
    del held


class Counting:
    """The storage of a process, with a count of the calls that it makes."""

    def __init__(self, storage: Any) -> None:
        self._storage = storage
        self.calls: Counter[str] = Counter()

    def __getattr__(self, name: str) -> Any:
        self.calls[name] += 1
        return getattr(self._storage, name)


def test_who_waits_for_a_collection_asks_once_each_time(
    journal: TransactionJournal, session: Any, tmp_path: Path
) -> None:
    """It tries ten times a second, for as long as the removal of many files lasts."""
    tries_once = journal_at(session, tmp_path, OTHER, lock_timeout_ms=-1)
    commits = transaction(OTHER)
    tries_once.begin(commits)
    storage = Counting(tries_once._storage)
    waits = TransactionJournal(storage, tries_once._leases, tries_once._settings, OTHER)
    with journal.collecting(committed(journal), print), pytest.raises(ctas.CommitConflictError):
        waits.lock(commits, print)
    assert storage.calls == {"list": 1, "read": 1, "modified": 1, "now": 1}


def test_who_removes_remains_later_has_no_statement_to_run_again(
    journal: TransactionJournal, session: Any, tmp_path: Path
) -> None:
    commits = transaction(OTHER)
    other = journal_at(session, tmp_path, OTHER)
    other.begin(commits)
    other.lock(commits, print)
    with pytest.raises(ctas.CommitConflictError) as raised, journal.collecting(committed(journal), print):
        pytest.fail("the other commits")
    assert "run the statement again" not in str(raised.value)
    assert "the next statement, or spark-events ctas recover, removes what is left" in str(raised.value)


def test_who_dies_before_it_has_the_lock_leaves_nothing_for_good(
    journal: TransactionJournal, session: Any, tmp_path: Path
) -> None:
    """A file that is not renewed goes with the next sweep, one of a process that lives stays."""
    lives, dead = (journal_at(session, tmp_path, owner) for owner in (ME, OTHER))
    held = [tmp_path / f"{new_txid()}.{number}.held" for number in range(2)]
    for each, file in zip((lives, dead), held, strict=True):
        each._leases.hold(str(file), "owner")
    dead._leases.leave(str(held[1]))
    day_ago = time.time() - 86_400
    os.utime(held[1], (day_ago, day_ago))
    journal.forget_old()
    assert list(tmp_path.glob("*.held")) == held[:1]
    lives._leases.release(str(held[0]))


def test_the_oldest_comes_first(journal: TransactionJournal) -> None:
    """Also of two in one second, in which ids have no order."""
    first = replace(transaction(), txid="20260101T000000-ffffffff", begun_ms=1)
    second = replace(transaction(name="u"), txid="20260101T000000-00000000", begun_ms=2)
    for each in (second, first):
        journal.begin(each)
    assert [each.txid for each in journal.all()] == [first.txid, second.txid]


def test_what_is_long_over_is_forgotten(session: Any, tmp_path: Path) -> None:
    journal = journal_at(session, tmp_path, ME, retention_ms=3_600_000)
    recent, old = transaction(), replace(transaction(), txid="20200101T000000-0a0b0c0d")
    waiting = replace(transaction(), txid="20200101T000000-1a1b1c1d")
    for one in (recent, old):
        journal.begin(one)
        journal.advance(journal.advance(one, State.ABORTING), State.ABORTED)
    journal.begin(waiting)
    journal.forget_old()
    assert {one.txid for one in journal.all()} == {recent.txid, waiting.txid}


def test_a_journal_that_cannot_be_written_to(session: Any, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    journal = journal_at(session, tmp_path / "file", ME)
    with pytest.raises(
        ctas.JournalError, match=r"set spark.events.ctas.journal.dir to a folder that Spark can write to"
    ):
        journal.begin(transaction())


def test_settings_and_their_errors() -> None:
    conf = {"spark.sql.warehouse.dir": "hdfs://nn/wh/", "spark.events.ctas.lease.duration": "1min"}
    assert read_settings(conf) == CtasSettings("hdfs://nn/wh/.ctas", 60_000)
    with pytest.raises(
        ConfigError,
        match=r"spark.events.ctas.replaced-files.retention: 'long' is not valid; expected a duration",
    ):
        read_settings({**conf, "spark.events.ctas.replaced-files.retention": "long"})
