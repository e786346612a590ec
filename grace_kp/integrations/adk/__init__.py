"""Google ADK: a plugin that records every invocation of an app and gates its tools.

    from grace_kp.integrations.adk import GracePlugin, confirmations

    app = App(name="shop", root_agent=agent, plugins=[GracePlugin(grace, gates={"refund": "confirm"})])

The plugin and `confirmations` need google-adk 2.6.1 or later: below, a resumed agent cannot call another tool.
"""

from __future__ import annotations

from grace_kp.integrations.adk._plugin import GracePlugin, confirmations

__all__ = ["GracePlugin", "confirmations"]
