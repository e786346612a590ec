"""`grace-kp traces list | show | import | export | delete | contribute`: every figure, ids by their beginning, nothing half-written, nothing sent unasked."""

from __future__ import annotations

import copy
import gzip
import io
import json
import os
import stat
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

import grace_kp as gk
from grace_kp import calibrate as cal
from grace_kp.judge import JudgementCache
from grace_kp.runtime import record_of
from grace_kp.store import JournalEntry, open_store
from tests.cli.program import CHAT, ended, run

WIDTHS = [200, 80, 40]


@pytest.mark.parametrize("columns", WIDTHS)
def test_a_list_shows_score_and_success_at_every_width(command, recorded, columns):
    """Columns go, figures stay; success is a word, so that it reads without colour."""
    ran = command("traces", "list", "--store", recorded, columns=columns)
    rows = ran.stdout.splitlines()
    assert [len(row.split()) for row in rows if "…" in row.split()[0]] == []
    assert [] == [heading for heading in ("id", "objective", "ok", "score") if heading not in rows[0].split()]
    documents = json.loads(command("traces", "list", "--store", recorded, "--json").stdout)
    for row, document in zip(rows[2:], documents, strict=False):
        assert document["id"].removeprefix("kp:trace:")[:8] == row.split()[0]
        assert f"{document['metadata']['quality_score']:.3f}" == row.split()[-1]
        assert ("yes" if document["metadata"]["success"] else "no") in row.split()
    assert "3 of 3" == rows[-1]


def test_a_list_says_how_many_there_are(command, recorded):
    ran = command("traces", "list", "--store", recorded, "--limit", "1", columns=80)
    assert "1 of 3; --limit shows more" == ran.stdout.splitlines()[-1]
    ran = command("traces", "list", "--store", recorded, "--limit", "1", "--failed", columns=80)
    assert "1 of 1" == ran.stdout.splitlines()[-1]


def test_a_status_that_no_run_can_have_is_refused(command, url):
    ran = command("traces", "list", "--store", url, "--status", "nonsense")
    assert (2, 1) == (ran.returncode, len(ran.stderr.splitlines()))
    assert "Invalid value for '--status': 'nonsense' is not one of 'completed'" in ran.stderr
    for status in ("completed", "failed", "cancelled", "closed", "exited", "interrupted", "not_approved", "suspended"):
        assert status in ran.stderr
    assert command("traces", "export", "-", "--store", url, "--status", "nonsense").returncode == 2
    assert command("traces", "list", "--store", url, "--min-score", "60").returncode == 2


def test_imported_runs_are_listed_and_shown_without_secrets(command, runs, url):
    assert command("traces", "import", runs, "--store", url).returncode == 1
    (listed,) = json.loads(command("traces", "list", "--store", url, "--success", "--json").stdout)
    assert 7 == listed["grace"]["source"]["task_id"]
    shown = command("traces", "show", listed["id"].removeprefix("kp:trace:")[:8], "--store", url)
    for piece in ("refund me", "error_recovery", "confidence", "tool_success", "score"):
        assert piece in shown.stdout
    assert "abcdefghijklmnop1234" not in shown.stdout + json.dumps(listed)


def test_a_store_that_lacks_something_is_told_in_one_line(tmp_path):
    import sqlite3

    store = f"sqlite:///{tmp_path / 't.db'}"
    with gk.Grace(store=store, evaluator=None, embedder=None) as grace, grace.run("a run"):
        pass
    with sqlite3.connect(tmp_path / "t.db") as connection:
        connection.execute("DROP TABLE scores")
    connection.close()
    ran = run("traces", "list", "--scorer", "x", "--store", store)
    assert 1 == ran.returncode
    assert "grace-kp: the store cannot be used: no such table: scores\n" == ran.stderr


SPAN = {
    "id": "o",
    "traceId": "t",
    "parentObservationId": None,
    "input": [{"role": "user", "content": "q"}],
    "output": "a",
}


