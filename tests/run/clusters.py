"""Clusters for tests: objects in this process, or in two others, behind the same protocol as Ray."""

import pickle
from functools import partial

from dovetail.run.processes import Desk, LocalWorkers, RemoteWorkers, process_workers


class SeveralHere:
    """Shares as for five workers, all of them here."""

    workers = 5
    description = "five shares in this process"

    def hire(self, recipes, *, on_gpu, budget):
        self.hired = LocalWorkers([recipe for mine in recipes for recipe in mine])
        return self.hired


class Processes:
    """Two processes."""

    workers = 2
    description = "two processes"

    def hire(self, recipes, *, on_gpu, budget):
        self.hired = process_workers(recipes, budget)
        return self.hired


class DeskLine:
    """A line to a desk in this process."""

    def __init__(self, recipes):
        self._desk, self._recipes, self._reply = Desk(), recipes, None

    def begin(self):
        self._reply = self._desk.make(self._recipes)

    def send(self, letter):
        self._reply = self._desk.answer(letter)

    def receive(self, seconds):
        return self._reply

    def end(self):
        pass


class Pickled:
    """Two desks in this process: everything is pickled, and nothing has to start."""

    workers = 2
    description = "two desks"

    def hire(self, recipes, *, on_gpu, budget):
        lines = [partial(DeskLine, pickle.dumps(mine)) for mine in recipes]
        self.hired = RemoteWorkers(lines, [len(mine) for mine in recipes], budget)
        return self.hired
