"""Questions to the person in the chat: yes or no, one of several, a line of text.

Owns the table of questions, who may answer which, and what becomes of their buttons; asking is the extensions' business.
Order: a question is in the outbox and in the table in one commit; an answer is in the table before whoever asked gets it.
Failure: no answer in time, nobody there to ask, a full table or a restart give the safe answer, and the question's message says so. A press
that comes too late is told what became of the question.
"""

from bot.questions.chat_questions import Asker, ChatQuestions
from bot.questions.questions import Questions
from bot.questions.records import QUESTION_MIGRATIONS

__all__ = ["QUESTION_MIGRATIONS", "Asker", "ChatQuestions", "Questions"]
