"""Command line options: made from the settings classes that declare them, or shared by several commands."""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Iterable, Mapping
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click
from click.core import ParameterSource

from pagemill.config.headings import OUTPUT
from pagemill.config.modes import VLM
from pagemill.config.options import SERVERS, Option, build, options_of
from pagemill.errors import UsageError

if TYPE_CHECKING:
    from pagemill.config.recognition import RecognitionSettings

Command = TypeVar("Command", bound=Callable[..., Any])


class GroupedCommand(click.Command):
    """A command whose help lists its options under their headings, in the order in which these appear first.

    An option that may stand alone takes no word that follows it for its value: ``--resume scans/``.
    """

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the arguments."""
        alone = {
            flag: option.flag_value
            for option in self.get_params(ctx)
            if isinstance(option, click.Option) and not option.is_flag and isinstance(option.flag_value, str)
            for flag in option.opts
        }
        # What follows are arguments, also where they look like options.
        end = args.index("--") if "--" in args else len(args)
        given = [f"{word}={alone[word]}" if word in alone else word for word in args[:end]]
        return super().parse_args(ctx, given + args[end:])

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options to a formatter."""
        rows: dict[str, list[tuple[str, str]]] = {}
        options = (param for param in self.get_params(ctx) if isinstance(param, click.Option))
        for option in sorted(options, key=lambda each: not isinstance(each, GroupedOption)):  # --help comes last
            if row := option.get_help_record(ctx):
                rows.setdefault(getattr(option, "heading", "Other options"), []).append(row)
        for heading, shown in rows.items():
            with formatter.section(heading):
                formatter.write_dl(shown)


