"""Operations: checks of parameters and bodies, JSON of any value, and the description, which is the same as what is checked."""

from __future__ import annotations

import json
import re

import jsonschema
import pytest
import schemathesis
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError
from schemathesis.config import SchemathesisConfig
from schemathesis.engine import Status, events, from_schema
from starlette.applications import Starlette
from starlette.routing import Mount
from starlette.testclient import TestClient

from grace_kp.web import Person, Role, app
from grace_kp.web.api import OPERATIONS, _document
from grace_kp.web.api._approvals import Respond, Several
from grace_kp.web.api._operation import NOT_WRITABLE, json_text
from tests.exhaustive import exhaustive
from tests.web.api.conftest import CY

JSON = {"Content-Type": "application/json"}


def test_unknown_names_are_refused(house, ana):
    refused = ana.get("/api/v1/runs", params={"agnet": "refunds"})
    assert (422, "invalid") == (refused.status_code, refused.json()["code"])
    assert refused.json()["fields"]["agnet"].startswith("is unknown; known are agent, domain, status")
    assert {"x": "is unknown; known are none"} == ana.get("/healthz?x=1").json()["fields"]
    refused = ana.post(f"/api/v1/approvals/{house.request().id}/reject", json={"reson": "x"})
    assert {"reson": "is unknown; known are reason, digest"} == refused.json()["fields"]


def test_all_problems_are_named_at_once(ana):
    refused = ana.get("/api/v1/runs?limit=201&level=loud").json()
    assert refused["message"].startswith("'level' cannot be used: input should be 'silent', 'notify', ")
    assert refused["message"].endswith(", not 'loud'; 1 more parameter cannot be used")
    assert ["level", "limit"] == sorted(refused["fields"])


@pytest.mark.parametrize("body", [b"", b"null"])
def test_a_body_is_needed(house, ana, body):
    refused = ana.post(f"/api/v1/approvals/{house.request().id}/reject", content=body, headers=JSON)
    assert (422, "invalid") == (refused.status_code, refused.json()["code"])
    assert "needs a body" in refused.json()["message"]


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        (b"{", 400, "bad_request"),
        (b"\xff", 400, "bad_request"),
        (b'{"reason": "a", "reason": "b"}', 400, "bad_request"),
        (b"[" * 100_000, 400, "bad_request"),
        (b'{"reason": ' + b"9" * 5_000 + b"}", 400, "bad_request"),
        (b'{"reason": ' + b"[" * 250 + b"]" * 250 + b"}", 422, "invalid"),
        (b'{"reason": "\\ud800"}', 422, "invalid"),
        (b"[]", 422, "invalid"),
        (b'{"reason": "' + b"x" * 10_001 + b'"}', 422, "invalid"),
        (b'{"reason": "' + b"x" * 1_100_000 + b'"}', 413, "too_large"),
    ],
    ids=lambda value: repr(value)[:30],
)
def test_what_people_send(house, ana, body, status, code):
    """Whatever it is, the response is JSON with a code, and nothing was decided."""
    approval = house.request()
    response = ana.post(f"/api/v1/approvals/{approval.id}/reject", content=body, headers=JSON)
    assert (status, code) == (response.status_code, response.json()["code"])
    assert "pending" == house.desk.get(approval.id).state


@pytest.mark.parametrize(
    "changes",
    [{"euros": "\ud800"}, {"\ud800": 1}, {"euros": 10**400}, {"euros": [[[[]]]]}, {"euros": {"$bytes": 7}}, {"euros": {"$sealed": "x"}},
     {"euros": 1e308}, {"euros": {"$no": {"$such": "tag"}}}],
    ids=str,
)  # fmt: skip
def test_hostile_values_of_an_edit(house, ana, changes):
    """Any JSON is taken or refused, and never breaks the server."""
    approval = house.request()
    body = json.dumps({"digest": approval.digest, "changes": changes})
    response = ana.post(f"/api/v1/approvals/{approval.id}/edit", content=body, headers=JSON)
    assert response.status_code in {200, 422}
    response.content.decode("utf-8")
    assert 200 == ana.get(f"/api/v1/approvals/{approval.id}").status_code


