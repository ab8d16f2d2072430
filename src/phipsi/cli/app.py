"""The commands. Each imports what it needs when it runs, so that `--help` stays quick."""

from __future__ import annotations

import os
import sys
import warnings
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

import phipsi as pp
from phipsi.cli.choices import Base, Format, Language, Stage
from phipsi.cli.errors import INTERRUPTED, BadUsage


class _Commands(TyperGroup):
    """Turns every error into one sentence on stderr: exit code 2 for bad usage, 1 for a failure."""

    def main(self, *args: Any, standalone_mode: bool = True, **extra: Any) -> Any:
        if not standalone_mode:
            return super().main(*args, standalone_mode=False, **extra)
        if sys.stdout is None:  # closed by the caller
            sys.stdout = open(os.devnull, "w")
        reconfigure = getattr(sys.stdout, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="replace")  # for terminals without φ
        try:
            with warnings.catch_warnings():
                warnings.showwarning = _warn
                code = super().main(*args, standalone_mode=False, **extra)
            sys.stdout.flush()
        except BrokenPipeError:  # the reader of stdout has gone
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            code = 1
        except (OSError, ImportError, MemoryError) as error:
            code = _complain(_told(error), 1)
        except BadUsage as error:
            code = _complain(str(error), 2)
        except (KeyboardInterrupt, typer.Abort):
            code = INTERRUPTED
        except Exception as error:
            message = getattr(error, "format_message", None)
            if message is not None:  # typer's
                code = _complain(message(), 2)
            elif type(error).__module__.startswith("phipsi."):  # ours: its message is a sentence
                code = _complain(str(error), 1)
            else:  # a bug
                raise
        if code == INTERRUPTED:
            _complain("interrupted", code)
        sys.exit(code if isinstance(code, int) else 0)


def _told(error: Exception) -> str:
    """The sentence of an error that Python or the operating system raised."""
    if isinstance(error, OSError) and error.strerror:
        where = f"{error.filename!r}: " if error.filename else ""
        return f"{where}{error.strerror}"
    return str(error) or "there is not enough memory"


def _warn(message: Warning | str, *_: object) -> None:
    """Print a warning as one sentence; `warnings.showwarning` also gives where it was raised."""
    _complain(f"warning: {message}", 0)


def _complain(message: str, code: int) -> int:
    """Print a sentence on stderr and return the exit code."""
    print("phipsi:", " ".join(message.split()), file=sys.stderr)
    return code


