"""The commands of the study: `dovetail bench` and `dovetail demo`."""