def test_the_api_of_a_mounted_application(house):
    mounted = app(house.grace, auth=lambda request: Person(name="ana", role=Role.VIEWER))
    host = TestClient(Starlette(routes=[Mount("/grace", mounted)]), base_url="http://localhost")
    assert [{"url": "/grace"}] == host.get("/grace/api/openapi.json").json()["servers"]
    assert 200 == host.get(f"/grace/api/v1/approvals/{house.request().id}").status_code
    assert 404 == host.get("/grace/api/v1/approvals/x").status_code


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(exclude_categories=())),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(st.characters(exclude_categories=())), inner),
)


def refuse(constant):
    raise ValueError(constant)


@given(ANYTHING)
def test_every_value_is_written(value):
    found = json.loads(json_text(value).encode("utf-8"), parse_constant=refuse)
    assert not isinstance(value, str) or value == found


def test_what_json_cannot_hold_is_replaced():
    assert {"a": None, "b": [None]} == json.loads(json_text({"a": float("nan"), "b": [float("-inf")]}))
    assert {"n": NOT_WRITABLE} == json.loads(json_text({"n": 10**5_000}))
    deep: list[object] = []
    for _ in range(5_000):
        deep = [deep]
    assert NOT_WRITABLE in json_text(deep)


@pytest.mark.parametrize(
    ("method", "address", "allowed"),
    [("DELETE", "/api/v1/runs/x/feedback", "GET, HEAD, POST"), ("OPTIONS", "/api/v1/approvals/x/approve", "POST")],
)
def test_other_methods_are_refused_with_those_of_the_address(ana, method, address, allowed):
    response = ana.request(method, address)
    assert (405, allowed) == (response.status_code, response.headers["allow"])
    assert "method_not_allowed" == response.json()["code"]


