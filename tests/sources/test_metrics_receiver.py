"""What Spark's GraphiteSink sends, and what anybody else may send to the same port."""

from __future__ import annotations

import contextlib
import errno
import resource
import socket
from collections.abc import Iterator

import pytest

from spark_events.runtime.registry import Registry
from spark_events.sources.driver import metrics_receiver
from spark_events.sources.driver.executor_sources import open_executor_sources
from spark_events.sources.driver.metrics_receiver import MetricsReceiver
from spark_events.spark.metrics_sink import DRIVER_SINK
from tests.support.waiting import free_port, wait_until

PREFIX = "token.app-1"
LOCALHOST = "127.0.0.1"


@pytest.fixture
def receiver() -> Iterator[MetricsReceiver]:
    receiver = MetricsReceiver(LOCALHOST, 0, PREFIX, most_names=100)
    receiver.start()
    yield receiver
    receiver.close()


def connect(receiver: MetricsReceiver) -> socket.socket:
    return socket.create_connection((LOCALHOST, receiver.port), timeout=10)


def send(receiver: MetricsReceiver, *lines: str) -> None:
    with connect(receiver) as sender:
        sender.sendall("".join(f"{line}\n" for line in lines).encode())


def received(receiver: MetricsReceiver, executor: str, name: str) -> float:
    """Wait for a measurement; others that come with it are dropped."""
    found: list[float] = []

    def is_there() -> bool:
        found.extend(values[name] for whose, values in receiver.take().items() if whose == executor)
        return bool(found)

    wait_until(is_there, f"{name} of {executor} is there")
    return found[-1]


def still_works(receiver: MetricsReceiver) -> bool:
    send(receiver, f"{PREFIX}.7.jvm.heap.max 42 1")
    return received(receiver, "7", "jvm.heap.max") == 42


def test_the_last_value_of_each_name_by_executor(receiver: MetricsReceiver) -> None:
    """An executor's id ends at the first dot; what follows is the name."""
    send(
        receiver,
        f"{PREFIX}.1.jvm.heap.committed 10 1795000000",
        f"{PREFIX}.1.jvm.heap.committed 20 1795000010",
        f"{PREFIX}.driver.executor.bytesRead.count 1.5E3 1795000010",
        f"{PREFIX}.2.end 1 1795000010",
    )
    taken: dict[str, dict[str, float]] = {}

    def are_there() -> bool:
        for executor, values in receiver.take().items():
            taken.setdefault(executor, {}).update(values)
        return "2" in taken

    wait_until(are_there, "the last one is there")
    assert taken["1"] == {"jvm.heap.committed": 20.0}
    assert taken["driver"] == {"executor.bytesRead.count": 1_500.0}
    assert receiver.take() == {}
    assert not receiver.dropped


def test_lines_in_any_pieces(receiver: MetricsReceiver) -> None:
    """As they come from a slow sender; another one is not held up."""
    with connect(receiver) as slow:
        for byte in f"{PREFIX}.1.a 5 1\n{PREFIX}.1.b".encode():
            slow.sendall(bytes((byte,)))
        assert received(receiver, "1", "a") == 5
        assert still_works(receiver)
        slow.sendall(b" 6 1\n")
        assert received(receiver, "1", "b") == 6


@pytest.mark.parametrize(
    ("line", "cause"),
    [
        ("wrong.app-1.1.jvm.heap.max 1 1", "other_sender"),
        ("token.app-2.1.jvm.heap.max 1 1", "other_sender"),
        ("GET / HTTP/1.1\r", "other_sender"),
        ("", "other_sender"),
        (f"{PREFIX}.1 1 1", "malformed"),
        (f"{PREFIX}.1.a", "malformed"),
        (f"{PREFIX}.1.{'x' * 3_000} 1 1", "too_long"),
        (f"{PREFIX}.1.a much 1", "malformed"),
        (f"{PREFIX}.1.a 123456789", "malformed"),
        (f"{PREFIX}.1.a 1_000 1", "malformed"),
        (f"{PREFIX}.1.a 1 {'1' * 1_000}", "malformed"),
    ],
)
def test_what_is_not_for_us_is_counted(receiver: MetricsReceiver, line: str, cause: str) -> None:
    send(receiver, line)

    def is_counted() -> bool:
        receiver.take()
        return receiver.dropped[cause] == 1

    wait_until(is_counted, "it is counted")
    assert still_works(receiver)


def test_no_numbers(receiver: MetricsReceiver) -> None:
    """Spark writes NaN for some empty histograms: no value, and nothing wrong."""
    send(receiver, f"{PREFIX}.1.a NaN 1", f"{PREFIX}.1.b Infinity 1", f"{PREFIX}.1.c 3 1")
    assert received(receiver, "1", "c") == 3
    assert not receiver.dropped


