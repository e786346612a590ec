"""What people see at the command line; no logic of its own."""

from grace_kp.cli._app import main

__all__ = ["main"]
