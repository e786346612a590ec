"""Pages for people and an API beside them: what waits for a decision, what happened in a run, and what the figures are.

`grace-kp serve` serves them; `app` mounts them into an ASGI application of your own. Nothing is decided here: approvals, feedback, search and
figures are those of the rooms below. This room adds accounts, sessions, pages and an API. It needs the extra `web`.
"""

from grace_kp.errors import MissingExtra

try:
    import jinja2 as _jinja2  # noqa: F401
    import starlette as _starlette  # noqa: F401
except ImportError:
    raise MissingExtra("grace_kp.web", "web") from None

from grace_kp.web._app import app
from grace_kp.web._server import Server, serving
from grace_kp.web._site import Person, Right, Role
from grace_kp.web.security import Account, Accounts

__all__ = ["Account", "Accounts", "Person", "Right", "Role", "Server", "app", "serving"]
