"""Modules of the user's that a command imports: scorers to register, gates to carry actions out with."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from grace_kp.errors import GraceError
from grace_kp.trace import describe_error

if TYPE_CHECKING:
    from types import ModuleType


def imported(name: str, label: str) -> ModuleType:
    """Import a module by its name, also from the working folder, or a file by its path.

    Args:
        name: name or path, which ends in `.py`.
        label: what the message calls the argument.

    Raises:
        GraceError: it cannot be imported.
    """
    file = Path(name)
    try:
        if name.endswith(".py"):
            sys.path.insert(0, str(file.resolve().parent))
            # A file may have the name of a loaded module, and must not replace it.
            module_name = f"grace_kp_import_{file.stem}" if file.stem in sys.modules else file.stem
            spec = importlib.util.spec_from_file_location(module_name, file)
            if spec is None or spec.loader is None:
                raise ImportError("this is not a Python file")
            sys.modules[module_name] = module = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(module)
        else:
            sys.path.insert(0, str(Path.cwd()))
            module = importlib.import_module(name)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # noqa: BLE001 — the user's module may raise anything, and may want to end the program
        raise GraceError(f"{label} {name}: {': '.join(describe_error(error, 400))}") from None
    return module
