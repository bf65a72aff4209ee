"""AutoLinearized, the paper's baseline: networks as big-M rows, neuron by neuron, one MILP for SCIP."""

from dovetail_study.big_m.method import BigM

__all__ = ["BigM"]
