"""Small problems with certificates made here, in a few lines that share nothing with dovetail's makers."""

from __future__ import annotations

import numpy as np
import torch
from torch import nn

import dovetail as dt
from dovetail.certificates.certificate import Certificate
from dovetail.certificates.checker.leaf_values import PartValues
from dovetail.certificates.checker.root_box import root_box
from dovetail.certificates.fingerprint import fingerprint
from dovetail.certificates.proof import CertificateKind, Leaves, ProofPart, ProofTree
from dovetail.structure.networks import block_graph


def network(seed, d=2, width=4, outputs=1, dtype=torch.float64):
    torch.manual_seed(seed)
    net = nn.Sequential(nn.Linear(d, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU())
    return net.append(nn.Linear(width, outputs)).to(dtype)


def problem_of(net, d=2, outputs=1, **options):
    """The least first output over a box, with a row x0 + x1 <= 1."""
    columns = d + outputs
    A = np.zeros((1, columns))
    A[0, :2] = 1.0
    mip = dt.Mip(
        cost=[0.1] * d + [1.0] + [0.0] * (outputs - 1),
        A=A,
        row_lower=[-np.inf],
        row_upper=[1.0],
        lower=[-1.0] * d + [-50.0] * outputs,
        upper=[1.0] * d + [50.0] * outputs,
    )
    problem = dt.Problem(mip)
    problem.add_predictor(net, np.arange(d), d + np.arange(outputs), name="net", **options)
    return problem


def graphs_of(problem):
    return {block.name: block_graph(problem, block) for block in problem.blocks}


def part_values(problem, **options):
    loose = problem.derived(problem.mip.minimised().loosened(), problem.blocks)
    mip = loose.mip
    lower, upper = root_box(mip)
    options = {"defined": np.zeros((0, 2), dtype=np.int64), **options}
    return PartValues(
        loose, graphs_of(problem), np.arange(mip.n_columns), np.arange(mip.n_rows),
        cost=mip.cost, noise=np.zeros(mip.n_columns), lower=lower, upper=upper, **options,
    )  # fmt: skip


def halvings(values, depth, width):
    """A full tree: the widest column is halved again and again; one multiplier for the row."""
    variable, at, children, boxes = [], [], [], []

    def branch(lower, upper, left):
        if left == 0:
            boxes.append((lower, upper))
            return -len(boxes)
        number = len(variable)
        column = int(np.argmax((upper - lower)[:width]))
        middle = 0.5 * (lower[column] + upper[column])
        variable.append(column)
        at.append(middle)
        children.append([0, 0])
        below, above = upper.copy(), lower.copy()
        below[column], above[column] = middle, middle
        children[number][0] = branch(lower, below, left - 1)
        children[number][1] = branch(above, upper, left - 1)
        return number

    branch(values.lower, values.upper, depth)
    leaves = Leaves(np.ones(len(boxes)), np.zeros((len(boxes), values.rows.size)))
    kinds = (
        np.array(variable, dtype=np.int64),
        np.array(at),
        np.array(children, dtype=np.int64).reshape(-1, 2),
    )
    return ProofTree(*kinds, leaves)


def certificate_of(problem, tree, value, **options):
    mip = problem.mip
    part = ProofPart(np.arange(mip.n_columns), np.arange(mip.n_rows), tree, value, **options)
    print_ = fingerprint(problem)
    return Certificate(
        CertificateKind.CHECKED,
        print_,
        value + mip.sign * mip.offset,
        "reference",
        np.zeros(mip.n_rows),
        (part,),
    )


def least_value(problem, count=20000, seed=0):
    """Of many random points that count, in minimisation form."""
    mip, rng = problem.mip, np.random.default_rng(seed)
    points = rng.uniform(np.maximum(mip.lower, -50.0), np.minimum(mip.upper, 50.0), (count, mip.n_columns))
    points[:, mip.integer] = np.round(points[:, mip.integer])
    for block in problem.blocks:
        for inputs, outputs in zip(block.inputs, block.outputs, strict=True):
            points[:, outputs] = block.decode(block.predictor.predict(points[:, inputs]))
    activity = points @ mip.A.toarray().T
    good = np.all((activity >= mip.row_lower) & (activity <= mip.row_upper), axis=1)
    good &= np.all((points >= mip.lower) & (points <= mip.upper), axis=1)
    return float((mip.sign * (points[good] @ mip.cost + mip.offset)).min())
