"""Objectives: losses for the Numba kernel, those from the literature and a user's own. See docs/objectives.md."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

from w2v.errors import ObjectiveMissing, SettingsError
from w2v.losses.charcnn import CharacterCNN
from w2v.losses.dsoftmax import DifferentiatedSoftmax
from w2v.losses.mos import MixtureOfSoftmaxes
from w2v.losses.objective import Objective
from w2v.settings import Settings

SHIPPED: dict[str, type[Objective]] = {
    kind.loss: kind for kind in (DifferentiatedSoftmax, MixtureOfSoftmaxes, CharacterCNN)
}
_known: dict[str, Objective] = {}


def use(objective: Objective) -> str:
    """Have an objective at hand for models that name it; returns its name."""
    if not isinstance(objective, Objective):
        raise SettingsError(f"objective {objective!r}: it must be an Objective, or module:Name of one")
    _known[objective.name] = objective
    return objective.name


def of(settings: Settings) -> Objective:
    """The objective of settings that may come from a file.

    No code of a user's is imported for a file: raises ObjectiveMissing unless it is at hand.
    """
    if settings.loss in SHIPPED:
        return SHIPPED[settings.loss]()
    name = str(settings.objective)
    if name not in _known:
        raise ObjectiveMissing(
            f"the model's objective is {name}, and files run no code: name it by --objective {name}, or in Python, "
            "w2v.losses.registry.find"
        )
    return _known[name]


def find(name: str) -> Objective:
    """Import the objective "module:Name", also from the working folder. Raises SettingsError where it is not there."""
    if name in _known:
        return _known[name]
    module, _, kind = name.partition(":")
    if not module or not kind:
        raise SettingsError(f"objective {name!r}: write module:Name")
    here = str(Path.cwd())
    sys.path.insert(0, here)
    try:
        found = getattr(importlib.import_module(module), kind)()
    except Exception as error:
        raise SettingsError(f"objective {name}: {type(error).__name__}: {error}") from error
    finally:
        sys.path.remove(here)
    if not isinstance(found, Objective):
        raise SettingsError(f"objective {name}: it is no Objective")
    _known[name] = found
    return found
