"""Figures of a period: what the runs were like, how people decided, what judges cost, and whether the confidence can be trusted."""

from grace_kp.web.figures._figures import figures_page

__all__ = ["figures_page"]
