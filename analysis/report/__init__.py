"""The report: results folders become one page that needs nothing else."""

from analysis.report.make import make_report

__all__ = ["make_report"]
