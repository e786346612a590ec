"""Whether the service can read its store, for everybody who asks."""

from __future__ import annotations

import asyncio
import threading

import anyio.to_thread
import httpx

from grace_kp import Grace
from grace_kp.web import app


def test_health_needs_no_login_and_tells_nothing(house):
    """One word, without versions, paths and counts."""
    response = house.client(None).get("/healthz")
    assert (200, {"status": "ok"}) == (response.status_code, response.json())


async def test_health_is_stated_while_all_other_threads_wait(tmp_path):
    """As they do while a host application that is asked who sends the requests does not answer."""
    asked, answers = threading.Semaphore(0), threading.Event()

    def auth(request):
        asked.release()
        answers.wait(300)

    with Grace(store=f"sqlite:///{tmp_path}/app.db", evaluator=None, embedder=None) as grace:
        pages = app(grace, auth=auth)
        threads = int(anyio.to_thread.current_default_thread_limiter().total_tokens)
        async with httpx.AsyncClient(transport=httpx.ASGITransport(pages), base_url="http://localhost") as client:
            try:
                waiting = [asyncio.create_task(client.get("/inbox")) for _ in range(threads + 5)]
                for _ in range(threads):
                    await asyncio.get_running_loop().run_in_executor(None, asked.acquire)
                response = await asyncio.wait_for(client.get("/healthz"), 60)
                assert (200, {"status": "ok"}) == (response.status_code, response.json())
            finally:
                answers.set()
                await asyncio.gather(*waiting)
        pages.state.site.catalog.close()
