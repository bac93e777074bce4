"""No message is lost and none is answered twice: the inbox, the outbox, and the books of a run between them.

Owns two tables and the order of deliveries in each chat; deciding what to answer belongs to the conversations.
Order: a message is on the disk before its platform hears of it; an answer is in the outbox in the commit that stores it; what goes to one
address goes one after another.
Failure: what a platform cannot take now is tried again, at its own pace; what it will never take is told; what may have been sent when the
host died is sent again, marked as a possible duplicate.
"""

from bot.delivery.inbox import Inbox, StoredMessage
from bot.delivery.outbox import Outbox
from bot.delivery.run_books import RunBooks
from bot.delivery.schema import DELIVERY_MIGRATIONS

__all__ = ["DELIVERY_MIGRATIONS", "Inbox", "Outbox", "RunBooks", "StoredMessage"]
