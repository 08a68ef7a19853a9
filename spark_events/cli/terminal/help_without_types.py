"""Commands and groups whose help shows no type of Python's: typer writes ``<bool>`` and ``<list[str]>``."""

from __future__ import annotations

from typing import Any

from typer import BadParameter
from typer.core import TyperArgument, TyperCommand, TyperGroup, TyperOption


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
