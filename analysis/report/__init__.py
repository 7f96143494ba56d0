"""The report: results folders become one page that needs nothing else."""

from analysis.report.make import make_report
from analysis.results.experiment_results import collect

__all__ = ["collect", "make_report"]
