"""The document of a run, in the form of the trace schema but without confidence and score, which the pipeline adds.

This includes the journal of an open run, and the document of a run whose process died.

Attributes and entries of gates are redacted, bounded, and without contents that are not captured. Secrets that only the name of an argument
gives away are removed from the whole document. A reviewer's words and the message of an error often repeat an argument. Without its name,
such as `password`, a secret shows no pattern that redaction could find.
"""

from __future__ import annotations

import copy
import functools
import json
import re
from typing import TYPE_CHECKING, Any

from grace_kp.levels import UNSETTLED, waits
from grace_kp.record._evidence import lost_evidence, names_in, nearest, root_of
from grace_kp.record._host import CLOSED, COMPLETED, INTERRUPTED, SUSPENDED
from grace_kp.record._resume import EarlierPart
from grace_kp.record._run import NOT_CAPTURED, Call, instant
from grace_kp.record._spec import SEALED, Attributes
from grace_kp.record._steps import WAITING, StepBuilder
from grace_kp.trace import (
    MAX_TAGS,
    UNSCANNED,
    cut,
    label,
    redact_text,
    redact_value,
    redacted_arguments,
    render,
    storable,
    to_text,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from grace_kp.record._resume import Pause
    from grace_kp.record._run import Run
    from grace_kp.trace import Redactor

CONTEXT = "https://openknowledgepulse.org/schema/v1"
OPEN = "open"
"""The status of a run that goes on."""
_KEPT_METADATA = ("created_at", "framework", "visibility", "privacy_level")
LOST = "The process ended before the end of this run was stored."


class Documents:
    """Documents of the runs of one runtime, with its privacy and visibility."""

    __slots__ = ("_identifiers", "_max_text", "_privacy_level", "_visibility")

    def __init__(self, *, privacy_level: str, visibility: str, max_text: int) -> None:
        self._privacy_level = privacy_level
        self._visibility = visibility
        self._identifiers = privacy_level != "private"
        self._max_text = max_text

    def builder(self, run: Run) -> StepBuilder:
        """Return the builder of the run's steps, created on first use."""
        if run.steps is None:
            run.steps = self._new_builder(run)
        builder: StepBuilder = run.steps
        return builder

    def _new_builder(self, run: Run) -> StepBuilder:
        if run.resumes is not None:
            run.owner.recall(run)
        earlier = None if run.earlier is None else EarlierPart(copy.deepcopy(run.earlier))
        return StepBuilder(run, identifiers=self._identifiers, earlier=earlier)

    def build(self, run: Run) -> dict[str, Any]:
        """Return the document of a run that has ended."""
        builder = self.builder(run)
        builder.finish()
        return self._of_run(run, builder, str(run.status), run.end, run.pause)

    def build_open(self, run: Run) -> dict[str, Any]:
        """Return the document of an open run before an action: its steps so far, and no answer.

        The steps are built from the events once more, independently of the recording and the journal.
        """
        builder = self._new_builder(run)
        builder.advance([run.name, run.domain, run.objective])
        grace = self._begin_grace(run, builder, OPEN, {})
        return self._document_of(run, builder.redactor, builder.steps, grace, success=True, result="")

    def outline(self, run: Run) -> dict[str, Any]:
        """Return what the document of an open run names, without what was said and done: its agent, domain, tools and models.

        It costs the same at any number of steps, after `survey_of`.
        """
        tools, models = names_in(run)
        stated = {} if run.earlier is None else run.earlier["metadata"]
        metadata = {
            "agent_id": stated.get("agent_id") or f"kp:agent:{self.clean(run.name)}",
            "task_domain": stated.get("task_domain") or self.clean(run.domain),
        }
        steps = [{"type": "tool_call", "tool": {"name": self.clean(name)}} for name in tools]
        grace = {"status": OPEN, "model_calls": [{"model": self.clean(name)} for name in models]}
        return {"id": run.id, "metadata": metadata, "steps": steps, "grace": grace}

    def build_asking(self, run: Run, pause: Pause) -> dict[str, Any]:
        """Return the document of an open run that is about to be suspended."""
        builder = self.builder(run)
        builder.advance()
        return self._of_run(run, builder, SUSPENDED, run.clock(), pause)

    def _of_run(self, run: Run, builder: StepBuilder, status: str, end: int, pause: Pause | None) -> dict[str, Any]:
        redactor = builder.redactor
        grace = self._grace(run, builder, status, end)
        if run.error is not None:
            kind, message = run.error
            grace["error"] = {"type": self.clean(kind), "message": self.clean(message)}
        again = [] if pause is None else builder.repeats(pause.again)
        result, steps = self._summary(run, status, redactor), builder.steps
        if UNSCANNED in redactor.counts:  # too long or too hostile: their ends were removed unread
            grace["unscanned_texts"] = redactor.counts[UNSCANNED]
        if not steps:
            # A trace has at least one step. This placeholder is left out when the run continues.
            steps, again = [{"step_id": 0, "type": "observation", "content": result}], [0]
        if again:
            grace["repeats"] = again
        # Nothing has failed in a run that waits for a person.
        success = run.own_success if run.own_success is not None else status == COMPLETED or waits(status)
        return self._document_of(run, redactor, steps, grace, success=success, result=result)

    def _document_of(
        self, run: Run, redactor: Redactor, steps: list[Any], grace: dict[str, Any], *, success: bool, result: str
    ) -> dict[str, Any]:
        """Return the document of a run without the secrets that only the arguments of its gated calls give away."""
        header = self._header(run, functools.partial(redactor.text, is_counted=False))
        document = self._document(header, steps, grace, success=success, result=result, framework=run.framework)
        secrets = secrets_of(run)
        if not secrets:
            return document
        clean: dict[str, Any] = without(document, secrets)
        # The fields that make it a valid trace are kept.
        clean.update({name: document[name] for name in ("@context", "@type", "id")})
        clean["metadata"].update({name: document["metadata"][name] for name in _KEPT_METADATA})
        clean["grace"]["status"] = document["grace"]["status"]
        for before, after in zip(document["steps"], clean["steps"], strict=True):
            after["type"] = before["type"]
        return clean

    def _begin_grace(self, run: Run, builder: StepBuilder, status: str, links: dict[str, Any]) -> dict[str, Any]:
        """Return the part of `grace` that an open run has, too."""
        grace: dict[str, Any] = {
            "status": status,
            "name": builder.redactor.text(run.name, is_counted=False),
            "calls": builder.calls,
        }
        grace.update(links)
        grace.update(attributes_of(run, self.clean, self.clean_all))
        if run.objective_is_document or ((run.earlier or {}).get("grace") or {}).get("objective_is_document"):
            grace["objective_is_document"] = True
        if run.facts:
            grace[run.framework] = self.clean_all(render(run.facts))
        if builder.model_calls:
            grace["model_calls"] = builder.model_calls
        return grace

    def _grace(self, run: Run, builder: StepBuilder, status: str, end: int) -> dict[str, Any]:
        grace = self._begin_grace(run, builder, status, self._links(run))
        grace["duration_ms"] = max(0.0, round((end - run.start) / 1e6, 3))
        if run.node is not None and not run.facts:
            grace["node"] = {**self.clean_all(run.node), "attempt": run.node["attempt"]}
        grace.update(self._usage(run, builder))
        children = [call["child"] for call in builder.calls if "child" in call]
        if children:
            grace["children"] = children
        decisions = self._decisions(run, run.decisions) if run.decisions else []
        if run.earlier is not None:  # its steps are those of the builder already
            earlier, before = EarlierPart(run.earlier), run.earlier.get("grace") or {}
            grace["duration_ms"] = round(grace["duration_ms"] + earlier.duration_ms, 3)
            grace["resumed"] = before.get("resumed", 0) + 1
            if earlier.repeated:
                grace["repeated"] = earlier.repeated
            decisions = merged_entries(earlier.decisions, decisions)
        if decisions:
            grace["decisions"] = decisions
            tag_audits(grace)
        if run.dropped:
            grace["dropped_steps"] = run.dropped
        if run.status == SUSPENDED and (gaps := lost_evidence(run, run.owner)):
            grace["evidence_gaps"] = gaps  # for the gates of the run that continues this one
        if run.pending is not None:
            asked = {"id": run.pending.id, "state": "pending"}
            grace["pending"] = {"action": self.clean(run.pending.action), "outcome": "waiting", "approval": asked}
        if run.own_success is not None:
            grace["own_success"] = run.own_success
        return grace

    def _usage(self, run: Run, builder: StepBuilder) -> dict[str, Any]:
        """Return the tokens of a run with the runs nested in it, and its own tokens if these differ."""
        if not (builder.nested or builder.model_calls or run.earlier):
            run.usage = {}
            return {}
        for number, nested in builder.nested:
            if nested.usage:
                builder.calls[number]["usage"] = dict(nested.usage)
        of_nested = [call["usage"] for call in builder.calls if "usage" in call]
        own = _sum_of_tokens(builder.model_calls)
        run.usage = total = _sum_of_tokens([own, *of_nested])
        if not total and not builder.model_calls:
            return {}
        return {"usage": total, "own_usage": own} if of_nested else {"usage": total}

    def _summary(self, run: Run, status: str, redactor: Redactor) -> str:
        if status == SUSPENDED and run.result is None and run.error is None:
            return f"The run {WAITING}."
        if not run.owner.capture_output:
            return NOT_CAPTURED
        if run.error is not None and run.result is None and status != CLOSED:
            kind, message = run.error
            return self.clean(f"{kind}: {message}" if message else kind)
        result = run.result
        if type(result) is str:
            return redactor.text(result)
        if result is None:
            return ""
        return cut(to_text(redactor.value(render(result))), self._max_text)

    def _header(self, run: Run, clean: Callable[[str], str]) -> dict[str, Any]:
        if run.earlier is None:
            name = clean(run.name)
            objective = clean(run.objective) or name
            began, agent, domain = instant(run.began), f"kp:agent:{name}", clean(run.domain)
        else:
            objective = run.earlier["task"]["objective"]
            began, agent, domain = (run.earlier["metadata"][name] for name in ("created_at", "agent_id", "task_domain"))
        return {"id": run.id, "created_at": began, "agent_id": agent, "domain": domain, "objective": objective}

    def _links(self, run: Run) -> dict[str, Any]:
        if run.via is not None:
            call, around = run.via, run.via.run
            if around.owner is run.owner:
                self.builder(around).advance()
                number = around.steps.number(call)
            else:
                calls = list(dict.fromkeys(id(event) for event in around.events if type(event) is Call))
                # A run that was stored has released its events; its builder knows the calls.
                number = calls.index(id(call)) if id(call) in calls else around.steps.number(call)
            return {"parent": {"trace_id": around.id, "call_id": f"c{number}"}}
        return {} if run.via_trace is None else {"parent": {"trace_id": run.via_trace, "late": True}}

    def _decisions(self, run: Run, decisions: Iterable[dict[str, Any]]) -> list[Any]:
        with_input, with_output = run.owner.capture_input, run.owner.capture_output
        return [stored_entry(entry, self._identifiers, with_input, with_output) for entry in decisions]

    def _document(
        self,
        header: dict[str, Any],
        steps: list[Any],
        grace: dict[str, Any],
        *,
        success: bool,
        result: str,
        framework: str = "grace_kp",
    ) -> dict[str, Any]:
        return {
            "@context": CONTEXT,
            "@type": "ReasoningTrace",
            "id": header["id"],
            "metadata": {
                "created_at": header["created_at"],
                "agent_id": header["agent_id"],
                "framework": framework,
                "task_domain": header["domain"],
                "success": success,
                "quality_score": 0.0,
                "visibility": self._visibility,
                "privacy_level": self._privacy_level,
            },
            "task": {"objective": header["objective"]},
            "steps": steps,
            "outcome": {"result_summary": result, "confidence": 0.5},
            "grace": grace,
        }

    def clean(self, text: str) -> str:
        """Return a string without secrets, and without identifiers if this runtime removes them."""
        return redact_text(storable(text), identifiers=self._identifiers)

    def clean_all(self, value: object) -> Any:
        """Return a rendered value redacted like `clean`."""
        return redact_value(value, identifiers=self._identifiers)

    def journal(self, run: Run) -> list[tuple[int, bytes]]:
        """Return the news of an open run since the last time, as pairs of sequence number and JSON."""
        builder = self.builder(run)
        rows: list[tuple[int, bytes]] = []
        if builder.journaled == 0:
            header = {**self._header(run, self.clean), "name": self.clean(run.name), **self._links(run)}
            stated = {"objective": header["objective"], "attributes": self._changed_attributes(run, builder) or {}}
            rows.append((0, to_json({**header, **without(stated, secrets_of(run))})))
            builder.journaled = 1
        builder.advance()
        news = builder.news(len(run.decisions))
        changed = self._changed_attributes(run, builder)
        if news is not None or changed is not None:
            steps, calls, decided = ([], [], len(run.decisions)) if news is None else news
            decisions = self._decisions(run, run.decisions[decided:])
            part: dict[str, Any] = {"steps": steps, "calls": calls, "decisions": decisions}
            part |= {} if changed is None else {"attributes": changed}
            rows.append((builder.journaled, to_json(without(part, secrets_of(run)))))
            builder.journaled += 1
        return rows

    def _changed_attributes(self, run: Run, builder: StepBuilder) -> dict[str, Any] | None:
        """Return the attributes of an open run if they have changed since they were journaled, else None."""
        changes = 0 if run.attributes is None else run.attributes.changes
        if builder.journaled and changes == builder.journaled_changes:
            return None
        builder.journaled_changes = changes
        return attributes_of(run, self.clean, self.clean_all)

    def rebuild(self, rows: Iterable[bytes]) -> dict[str, Any]:
        """Return the document of a run whose process died, from its journal."""
        header, *parts = [json.loads(row) for row in rows]
        steps: dict[int, Any] = {}
        calls: dict[str, Any] = {}
        decisions: list[Any] = []
        attributes = header.get("attributes", {})
        for part in parts:
            attributes = part.get("attributes", attributes)
            steps.update({step["step_id"]: step for step in part["steps"]})
            calls.update({call["call_id"]: call for call in part["calls"]})
            decisions.extend(part["decisions"])
        for call in calls.values():
            if "latency_ms" in call and call["tool_call"] in steps:
                steps[call["tool_call"]]["latency_ms"] = call["latency_ms"]
        grace: dict[str, Any] = {"status": INTERRUPTED, "name": header["name"], "calls": list(calls.values())}
        grace.update(attributes)
        if "parent" in header:
            grace["parent"] = header["parent"]
        if decisions:
            grace["decisions"] = decisions
            tag_audits(grace)
        kept = [steps[number] for number in sorted(steps)] or [{"step_id": 0, "type": "thought", "content": LOST}]
        return self._document(header, kept, grace, success=False, result=LOST)


def _sum_of_tokens(calls: Iterable[dict[str, Any]]) -> dict[str, int]:
    total: dict[str, int] = {}
    for call in calls:
        for name, value in call.items():
            if name.endswith("_tokens") and isinstance(value, int):
                total[name] = total.get(name, 0) + value
    return total


def to_json(document: object) -> bytes:
    """Return UTF-8 JSON. Half a surrogate pair, which UTF-8 cannot hold, becomes a question mark."""
    from grace_kp.record._json import encode  # loads an encoder

    return encode(document)


_UUID = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
AUDIT_TAG = "audit:selected"
"""The tag of runs of which an action is put up for an audit."""
MIN_LENGTH = 6
"""Shorter strings are too common to be removed wherever they occur."""
MIN_NUMBER = 10_000_000
"""Smaller numbers are too common to be removed wherever they occur."""
REMOVED = "[REDACTED:password]"
# Fields that hold rendered arguments, each with the field that counts the characters they do not show.
_ARGUMENTS = {"arguments": "hidden", "executed_arguments": "executed_hidden", "modified": "hidden"}
# Fields that quote neither arguments nor a reviewer; every other string of an entry may.
_STRUCTURE = frozenset((
    "action", "asked_at", "decided_at", "digest", "evidence_gaps", "executed_digest", "fitted_at", "floor", "id", "level", "mismatches", "mode",
    "model", "outcome", "policy_version", "profile", "profile_gaps", "reason", "reviewer", "skipped", "to", "tool_call_id",
))  # fmt: skip
_ERRORS = frozenset({"error", "ledger_error", "notify_error"})


def attributes_of(run: Run, clean: Callable[[str], str], clean_all: Callable[[Any], Any]) -> dict[str, Any]:
    """Return the attributes of a run for its trace, under `grace`; empty if none were stated."""
    if run.attributes is None and run.via is None and run.earlier is None:
        return {}
    before = (run.earlier or {}).get("grace") or {}
    with run.owner.lock:
        own = run.attributes or Attributes()
        tags, metadata = list(own.tags), dict(own.metadata)
        dropped = {"dropped_tags": own.dropped_tags, "dropped_metadata": own.dropped_metadata}

    def clean_id(text: str) -> str:
        # The digits of a UUID may look like a phone number.
        return label(text if _UUID.fullmatch(text) else clean(text))

    stated = {name: nearest(run, name) for name in ("user", "session")}
    found: dict[str, Any] = {
        "tags": list(dict.fromkeys([*(before.get("tags") or ()), *map(clean_id, tags)]))[:MAX_TAGS],
        **{name: before.get(name) if value is None else clean_id(value) for name, value in stated.items()},
        "metadata": {
            **(before.get("metadata") or {}),
            **{label(key): value for key, value in clean_all(metadata).items()},
        },
        **dropped,
    }
    return {name: value for name, value in found.items() if value}


def stored_entry(
    entry: dict[str, Any], identifiers: bool, capture_input: bool, capture_output: bool, sealed: Sequence[str] = ()
) -> dict[str, Any]:
    """Return the entry as a JSON value without secrets.

    `hidden` has the number of characters that a cut or redaction has removed from `arguments`, by name; `response["hidden"]` the same for
    arguments that a reviewer replaced. `digest` is that of the real arguments.
    """
    out: dict[str, Any] = {}
    fields = list(entry.items())  # in one step, because the action may be running and changing its entry
    for name, value in fields:
        if name in _ARGUMENTS and isinstance(value, dict):
            names = sealed or entry.get("sealed", ())
            clear = {argument: SEALED if argument in names else item for argument, item in value.items()}
            out[name], removed = redacted_arguments(clear, identifiers=identifiers)
            counts = {**entry.get(_ARGUMENTS[name], {})}
            for argument, count in removed.items():
                counts[argument] = counts.get(argument, 0) + count
            if not capture_input:
                out[name] = dict.fromkeys(out[name], NOT_CAPTURED)
            elif counts:
                out[_ARGUMENTS[name]] = counts
        elif name == "response" and isinstance(value, dict):
            out[name] = stored_entry(value, identifiers, capture_input, capture_output, entry.get("sealed", ()))
        elif name not in _ARGUMENTS.values():
            out[name] = redact_value(render(value), identifiers=identifiers)
            if not (capture_input and capture_output):
                out[name] = _without_texts(name, out[name])
    return out


def merged_entries(earlier: list[dict[str, Any]], later: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the entries of both parts of a resumed run, one for each decision.

    The later entry replaces the earlier one, except for the time when it was asked about. Only an action that ended in the earlier part keeps that outcome when the later part
    states merely that it ran before.
    """
    ended = {entry.get("id") for entry in earlier if entry.get("outcome") not in UNSETTLED}
    new = [entry for entry in later if not (str(entry.get("outcome")).endswith("_before") and entry.get("id") in ended)]
    replaced = {entry["id"] for entry in new if "id" in entry}
    asked = {entry.get("id"): {"asked_at": entry["asked_at"]} for entry in earlier if "asked_at" in entry}
    kept = [entry for entry in earlier if entry.get("id") not in replaced]
    return kept + [{**entry, **asked.get(entry.get("id"), {})} for entry in new]


def tag_audits(grace: dict[str, Any]) -> None:
    """Tag a run of which an action was selected for a check by a person, so that a store finds it."""
    drawn = (entry.get("audit") for entry in grace.get("decisions") or ())
    if any(isinstance(audit, dict) and audit.get("selected") is True for audit in drawn):
        tags = [tag for tag in grace.get("tags") or () if tag != AUDIT_TAG]
        grace["tags"] = [AUDIT_TAG, *tags][:MAX_TAGS]


def _without_texts(name: str, value: object, *, inside: bool = False) -> Any:
    """Return a field of an entry without strings that may quote contents. An error keeps the name of its type."""
    if name in _STRUCTURE and not (inside and name == "reason"):  # a nested reason is that of a judge
        return value
    if isinstance(value, dict):
        return {key: _without_texts(key, item, inside=True) for key, item in value.items()}
    if isinstance(value, list):
        return [_without_texts("", item, inside=True) for item in value]
    if not isinstance(value, str):
        return value
    kind = value.partition(":")[0]
    return kind if name in _ERRORS and kind.isidentifier() else NOT_CAPTURED


def named_secrets(decisions: Iterable[dict[str, Any]]) -> list[str]:
    """Return the secret arguments of gated calls, longest first."""
    decisions = list(decisions)
    found = set(sealed_texts(decisions))
    for _, arguments in _arguments_of(decisions):
        found.update(_find_removed(arguments, redact_value(arguments, identifiers=False)))
    return sorted(found, key=len, reverse=True)


def secrets_of(run: Run) -> list[str]:
    """Return the secret arguments of the gated calls in a run, and the sealed ones of those around it and inside of it, longest first."""
    sealed = root_of(run).sealed
    if sealed is None:
        return named_secrets(run.decisions) if run.decisions else []
    return sorted({*named_secrets(run.decisions), *sealed_texts(sealed)}, key=len, reverse=True)


def sealed_texts(decisions: Iterable[dict[str, Any]]) -> Iterator[str]:
    """Yield the strings and numbers in the sealed arguments of gated calls."""
    for entry, arguments in _arguments_of(decisions):
        yield from _texts([arguments.get(name) for name in entry.get("sealed", ())])


def _arguments_of(decisions: Iterable[dict[str, Any]]) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """Yield the arguments of gated calls with their entries: as called, as executed, and as a reviewer changed them."""
    for entry in list(decisions):
        response = entry.get("response")
        modified = response.get("modified") if isinstance(response, dict) else None
        for arguments in (entry.get("arguments"), entry.get("executed_arguments"), modified):
            if isinstance(arguments, dict):
                yield entry, arguments


def _texts(values: object) -> Iterator[str]:
    if isinstance(values, dict):
        values = [*values, *values.values()]
    if isinstance(values, list):
        for value in values:
            yield from _texts(value)
    elif isinstance(values, str | int | float) and len(text := str(values)) >= MIN_LENGTH:
        yield text


def without(value: object, secrets: list[str]) -> Any:
    """Return a JSON value without these secrets; the same object if the list is empty."""
    if not secrets:
        return value
    if isinstance(value, str):
        for secret in secrets:
            value = value.replace(secret, REMOVED)
        return value
    if isinstance(value, int | float) and abs(value) >= MIN_NUMBER and str(value) in secrets:
        return REMOVED
    if isinstance(value, dict):
        return {name: without(item, secrets) for name, item in value.items()}
    return [without(item, secrets) for item in value] if isinstance(value, list) else value


def _find_removed(before: object, after: object) -> Iterator[str]:
    """Yield the strings that redaction has replaced as a whole."""
    if isinstance(before, dict) and isinstance(after, dict):
        for value, clean in zip(before.values(), after.values(), strict=False):
            yield from _find_removed(value, clean)
    elif isinstance(before, list) and isinstance(after, list):
        for value, clean in zip(before, after, strict=False):
            yield from _find_removed(value, clean)
    elif isinstance(before, str) and after == REMOVED and before != REMOVED and len(before) >= MIN_LENGTH:
        yield before