EXAMPLES = max(3, settings.default.max_examples // 10)
"""Examples of each operation and kind, beside those at the bounds, which are all tried."""
REFUSED = ["400", "401", "403", "404", "405", "406", "409", "415", "422", "428", "429", "5xx"]
"""What schemathesis expects by default."""
CROSSED = {"checks": {"positive_data_acceptance": {"expected-statuses": ["2xx", "422"]}}}
"""For operations with conditions that a schema cannot state, such as a period that must not end before it begins."""


def configured(token):
    return SchemathesisConfig.from_dict(
        {
            "seed": 1,
            "base-url": "http://127.0.0.1:8765",
            "headers": {"Authorization": f"Bearer {token}"},
            "generation": {"max-examples": EXAMPLES, "deterministic": True, "database": "none"},
            "phases": {"stateful": {"enabled": False}},
            "checks": {
                "ignored_auth": {"enabled": False},  # after some wrong tokens it is 429
                "negative_data_rejection": {"expected-statuses": [*REFUSED, "414"]},  # an address may be too long
            },
            "operations": [
                {"include-operation-id": "listApprovals", **CROSSED},
                {"include-operation-id": "getFigures", **CROSSED},
                # A write without the origin of the pages is refused before its method is looked at.
                {"include-operation-id": "getHealth", "checks": {"unsupported_method": {"enabled": False}}},
            ],
        }
    )


def described(house, name):
    """The description with ids and digests of this store as examples, so that each operation is also tried with what is there."""
    document = house.client(name).get("/api/openapi.json").json()
    run = house.record("refunds", "返金 \u202e", tags=["a"])
    house.index()
    house.desk.reject(house.request().id, by=CY)
    for path, methods in document["paths"].items():
        for method in methods.values():
            approval = house.request(run_id=method["operationId"])
            approval = house.lose(approval) if path.endswith("reconcile") else approval
            for parameter in method.get("parameters", ()):
                if parameter["name"] == "id":
                    parameter["example"] = run if "runs" in path else approval.id
            if "requestBody" in method:
                content = method["requestBody"]["content"]["application/json"]
                text = json.dumps(content["example"])
                text = re.sub("sha256:[0-9a-f]+", approval.digest, text)
                content["example"] = json.loads(re.sub("ap-[0-9a-f]+", approval.id, text))
    return document


@pytest.mark.parametrize("name", ["ana", *(pytest.param(name, marks=exhaustive) for name in ("vic", "bot"))])
def test_the_api_does_what_it_describes(house, name):
    """For each role and operation: no server error, only responses that are described, and nothing accepted that is described as unusable."""
    schema = schemathesis.openapi.from_dict(described(house, name), config=configured(house.tokens[name]))
    schema.app = house.app
    failures, errors, statuses = [], [], {}
    for event in from_schema(schema).execute():
        if isinstance(event, events.NonFatalError | events.FatalError):
            errors.append(str(event))
        if isinstance(event, events.ScenarioFinished):
            for interaction in event.recorder.interactions.values():
                if interaction.response is not None:
                    statuses.setdefault(event.recorder.label, set()).add(interaction.response.status_code)
            failures += [
                (event.recorder.label, check.name, check.failure_info.failure.message, check.failure_info.code_sample)
                for checks in event.recorder.checks.values()
                for check in checks
                if check.status is Status.FAILURE
            ]
    assert ([], []) == (errors, failures)
    rights = house.logins.accounts.get(name).role
    able = {
        f"{operation.method} {operation.path}": operation.status
        for operation in OPERATIONS
        if operation.right in _document.RIGHTS[rights]
    }
    assert able == {label: status for label, status in able.items() if status in statuses[label]}
    assert all({403} >= statuses[label] - {400, 405, 415, 422} for label in statuses.keys() - able.keys())


def test_the_description_is_valid(ana):
    response = ana.get("/api/openapi.json")
    document = response.json()
    assert ("application/json", "3.1.0") == (response.headers["content-type"], document["openapi"])
    for schema in document["components"]["schemas"].values():
        jsonschema.Draft202012Validator.check_schema(schema)
    for name in re.findall(r'"#/components/schemas/(\w+)"', response.text):
        assert name in document["components"]["schemas"]


def test_the_description_holds_every_operation(ana):
    """Each name, and each method of an address, occurs once, with its errors and an example of its body that its own schema allows."""
    document = ana.get("/api/openapi.json").json()
    found = {method["operationId"]: method for path in document["paths"].values() for method in path.values()}
    assert sorted(operation.name for operation in OPERATIONS) == sorted(found)
    assert len(OPERATIONS) == len({(operation.method, operation.path) for operation in OPERATIONS})
    for operation in OPERATIONS:
        assert {"422", "503"} < set(found[operation.name]["responses"])
        if operation.body is not None:
            operation.body.model_validate(dict(operation.example))


def test_the_results_are_described_field_by_field(house, ana):
    """Each member of what the API returns is in the description, with what it means; lists leave long fields out."""
    document = ana.get("/api/openapi.json").json()
    approval = ana.get(f"/api/v1/approvals/{house.request().id}").json()
    schemas = document["components"]["schemas"]
    whole, listed = schemas["Approval"]["properties"], schemas["ListedApproval"]["properties"]
    assert set() == set(approval) - set(whole)
    assert whole["digest"]["description"].startswith("Digest of the current arguments")
    assert {"run", "schema"} == set(whole) - set(listed)
    assert not {"encoded", "asked_encoded"} & set(whole)
    items = schemas["ApprovalList"]["properties"]["approvals"]["items"]
    assert {"$ref": "#/components/schemas/ListedApproval"} == items


@pytest.mark.parametrize("words", ["", "\n\t", "\x1c"])
def test_an_answer_needs_words(words):
    with pytest.raises(ValidationError, match="words"):
        Respond(words=words)


def test_several_are_bounded():
    shown = [{"id": str(number), "digest": "d"} for number in range(201)]
    assert 200 == len(Several(verb="skip", approvals=shown[:200]).approvals)
    for approvals in (shown, []):
        with pytest.raises(ValidationError):
            Several(verb="skip", approvals=approvals)
