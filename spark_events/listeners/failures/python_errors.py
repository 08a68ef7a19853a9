"""Reads what Python code raised from the text that Python prints of it, on its own or within Java's."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from spark_events.api import CodePlace
from spark_events.task.failed_tasks import INSTALLED

TRACEBACK = "Traceback (most recent call last):"
_OF_GROUP = f"Exception Group {TRACEBACK}"
_GROUP, _IN_GROUP, _MEMBERS = f"  + {_OF_GROUP}", "  | ", "  +-+---"
_MEMBER, _NEXT_MEMBER, _END_OF_GROUP = "| ", "+---", "+" + "-" * 36
"""How lines begin below a group, without the group's margin: of its members, between them, and the last."""
_LINKS = frozenset(
    (
        "The above exception was the direct cause of the following exception:",
        "During handling of the above exception, another exception occurred:",
    )
)
_JAVA_FRAME = "\tat "
_QUOTES = '"""'
"""What encloses the traceback of another process, as ``multiprocessing`` prints it."""
PY4J_ERROR = "py4j.protocol.Py4JJavaError"
# A class may be of any name in Python, but what is cut off here, or Java's, is none.
_ERROR = re.compile(r"(?P<type>(?:[^\W\d]|<)[^:\n]{0,1000})(?:: ?(?P<message>.*))?")
_FRAME = re.compile(r' {2}File "([^"\n]{1,1000})", line (\d{1,9}), in (\S{1,300})')
# By where PySpark is installed, or else by its modules: users have folders of this name, too.
_OF_PYSPARK = re.compile(
    r"(?:^|[/\\])(?:site-packages|dist-packages|python|[-.\w]{1,100}\.zip)[/\\]pyspark[/\\]"
    r"|(?:^|[/\\])pyspark[/\\](?:accumulators|cloudpickle|context|core|daemon|errors|java_gateway|ml|mllib|pandas"
    r"|profiler|rdd|serializers|shuffle|sql|streaming|taskcontext|util|worker|worker_util)(?:\.py$|[/\\])"
    r"|(?:^|[/\\])py4j[/\\]|^<frozen"
)
_OURS = str(Path(__file__).parents[2])
# What the demo runs stands for a user's. Ours on other machines, too, where a clone or a zip file has them:
# what is below or above the user's frames.
_OF_US = re.compile(
    rf"^{re.escape(_OURS)}[/\\](?!demo[/\\])|(?:^|[/\\])spark_events[/\\](?:sources|submit|task)[/\\]"
)
_MOST_FRAMES = 200
_DEEPEST_GROUP = 10


@dataclass(frozen=True)
class PythonError:
    """What Python code raised.

    Attributes:
        type: the class, as Python prints it.
        message: its first line that is not blank; for a group, then what the first of its members says.
        place: the innermost frame outside libraries, or else outside PySpark; of a group, its first member's;
            where it has none, that of the exception which it is linked to.
        passed_on: what Java threw, with all that follows, if Python did no more than pass it on.
    """

    type: str
    message: str
    place: CodePlace | None = None
    passed_on: str | None = None


def innermost_error(text: str) -> PythonError | None:
    """Return what the innermost Python code raised; None if the text has no complete traceback.

    Of exceptions that are linked, it is the last. The message of an exception of PySpark's contains what is
    further in, in a worker, say. The message of any other is its own, even if it quotes a traceback. Where a
    quoted traceback is linked to another, and no blank line tells where the quotation ends, both are taken
    as quoted.
    """
    lines = text.split("\n")
    return _innermost(lines, 0, in_java=lines[0] not in (TRACEBACK, _GROUP))


def users_place(frames: Sequence[str]) -> CodePlace | None:
    """Return the innermost frame, among lines, outside libraries, or else outside PySpark and ourselves."""
    matches = [match for line in frames if (match := _FRAME.fullmatch(line))][-_MOST_FRAMES:]
    places = [CodePlace(match[1], int(match[2]), match[3]) for match in reversed(matches)]
    places = [place for place in places if not _is_of_framework(place.file_path)]
    own = (place for place in places if not INSTALLED.search(place.file_path))
    return next(own, places[0] if places else None)


def is_of_library(path: str) -> bool:
    """Return whether a file of Python code is PySpark's, ours, or of an installed package."""
    return _is_of_framework(path) or bool(INSTALLED.search(path))


def _is_of_framework(path: str) -> bool:
    return bool(_OF_PYSPARK.search(path) or _OF_US.search(path))


def _innermost(lines: Sequence[str], at: int, in_java: bool, depth: int = 0) -> PythonError | None:
    began_in_java, error = in_java, None
    while (at := _next_traceback(lines, at)) < len(lines):
        if lines[at].endswith(_OF_GROUP):
            raised, at = _group(lines, at + 1, depth)
        else:
            raised, at = _single(lines, at + 1)
        if raised and raised.place is None and error is not None:
            raised = replace(raised, place=error.place)  # PySpark wraps a StopIteration, say
        error = raised or error
        if raised and raised.type.startswith(("pyspark.", "py4j.")):
            in_java = True  # what it passes on may begin on its own line
        elif raised:
            at = _end_of_message(lines, at, in_java)
            in_java = began_in_java
    return error


