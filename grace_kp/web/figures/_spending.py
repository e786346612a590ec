"""Spending of judges: calls, tokens and fallbacks by model, and money where a price is set."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from grace_kp.pages import table

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

NO_PRICE = "no price set"


@dataclass(frozen=True, slots=True, kw_only=True)
class Spent:
    """The use of one model."""

    model: str
    calls: int
    tokens: int
    fallbacks: int
    """Runs and gates whose judgement is a fallback, because the model could not be asked or its reply could not be used."""
    price: tuple[float, str] | None
    """Price of a million tokens, with its currency; None where none is set."""

    @property
    def money(self) -> float | None:
        """Cost of the tokens in the currency of the price; None without a price."""
        return None if self.price is None else self.tokens / 1_000_000 * self.price[0]


def spending(models: Mapping[str, tuple[int, int, int]], prices: Mapping[str, tuple[float, str]]) -> tuple[Spent, ...]:
    """Return what each model cost, the one with the most tokens first.

    Args:
        models: calls, tokens and fallbacks by model.
        prices: the setting `prices`: by model name or glob.
    """
    found = [
        Spent(model=model, calls=calls, tokens=tokens, fallbacks=fallbacks, price=price_of(model, prices))
        for model, (calls, tokens, fallbacks) in models.items()
    ]
    return tuple(sorted(found, key=lambda spent: (-spent.tokens, -spent.calls, spent.model)))


def price_of(model: str, prices: Mapping[str, tuple[float, str]]) -> tuple[float, str] | None:
    """Return the price of a model: by its name, else by the first glob that matches; None if none is set."""
    if model in prices:
        return prices[model]
    return next((price for pattern, price in prices.items() if fnmatchcase(model, pattern)), None)


def sums_by_currency(spent: Sequence[Spent]) -> dict[str, float]:
    """Return the money that was spent in each currency, for the models with a price."""
    sums: dict[str, float] = defaultdict(float)
    for each in spent:
        if each.price is not None and each.money is not None:
            sums[each.price[1]] += each.money
    return dict(sums)


def money_text(amount: float, currency: str) -> str:
    """Return an amount of money: two decimals, and more where it would read 0."""
    return f"{amount:,.2f} {currency}" if amount >= 0.01 or not amount else f"{amount:.2g} {currency}"


def spending_table(spent: Sequence[Spent]) -> str:
    """Return what each model cost as a table."""
    rows = [
        (
            each.model, f"{each.calls:,}", f"{each.tokens:,}", f"{each.fallbacks:,}",
            NO_PRICE if each.price is None else f"{each.price[0]:,.4g} {each.price[1]}",
            NO_PRICE if each.price is None or each.money is None else money_text(each.money, each.price[1]),
        )
        for each in spent
    ]  # fmt: skip
    return table(("model", "calls", "tokens", "fallbacks", "price per million tokens", "money"), rows)
