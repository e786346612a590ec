"""The knowledge registry: contribute chosen traces to it, after redaction and with the user's consent."""

from grace_kp.integrations.knowledgepulse._client import KEY, Contribution, KnowledgePulse
from grace_kp.integrations.knowledgepulse._outbox import Contributed

__all__ = ["KEY", "Contributed", "Contribution", "KnowledgePulse"]
