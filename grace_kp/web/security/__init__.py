"""Access control: the gatekeeper before every route, accounts, logins, sessions, and the record of refusals.

The threat model is in `docs/web-threats.md`.
"""

from grace_kp.web.security._accounts import Account, Accounts
from grace_kp.web.security._gatekeeper import HEADER_BYTES, Addresses, Gatekeeper, still_may
from grace_kp.web.security._logins import Logins, routes
from grace_kp.web.security._refusals import Refusals
from grace_kp.web.security._visitor import HostIdentityProvider, IdentityProvider

__all__ = [
    "HEADER_BYTES", "Account", "Accounts", "Addresses", "Gatekeeper", "HostIdentityProvider", "IdentityProvider",
    "Logins", "Refusals", "routes", "still_may",
]  # fmt: skip
