"""Programs that call fastText as known pipelines do, with one line more: `w2v.fasttext.install()`."""

import importlib
import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

import w2v.fasttext

SENTENCES = {
    "en": "the house and the garden of this city are old and very large",
    "de": "das haus und der garten in dieser stadt sind alt und sehr groß",
    "fi": "tämä talo ja sen puutarha ovat vanhoja ja hyvin suuria täällä",
}


@pytest.fixture(autouse=True)
def installed() -> Iterator[None]:
    with w2v.fasttext.install():
        yield


@pytest.fixture(scope="module")
def languages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the file of a classifier of languages by their letters, as lid.176, with few buckets."""
    folder, random = tmp_path_factory.mktemp("pipelines"), np.random.default_rng(1)
    rows = [(code, random.choice(text.split(), 6)) for code, text in SENTENCES.items() for _ in range(60)]
    (folder / "train.txt").write_text("".join(f"__label__{code} {' '.join(words)}\n" for code, words in rows))
    options: dict[str, Any] = {"loss": "hs", "dim": 8, "minn": 2, "maxn": 4, "lr": 0.5, "epoch": 15, "thread": 1}
    w2v.fasttext.train_supervised(folder / "train.txt", bucket=5000, **options).save_model(folder / "lid.bin")
    return folder / "lid.bin"


def test_language_filter(languages: Path) -> None:
    """As in datatrove: LanguageFilter."""
    model = importlib.import_module("fasttext.FastText")._FastText(str(languages))
    for code, text in SENTENCES.items():
        names, scores = model.predict(f"{text}\nalt".replace("\n", " "), k=-1)
        pairs = {name.split("__")[2]: score.item() for name, score in zip(names, scores, strict=True)}
        assert max(pairs.items(), key=lambda pair: pair[1])[0] == code
        assert {type(score) for score in pairs.values()} == {float}


def test_quality_filter_of_paragraphs(languages: Path) -> None:
    """As in datatrove: FastTextClassifierFilter."""
    model = importlib.import_module("fasttext.FastText")._FastText(str(languages))
    assert "en" in [label.removeprefix("__label__") for label in model.labels]
    kept, found = [], dict[str, list[Any]]()
    for unit in (f"{SENTENCES['en']}\n\n", SENTENCES["fi"], ""):
        names, scores = model.predict(unit.strip().replace("\n", ""), k=-1)
        for name, score in zip(names, scores, strict=True):
            found.setdefault(name, []).append(score)
        if dict(zip(names, scores, strict=True)).get("__label__en", -9e9) >= 0.9:
            kept.append(unit)
    assert kept == [f"{SENTENCES['en']}\n\n"]
    assert isinstance(np.mean(found["__label__en"]).item(), float)


def test_documents_are_scored_in_workers(languages: Path) -> None:
    """As in NeMo Curator: FastTextQualityFilter and FastTextLangId. A worker may get the model itself."""
    model = importlib.import_module("fasttext").load_model(path=str(languages))
    for worker in (model, pickle.loads(pickle.dumps(model))):
        names, scores = worker.predict(SENTENCES["de"].strip().replace("\n", " "), k=1)
        assert (names[0][-2:].upper(), scores[0] > 0.9) == ("DE", True)
        predicted = worker.predict(SENTENCES["fi"])
        score = predicted[1][0] if predicted[0][0] == "__label__en" else 1 - predicted[1][0]
        assert score < 0.1


class FastTextClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A classifier of scikit-learn around fastText, as many programs have one."""

    def __init__(self, folder: str, epoch: int = 5) -> None:
        self.folder, self.epoch = folder, epoch

    def fit(self, texts: Any, labels: Any) -> "FastTextClassifier":
        path = Path(self.folder) / "fit.txt"
        path.write_text("".join(f"__label__{label} {text}\n" for text, label in zip(texts, labels, strict=True)))
        options = {"input": str(path), "epoch": self.epoch, "lr": 0.5, "dim": 8, "thread": 1, "verbose": 0}
        self.classes_ = np.unique(labels)
        self.model_ = importlib.import_module("fasttext").train_supervised(**options)
        return self

    def predict(self, texts: Any) -> Any:
        return np.array([labels[0].removeprefix("__label__") for labels in self.model_.predict(list(texts))[0]])


def lower(texts: list[str]) -> list[str]:
    return [text.lower() for text in texts]


def test_pipeline_of_scikit_learn(tmp_path: Path) -> None:
    texts = [" ".join(text.split()[start : start + 6]) for text in SENTENCES.values() for start in range(6)] * 4
    labels = np.repeat([*SENTENCES], 6).tolist() * 4
    pipeline = make_pipeline(FunctionTransformer(lower), FastTextClassifier(str(tmp_path), epoch=25))
    assert cross_val_score(pipeline, texts, labels, cv=2).mean() == 1
    fitted = clone(pipeline).set_params(fasttextclassifier__epoch=20).fit(texts, labels)
    assert pickle.loads(pickle.dumps(fitted)).predict(["THE GARDEN", "ja sen"]).tolist() == ["en", "fi"]


@pytest.mark.slow
def test_model_of_two_million_buckets(languages: Path) -> None:
    """As lid.176.bin, with fewer dimensions: the rows of all buckets are in the file."""
    fasttext = importlib.import_module("fasttext")
    text, path = languages.with_name("train.txt"), languages.with_name("large.bin")
    options: dict[str, Any] = {"loss": "hs", "dim": 4, "minn": 2, "maxn": 4, "lr": 0.5, "epoch": 15, "thread": 1}
    trained = fasttext.train_supervised(str(text), **options)
    trained.save_model(str(path))
    assert path.stat().st_size > 2_000_000 * 4 * 4
    model = fasttext.load_model(str(path))
    assert (model.bucket, str(model.loss)) == (2_000_000, "loss_name.hs")
    names, scores = model.predict([*SENTENCES.values()])
    assert names == [[f"__label__{code}"] for code in SENTENCES]
    np.testing.assert_allclose(scores, trained.predict([*SENTENCES.values()])[1], atol=1e-6)
