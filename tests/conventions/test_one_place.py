"""Catching everything has few places: what fails open and what fails closed must be visible from the list of them."""

from __future__ import annotations

import ast

from tests.conventions.source import modules

# Why a file may catch everything. The list only gets shorter.
CATCH_ALL = {
    "grace_kp/approvals/_webhooks.py": "a receiver or a store that fails is reported, and never reaches a gate",
    "grace_kp/approvals/_schema.py": "a foreign schema may break its validator anywhere, which refuses the edit",
    "grace_kp/approvals/_watch.py": "a look at the tables that fails wakes those who wait, who then read for themselves",
    "grace_kp/cli/_app.py": "the one place where errors become a line and an exit code",
    "grace_kp/cli/_approvals.py": "an action of the user's that fails is reported, and the next one runs all the same",
    "grace_kp/cli/_inputs.py": "a module of the user's on being imported",
    "grace_kp/judge/_evaluators.py": "whatever an embedder does ends in the documented fallback",
    "grace_kp/judge/_client.py": "whatever a judge does ends in the documented fallback",
    "grace_kp/background/_calls.py": "carries what a call raised from its thread to the one that waits",
    "grace_kp/background/_process.py": "what fails at exit must not keep the rest from finishing, nor turn the report of a loss into an exception",
    "grace_kp/confidence/_search_result.py": "foreign result objects may raise anything on being looked at",
    "grace_kp/confidence/_search_results.py": "the same, for whole results",
    "grace_kp/judge/_reply.py": "any reply gives a score or is unparsable, whatever its type raises",
    "grace_kp/judge/_cache.py": "a cache that cannot be used is one without entries",
    "grace_kp/errors.py": "a foreign repr inside a message",
    "grace_kp/gating/_drivers.py": "the one place where a gate fails closed",
    "grace_kp/gating/_digest.py": "a value, or a callable of the user's that identifies it, whose own code fails cannot be checked",
    "grace_kp/gating/_view.py": "a value whose own code fails when it is read cannot be shown in full",
    "grace_kp/integrations/_tools.py": "a claim that cannot be reported is logged, and becomes unknown with its run",
    "grace_kp/integrations/adk/_plugin.py": "whatever a gate raises refuses the call, since an exception in a plugin would end the run",
    "grace_kp/integrations/openai_agents/_runner.py": "whatever a gate raises refuses the call, because the SDK would end the run",
    "grace_kp/integrations/pydantic_ai/_capability.py": "whatever a gate raises refuses the call, because it would end the run",
    "grace_kp/integrations/strands/_hooks.py": "whatever a gate raises refuses the call",
    "grace_kp/integrations/langchain/_handler.py": "the two callbacks that come most often carry the guard themselves",
    "grace_kp/integrations/langchain/_tool_schema.py": "whatever a tool's validators or its schema raise refuses the call or the edit",
    "grace_kp/integrations/knowledgepulse/_outbox.py": "a registry that cannot be used is reported, never raised into the agent",
    "grace_kp/models/_gemini.py": "every failure of a call becomes one of our errors",
    "grace_kp/models/_hub.py": "the same for fetching a model",
    "grace_kp/models/_onnx.py": "the same for loading and running it",
    "grace_kp/models/_sentence_transformers.py": "the same",
    "grace_kp/record/_guard.py": "the one guard that makes recording fail open",
    "grace_kp/record/_wrap.py": "hands what was thrown on to the generator it was meant for",
    "grace_kp/runtime/_completion.py": "a run that cannot be completed stays as it is stored, and holds up no other",
    "grace_kp/runtime/_assessment.py": "a judgement that fails is a fallback",
    "grace_kp/runtime/_profiles.py": "a learned profile that fails is a marked fallback and a gap at a gate, and so is a promise that cannot be checked",
    "grace_kp/runtime/_pipeline.py": "hooks of the user's must not cost the trace",
    "grace_kp/rubric/_rating.py": "a judge that fails gives a reason and no judgement",
    "grace_kp/runtime/_scoring.py": "a scorer of the user's that fails is told in the trace, and the others go on",
    "grace_kp/scorers/_cases.py": "details of the user's scorers on being shown, and errors that cannot be sent to another process",
    "grace_kp/scorers/_patterns.py": "whatever a pattern makes the package raise that reads it is one error of ours",
    "grace_kp/scorers/_entry.py": "a scorer that fails counts as 0, and the report says why",
    "grace_kp/scorers/_suite_file.py": "a factory that fails is reported with its line",
    "grace_kp/runtime/_writer.py": "a run that cannot be finished and a store that fails are reported, never raised into the agent",
    "grace_kp/trace/_render.py": "foreign objects may raise anything on being shown",
    "grace_kp/web/security/_gatekeeper.py": "whatever fails while a request is answered is a response without details, and a line of the log",
    "grace_kp/web/security/_visitor.py": "whatever the identities of a host application raise lets nobody in",
    "grace_kp/value/_score.py": "whatever an embedder does ends in the documented fallback",
    "grace_kp/web/_site.py": "figures that cannot be computed are shown as missing, and the other figures are shown all the same",
    "grace_kp/web/inbox/_events.py": "a watch that fails ends the event streams, so that no page waits for news that never come",
}
EVERYTHING = {"Exception", "BaseException"}


def broad(handler):
    """`except:`, `except Exception`, or a tuple with one of these."""
    caught = handler.type
    names = caught.elts if isinstance(caught, ast.Tuple) else [caught]
    return any(name is None or ast.unparse(name) in EVERYTHING for name in names)


def raises_on(handler):
    """Whether the handler ends by raising what it caught."""
    last = handler.body[-1]
    return isinstance(last, ast.Raise) and last.exc is None


def catchers():
    """The files that catch everything and go on; who cleans up and raises on is not meant."""
    for module in modules().values():
        for node in module.nodes:
            handled = isinstance(node, ast.ExceptHandler) and broad(node) and not raises_on(node)
            if handled or (isinstance(node, ast.Call) and suppresses_everything(node)):
                yield module.file


def suppresses_everything(call):
    """`contextlib.suppress(Exception)` is the same in other words."""
    named = ast.unparse(call.func).rpartition(".")[2] == "suppress"
    return named and bool(EVERYTHING & {ast.unparse(argument) for argument in call.args})


def test_only_these_files_catch_everything():
    """A file that catches everything is on the list, and one that no longer does is taken off."""
    assert set(CATCH_ALL) == set(catchers())


def test_recording_has_one_guard():
    """What is shielded uses it; nobody else in the room catches an error of ours to go on."""
    guards = {module.file for module in modules().values() if "def shielded" in module.text}
    assert {"grace_kp/record/_guard.py"} == guards
