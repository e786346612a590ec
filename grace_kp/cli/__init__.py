"""The command line `grace-kp`. The logic is in the other rooms."""

from grace_kp.cli._app import main

__all__ = ["main"]
