"""Web pages and an API for approvals, runs and figures.

`grace-kp serve` serves them; `app` mounts them into your ASGI application. Approvals, feedback, search and figures come from the rooms below.
This room adds accounts, sessions, pages and the API. It needs the extra `web`.
"""

from grace_kp.errors import MissingExtra

try:
    import jinja2 as _jinja2  # noqa: F401
    import starlette as _starlette  # noqa: F401
except ImportError:
    raise MissingExtra("grace_kp.web", "web") from None

from grace_kp.web._app import Server, app, serving
from grace_kp.web._site import Person, Right, Role
from grace_kp.web.security import Account, Accounts

__all__ = ["Account", "Accounts", "Person", "Right", "Role", "Server", "app", "serving"]