@pytest.fixture
def bring(command, tmp_path, url):
    """Imports documents from a file; returns the counts and what was printed."""

    def bring(*documents, name="in.jsonl", store=url):
        path = tmp_path / name
        path.write_text("".join(f"{json.dumps(document)}\n" for document in documents))
        ran = command("traces", "import", path, "--store", store, "--json")
        counts = json.loads(ran.stdout)
        assert bool(counts["problems"]) == ran.returncode
        return (counts["imported"], counts["already_here"], counts["problems"]), ran.stderr

    return bring


def traces_of(url):
    store = open_store(url, create=False)
    try:
        return {trace.id: trace.to_dict() for trace in store.iterate()}
    finally:
        store.close()


@pytest.mark.parametrize("name", ["in.jsonl", "in.jsonl.gz", "-", "pipe"])
def test_nothing_of_a_file_with_spans_is_imported(command, tmp_path, url, name, monkeypatch):
    """Wherever the first of them is, and however the file is read."""
    path = tmp_path / name
    data = "".join(f"{json.dumps(item)}\n" for item in [*({**CHAT, "task_id": number} for number in range(300)), SPAN])
    data = gzip.compress(data.encode()) if name.endswith(".gz") else data.encode()
    if name == "pipe":
        os.mkfifo(path)
        writer = threading.Thread(target=path.write_bytes, args=(data,))
        writer.start()
    else:
        path.write_bytes(data)
    with path.open("rb") if name == "-" else open(os.devnull) as stream:  # noqa: PTH123
        monkeypatch.setattr("sys.stdin", stream)
        ran = command("traces", "import", "-" if name == "-" else path, "--store", url, columns=300)
    if name == "pipe":
        writer.join()
    assert 1 == ran.returncode
    problem = "301: there is no reader for this format: Langfuse trace or observation export; a file holds traces or chat runs"
    assert f"imported 0 traces, refused 1: {'-' if name == '-' else path}:{problem}\n" == ran.stdout
    assert {} == traces_of(url)


def test_a_recorded_run_is_never_changed_by_an_import(bring, recorded):
    before = traces_of(recorded)
    assert ((0, 3, 0), "") == bring(*before.values())
    assert ((0, 6, 0), "") == bring(*before.values(), *before.values(), name="copy.jsonl")
    for change in (
        lambda trace: trace["grace"]["decisions"].append({"action": "pay", "outcome": "executed"}),
        lambda trace: trace["grace"].update(user="eve", session="s", tags=["audit:selected"]),
        lambda trace: trace["grace"].update(feedback=[{"correct": True, "source": "person", "by": "ana"}]),
        lambda trace: trace["metadata"].update(created_at="2026-01-01T00:00:00.000Z"),
        lambda trace: trace["steps"].append({"step_id": 99, "type": "thought", "content": "more"}),
        lambda trace: trace.update(label={"success": True}),
    ):
        changed = copy.deepcopy(list(before.values()))
        for trace in changed:
            trace["grace"].setdefault("decisions", [])
            change(trace)
        counts, errors = bring(*changed)
        assert (0, 3) == (counts[0], counts[1] + counts[2])
        assert counts[2] >= 2
        assert "in.jsonl:2: the run kp:trace:" in errors
        assert "is here already, open or with other content or labels, and stays until it is deleted" in errors
    assert before == traces_of(recorded)


def test_an_import_joins_no_recorded_run(bring, recorded):
    """Neither as its parent nor as its child; runs of the file are joined to each other."""
    before = traces_of(recorded)
    local = next(iter(before))
    store = open_store(recorded)
    nested = {
        **next(iter(before.values())),
        "id": "kp:trace:nested",
        "grace": {"parent": {"trace_id": "kp:trace:lost"}},
    }
    store.put([record_of(nested)])
    assert (0, 0, 1) == bring({**nested, "id": "kp:trace:lost", "grace": {}})[0]
    assert 1 == store.delete(id="kp:trace:nested")
    store.close()
    own = {**next(iter(before.values())), "id": "kp:trace:new"}
    for links in (
        {"parent": {"trace_id": local}},
        {"children": ["kp:trace:none", local]},
        {"calls": [{"call_id": "c0", "name": "f", "tool_call": 0, "status": "ok", "child": local}]},
    ):
        counts, errors = bring({**own, "grace": links})
        assert (0, 0, 1) == counts
        assert f"in.jsonl:1: the run kp:trace:new would be joined to the run {local}, which was recorded here" in errors
    assert before == traces_of(recorded)
    parent = {**own, "id": "kp:trace:p", "grace": {"children": ["kp:trace:new"]}}
    assert (1, 0, 0) == bring(parent)[0]
    assert (1, 1, 0) == bring(parent, {**own, "grace": {"parent": {"trace_id": "kp:trace:p"}}})[0]


