"""ServeGym: Benchmark: a client for OpenEnv."""

from .client import BenchmarkEnv
from .models import BenchmarkAction, BenchmarkObservation, BenchmarkState

__all__ = ["BenchmarkEnv", "BenchmarkAction", "BenchmarkObservation", "BenchmarkState"]
