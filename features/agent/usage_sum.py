"""Adds up what several model calls took."""

from features.contracts.messages import Cost, Usage

__all__ = ["add_usage"]


def add_usage(one: Usage, other: Usage) -> Usage:
    return Usage(
        input=one.input + other.input,
        output=one.output + other.output,
        cache_read=one.cache_read + other.cache_read,
        cache_write=one.cache_write + other.cache_write,
        total_tokens=one.total_tokens + other.total_tokens,
        cost=Cost(
            input=one.cost.input + other.cost.input,
            output=one.cost.output + other.cost.output,
            cache_read=one.cost.cache_read + other.cost.cache_read,
            cache_write=one.cost.cache_write + other.cost.cache_write,
            total=one.cost.total + other.cost.total,
        ),
    )
