"""The knowledge registry: contribute chosen traces to it, after redaction and with the user's consent."""

from grace_kp.integrations.knowledgepulse._client import KEY, KnowledgePulse
from grace_kp.integrations.knowledgepulse._contribution import Contributed, Contribution

__all__ = ["KEY", "Contributed", "Contribution", "KnowledgePulse"]