def test_deleting_an_import_leaves_the_ledger_alone(bring, tmp_path):
    url = f"sqlite:///{tmp_path / 'traces.db'}"
    with gk.Grace(store=url, evaluator=None, embedder=None, reviewer=None) as grace, grace.run("a run"):
        pass
    store = open_store(url)
    store.put_action("run|d1|0", b'{"result": "kept"}', only_if=None)
    document = {
        **next(iter(traces_of(url).values())),
        "id": "kp:trace:new",
        "grace": {"decisions": [{"id": "d1", "action": "pay"}]},
    }
    assert (1, 0, 0) == bring(document, store=url)[0]
    assert (1, 0) == ((deleted := store.delete(id="kp:trace:new")), deleted.actions)
    assert b'{"result": "kept"}' == store.action("run|d1|0")
    store.close()


def test_an_open_run_is_not_imported(bring, url, recorded):
    document = {**next(iter(traces_of(url).values())), "id": "kp:trace:open"}
    store = open_store(url)
    store.journal([JournalEntry("kp:trace:open", 0, b"{}")])
    assert (0, 0, 1) == bring(document)[0]
    assert (0, 0, 1) == bring({**document, "id": "kp:trace:new", "grace": {"parent": {"trace_id": "kp:trace:open"}}})[0]
    store.close()


def test_own_traces_go_to_another_store_and_back(command, recorded, tmp_path):
    """Gates, nested runs, attributes and labels arrive as they are; labels name their file. Going back changes nothing."""
    before = traces_of(recorded)
    store = open_store(recorded)
    assert command("feedback", "last", "wrong", "--by", "ana", "--store", recorded).returncode == 0
    store.close()
    out, back, other = tmp_path / "out.jsonl.gz", tmp_path / "back.jsonl", f"sqlite:///{tmp_path / 'other.db'}"
    assert command("traces", "export", out, "--store", recorded).returncode == 0
    assert "imported 3 traces\n" == command("traces", "import", out, "--store", other).stdout
    for name, trace in traces_of(other).items():
        assert trace["grace"].pop("imported")
        labels = trace["grace"].pop("feedback", [])
        assert {("import:out.jsonl.gz", "ana", False)} >= {
            (label["source"], label["by"], label["correct"]) for label in labels
        }
        assert before[name] == trace
    assert command("traces", "export", back, "--store", other).returncode == 0
    ran = command("traces", "import", back, out, "--store", recorded)
    assert (0, "imported 0 traces, skipped 6 already here\n") == (ran.returncode, ran.stdout)


def test_labels_and_attributes_of_a_file_are_kept_under_its_name(bring, url):
    """No label counts until its file is named, whoever it claims to be from; then it does."""
    claims = [
        {"correct": False, "source": source, "by": "ana"} for source in ("person", "Approval", "user", "audit", 7)
    ]
    chat = {"messages": [{"role": "user", "content": "q"}, {"role": "assistant", "content": "a"}]}
    described = {
        **chat,
        "label": {"success": False},
        "metadata": {"user": "ana", "session_id": "s"},
        "tags": ["prod", 3],
    }
    assert (2, 0, 0) == bring(described, {**chat, "reward": 1.0, "user_id": 7})[0]
    first, second = sorted(traces_of(url).values(), key=lambda trace: trace["metadata"]["success"])
    assert ("ana", "s", ["prod"]) == tuple(first["grace"][name] for name in ("user", "session", "tags"))
    assert ("7", False) == (second["grace"]["user"], "session" in second["grace"])
    grace = {"feedback": claims, "decisions": [{"action": "pay", "level": "confirm", "outcome": "executed", "response": {"action": "proceed", "reviewer": "bob"}}], "own_success": True, "scores": [{"name": "x", "score": 1.0, "passed": True}]}  # fmt: skip
    trace = {**first, "id": "kp:trace:native", "grace": grace}
    assert (1, 0, 0) == bring(trace, name="native.jsonl")[0]
    for sources in (None, "user", "audit", ["approval", "outcome", "own", "scorer:x"], "import:other.jsonl"):
        assert [] == cal.labels(url, sources).labels
    assert [False, True] == sorted(cal.labels(url, "import:in.jsonl").labels)
    found = cal.labels(url, "import:native.jsonl")
    assert ([False], ["import:native.jsonl"]) == (found.labels, found.sources)
    assert {"import:native.jsonl"} == {
        entry["source"] for entry in traces_of(url)["kp:trace:native"]["grace"]["feedback"]
    }


