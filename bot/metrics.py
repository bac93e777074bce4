"""The numbers an owner needs, as Prometheus reads them at ``/metrics``. Nothing of what anybody said is in them.

Counting costs an addition each; the format is made when somebody asks.
"""

from bisect import bisect_left
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING

from bot.delivery import StoredMessage
from bot.delivery.delivery import Delivery
from features.contracts.chat import Address, ChannelHealth
from features.contracts.clock import Clock
from features.contracts.database import Database
from features.contracts.events import MessageEnd, MessageUpdate, RetryStart, SessionEvent
from features.contracts.jobs import RunEnd
from features.contracts.messages import AssistantMessage
from features.contracts.stream import TextDelta

if TYPE_CHECKING:
    from prometheus_client.core import Metric

__all__ = ["Metrics"]

_BUCKETS_S = (0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 900.0)
_MOST_WAITING = 10_000
_LATE_S = 60.0


class _Times:
    """How long something took, counted by buckets."""

    def __init__(self) -> None:
        self._counts = [0] * (len(_BUCKETS_S) + 1)
        self.sum = 0.0

    def took(self, seconds: float) -> None:
        self._counts[bisect_left(_BUCKETS_S, seconds)] += 1
        self.sum += seconds

    def buckets(self) -> list[tuple[str, float]]:
        """Upper bounds, and how many took at most that."""
        bounds = [*(f"{bound:g}" for bound in _BUCKETS_S), "+Inf"]
        return list(zip(bounds, map(float, accumulate(self._counts)), strict=True))


