"""Record and gate agents of the OpenAI Agents SDK (0.12 and later): `GraceRunner` runs them in the place of `Runner`."""

from grace_kp.integrations.openai_agents._runner import GraceResult, GraceRunner, GraceStream

__all__ = ["GraceResult", "GraceRunner", "GraceStream"]