@pytest.mark.parametrize(
    ("name", "source"),
    [
        ("sk-proj-abcdefghijklmnop1234567890.jsonl", "import:[REDACTED"),
        ("a\x1b[2J\nb.jsonl", "import:a [2J b.jsonl"),
        ("n" * 240 + ".jsonl", "import:nnn"),
    ],
)
def test_the_name_of_a_file_is_a_clean_source(bring, url, name, source):
    assert (1, 0, 0) == bring(CHAT, name=name)[0]
    [trace] = traces_of(url).values()
    [label] = trace["grace"]["feedback"]
    assert label["source"].startswith(source)
    assert len(label["source"]) <= 210
    assert "/" not in label["source"]


def test_what_was_not_imported_is_counted_with_a_reason(command, tmp_path, url, runs):
    """The first reason with its line; the exit code is that of a failure."""
    ran = command("traces", "import", runs, runs, tmp_path, tmp_path / "none", "--store", url, columns=400)
    assert 1 == ran.returncode
    assert f"imported 2 traces, skipped 2 already here, refused 4: {runs}:2: is not JSON" in ran.stdout
    assert 4 == len(ran.stderr.splitlines())


def test_a_copy_of_a_file_is_here_already(bring, url, tmp_path):
    """Although its runs, which name no time, take that of the file; a corrected run is another run."""
    assert (1, 0, 0) == bring(CHAT)[0]
    os.utime(tmp_path / "in.jsonl", (86_400, 86_400))
    assert (0, 1, 0) == bring(CHAT, name="copy.jsonl")[0]
    assert (1, 0, 0) == bring({**CHAT, "reward": 0.0})[0]
    assert 2 == len(traces_of(url))


@pytest.fixture
def attributed(tmp_path, monkeypatch):
    path = f"sqlite:///{tmp_path}/t.db"
    monkeypatch.setenv("GRACE_KP_STORE", path)
    with gk.Grace(store=path, evaluator=None, embedder=None, reviewer=None) as grace:
        for name, user in (("one", "ana"), ("two", "ana"), ("three", "ben")):
            with grace.run(name, user=user, session=f"s-{name}", tags=["all", name], metadata={"n": len(name)}):
                pass
    return path


def objectives(command, *conditions):
    _, out, _ = command("traces", "list", "--json", *conditions)
    return sorted(trace["task"]["objective"] for trace in json.loads(out))


def test_list_and_export_filter_by_attributes(attributed, command, tmp_path):
    assert ["one", "two"] == objectives(command, "--user", "ana")
    assert ["two"] == objectives(command, "--tag", "all", "--tag", "two")
    assert ["three"] == objectives(command, "--metadata", "n=5", "--session", "s-three")
    assert 0 == command("traces", "export", str(tmp_path / "x.jsonl"), "--user", "ana")[0]
    assert 2 == len((tmp_path / "x.jsonl").read_text().splitlines())
    code, _, err = command("traces", "list", "--metadata", "n")
    assert (2, True) == (code, "KEY=VALUE" in err)


