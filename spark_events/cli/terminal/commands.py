"""Commands and groups as all of the command line has them.

Their help shows no type of Python's, where typer writes ``<bool>`` and ``<list[str]>``; no argument is empty.
"""

from __future__ import annotations

from typing import Any

from typer import BadParameter
from typer.core import TyperArgument, TyperCommand, TyperGroup, TyperOption

from spark_events.api.errors import UsageError

_OF_FILES = ("DIR", "FILE", "FOLDER", "PATH", "URL")


class Command(TyperCommand):
    """A command."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the parameters, as their help shows them."""
        return [_shown(each) for each in super().get_params(ctx)]

    def make_context(self, *arguments: Any, **options: Any) -> Any:
        """Return the context; what is wrong with an option is said without the words of a library."""
        try:
            return super().make_context(*arguments, **options)
        except BadParameter as error:
            error.message = error.message.removeprefix("Value error, ")
            raise

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the arguments.

        Raises:
            UsageError: an argument, or an option's path, is empty: that would be the folder of the shell.
        """
        own = args[: args.index("--")] if "--" in args else args
        if (where := self._empty(own)) and not self.context_settings.get("ignore_unknown_options"):
            raise UsageError(f"{self.name}: {where} is empty; is a variable of the shell not set?")
        return super().parse_args(ctx, args)

    def _empty(self, args: list[str]) -> str:
        """Return which argument is empty; empty if none is, or one of an option that takes no path."""
        options = [each for each in self.params if isinstance(each, TyperOption) and not each.is_flag]
        of_paths = {name for each in options if each.metavar in _OF_FILES for name in each.opts}
        others = {name for each in options for name in each.opts} - of_paths
        for before, given in zip(["", *args], args, strict=False):
            if not given and before not in others:
                return f"the argument after {before}" if before else "its first argument"
            if given.endswith("=") and given[:-1] in of_paths:
                return f"the value of {given[:-1]}"
        return ""


class Group(TyperGroup):
    """A group of commands."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the parameters, as their help shows them."""
        return [_shown(each) for each in super().get_params(ctx)]


def _shown(parameter: Any) -> Any:
    is_flag = isinstance(parameter, TyperOption) and parameter.is_flag
    if is_flag or (isinstance(parameter, TyperArgument) and parameter.metavar):
        # An older typer, which shows neither, does not ask.
        parameter.display_type_rich = _nothing
    return parameter


def _nothing(ctx: Any) -> None:
    return None
