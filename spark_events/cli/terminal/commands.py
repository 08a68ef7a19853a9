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
        for place, given in enumerate(own):
            option = self._option(own[place - 1]) if place else None
            if given or (option is not None and option.metavar not in _OF_FILES):
                continue
            if not self.context_settings.get("ignore_unknown_options"):
                where = "its first argument" if not place else f"the argument after {own[place - 1]}"
                raise UsageError(f"{self.name}: {where} is empty; is a variable of the shell not set?")
        return super().parse_args(ctx, args)

    def _option(self, name: str) -> TyperOption | None:
        options = (each for each in self.params if isinstance(each, TyperOption) and not each.is_flag)
        return next((each for each in options if name in each.opts), None)


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
