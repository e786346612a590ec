"""How a model that judges is asked, whatever it is asked: texts fenced off as data, and a bound on the time. Words and figures are others'."""

from grace_kp.asking._calls import acall_judge, bounded, call_judge
from grace_kp.asking._fence import CUT, END, INVISIBLE, LANGUAGES, MAX_CHARS, RULES, Prompt, fenced, language_of

__all__ = [
    "CUT",
    "END",
    "INVISIBLE",
    "LANGUAGES",
    "MAX_CHARS",
    "RULES",
    "Prompt",
    "acall_judge",
    "bounded",
    "call_judge",
    "fenced",
    "language_of",
]