class GroupedOption(click.Option):
    """An option with a heading."""

    def __init__(self, *arguments: Any, heading: str, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self.heading = heading


def under(heading: str) -> dict[str, Any]:
    """Arguments of :func:`click.option` for an option with this heading."""
    return {"cls": GroupedOption, "heading": heading}


class Name(click.ParamType[Any]):
    """The name of an input or an output directory. An empty one, which would mean the current directory, is refused.

    Args:
        kind: The type of the value.
    """

    name = "path"

    def __init__(self, kind: type[str] | type[Path]) -> None:
        self.kind = kind

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Refuse an empty name."""
        if value == "":
            self.fail("the name is empty: is a shell variable unset?", param, ctx)
        return self.kind(value)


class QueriesType(click.ParamType[str]):
    """A file of queries, or ``auto`` for those of the dataset."""

    name = "queries"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Refuse a file that does not exist."""
        return value if value == "auto" else str(FILE.convert(value, param, ctx))


FOLDER = click.Path(path_type=Path, exists=True, file_okay=False)
FILE = click.Path(path_type=Path, exists=True, dir_okay=False)

run_directory = click.argument("out", metavar="OUT", type=FOLDER)
quiet_option = click.option(
    *("-q", "--quiet"), is_flag=True, help="Print failures only, neither progress nor a summary.", **under(OUTPUT)
)
verbose_option = click.option(
    *("-v", "--verbose"),
    count=True,
    help="Print each decision about a page with its reason; -vv with more detail.",
    **under(OUTPUT),
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
start_timeout_option = click.option(
    "--start-timeout",
    type=click.FloatRange(min=1),
    default=1800,
    show_default=True,
    metavar="SECONDS",
    help="How long to wait until a server is ready.",
)


def _vllm_arguments(context: click.Context, parameter: click.Parameter, words: tuple[str, ...]) -> tuple[str, ...]:
    if words and not words[0].startswith("-"):
        raise click.UsageError(f"unexpected {words[0]!r}: pass the model with --model; vLLM's arguments follow --")
    return words


vllm_arguments = click.argument(
    "extra", nargs=-1, type=click.UNPROCESSED, metavar="[-- VLLM_ARGUMENT...]", callback=_vllm_arguments
)
queries_option = functools.partial(
    click.option,
    "--queries",
    type=QueriesType(),
    metavar="FILE|auto",
    help="Embed these queries as well: .jsonl, .parquet or .csv with an id and a text per row; auto: those of the "
    "dataset.",
)


def takes(
    *,
    leave_out: Collection[str] = (),
    changes: Mapping[str, Mapping[str, Any]] | None = None,
    aliases: Mapping[str, str] | None = None,
    **settings: type,
) -> Callable[[Command], Command]:
    """Give a command the options of settings classes; it gets an object of each.

    Args:
        leave_out: Keys of options that the command does not have.
        changes: By key, arguments of :func:`click.option` that differ in this command, such as its default.
        aliases: By key, another flag of the option in this command.
        **settings: The classes, by the parameter that gets the object. An option of several classes appears once.
    """
    options: dict[str, Option] = {}
    for kind in settings.values():
        for each in options_of(kind):
            if each.key not in leave_out:
                # Settings may share an option, as parsing and extraction the model: it is declared once.
                options.setdefault(each.key, each)

    def decorate(function: Command) -> Command:
        @functools.wraps(function)
        def command(**values: Any) -> Any:
            given = {key: values.pop(key) for key in options}
            try:
                objects: dict[str, Any] = {name: build(kind, given) for name, kind in settings.items()}
            except UsageError as error:
                for key, each in options.items():  # it names the keyword of Python
                    if error.message.startswith(f"{key} is "):
                        message = each.flags[-1] + error.message.removeprefix(key)
                        raise UsageError(message, remedy=error.remedy) from None
                raise
            return function(**values, **objects)

        # Decorators apply from the last to the first, and --help lists options in the order of the settings.
        for option in reversed(options.values()):
            alias = (aliases or {}).get(option.key)
            names = [*([alias] if alias else []), *_names(option)]
            click.option(*names, **(_details(option) | dict((changes or {}).get(option.key, {}))))(command)
        return command  # type: ignore[return-value]

    return decorate


def _names(each: Option) -> list[str]:
    if each.kind is not bool or each.default is False:
        return [*each.flags, each.key]
    flag = each.flags[-1]  # it is not off by default, so that it takes a flag to turn it off
    return [flag if "/" in flag else f"{flag}/--no-{flag.removeprefix('--')}", each.key]


def _details(each: Option) -> dict[str, Any]:
    """Arguments of :func:`click.option`."""
    shown = each.shown_default
    if shown is None and each.default:
        shown = "on" if each.default is True else str(each.default).removesuffix(".0")
    details: dict[str, Any] = {
        **(under(each.heading) if each.heading else {}),
        "help": each.help + (f"  [default: {shown}]" if shown else ""),
        "metavar": each.metavar,
        "envvar": each.environment,
        # None stands for an option that was not given, so that settings keep their own default.
        "default": each.default if each.kind is bool else None,
        # An option with a parser takes all of its values as one word.
        "multiple": each.many and each.parse is None,
        "hide_input": each.secret,
    }
    if each.kind is bool:
        return details | {"is_flag": True}
    if each.without_value is not None:
        details |= {"is_flag": False, "flag_value": each.without_value}
    if each.comma_separated:
        return details | {"callback": _split}
    return details | {"type": _type(each)}


def _type(each: Option) -> Any:
    if issubclass(each.kind, StrEnum):
        return choice(each.kind)
    if each.kind is Path:
        return FOLDER if each.folder_exists else click.Path(path_type=Path)
    # Bounds are checked when the settings are made, and so is what is parsed.
    return each.kind if each.kind in (int, float) and each.parse is None else None


def choice(kind: type[StrEnum]) -> click.Choice[str]:
    """One of the values of an enumeration."""
    return click.Choice([each.value for each in kind])


def _split(context: click.Context, parameter: click.Parameter, value: str | Iterable[str] | None) -> Any:
    """Split values at commas; several values are one list."""
    if value is None:
        return None
    values = [value] if isinstance(value, str) else value
    return tuple(part.strip() for value in values for part in value.split(",") if part.strip())


def given(settings: type) -> dict[str, tuple[Option, Any]]:
    """The options of a settings class that the user gave to the current command, with their values, by key."""
    context = click.get_current_context()
    return {
        each.key: (each, context.params[each.key])
        for each in options_of(settings)
        if context.get_parameter_source(each.key) in (ParameterSource.COMMANDLINE, ParameterSource.DEFAULT_MAP)
    }


def require_model_engine(recognition: RecognitionSettings, given: Mapping[str, tuple[Option, Any]]) -> None:
    """Refuse options of a recognition model, as from :func:`given`, for the engine that uses none.

    Raises:
        click.UsageError: There are some.
    """
    flags = [each.flags[0] for key, (each, _) in given.items() if key != "recognition_engine"]
    if recognition.asked is None and flags:
        raise click.UsageError(
            f"{' and '.join(flags)} {'requires' if len(flags) == 1 else 'require'} a model: add "
            f"--recognition-engine or --escalate, with {VLM} for one behind a server, or transformers for one here"
        )


def server_option(what: str) -> Callable[..., Any]:
    """An option with URLs of servers: repeatable, and several in one value."""
    declared = Option(flags=("--server",), key="servers", many=True, help=f"{what}; may be repeated.", **SERVERS)
    return click.option(*_names(declared), **_details(declared))
