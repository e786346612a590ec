"""The page of figures: it puts together what the catalog, the tables of approvals, the labels and the settings say of a period."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from markupsafe import Markup

from grace_kp.approvals import ApprovalState, RowQuery
from grace_kp.store import CatalogQuery
from grace_kp.web._example import recording_lines
from grace_kp.web._kept import Kept
from grace_kp.web._site import root_of, site_of
from grace_kp.web.figures import _approvals as approvals
from grace_kp.web.figures import _runs as runs
from grace_kp.web.figures import _trust as trust
from grace_kp.web.figures._labels import verdict_of
from grace_kp.web.figures._period import PRESETS, asked_for
from grace_kp.web.figures._spending import money_text, spending, spending_table, sums_by_currency

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from grace_kp.approvals import ApprovalFigures
    from grace_kp.store import RunFigures
    from grace_kp.web._kept import Result
    from grace_kp.web._site import Site
    from grace_kp.web.figures._period import Asked

MOST_NAMES = 200


@dataclass(frozen=True, slots=True)
class Preset:
    """A link to a preset of the period."""

    words: str
    address: str
    is_chosen: bool


class FiguresPage:
    """The page, with what it keeps between views, because it takes too long for each: what labels and promises say."""

    def __init__(self) -> None:
        self._trust: Kept[CatalogQuery, dict[str, Any]] = Kept()

    def show(self, request: Request) -> Response:
        """Return the page for the period and the agent of an address."""
        site, root = site_of(request), root_of(request)
        now = site.clock()
        asked = asked_for(request.query_params, datetime.fromtimestamp(now, UTC).date(), lambda: _oldest_day(site))
        since, until = asked.period.since.isoformat(), asked.period.until.isoformat()
        query = CatalogQuery(agent=asked.agent, since=since, until=f"{until}T23:59:59.999Z")
        figures = site.catalog.figures(since, until, agent=asked.agent)
        labelled = replace(query, feedback=True)
        trusted = self._trust.get(labelled, now, lambda: _trust(site, labelled))
        decisions = approvals.decisions_of(site, asked.period.seconds)
        known = {} if trusted is None else trusted.value or {}
        return site.page(
            request,
            "figures/figures.html",
            asked=asked,
            presets=_presets(asked, root),
            agents=_names(site, asked),
            progress=site.catalog.progress(),
            record=recording_lines(site.grace.settings.store),
            runs_address=f"{root}/runs?{urlencode(_conditions(asked), errors='replace')}",
            **_runs(site, figures, query, asked, root),
            **_approvals(site, decisions),
            **_spending(site, figures),
            trusted=trusted,
            **_thresholds(site, known),
            **known,
        )


def _html(part: str) -> Markup:
    return Markup(part)  # noqa: S704 — plots and tables escape every text


def _oldest_day(site: Site) -> date:
    rows = site.catalog.find(CatalogQuery(), after=0, limit=1).rows
    if not rows:
        return datetime.fromtimestamp(site.clock(), UTC).date()
    return date.fromisoformat(rows[0].created_at[:10])


def _presets(asked: Asked, root: str) -> list[Preset]:
    agent = {} if asked.agent is None else {"agent": asked.agent}
    return [
        Preset(
            words="All" if name == "all" else f"{name} days",
            address=f"{root}/figures?{urlencode({'days': name, **agent}, errors='replace')}",
            is_chosen=name == asked.period.preset,
        )
        for name in PRESETS
    ]


def _names(site: Site, asked: Asked) -> list[str]:
    """Return the agents to choose from; the chosen one is always among them."""
    names = [name for name in site.catalog.names("agent", limit=MOST_NAMES) if name]
    return names if asked.agent is None or asked.agent in names else [asked.agent, *names]


def _conditions(asked: Asked) -> dict[str, str]:
    """Return the period and the agent as parameters of the list of runs."""
    agent = {} if asked.agent is None else {"agent": asked.agent}
    return {**agent, "since": asked.period.since.isoformat(), "until": f"{asked.period.until}T23:59:59.999Z"}


def _runs(site: Site, figures: RunFigures, query: CatalogQuery, asked: Asked, root: str) -> dict[str, Any]:
    thresholds = site.grace.thresholds
    conditions = _conditions(asked)
    conditions.pop("agent", None)
    return {
        "total": figures.total,
        "failure_rate": runs.failure_rate(figures.total),
        "mean_score": runs.mean_score(figures.total),
        "mean_confidence": runs.mean_confidence(figures.total),
        "statuses": figures.statuses,
        "run_bars": _html(runs.run_bars(figures.days)),
        "agent_rows": runs.agent_rows(figures.agents, conditions, root),
        "confidence_plot": _html(runs.confidence_plot(figures, thresholds)),
        "score_plot": _html(runs.score_plot(figures)),
        "alike": runs.alike(site.catalog, query, figures),
        "never": [level for level in runs.LEVELS[:3] if getattr(thresholds, level) == math.inf],
        "gates": sum(figures.levels.values()),
        "level_plot": _html(runs.level_plot(figures)),
    }


def _approvals(site: Site, decisions: Result[ApprovalFigures] | None) -> dict[str, Any]:
    found = None if decisions is None else decisions.value
    values: dict[str, Any] = {
        "pending": site.tables.count(RowQuery(states=(ApprovalState.PENDING.value,))),
        "decisions": decisions,
        "approvals": found,
    }
    if found is None:
        return values
    return {
        **values,
        "decided": sum(found.outcomes.values()),
        "waits": approvals.waits_of(found),
        "approved_share": approvals.approved_share(found),
        "outcome_plot": _html(approvals.outcome_plot(found)),
        "wait_plot": _html(approvals.wait_plot(found)),
    }


def _spending(site: Site, figures: RunFigures) -> dict[str, Any]:
    spent = spending(figures.models, site.grace.settings.prices)
    return {
        "spent": spent,
        "spending_table": _html(spending_table(spent)),
        "money": [money_text(amount, currency) for currency, amount in sums_by_currency(spent).items()],
        "unpriced": [each.model for each in spent if each.price is None],
    }


def _thresholds(site: Site, known: dict[str, Any]) -> dict[str, Any]:
    return {
        "thresholds": trust.threshold_rows(site.grace, known.get("labelled", {})),
        "profile": (site.grace.status()["profile"] or {}).get("name", ""),
        "promise": trust.promise_words(site.grace),
    }


def _trust(site: Site, labelled: CatalogQuery) -> dict[str, Any]:
    """Return what labels and watched promises say; it may take seconds."""
    verdict = verdict_of(site, labelled)
    found = verdict.assessment
    watched, problem = trust.watched_promises(site.grace.store)
    return {
        "assessment": found,
        "is_cut": verdict.is_cut,
        "intervals": trust.intervals_words(found) if found else {},
        "sources": trust.sources_words(verdict.sources),
        "left_out": trust.sources_words(verdict.left_out),
        "lacking": trust.needed_labels(verdict.tasks),
        "reliability_plot": _html(trust.reliability_plot(verdict)) if found else "",
        "risk_plot": _html(trust.risk_plot(verdict)) if verdict.curve else "",
        "labelled": trust.wrong_at_thresholds(site.grace, verdict),
        "watched": watched,
        "watched_problem": problem,
    }
