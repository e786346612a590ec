"""Record and gate agents of Pydantic AI (2.0 and later): the capability `GraceCapability`, and `deferred_results` for runs that waited."""

from grace_kp.integrations.pydantic_ai._capability import GraceCapability, deferred_results

__all__ = ["GraceCapability", "deferred_results"]