class Metrics:
    """Told by the host what happens. Memory is bounded: labels are channels and models, and at most 10,000 messages are waited for."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._received: Counter[str] = Counter()
        self._delivered: Counter[str] = Counter()
        self._refused: Counter[str] = Counter()
        self._attempts: Counter[str] = Counter()
        self._runs: Counter[str] = Counter()
        self._tokens: Counter[tuple[str, str]] = Counter()
        self._cost: dict[str, float] = {}
        self._failures: Counter[str] = Counter()
        self._retries = 0
        self._late_jobs = 0
        self._first_text = _Times()
        self._answer = _Times()
        self._asked: OrderedDict[str, float] = OrderedDict()
        self._silent_since: OrderedDict[Address, float] = OrderedDict()

    # What happens

    def received(self, stored: StoredMessage) -> None:
        message, now = stored.message, self._clock.monotonic()
        if message.kind == "job":
            self._late_jobs += message.run is not None and (self._clock.now() - message.run.due_at).total_seconds() > _LATE_S
            return
        self._received[message.address.channel] += 1
        _remember(self._asked, stored.id, now)
        self._silent_since.setdefault(message.address, now)
        while len(self._silent_since) > _MOST_WAITING:
            self._silent_since.popitem(last=False)

    def delivered(self, delivery: Delivery) -> None:
        self._delivered[delivery.address.channel] += 1
        self._attempts[delivery.address.channel] += delivery.attempts
        now = self._clock.monotonic()
        for message_id in delivery.answers:
            if (asked := self._asked.pop(message_id, None)) is not None:
                self._answer.took(now - asked)
        if delivery.answers:
            self._silent_since.pop(delivery.address, None)

    def refused(self, delivery: Delivery) -> None:
        self._refused[delivery.address.channel] += 1

    def run_ended(self, message_ids: Sequence[str], end: RunEnd) -> None:
        self._runs[end] += 1
        if end == "silent":
            for message_id in message_ids:
                self._asked.pop(message_id, None)

    def event(self, address: Address, event: SessionEvent) -> None:
        match event:
            case MessageUpdate(assistant_message_event=TextDelta()):
                if (asked := self._silent_since.pop(address, None)) is not None:
                    self._first_text.took(self._clock.monotonic() - asked)
            case MessageEnd(message=AssistantMessage() as message):
                self._model_call(message)
            case RetryStart():
                self._retries += 1
            case _:
                pass

    def _model_call(self, message: AssistantMessage) -> None:
        model, usage = f"{message.provider}/{message.model}", message.usage
        for kind in ("input", "output", "cache_read", "cache_write"):
            self._tokens[model, kind] += getattr(usage, kind)
        self._cost[model] = self._cost.get(model, 0.0) + usage.cost.total
        if message.stop_reason == "error":
            self._failures[model] += 1

    # What is told

    async def exposition(
        self, database: Database, channels: Mapping[str, ChannelHealth], *, conversations: Callable[[], int]
    ) -> tuple[bytes, str]:
        """The text, and its media type."""
        from prometheus_client import CollectorRegistry
        from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest

        waiting = await database.read(
            lambda t: (
                t.fetch_all("SELECT count(*) FROM inbox WHERE state = 'waiting'")[0][0],
                t.fetch_all("SELECT count(*) FROM outbox WHERE state IN ('pending', 'sending')")[0][0],
            )
        )
        registry = CollectorRegistry(auto_describe=False)
        registry.register(_Snapshot([*self._counted(), *_present(channels, waiting, conversations())]))
        return generate_latest(registry), CONTENT_TYPE_LATEST

    def _counted(self) -> Iterator["Metric"]:
        from prometheus_client.core import HistogramMetricFamily

        by_channel = (
            ("pumice_messages_received", "Messages of people that were accepted.", self._received),
            ("pumice_messages_delivered", "Messages that a platform has taken.", self._delivered),
            ("pumice_messages_refused", "Messages that a platform will never take.", self._refused),
            ("pumice_delivery_retries", "Attempts that were put off by a flood or a broken connection.", self._attempts),
        )
        for name, about, counts in by_channel:
            yield _counter(name, about, ["channel"], [((channel,), float(count)) for channel, count in counts.items()])
        yield _counter("pumice_runs", "Runs by their end.", ["end"], [((end,), float(count)) for end, count in self._runs.items()])
        yield _counter("pumice_model_tokens", "Tokens.", ["model", "kind"], [(key, float(count)) for key, count in self._tokens.items()])
        yield _counter("pumice_model_cost_usd", "What models cost.", ["model"], [((model,), cost) for model, cost in self._cost.items()])
        failures = [((model,), float(count)) for model, count in self._failures.items()]
        yield _counter("pumice_model_failures", "Model calls that failed.", ["model"], failures)
        yield _counter("pumice_model_retries", "Model calls that were put again.", [], [((), float(self._retries))])
        yield _counter("pumice_jobs_late", "Job runs that began more than a minute late.", [], [((), float(self._late_jobs))])
        for name, about, times in (
            ("pumice_first_text_seconds", "From a message to the first text of its answer.", self._first_text),
            ("pumice_answer_seconds", "From a message to the delivery of its answer.", self._answer),
        ):
            family = HistogramMetricFamily(name, about)
            family.add_metric([], times.buckets(), times.sum)
            yield family


class _Snapshot:
    def __init__(self, metrics: Sequence["Metric"]) -> None:
        self._metrics = metrics

    def collect(self) -> Iterator["Metric"]:
        yield from self._metrics


def _present(channels: Mapping[str, ChannelHealth], waiting: tuple[int, int], conversations: int) -> Iterator["Metric"]:
    working = [((name,), float(health.working)) for name, health in channels.items()]
    yield _gauge("pumice_channel_working", "1 while a channel hears and speaks.", ["channel"], working)
    heard = [((name,), health.last_event_at.timestamp()) for name, health in channels.items() if health.last_event_at is not None]
    yield _gauge("pumice_channel_last_event_timestamp_seconds", "When a channel last heard of its platform.", ["channel"], heard)
    yield _gauge("pumice_inbox_waiting", "Messages that no run has taken in yet.", [], [((), float(waiting[0]))])
    yield _gauge("pumice_outbox_waiting", "Messages on their way to a platform.", [], [((), float(waiting[1]))])
    yield _gauge("pumice_conversations_loaded", "Conversations in memory.", [], [((), float(conversations))])


def _counter(name: str, about: str, labels: Sequence[str], values: Iterable[tuple[tuple[str, ...], float]]) -> "Metric":
    from prometheus_client.core import CounterMetricFamily

    family = CounterMetricFamily(name, about, labels=labels)
    for label_values, value in values:
        family.add_metric(label_values, value)
    return family


def _gauge(name: str, about: str, labels: Sequence[str], values: Iterable[tuple[tuple[str, ...], float]]) -> "Metric":
    from prometheus_client.core import GaugeMetricFamily

    family = GaugeMetricFamily(name, about, labels=labels)
    for label_values, value in values:
        family.add_metric(label_values, value)
    return family


def _remember(known: "OrderedDict[str, float]", key: str, value: float) -> None:
    known[key] = value
    if len(known) > _MOST_WAITING:
        known.popitem(last=False)
