"""Explanations on a terminal."""

from __future__ import annotations

from collections.abc import Mapping

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from spark_events.api.toolkit.formatting import counted, duration, moment
from spark_events.cli.terminal.console import has_width, plain, say, show_table
from spark_events.diagnosis.times.ledger import ACCOUNTS
from spark_events.why.comparison import Comparison
from spark_events.why.explanation import Explanation
from spark_events.why.found_issue import FoundIssue
from spark_events.why.places import in_words
from spark_events.why.shown import held, whole_percent

_MOST_ISSUES = 20
_AS_LONG = 0.95
"""A run that takes so much of its time with more cores takes as long."""
_BAR, _SHORT_BAR = 24, 8
_WIDE = 120
"""Where the meaning of each account fits beside its figures."""
_COLORS = {"ERROR": "bold red", "WARN": "yellow", "INFO": "dim"}


def print_explanation(explanation: Explanation, out: Console) -> None:
    """Print where the time of an application went, its issues, and what cores would change."""
    of_id = f" [dim]{plain(explanation.app_id)}[/]" if explanation.app_id else ""
    lasted = duration(explanation.duration_ms)
    so_far = "" if explanation.ended else " so far: no end of it is known, so it may still run"
    since = f"from {moment(explanation.begun_ms)} UTC"
    say(f"[bold]{plain(explanation.app_name)}[/]{of_id}: {lasted} {since}{so_far}", out)
    if explanation.failed:
        say(f"[bold red]{plain(explanation.failed)}[/]", out)
    if explanation.answer:
        say(f"[bold green]{plain(explanation.answer)}[/]", out)
    if explanation.parts is not None:
        show_table(_parts_table(explanation, out.width >= _WIDE or not has_width(out)), out)
    if explanation.never_ended:
        say(plain(explanation.never_ended), out)
    if explanation.core_time:
        say(f"[dim]{plain(explanation.core_time)}[/]", out)
    if explanation.had_cpu:
        say(plain(explanation.had_cpu), out)
    if explanation.longest:
        show_table(_longest_table(explanation), out)
    if explanation.heap_byte_s:
        say(_heap_sentence(explanation.heap_byte_s), out)
    if explanation.issues:
        _print_issues(explanation.issues, out)
    else:
        say(explanation.none_found, out)
    if explanation.estimates:
        _print_estimates(explanation, out)


def _parts_table(explanation: Explanation, is_wide: bool) -> Table:
    table = _table("Where the time went")
    table.add_column("", no_wrap=True)
    table.add_column("time", justify="right", no_wrap=True)
    table.add_column("share", justify="right", no_wrap=True)
    if explanation.core_ms is not None:
        table.add_column("core time", justify="right", no_wrap=True)
    table.add_column("", no_wrap=True)
    if is_wide:
        table.add_column("", style="dim", overflow="fold")
    for part, part_ms in (explanation.parts or {}).items():
        if part_ms:
            share = part_ms / max(1, explanation.duration_ms)
            bar = "█" * round((_BAR if is_wide else _SHORT_BAR) * share)
            of_cores = [] if explanation.core_ms is None else [duration(explanation.core_ms[part])]
            meaning = [ACCOUNTS[part].meaning] if is_wide else []
            figures = duration(part_ms), whole_percent(100 * share), *of_cores
            table.add_row(part, *figures, f"[cyan]{bar}[/]", *meaning)
    return table


def _longest_table(explanation: Explanation) -> Table:
    table = _table("The stages that took longest")
    for title in ("time", "share", "tasks"):
        table.add_column(title, justify="right", no_wrap=True)
    table.add_column("what they are", overflow="fold")
    for each in explanation.longest:
        share = whole_percent(100 * each.wall_ms / max(1, explanation.duration_ms))
        table.add_row(duration(each.wall_ms), share, f"{each.tasks:,}", plain(each.title))
    return table


