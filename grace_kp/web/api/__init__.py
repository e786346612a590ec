"""The API: JSON beside the pages, with an OpenAPI description, for programs and for people who prefer a terminal."""

from grace_kp.web.api._table import routes

__all__ = ["routes"]
