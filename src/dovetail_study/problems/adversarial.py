"""Adversarial example: can an image be moved into another class by a change within a budget, and how far?

    max  z_target - z_true
    s.t. x = w + a - b,   sum (a + b) <= budget,   0 <= a <= 1 - w,   0 <= b <= w,   z = f(x)

w is an image of 8 by 8 pixels between 0 and 1, f a classifier's ten logits. If the optimum is below 0, the
classifier provably prefers the true class to the target for every such change; above 0, x is an image that it
assigns to the target. Many inputs, one network, one row: the budget makes an L1 ball.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import nn

from dovetail.core.arrays import FloatArray, IntArray
from dovetail.core.errors import OptionError
from dovetail.core.problem import Problem
from dovetail_study.problems import data as files
from dovetail_study.problems import networks
from dovetail_study.problems.host import Host
from dovetail_study.problems.training import Training, train_digits

SIDE, CLASSES = 8, 10
PIXELS = SIDE * SIDE
FILE = "digits.csv"
"""The public digits of 8 by 8 pixels, as scikit-learn's frame writes them to CSV."""
FEATURES = tuple(f"pixel_{i}_{j}" for i in range(SIDE) for j in range(SIDE))
BRIGHTEST = 16.0
"""Of a pixel in that file."""


@dataclass(frozen=True, eq=False)
class Adversarial:
    """One instance: the problem, its network, and the columns of its variables."""

    problem: Problem
    network: nn.Module
    training: Training
    image: FloatArray
    """(64,) the original image."""
    label: int
    """Its class, which the network recognises."""
    target: int
    """The target class."""
    pixels: IntArray
    """(64,) columns of the changed image."""
    logits: IntArray
    """(10,) columns."""


def adversarial(
    network: str = "3x32",
    *,
    budget: float = 1.5,
    sample: int = 0,
    seed: int = 42,
    data: str | Path | None = None,
    epochs: int = 40,
) -> Adversarial:
    """A trained classifier and one of the held-out images that it classifies correctly, from real or made-up
    digits.

    The target is the class that comes second.
    """
    if not 0.0 < budget < np.inf:
        raise OptionError(f"budget is {budget}; give a finite number above 0.")
    path = files.find(FILE, data)
    if path is None:
        X, labels = look_alike(seed)
    else:
        X, labels = files.complete_rows(path, FEATURES, "target")
        X = X / BRIGHTEST
    torch.manual_seed(seed)
    net = networks.build(network, PIXELS, CLASSES)
    training, held = train_digits(net, X, labels.astype(np.int64), seed=seed, epochs=epochs)
    with torch.no_grad():
        logits = net(torch.as_tensor(X[held], dtype=torch.float32)).numpy()
    right = np.flatnonzero(np.argmax(logits, axis=1) == labels[held])
    if not 0 <= sample < right.size:
        raise OptionError(f"sample is {sample}; {right.size} held-out images are told rightly.")
    chosen = right[sample]
    second, first = np.argsort(logits[chosen])[-2:]
    return formulate(X[held[chosen]], net.double(), training, int(first), int(second), budget)


def formulate(
    image: FloatArray, network: nn.Module, training: Training, label: int, target: int, budget: float
) -> Adversarial:
    """The model for a given image and network."""
    host, places = Host("max"), range(image.size)
    pixels = host.variables("x", places, upper=1.0)
    up = host.variables("up", places, upper=1.0 - image)
    down = host.variables("down", places, upper=image)
    gain = [{target: 1.0, label: -1.0}.get(k, 0.0) for k in range(CLASSES)]
    logits = host.variables("logit", range(CLASSES), lower=-np.inf, cost=gain)
    for j in places:
        host.equal(f"change[{j}]", pixels[j], [(1.0, up[j]), (-1.0, down[j])], image[j])
    host.row("budget", [(1.0, column) for column in (*up, *down)], upper=budget)
    problem = host.problem()
    problem.add_predictor(network, pixels, logits, name="classifier")
    return Adversarial(problem, network, training, image, label, target, pixels, logits)


def look_alike(seed: int, rows: int = 1800) -> tuple[FloatArray, FloatArray]:
    """Made-up digits: every class a few strokes of its own, shifted by a pixel, dimmed and blurred."""
    rng = np.random.default_rng(seed)
    strokes = np.stack([_strokes(rng) for _ in range(CLASSES)])
    labels = rng.integers(CLASSES, size=rows)
    images = strokes[labels]
    for axis in (1, 2):
        shift = rng.integers(-1, 2, size=rows)
        images = np.stack([np.roll(image, by, axis - 1) for image, by in zip(images, shift, strict=True)])
    images = images * rng.uniform(0.6, 1.0, (rows, 1, 1)) + 0.12 * rng.standard_normal(images.shape)
    return np.clip(images, 0.0, 1.0).reshape(rows, PIXELS), labels.astype(np.float64)


def _strokes(rng: np.random.Generator) -> FloatArray:
    """Three soft lines between random places."""
    grid = np.stack(np.meshgrid(np.arange(SIDE), np.arange(SIDE), indexing="ij"), axis=-1)
    image = np.zeros((SIDE, SIDE))
    for _ in range(3):
        start, end = rng.uniform(0.5, SIDE - 1.5, (2, 2))
        along = np.clip((grid - start) @ (end - start) / (np.sum((end - start) ** 2) + 1e-9), 0.0, 1.0)
        apart = np.sum((grid - start - along[..., None] * (end - start)) ** 2, axis=-1)
        image = np.maximum(image, np.exp(-apart))
    return image
