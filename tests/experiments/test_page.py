"""The published page is what the published results file says, to the letter."""

from pathlib import Path

from dovetail.experiments import EXPERIMENTS
from dovetail.experiments.bench import experiment_named
from dovetail.experiments.ledger import Ledger
from dovetail.experiments.page import document

DOCS = Path(__file__).parent.parent.parent / "docs"


def test_the_page_is_made_of_the_rows():
    ledger = Ledger.open(DOCS, any_version=True)
    experiments = [experiment_named(name) for name in EXPERIMENTS]
    assert (DOCS / "results.md").read_text(encoding="utf-8") == document(experiments, ledger)


def test_it_was_a_full_run_on_real_data():
    ledger = Ledger.open(DOCS, any_version=True)
    assert ledger.header["settings"]["data"] == "real"
    assert not ledger.header["settings"]["quick"]
    assert {record["experiment"] for record in ledger.records} == set(EXPERIMENTS)


def test_every_figure_lies_beside_it():
    for name in EXPERIMENTS:
        for kind in ("png", "svg"):
            assert (DOCS / "figures" / f"{name}.{kind}").stat().st_size > 5_000
