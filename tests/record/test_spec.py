"""The objective of a run is stated or derived from the arguments."""

from __future__ import annotations


def test_the_objective_is_given_or_found(grace):
    """A template or callable on the bound arguments wins; then the first text; then the call itself."""

    @grace.agent(objective="Analyse {ticker} for {days} days")
    def templated(ticker, days=3): ...

    @grace.agent(objective=lambda ticker, days: f"{ticker}/{days}")
    def computed(ticker, days): ...

    @grace.agent(objective=lambda arguments: f"got {sorted(arguments)}")
    def mapped(ticker, days): ...

    @grace.agent
    def first_text(number, text): ...

    @grace.agent
    def nothing(number): ...

    @grace.agent(objective="{broken")
    def broken(text): ...

    with grace.collect() as traces:
        templated("TSM", days=5)
        computed("TSM", 5)
        mapped("TSM", 5)
        first_text(3, "hello")
        nothing(7)
        broken("still works")
    assert [t.task.objective for t in traces] == [
        "Analyse TSM for 5 days",
        "TSM/5",
        "got ['days', 'ticker']",
        "hello",
        "nothing(7)",
        "still works",
    ]
