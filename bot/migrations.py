"""The whole schema: every slice's migrations, in the order of the floors."""

from features.contracts.database import Migrations

__all__ = ["all_migrations"]


def all_migrations() -> tuple[Migrations, ...]:
    """What a database must be opened with, whoever opens it: one that knows less would take the rest for a newer version's."""
    from bot.access import ACCESS_MIGRATIONS
    from bot.delivery import DELIVERY_MIGRATIONS
    from bot.place_moves import PLACE_MOVE_MIGRATIONS
    from bot.questions import QUESTION_MIGRATIONS
    from bot.settings import SETTINGS_MIGRATIONS
    from features.approvals import APPROVAL_MIGRATIONS
    from features.extensions import EXTENSION_MIGRATIONS
    from features.scheduler import SCHEDULER_MIGRATIONS
    from features.sessions import SESSION_MIGRATIONS
    from features.skills import SKILL_MIGRATIONS
    from features.usage import USAGE_MIGRATIONS

    return (
        SESSION_MIGRATIONS,
        SKILL_MIGRATIONS,
        USAGE_MIGRATIONS,
        SETTINGS_MIGRATIONS,
        ACCESS_MIGRATIONS,
        DELIVERY_MIGRATIONS,
        EXTENSION_MIGRATIONS,
        QUESTION_MIGRATIONS,
        APPROVAL_MIGRATIONS,
        SCHEDULER_MIGRATIONS,
        PLACE_MOVE_MIGRATIONS,
    )