def _heap_sentence(heap_byte_s: Mapping[str, int]) -> str:
    """Return what became of the executors' heap, the largest part first."""
    whole = max(1, sum(heap_byte_s.values()))
    parts = sorted(((amount, account) for account, amount in heap_byte_s.items() if amount), reverse=True)
    shares = ", ".join(f"{whole_percent(100 * amount / whole)} {account}" for amount, account in parts)
    return f"Heap that executors held: {held(whole)}; {shares}"


def _print_issues(issues: list[FoundIssue], out: Console) -> None:
    say("\n[bold]What made it slow, the costliest first[/]", out)
    advised: set[str] = set()
    for issue in issues[:_MOST_ISSUES]:
        color = _COLORS.get(issue.severity, "yellow")
        say(f"\n[{color}]{plain(issue.kind)}[/] [bold]{issue.cost}[/]  {plain(in_words(issue.about))}", out)
        if description := issue.evidence.get("description"):
            _indented(f"[dim]{plain(str(description))}[/]", out)
        _indented(plain(issue.sentence), out)
        advice = "as above" if issue.advice in advised else issue.advice
        advised.add(issue.advice)
        _indented(f"[green]→[/] {plain(advice)}", out)
    if len(issues) > _MOST_ISSUES:
        say(f"\n… and {len(issues) - _MOST_ISSUES:,} more: --json and --html have all", out)


def _indented(markup: str, out: Console) -> None:
    """Print a paragraph, each line of which is indented."""
    if has_width(out):
        out.print(Padding(Text.from_markup(markup, emoji=False), (0, 0, 0, 2)))
    else:
        say(f"  {markup}", out)


def _without_use(explanation: Explanation) -> str:
    """Return a sentence that more cores would not help, with what fewer would take; empty if more would."""
    own = explanation.figures.counts.get("cores", 0) if explanation.figures else 0
    of_own = next((each.time_ms for each in explanation.estimates if each.cores == own), 0)
    more = [each.time_ms for each in explanation.estimates if each.cores is None or each.cores > own]
    if not of_own or not more or min(more) < _AS_LONG * of_own:
        return ""
    # With the pauses between its tasks, which the model leaves out: else fewer cores might seem faster.
    pauses_ms = max(0, explanation.duration_ms - of_own)
    fewer = [
        f"with {each.cores:,}, it would take {duration(each.time_ms + pauses_ms)}"
        for each in explanation.estimates
        if each.cores is not None and each.cores < own
    ]
    cores = counted(own, "core")
    sentence = f"more than its {cores} would not make this run faster, with the tasks that it has"
    return "; ".join([sentence, *fewer])


def _print_estimates(explanation: Explanation, out: Console) -> None:
    if without_use := _without_use(explanation):
        say(f"\n[bold]A model:[/] {plain(without_use)}. [dim]Shared resources do not count.[/]", out)
        return
    # A narrow table would fold a title and a caption of its own.
    say("\n[bold]A model: the same run with other numbers of cores[/]", out)
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for title in ("cores", "time", "vs. actual"):
        table.add_column(title, justify="right", no_wrap=True)
    for cores, time_ms in explanation.estimates:
        named = "unlimited" if cores is None else f"{cores:,}"
        share = whole_percent(100 * time_ms / max(1, explanation.duration_ms))
        table.add_row(named, duration(time_ms), share)
    show_table(table, out)
    say(
        "[dim]The same jobs and tasks in the same order, without the pauses between tasks: so even the cores "
        "that the run had may take less than 100 %. Shared resources do not count.[/]",
        out,
    )


def print_comparison(compared: Comparison, out: Console) -> None:
    """Print what differs between a run and another."""
    table = _table(f"Compared with {plain(compared.other_id)}")
    for title in ("", "that run", "this run", "change"):
        table.add_column(title, justify="right" if title else "left", no_wrap=True)
    for row in compared.rows:
        color = "yellow" if row.much else "default"
        table.add_row(row.name, row.other_text, row.this_text, f"[{color}]{row.change}[/]")
    show_table(table, out)
    if compared.settings:
        say("settings that differ: " + plain(", ".join(compared.settings)), out)


def _table(title: str) -> Table:
    return Table(title=title, title_justify="left", title_style="bold", box=SIMPLE_HEAD, pad_edge=False)
