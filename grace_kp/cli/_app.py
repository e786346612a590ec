"""The commands, and the conversion of errors into one line and an exit code: 0 success, 1 failure, 2 wrong usage."""

from __future__ import annotations

import io
import os
import sys
from typing import TYPE_CHECKING, Annotated

import typer

from grace_kp.cli._approval_decisions import decision_commands
from grace_kp.cli._approval_standing import standing
from grace_kp.cli._approvals import approvals, export, forget, mark_restored, verify, watch, work
from grace_kp.cli._calibrate import calibrate, replay, reviewers
from grace_kp.cli._demo import demo
from grace_kp.cli._doctor import doctor
from grace_kp.cli._feedback import feedback
from grace_kp.cli._output import error_text, say_error
from grace_kp.cli._rubric import rubric
from grace_kp.cli._score import evaluate, score
from grace_kp.cli._serve import serve
from grace_kp.cli._traces import contribute, delete, traces
from grace_kp.errors import GraceError

if TYPE_CHECKING:
    from typing import NoReturn

app = typer.Typer(
    name="grace-kp",
    help="Reasoning traces of LLM agents: record, score, inspect.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(wanted: bool) -> None:
    if wanted:
        from grace_kp import __version__

        typer.echo(f"grace-kp {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", help="Show the version.", callback=_version, is_eager=True)
    ] = False,
) -> None:
    """Reasoning traces of LLM agents: record, score, inspect."""


app.command()(demo)
app.command()(score)
app.command("eval")(evaluate)
app.command()(feedback)
traces.command()(contribute)
traces.command()(delete)
app.add_typer(traces, name="traces")
app.add_typer(rubric, name="rubric")
for verb, command in decision_commands():
    approvals.command(verb)(command)
for command in (watch, work, verify, export, forget):
    approvals.command()(command)
approvals.command("restored")(mark_restored)
approvals.add_typer(standing, name="standing")
app.add_typer(approvals, name="approvals")
app.add_typer(serve, name="serve")
app.command()(calibrate)
app.command()(replay)
app.command()(reviewers)
app.command()(doctor)


def main(arguments: list[str] | None = None) -> NoReturn:
    """Run the command line and exit."""
    sys.exit(_run(arguments))


def _run(arguments: list[str] | None) -> int:
    for stream in (sys.stdout, sys.stderr):
        # Print a substitute for a character that the terminal lacks.
        if isinstance(stream, io.TextIOWrapper) and stream.errors == "strict":
            stream.reconfigure(errors="replace")
    try:
        code = app(arguments, standalone_mode=False)
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader closed the pipe. Python would report an error when it closes the stream at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except (typer.Abort, KeyboardInterrupt):
        sys.stderr.write("\n")
        return 130
    except Exception as error:  # noqa: BLE001 — the only place where errors become lines
        return _report(error)
    return code if isinstance(code, int) else 0


def _report(error: Exception) -> int:
    # Some versions of Typer use click, others a copy of it, so errors are recognised by their attributes.
    code = getattr(error, "exit_code", None)
    if isinstance(code, int) and not hasattr(error, "format_message"):
        return code
    if hasattr(error, "format_message"):
        message = error.format_message().replace(": Value error, ", ": ")
        if message:
            say_error(message)
        return code if isinstance(code, int) else 2
    if isinstance(error, GraceError | OSError):
        say_error(error_text(error))
    elif type(error).__module__ == "sqlite3":
        say_error(f"the store cannot be used: {error}")
    elif isinstance(error, UnicodeEncodeError):
        say_error("an argument is not UTF-8 text")
        return 2
    elif isinstance(error, ValueError):
        say_error(error)
        return 2
    else:
        from grace_kp.trace import redacted_error

        say_error(f"internal error: {redacted_error(error)}")
    return 1