def _next_traceback(lines: Sequence[str], at: int) -> int:
    return next((number for number in range(at, len(lines)) if lines[number].endswith(TRACEBACK)), len(lines))


def _single(lines: Sequence[str], begin: int) -> tuple[PythonError | None, int]:
    """Return an exception whose frames begin at a line, and the line that names it."""
    at = _end_of_frames(lines, begin)
    raised = _raised(lines, at)
    return raised and replace(raised, place=users_place(lines[begin:at])), at


def _end_of_frames(lines: Sequence[str], at: int) -> int:
    while (
        at < len(lines)
        and (not lines[at] or lines[at][0].isspace())
        and not lines[at].startswith(_JAVA_FRAME)
    ):
        at += 1
    return at


def _raised(lines: Sequence[str], at: int) -> PythonError | None:
    """Return the exception that a line names, if it names one."""
    match = None if at >= len(lines) or lines[at].endswith(_OF_GROUP) else _ERROR.fullmatch(lines[at])
    if match is None or lines[at] in _LINKS or match["type"] + ":" == TRACEBACK:
        return None
    message = match["message"]
    if match["type"] == PY4J_ERROR and lines[at + 1 : at + 2] and lines[at + 1].startswith(": "):
        return PythonError(match["type"], message or "", passed_on="\n".join(lines[at + 1 :])[2:])
    # Its first line may be blank; where there is no colon, there is no message.
    rest = len(lines) if message is None or message.strip() else at + 1
    return PythonError(match["type"], _first_said(lines, rest) or (message or "").strip())


def _first_said(lines: Sequence[str], begin: int) -> str:
    """Return the first line of a message that is not blank, before Java's frames or what is linked to it."""
    for number in range(begin, len(lines)):
        line = lines[number]
        if line.startswith((_JAVA_FRAME, " SQLSTATE: ")) or _links(lines, number):
            break
        if line.strip():
            return line.strip()
    return ""


def _end_of_message(lines: Sequence[str], at: int, in_java: bool) -> int:
    """Return where the message ends that begins at a line: at a link, at Java's frames, or at the end."""
    quotes = False
    for number in range(at, len(lines)):
        line = lines[number]
        if line.startswith(_JAVA_FRAME):
            if in_java:
                return number
            quotes = False
        elif line == _QUOTES:
            quotes = False
        elif line.endswith(TRACEBACK):
            quotes = True
        elif _links(lines, number) and not (quotes and lines[number - 2]):
            return number
    return len(lines)


def _links(lines: Sequence[str], at: int) -> bool:
    """Return whether a line says how the next traceback follows from the one before it."""
    if lines[at] not in _LINKS or lines[at - 1] or lines[at + 1 : at + 2] != [""]:
        return False
    return lines[at + 2 : at + 3] in ([TRACEBACK], [_GROUP])


def _group(lines: Sequence[str], begin: int, depth: int) -> tuple[PythonError | None, int]:
    """Return a group of exceptions whose frames begin at a line, and the line at which it ends."""
    own = begin
    while own < len(lines) and lines[own].startswith(_IN_GROUP):
        own += 1
    end = own
    while end < len(lines) and lines[end].startswith((_MEMBERS, "    ")):
        end += 1
        if lines[end - 1].startswith("    " + _END_OF_GROUP):
            break
    group, _ = _single([line[len(_IN_GROUP) :] for line in lines[begin:own]], 0)
    first = _first_member([line[4:] for line in lines[own + 1 : end]], depth) if group else None
    if group is None or first is None:
        return group, end
    said = f"{first.type}: {first.message}" if first.message else first.type
    return PythonError(group.type, f"{group.message}: {said}", first.place or group.place), end


def _first_member(members: Sequence[str], depth: int) -> PythonError | None:
    """Return the first of a group's members; one that nobody has raised has no traceback of its own."""
    lines = _outdented(members)
    if depth >= _DEEPEST_GROUP or not lines:
        return None
    bare = None if lines[0] in (TRACEBACK, _GROUP) else _raised(lines, 0)
    at = _end_of_message(lines, 0, in_java=False) if bare else 0
    return _innermost(lines, at, in_java=False, depth=depth + 1) or bare


def _outdented(members: Sequence[str]) -> list[str]:
    """Return the lines of the first member as Python would print them if it were in no group."""
    lines: list[str] = []
    in_group = False
    for line in members:
        if line.startswith(_NEXT_MEMBER):
            break
        if line == _MEMBER + _OF_GROUP:
            in_group = True
            lines.append(_GROUP)
        elif line.startswith(_MEMBER):
            lines.append((_IN_GROUP if in_group else "") + line[len(_MEMBER) :])
        else:
            if not in_group:  # one that nobody has raised: Python prints no more than its message
                lines = [_GROUP, *(_IN_GROUP + before for before in lines)]
            in_group = not line.startswith("  " + _END_OF_GROUP)
            lines.append("  " + line)
    return lines
