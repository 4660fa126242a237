"""`Checkpoint`: the state of a run, and the file that stores it.

Every random number is a hash of the seed, the epoch and the position in the text. The state of a run is therefore its
matrices and the number of finished chunks. A checkpoint is a model file that also stores this state, so other commands
can read its vectors and `w2v train --continue` accepts it.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from w2v._errors import VersionMismatch, W2VError, one_line
from w2v._formats import bfloat16, native
from w2v._formats.header import ModelHeader
from w2v._losses.loss import Loss, by_tensor_name
from w2v._losses.registry import Settings, loss_for, settings_from
from w2v._system.files import open_regular, translate_os_errors
from w2v._system.schema import Count, decode, encode
from w2v._system.version import __version__
from w2v._text.examples import NGRAM_ROWS, Features
from w2v._text.subword_rows import SubwordRows
from w2v._text.vocabulary import Vocabulary, label_tensors, labels_of_file
from w2v._text.words import Words
from w2v._training.config import RunConfig
from w2v._training.documents import ROWS, tags_in, tensors_of_tags
from w2v._training.identity import Identity

HASH_BLOCK_BYTES = 1 << 20  # bytes of an array hashed at a time: rows must be copied to leave out their padding
# The format of checkpoints, which `read_checkpoint` requires. Increase it whenever older checkpoints cannot be resumed.
CHECKPOINT_FORMAT = 1
# Limits of `loss_ratio`. Normal runs reach 1.03, runs with three times the default learning rate 1.3.
WARNING_RATIO = 1.5  # above this, the vectors are poor
DIVERGENCE_RATIO = 10.0  # above this, training has diverged; gensim's test of CBOW with hs reached 8
MIN_PREDICTIONS = 1000  # the mean loss of an epoch with fewer predictions is too noisy
CHECKPOINT_INPUTS = "vectors"  # the name of the input rows in a checkpoint: other commands read its "vectors"


@dataclass(frozen=True, kw_only=True)
class ResumeInfo:
    """The values that a run needs to resume, besides its config and arrays: its progress, and what identifies the text.

    A checkpoint stores them under the name "position".

    Attributes:
        done: How far the run is, out of `end`. With one process, this is Kernel.position, in chunks. With several
            ranks, it is in rounds; Schedule.chunks_after converts them to the chunks of a rank.
        end: The value of `done` at the end of the run.
        tokens_trained: The number of words trained so far, over all epochs.
        seconds: The time spent on training.
        instruction_set: See Plan.
        ranks: The number of processes.
        scores: The score on held-out text after each epoch, if training may stop early.
        files: (path, bytes) of each file of the text; None if the text can be read only once.
        inputs: See ReadText.
        coordinates: See Initialisation.
    """

    done: Count
    end: Count
    tokens_trained: Count
    seconds: float
    instruction_set: str
    ranks: Count = 1
    scores: list[float] = field(default_factory=list)
    files: list[tuple[str, int]] | None = None
    inputs: dict[str, str] = field(default_factory=dict)
    coordinates: str = ""


@dataclass(frozen=True, kw_only=True)
class Checkpoint:
    """The state of a run while its threads are stopped: config, resume info and arrays.

    Attributes:
        parameters: The matrices that training updates, by name.
        losses: The sum of the losses in each epoch, float64 (epochs,).
        predictions: The number of predictions in each epoch, int64 (epochs,).
        history: float64 (n, 4): words trained, seconds of training, summed loss and number of predictions, each since
            the start of the run. With several ranks, the last two cover only rank 0.
        frozen: Bool, (input rows,); see Initialisation.
        tags: The tags of documents, or None.
        features: The words, n-grams and labels of a classifier, or None. Then `vocabulary` are the labels.
        contexts: See View.
        path: The file that the checkpoint was read from; its arrays are then memory-mapped. Path() for the state of a
            run in memory.
        version: The version of w2v that wrote the checkpoint.
    """

    config: RunConfig
    resume_info: ResumeInfo
    vocabulary: Vocabulary
    loss: Loss
    parameters: Mapping[str, NDArray[Any]]
    losses: NDArray[np.float64]
    predictions: NDArray[np.int64]
    history: NDArray[np.float64]
    frozen: NDArray[np.bool_] | None = None
    tags: Words | None = None
    features: Features | None = None
    contexts: Vocabulary | None = None
    path: Path = Path()
    version: str = __version__

    @property
    def settings(self) -> Settings:
        return self.config.settings

    @property
    def identity(self) -> Identity:
        """The identity of the run."""
        return Identity(self.config.run_id, self.resume_info.inputs)

    @property
    def seconds(self) -> float:
        """The time spent on training."""
        return self.resume_info.seconds

    @property
    def loss_ratio(self) -> float:
        """The ratio that shows whether the loss has risen; see `divergence.loss_ratio`."""
        return loss_ratio(self.loss, self.losses, self.predictions)

    @property
    def has_diverged(self) -> bool:
        """Whether the loss or a matrix is not finite, or the loss has risen too far."""
        is_finite = np.isfinite(self.losses).all() and all_finite(self.parameters.values())
        return not (is_finite and self.loss_ratio <= DIVERGENCE_RATIO)

    @property
    def mean_losses(self) -> list[float | None]:
        """The mean loss per prediction in each epoch; None for an epoch without predictions."""
        sums, counts = self.losses.tolist(), self.predictions.tolist()
        return [total / count if count else None for total, count in zip(sums, counts, strict=True)]


@dataclass(frozen=True)
class _Description:
    """The values in a checkpoint besides its settings and arrays."""

    config: dict[str, Any]
    position: ResumeInfo


def write_checkpoint(path: Path, checkpoint: Checkpoint, replace: bool = False) -> None:
    """Write a checkpoint atomically.

    Args:
        path: The file.
        checkpoint: The checkpoint.
        replace: Whether an existing file is replaced.

    Raises:
        W2VError: The file cannot be written, or it exists and `replace` is false.
    """
    features = checkpoint.features
    vocabulary = features.vocabulary if features else checkpoint.vocabulary
    words = Words.of(vocabulary.words)
    arrays = {CHECKPOINT_INPUTS if name == "inputs" else name: array for name, array in checkpoint.parameters.items()}
    if features:
        inputs = arrays[CHECKPOINT_INPUTS]
        arrays |= {CHECKPOINT_INPUTS: inputs[: len(words)], NGRAM_ROWS: inputs[len(words) :], **features.tensors}
    arrays |= {"words": words.blob, "word_offsets": words.offsets, "counts": vocabulary.counts}
    arrays |= label_tensors(checkpoint.contexts) if checkpoint.contexts else {}
    arrays |= checkpoint.loss.tensors
    arrays |= {"losses": checkpoint.losses, "predictions": checkpoint.predictions, "history": checkpoint.history}
    arrays |= {} if checkpoint.frozen is None else {"frozen": checkpoint.frozen}
    arrays |= tensors_of_tags(checkpoint.tags) if checkpoint.tags else {}
    description = _Description(checkpoint.config.stored(), checkpoint.resume_info)
    # The description is stored as an array because the length of the header is limited.
    arrays["run"] = np.frombuffer(encode(description, path).encode(), np.uint8)
    header = ModelHeader(
        checkpoint.settings.as_dict(),
        text=checkpoint.config.text,
        key_type=checkpoint.vocabulary.key_type,
        package_version=__version__,
    )
    metadata = header.to_strings(path)
    metadata |= {"checkpoint_format": str(CHECKPOINT_FORMAT), "checksum": checksum(arrays, metadata["settings"])}
    native.write_native(path, arrays, metadata, replace=replace, follow=False)


class DamagedCheckpoint(W2VError):
    """A file that is damaged or is not a checkpoint."""


def read_checkpoint(path: Path, loss: Loss | None = None) -> Checkpoint:
    """Read a checkpoint.

    Args:
        path: The file.
        loss: The prepared loss of the run. If it is a user's own, it replaces the registered loss.

    Raises:
        DamagedCheckpoint: The file is damaged or is not a checkpoint.
        W2VError: There is not enough memory, a package is missing, or a user's own loss has a mistake.
        LossNotImported: The run has a user's own loss, which is not imported.
        VersionMismatch: It has the checkpoint format of another version of w2v.
    """
    try:
        with translate_os_errors(path), open_regular(path) as file:
            arrays, metadata = native.read_open(path, file, mmap=True)
    except W2VError as error:
        raise DamagedCheckpoint(str(error)) from error
    if "run" not in arrays or "settings" not in metadata:
        raise DamagedCheckpoint(f"{path} is not a checkpoint")
    if (found := metadata.get("checkpoint_format", "none")) != str(CHECKPOINT_FORMAT):
        raise VersionMismatch(
            f"{path} has checkpoint format {found:.20}, and this w2v resumes format {CHECKPOINT_FORMAT}: resume with "
            f"the version that wrote it, w2v {metadata.get('package_version', ''):.40}"
        )
    if checksum(arrays, metadata["settings"]) != metadata.get("checksum"):
        raise DamagedCheckpoint(f"{path} is damaged: its checksum is wrong")
    try:
        return _parse(path, _Arrays(arrays), ModelHeader.from_strings(metadata, "its header"), loss)
    except W2VError as error:  # the file is as w2v wrote it, so this is not damage
        raise type(error)(f"{path}: {one_line(error)}") from error


class _Arrays(dict[str, NDArray[Any]]):
    """The arrays of a file by name."""

    def __missing__(self, name: str) -> NDArray[Any]:
        raise W2VError(f"the array {name} is missing")


def _parse(path: Path, arrays: _Arrays, header: ModelHeader, loss: Loss | None) -> Checkpoint:
    """Build a checkpoint from the content of its file. Raise W2VError if the parts do not fit together."""
    description = decode(_Description, arrays["run"].tobytes(), "its description")
    settings = settings_from(header.settings or {}, "its settings")
    config, resume_info = RunConfig.from_stored(description.config, settings), description.position
    vocabulary = Vocabulary(Words(arrays["words"], arrays["word_offsets"]), arrays["counts"], header.key_type)
    rows, features = len(vocabulary), None
    if config.labels:
        features = Features.from_file(vocabulary, arrays, config.labels, settings.ngrams, settings.buckets)
        vocabulary, rows = features.labels, features.rows
        arrays[CHECKPOINT_INPUTS] = np.concatenate([arrays[CHECKPOINT_INPUTS], arrays[NGRAM_ROWS]])
    contexts = labels_of_file(arrays, header.key_type) if config.pairs and "labels" in arrays else None
    loss = loss if loss and loss.is_own else loss_for(settings, contexts or vocabulary, arrays)
    shapes = {"inputs": (rows, settings.vector_size), **by_tensor_name(loss.shapes)}
    if settings.ngrams and not features:
        ngrams = SubwordRows.of(settings.ngrams, vocabulary.words, ignore_memory=True).shared
        shapes["ngrams"] = (ngrams, settings.vector_size)
    tags = None
    if settings.documents:
        tags = tags_in(arrays, "its documents")
        shapes[ROWS] = (len(tags), settings.vector_size)
    parameters = {name: arrays[CHECKPOINT_INPUTS if name == "inputs" else name] for name in shapes}
    others = {name: arrays[name] for name in ("losses", "predictions", "history")}
    others |= {name: arrays[name] for name in ("frozen",) if name in arrays}
    expected: dict[str, tuple[Any, Any]] = {
        **{name: (shape, bfloat16.dtype_of(settings.storage)) for name, shape in shapes.items()},
        "losses": ((settings.epochs,), np.float64),
        "predictions": ((settings.epochs,), np.int64),
        "history": ((*others["history"].shape[:1], 4), np.float64),
        "frozen": ((rows,), np.bool_),
    }
    for name, array in (parameters | others).items():
        if (array.shape, array.dtype) != expected[name]:
            raise W2VError(f"the array {name} has an unexpected shape or type: {array.shape}, {array.dtype}")
    if not all_finite(parameters.values()):
        raise W2VError("its matrices have NaN or infinite values")
    if resume_info.done > resume_info.end:
        raise W2VError("its position is past the end of the run")
    return Checkpoint(
        config=config,
        resume_info=resume_info,
        vocabulary=vocabulary,
        loss=loss,
        parameters=parameters,
        **others,
        tags=tags,
        features=features,
        contexts=contexts,
        path=path,
        version=header.package_version,
    )


def checksum(arrays: Mapping[str, NDArray[Any]], settings: str) -> str:
    """Return the SHA-256, in hexadecimal, of the settings and of the arrays in the order of their names."""
    digest = hashlib.sha256(settings.encode())
    for name in sorted(arrays):
        array = bfloat16.as_uint16(np.atleast_1d(arrays[name]))
        digest.update(f"{name} {array.dtype.str} {array.shape}".encode())
        rows = max(1, HASH_BLOCK_BYTES * len(array) // max(1, array.nbytes))
        for start in range(0, len(array), rows):
            digest.update(np.ascontiguousarray(array[start : start + rows]).data)
    return digest.hexdigest()


# -- signs of divergence: values that are not finite, and a loss that rises ----------------------------


def all_finite(matrices: Iterable[NDArray[Any]]) -> bool:
    """Return True if all values of these matrices are finite."""
    return all(bfloat16.first_non_finite_row(array) < 0 for array in matrices)


def loss_ratio(loss: Loss, losses: NDArray[np.float64], predictions: NDArray[np.int64]) -> float:
    """Return the largest ratio of an epoch's mean loss to the lowest earlier one.

    The first epoch is compared with the loss of untrained vectors. The lowest mean counts as at least 1 nat. The means
    can be compared because every epoch trains on the same text. The sum of an unfinished epoch is divided by the
    predictions of the epoch before, which gives a lower bound of its mean.

    Args:
        loss: The loss of the run.
        losses: The sum of the losses in each epoch, (epochs,).
        predictions: The number of predictions in each epoch, (epochs,).
    """
    previous = np.append(0, predictions[:-1])
    means = losses / np.maximum(np.maximum(predictions, previous), MIN_PREDICTIONS)
    lowest = np.minimum.accumulate(np.append(untrained_loss(loss), np.maximum(means[:-1], 1)))
    return float((means / lowest).max())


def untrained_loss(loss: Loss) -> float:
    """Return an upper bound of the mean loss of untrained vectors; infinity for a user's own loss.

    The scores of untrained vectors are 0, so an independent output row costs log 2 and a distribution over V words
    costs about log V.
    """
    if loss.is_own:
        return math.inf
    independent = math.log(2) * loss.expected_rows
    return max(1.0, independent if loss.independent else min(independent, math.log(len(loss.vocabulary)) + 2))
