"""Feedback by a button: right, partly or wrong. It goes through `grace.feedback`, so that it counts wherever labels count."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import parse_qsl, urlencode

from starlette.exceptions import HTTPException
from starlette.responses import RedirectResponse

from grace_kp.web._site import form_of, person_of, root_of, site_of
from grace_kp.web.runs._addresses import PREFIX, run_address

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

VALUES = {"1": 1.0, "0.5": 0.5, "0": 0.0}
"""Right, partly, wrong."""


def label_run(request: Request) -> Response:
    """Store a label of a run, and return to where the button was.

    Fields: `correct` is 1, 0.5 or 0; `note` is optional; `list` is the query of the list if the button was there.
    """
    form, root = form_of(request), root_of(request)
    stated = form.get("correct", [""])[0]
    if stated not in VALUES:
        raise HTTPException(422, "Choose Right, Partly or Wrong.")
    name = request.path_params["id"]
    name = name if name.startswith(PREFIX) else PREFIX + name
    note = form.get("note", [""])[0].strip() or None
    person = person_of(request)
    site_of(request).grace.feedback(
        name, VALUES[stated], source="user", by=person.name, note=note, program=person.is_program
    )
    if "list" in form:
        fields = [pair for pair in parse_qsl(form["list"][0]) if pair[0] != "labelled"]
        return RedirectResponse(f"{root}/runs?{urlencode([*fields, ('labelled', name)])}", 303)
    return RedirectResponse(f"{run_address(root, name)}#labels", 303)