app = typer.Typer(
    cls=_Commands,
    help="Dynamics of multibody systems with the spatial operator algebra.",
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(wanted: bool) -> None:
    """Print the version and exit, if it is asked for."""
    if wanted:
        print("phipsi", pp.__version__)
        raise typer.Exit


@app.callback(invoke_without_command=True)
def phipsi(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Dynamics of multibody systems with the spatial operator algebra."""
    if context.invoked_subcommand is None:
        print(context.get_help())


@app.command()
def demo(
    output: Annotated[
        str, typer.Option("--output", "-o", metavar="DIR", help="Where figures and report go.")
    ] = "phipsi-demo",
    force: Annotated[bool, typer.Option("--force", help="Replace files of earlier runs.")] = False,
) -> None:
    """Let a free-flying arm reach with its thrusters off, and show what three controllers do.

    For example: phipsi demo --output demo
    """
    from phipsi.cli.demo import run

    if not output:
        raise BadUsage("--output is empty, needs the name of a folder")
    raise typer.Exit(run(Path(output), force))


Json = Annotated[bool, typer.Option("--json", help="Print JSON for other programs.")]
OneRobot = Annotated[
    str, typer.Argument(metavar="ROBOT", help="A URDF, MJCF or JSON file, or a packaged robot.")
]
Held = Annotated[Base | None, typer.Option(help="How the root of a URDF is held.")]


@app.command()
def info(robot: OneRobot, base: Held = None, json: Json = False) -> None:
    """Show a robot: its tree, sizes and mass.

    For example: phipsi info space_arm
    """
    from phipsi.cli.info import run

    run(robot, base, json)


@app.command()
def robots(json: Json = False) -> None:
    """List the packaged robots.

    For example: phipsi robots
    """
    from phipsi.cli.info import list_robots

    list_robots(json)


@app.command()
def explain(
    expression: Annotated[
        str, typer.Argument(metavar="EXPRESSION", help="As in Python, in the papers or in LaTeX.")
    ],
    robot: Annotated[
        str | None,
        typer.Argument(metavar="ROBOT", help="A robot to count its operations on, as in info."),
    ] = None,
    language: Annotated[Language, typer.Option(help="How the recursion is told.")] = "dynamics",
    form: Annotated[Format, typer.Option("--format", help="What is printed.")] = "text",
    active: Annotated[
        list[str] | None,
        typer.Option(metavar="HINGE", help="An active hinge, of passive arms; once for each."),
    ] = None,
) -> None:
    """Explain an operator: its derivation, recursion, symbols and cost.

    For example: phipsi explain "J('tool') @ mass.inv @ J('tool').T" space_arm
    """
    from phipsi.cli.explain import run

    run(expression, robot, language, form, active)


@app.command()
def show(
    program: Annotated[
        str, typer.Argument(metavar="PROGRAM", help="A function of phipsi, as forward_dynamics.")
    ],
    robot: OneRobot,
    stage: Annotated[
        Stage,
        typer.Option(help="Its equation, its recursions, every scalar operation, or its code."),
    ] = "sweeps",
    option: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=VALUE", help="An option of the program; once for each."),
    ] = None,
    base: Held = None,
    json: Json = False,
) -> None:
    """Show what a program is on a robot, from its equation down to its code.

    For example: phipsi show jacobian space_arm --option frame=tool --stage sweeps
    """
    from phipsi.cli.show import run

    run(program, robot, base, stage, option or [], json)


@app.command()
def bench(
    robot: OneRobot = "space_arm",
    batch: Annotated[int, typer.Option(min=1, help="States in a batch.")] = 1024,
    functions: Annotated[
        str | None, typer.Option(metavar="NAME,NAME", help="The functions to time.")
    ] = None,
    base: Held = None,
    json: Json = False,
) -> None:
    """Time the functions on a robot, beside Pinocchio and MuJoCo if they are installed.

    For example: phipsi bench double_pendulum --batch 256 --functions forward_dynamics,mass_matrix
    """
    from phipsi.cli.bench import run

    raise typer.Exit(run(robot, base, batch, functions, json))


@app.command()
def simulate(
    scenario: Annotated[
        str | None, typer.Argument(metavar="SCENARIO", help="A TOML file, or a shipped scenario.")
    ] = None,
    output: Annotated[
        str | None,
        typer.Option("--output", "-o", metavar="DIR", help="The folder to write, not its own."),
    ] = None,
    duration: Annotated[
        float | None, typer.Option(metavar="S", help="Another duration [s].")
    ] = None,
    dt: Annotated[float | None, typer.Option(metavar="S", help="Another step [s].")] = None,
    method: Annotated[str | None, typer.Option(help="Another method of integration.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace files of earlier runs.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print no table and no progress.")] = False,
    listing: Annotated[bool, typer.Option("--list", help="List the shipped scenarios.")] = False,
    json: Json = False,
) -> None:
    """Simulate a scenario: its robot, controller and events, over time.

    For example: phipsi simulate reaction_mode --output results
    """
    from phipsi.cli.simulate import list_scenarios, run

    if listing:
        return list_scenarios(json)
    changes = {"duration": duration, "dt": dt, "method": method}
    raise typer.Exit(run(scenario, output, changes, as_json=json, force=force, quiet=quiet))


@app.command()
def doctor(
    robot: Annotated[
        str | None,
        typer.Option(metavar="ROBOT", help="Verify this robot instead: a file or a packaged one."),
    ] = None,
    base: Held = None,
    json: Json = False,
) -> None:
    """Say what is installed and which backends work, and run a self-test, or that of a robot.

    For example: phipsi doctor --robot space_arm
    """
    from phipsi.cli.doctor import run, verified

    if robot is None and base:
        raise BadUsage("--base is for a file given with --robot")
    raise typer.Exit(run(json) if robot is None else verified(robot, base, json))


@app.command()
def cache(
    clear: Annotated[bool, typer.Option("--clear", help="Remove all of it.")] = False,
    json: Json = False,
) -> None:
    """Show the compiled code kept on disk, or remove it.

    For example: phipsi cache --json
    """
    from phipsi.cli.info import show_cache

    show_cache(clear, json)
