"""Commands and groups as all of the command line has them.

Their help shows no type of Python's, where typer writes ``<bool>`` and ``<list[str]>``, and no argument is empty.
"""

from __future__ import annotations

from typing import Any

from typer import BadParameter
from typer.core import TyperArgument, TyperCommand, TyperGroup, TyperOption

from spark_events.api.errors import UsageError


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
            UsageError: one is empty. As a path it would be the folder that the shell is in.
        """
        own = args[: args.index("--")] if "--" in args else args
        if "" in own and not self.context_settings.get("ignore_unknown_options"):
            place = own.index("")
            where = f"after {own[place - 1]}" if place else "the first"
            raise UsageError(f"{self.name}: an argument ({where}) is empty; is a variable of the shell not set?")
        return super().parse_args(ctx, args)


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
