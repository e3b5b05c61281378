"""Preemptible resources: whether a bid still reaches the price (DLC page, bid price)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from quotas.admission.values import Bid, Params, Price, ResourceShape
from quotas.amounts import Amounts

ANY = Bid()
FREE = Price(0, 0)


def outbid(shape: ResourceShape | None, bids: Sequence[Bid], prices: Mapping[str, Price]) -> Params | None:
    """Return (price, bid) of the first replica whose price is above its bid, or None.

    A replica with GPUs costs its GPUs, one without its cores.  What has no price costs nothing.
    """
    if shape is None or not prices:
        return None
    for index, part in enumerate(shape.parts):
        bid = bids[index] if index < len(bids) else ANY
        market, now = cost(part.each, prices)
        most = most_of(bid, market)
        if now > most:
            return {"price": now, "bid": most}
    return None


def most_of(bid: Bid, market: int) -> int:
    """The most that a replica may cost in an hour, where the market's price is `market`."""
    if bid.percent is not None:
        return market * bid.percent // 100
    return market if bid.micro is None else bid.micro


def cost(each: Amounts, prices: Mapping[str, Price]) -> tuple[int, int]:
    """(the market's, now) of one replica for an hour; a GPU of any type costs what the dearest one does."""
    if not each.gpu_count:
        core = prices.get("", FREE)
        return core.market_micro * each.cpu_milli // 1000, core.now_micro * each.cpu_milli // 1000
    market = now = 0
    for kind, count in each.gpus.items():
        price = prices.get(kind) if kind else _dearest(prices)
        if price is not None:
            market += price.market_micro * count
            now += price.now_micro * count
    return market, now


def _dearest(prices: Mapping[str, Price]) -> Price | None:
    of_gpus = [price for kind, price in prices.items() if kind]
    return max(of_gpus, key=lambda price: price.now_micro, default=None)
