"""How a solve ended, in words: "ended at the time limit, after 60 s" say the log and the page."""

ENDED = {
    "proved": "with a proof",
    "target": "at the target",
    "agreed": "when both blocks agreed",
    "time": "at the time limit",
    "memory": "at the memory limit",
    "iterations": "after all iterations",
    "evaluations": "when a predictor could not be asked any more",
    "interrupt": "by an interrupt",
    "stalled": "when nothing brought more",
    "callback": "by the callback",
    "error": "by an error",
}
"""What follows "ended", by stop reason."""