def test_delete_with_yes_prints_what_it_did(attributed, command):
    """A line for people, a report for machines, exit 0; what is not there is no error for conditions, and one for an id."""
    code, out, err = command("traces", "delete", "--user", "ana", "--yes")
    assert (0, "deleted 2 runs\n", "") == (code, out, err)
    assert ["three"] == objectives(command)
    code, out, _ = command("traces", "delete", "--older-than", "0s", "--session", "s-three", "--yes", "--json")
    assert (0, {"deleted": 1, "actions": 0, "open": [], "clean": True, "remains": ""}) == (code, json.loads(out))
    assert (0, "deleted 0 runs\n", "") == command("traces", "delete", "--user", "ana", "-y")
    code, _, err = command("traces", "delete", "nothing", "--yes")
    assert (1, True) == (code, "no trace" in err)


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [((), "needs a condition"), (("--user", "ana"), "--yes"), (("--older-than", "soon", "--yes"), "older_than"), (("--user", "", "--yes"), "user")],
)  # fmt: skip
def test_delete_without_a_condition_or_an_answer_deletes_nothing(attributed, command, arguments, hint):
    code, out, err = command("traces", "delete", *arguments)
    assert (2, "", True) == (code, out, hint in err)
    assert ["one", "three", "two"] == objectives(command)


@pytest.mark.parametrize(("answer", "left"), [("", 3), ("n", 3), ("y", 1)])
def test_delete_asks_at_a_terminal(attributed, terminal, answer, left):
    child = terminal("traces", "delete", "--user", "ana")
    child.expect(r"Delete 2 runs \(user ana\)")
    child.sendline(answer)
    assert (0 if answer == "y" else 130) == ended(child)
    store = gk.Grace(store=attributed).store
    assert left == store.count()


def test_delete_empties_the_judgement_cache(attributed, command, tmp_path, monkeypatch):
    path = tmp_path / "judgements.db"
    monkeypatch.setenv("GRACE_KP_JUDGE_CACHE", str(path))
    cache = JudgementCache(path)
    cache.put("k", {"score": 0.5, "reason": "QUOTED" * 900})
    cache.close()
    code, out, _ = command("traces", "delete", "--user", "ana", "--yes")
    assert (0, True) == (code, "judgement cache" in out)
    assert not any(b"QUOTED" in file.read_bytes() for file in tmp_path.iterdir())
    assert 0o600 == stat.S_IMODE(path.stat().st_mode)


@pytest.fixture
def server():
    seen = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            seen.append((self.rfile.read(int(self.headers["content-length"])), dict(self.headers)))
            self.send_response(made.status)
            self.end_headers()

        def log_message(self, *args):
            """Nothing."""

    made = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    made.status, made.seen = 201, seen
    made.url = f"http://127.0.0.1:{made.server_address[1]}"
    threading.Thread(target=made.serve_forever, daemon=True).start()
    yield made
    made.shutdown()
    made.server_close()


@pytest.fixture
def store(tmp_path):
    """Two traces that may leave, and one that is private."""
    url = f"sqlite:///{tmp_path}/t.db"
    for visibility, count in (("network", 2), ("private", 1)):
        with gk.Grace(store=url, evaluator=None, embedder=None, visibility=visibility) as grace:
            for number in range(count):
                with grace.run(f"mail bob@example.com {number}") as live:
                    live.thought("x")
                    live.outcome(confidence=1.0)
    return url


def contribute(*arguments, store, url, key="k-123"):
    environment = {"GRACE_KP_REGISTRY_KEY": key} if key else {}
    return run("traces", "contribute", "--store", store, "--url", url, *arguments, stdin="", **environment)


def test_a_dry_run_shows_what_would_leave_and_sends_nothing(store, server):
    ran = contribute("--dry-run", "--min-score", "0", "--json", store=store, url=server.url)
    assert (0, "") == (ran.returncode, ran.stderr)
    shown = json.loads(ran.stdout)
    assert [True, True, False] == sorted((one["eligible"] for one in shown), reverse=True)
    assert [] == server.seen
    text = contribute("--dry-run", "--min-score", "0", store=store, url=server.url).stdout
    assert "[REDACTED:email]" in text
    assert "bob@example.com" not in text
    assert "2 of 3 would be sent; nothing was sent" in text
    assert "k-123" not in text + ran.stdout

    contribute("--yes", "--min-score", "0", store=store, url=server.url)
    assert {one["body"] for one in shown if one["eligible"]} == {body.decode() for body, _ in server.seen}


