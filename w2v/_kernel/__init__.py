"""The training loop: its plan, the state of its threads, and the update step in C."""