def test_bytes_without_end_take_no_memory(receiver: MetricsReceiver) -> None:
    """100 MB without a line's end, and as much garbage with some."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for piece in (b"x" * 1_000_000, bytes(range(256)) * 4_000):
        # The receiver hangs up on the first.
        with connect(receiver) as sender, contextlib.suppress(ConnectionError):
            for _ in range(100):
                sender.sendall(piece)
    wait_until(lambda: receiver.dropped["too_long"] >= 1, "a line is too long")
    assert still_works(receiver)
    assert (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024 < 50


def test_a_long_value_is_not_kept(receiver: MetricsReceiver, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where its whole line comes at once: the names would be many."""
    monkeypatch.setattr(metrics_receiver, "_LONGEST_LINE", 100)
    send(receiver, f"{PREFIX}.1.a {'9' * 200} 1", f"{PREFIX}.1.b 2 1")
    assert received(receiver, "1", "b") == 2
    assert receiver.dropped == {"too_long": 1}
    assert "a" not in receiver._received["1"]


def test_more_names_than_it_keeps(receiver: MetricsReceiver) -> None:
    """Further ones are counted; those of an executor that is gone make room."""
    send(receiver, *(f"{PREFIX}.1.name{number} 1 1" for number in range(150)))
    wait_until(lambda: receiver.dropped["too_many"] == 50, "the rest is counted")
    receiver.forget("1")
    assert still_works(receiver)


def test_what_executors_send_that_are_gone_takes_no_room(receiver: MetricsReceiver) -> None:
    """A last report may be under way when Spark removes them."""
    for executor in range(1, 4):
        send(receiver, *(f"{PREFIX}.{executor}.name{number} 1 1" for number in range(90)))
        assert received(receiver, str(executor), "name89") == 1
        receiver.forget(str(executor))
        late = [f"{PREFIX}.{executor}.name{number} 2 1" for number in range(90)]
        send(receiver, *late, f"{PREFIX}.9.x {executor} 1")
        assert received(receiver, "9", "x") == executor
    assert len(receiver._names) == 1
    assert not receiver.dropped


def test_thousands_of_connections(receiver: MetricsReceiver) -> None:
    """Ten thousand that say nothing, a thousand of them at once: the oldest have to go, new ones are heard."""
    for _ in range(10):
        with contextlib.ExitStack() as silent:
            for _ in range(1_000):
                silent.enter_context(connect(receiver))
    assert still_works(receiver)
    assert receiver.dropped["too_many_connections"] >= 5_000


def test_it_goes_on_for_a_while(receiver: MetricsReceiver) -> None:
    """Spark sends once more while it stops."""
    receiver.close(linger_s=30)
    assert still_works(receiver)


def test_an_address_of_ipv6() -> None:
    """It listens there, and not on all of IPv4."""
    if not socket.has_ipv6:
        pytest.skip("no IPv6")
    receiver = MetricsReceiver("::1", 0, PREFIX)
    receiver.start()
    with socket.create_connection(("::1", receiver.port), timeout=10) as sender:
        sender.sendall(f"{PREFIX}.1.x 7 0\n".encode())
    assert received(receiver, "1", "x") == 7
    with pytest.raises(OSError, match="refused"):
        connect(receiver)
    receiver.close()


def test_all_addresses_are_a_last_resort(caplog: pytest.LogCaptureFixture) -> None:
    """Executors may know this driver by another machine's address, but then it is said."""
    conf = {f"{DRIVER_SINK}port": str(free_port()), "spark.driver.bindAddress": "192.0.2.1"}
    sources = open_executor_sources(conf, "app-1", "app", Registry(()))
    assert sources is not None
    assert "cannot listen on 192.0.2.1 for metrics of executors" in caplog.text
    sources._receiver.close()


def test_no_more_files_is_no_busy_loop(receiver: MetricsReceiver, monkeypatch: pytest.MonkeyPatch) -> None:
    pauses: list[float] = []
    monkeypatch.setattr("spark_events.sources.driver.metrics_receiver.time.sleep", pauses.append)

    class Full:
        def accept(self) -> None:
            raise OSError(errno.EMFILE, "Too many open files")

    server, receiver._server = receiver._server, Full()  # type: ignore[assignment]
    receiver._accept()
    receiver._server = server
    assert pauses == [0.05]


def test_long_names_do_not_fill_the_memory(
    receiver: MetricsReceiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of an executor that is gone, they make room for others."""
    monkeypatch.setattr(metrics_receiver, "_MOST_BYTES", 10_000)
    send(receiver, *(f"{PREFIX}.1.{number:04d}{'x' * 1_900} 1 1" for number in range(20)))
    wait_until(lambda: receiver.dropped["too_many"] == 15, "the rest is dropped")
    receiver.forget("1")
    send(receiver, *(f"{PREFIX}.2.{number:04d}{'x' * 1_900} 1 1" for number in range(4)))
    assert received(receiver, "2", f"0003{'x' * 1_900}") == 1
    assert receiver.dropped["too_many"] == 15