@pytest.mark.parametrize(
    ("arguments", "given", "code", "problem"),
    [
        ([], {}, 2, "contribute asks for a confirmation, which needs a terminal"),
        (["--yes"], {"key": ""}, 1, "GRACE_KP_REGISTRY_KEY"),
        (["--yes"], {"url": "http://registry.example"}, 1, "in the clear"),
        (["--since", "yesterday-ish", "--yes"], {}, 2, "since"),
    ],
)
def test_mistakes_are_one_line(store, server, arguments, given, code, problem):
    ran = contribute(*arguments, "--min-score", "0", store=store, **{"url": server.url, **given})
    assert code == ran.returncode
    assert problem in ran.stderr
    assert "Traceback" not in ran.stderr
    assert [] == server.seen


@pytest.mark.parametrize(("status", "code", "words"), [(403, 1, "failed: HTTP 403"), (409, 0, "already there")])
def test_the_answer_of_the_registry_is_stated(store, server, status, code, words):
    server.status = status
    ran = contribute("--yes", "--min-score", "0", store=store, url=server.url)
    assert (code, 2) == (ran.returncode, ran.stdout.count(words))
    assert "1 is not sent: its visibility is private" in ran.stdout


def test_a_trace_that_is_named_twice_is_sent_once(store, server):
    one = next(it.id for it in gk.Grace(store=store).store.query() if it.metadata.visibility == "network")
    ran = contribute(one, one.removeprefix("kp:trace:"), "--yes", "--min-score", "0", store=store, url=server.url)
    assert (0, 1) == (ran.returncode, len(server.seen))


def test_a_dry_run_says_signs_that_a_terminal_would_obey(store, server):
    """The JSON is the same; what would colour, hide or turn round text stands there as an escape."""
    grace = gk.Grace(store=store, evaluator=None, embedder=None, visibility="network", domain="odd")
    with grace, grace.run("a\x9b31m\x1b[2J\u202e\U000e0041b") as live:
        live.outcome(confidence=1.0)
    ran = contribute("--dry-run", "--min-score", "0", "--domain", "odd", store=store, url=server.url)
    assert all(sign == "\n" or sign.isprintable() for sign in ran.stdout)
    shown = json.loads(ran.stdout[ran.stdout.index("{") : ran.stdout.rindex("}") + 1])
    sent = json.loads(
        contribute("--dry-run", "--min-score", "0", "--domain", "odd", "--json", store=store, url=server.url).stdout
    )
    assert shown == json.loads(sent[0]["body"])


@pytest.fixture
def asked(terminal, store, server):
    """The command at a terminal."""
    return terminal(
        "traces", "contribute", "--store", store, "--url", server.url, "--min-score", "0", columns=120, GRACE_KP_REGISTRY_KEY="k"
    )  # fmt: skip


@pytest.mark.parametrize(("typed", "sent"), [("", 0), ("y", 0), ("no", 0), (None, 0), ("yes", 2)])
def test_at_a_terminal_it_asks_and_enter_alone_is_no(asked, server, typed, sent):
    """It shows what would leave first; the end of the input is no as well."""
    asked.expect("Send 2 traces to .*Type yes: ")
    assert "[REDACTED:email]" in asked.before
    assert "bob@example.com" not in asked.before
    asked.sendeof() if typed is None else asked.sendline(typed)
    assert (0 if sent else 1, sent) == (ended(asked), len(server.seen))


def test_the_question_stays_out_of_standard_output(command, monkeypatch, store, server):
    typed = io.StringIO("yes\n")
    typed.isatty = lambda: True
    monkeypatch.setattr(sys, "stdin", typed)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setenv("GRACE_KP_REGISTRY_KEY", "k")
    ran = command("traces", "contribute", "--store", store, "--url", server.url, "--min-score", "0", "--json")
    assert (0, True, 3) == (ran.returncode, "Type yes" in ran.stderr, len(json.loads(ran.stdout)))


def test_nobody_is_asked_when_it_cannot_be_sent_anyway(terminal, store, server):
    child = terminal("traces", "contribute", "--store", store, "--url", server.url, "--min-score", "0")
    assert (1, []) == (ended(child), server.seen)
    assert "GRACE_KP_REGISTRY_KEY" in child.before
    assert "Type yes" not in child.before
