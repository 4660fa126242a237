"""What a loss of your own needs; docs/own-loss.md says how to write one."""

from w2v._losses.gradient import check_gradient
from w2v._losses.loss import Loss, LossOptions
from w2v._losses.registry import find, register
from w2v._losses.rows import below, draw, index_of, logistic, score, softmax, update

__all__ = [
    "Loss", "LossOptions", "below", "check_gradient", "draw", "find", "index_of", "logistic", "register", "score",
    "softmax", "update",
]  # fmt: skip
