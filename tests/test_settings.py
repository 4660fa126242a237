"""Settings accept possible values, refuse impossible ones by name, and compute defaults."""

import copy
import inspect
import pickle
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import w2v
from w2v._losses.registry import LOSS_OPTIONS, LOSSES, Settings
from w2v._options import options_of
from w2v._settings import MAX_SENTENCE_CONTEXT
from w2v._system.threads import processors

WRONG_CHOICES = {"model": "glove", "loss": "hinge", "storage": "bf8", "sample_formula": "c", "cbow_gradient": "wrong"}
WRONG = [  # (what follows the name in the message, settings, values that each of them refuses)
    ("", ["vector_size", "window", "min_count", "max_vocab", "negative", "epochs", "workers", "seed"],
     [-1, 1.5, "5", True, float("nan"), [1]]),
    ("", ["vector_size", "window", "negative", "epochs", "workers", "seed"], [1 << 70]),
    ("", ["ns_exponent", "sample", "alpha", "min_alpha"], [float("nan"), float("inf"), -11, "0.1", False, 1e9]),
    ("{!r}: it must be True or False", ["per_pair", "shrink_windows"], ["no", 0, None]),
    ("None", ["vector_size", "negative", "epochs", "seed", "sample", "ns_exponent"], [None]),
    *(("{!r}: choose from ", [name], [value]) for name, value in WRONG_CHOICES.items()),
]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [(name, value, message) for message, names, values in WRONG for name in names for value in values],
)
def test_impossible_values_are_refused_by_name(name: str, value: Any, message: str) -> None:
    with pytest.raises(w2v.SettingsError, match=f"^{name} {message.format(value)}"):
        Settings(**{name: value})


@pytest.mark.parametrize("name", ["min_count", "max_vocab"])
def test_limits_of_the_vocabulary_can_have_any_size(name: str) -> None:
    assert getattr(Settings(**{name: 1 << 70}), name) == 1 << 70


def test_none_means_the_default_that_training_computes() -> None:
    assert Settings(alpha=None, min_alpha=None, window=None, workers=None, max_vocab=None) == Settings()


def test_the_default_window_depends_on_the_model() -> None:
    assert (Settings(model="skipgram").window_size, Settings().window_size) == (5, 8)
    assert Settings(window=3).as_dict()["window"] == 3


def test_a_window_may_differ_before_and_after_the_centre_word() -> None:
    for window in "5,0", (5, 0), [5, 0]:
        settings = Settings(window=window)
        assert (settings.window_sides, settings.window_size, settings.as_dict()["window"]) == ((5, 0), 5, "5,0")
    for wrong in "0,0", "5,", "5,0,1", "5,-1", (5,), "5,99999", "5, 1":
        with pytest.raises(w2v.SettingsError, match=r"^window .*: (write how many words before and after|it must be)"):
            Settings(window=wrong)


def test_a_window_may_be_the_whole_sentence() -> None:
    settings = Settings(window="all")
    assert settings.whole_sentences
    assert (settings.window_size, settings.as_dict()["window"]) == (MAX_SENTENCE_CONTEXT, "all")
    assert not Settings(window=MAX_SENTENCE_CONTEXT).whole_sentences


def test_each_side_of_a_window_has_the_same_limit_as_both() -> None:
    for window in "0,1", "0,16384", "16384,0":
        assert Settings(window=window).window_sides == tuple(map(int, window.split(",")))
    for wrong in "0,16385", "16385,0":
        with pytest.raises(w2v.SettingsError, match=r"^window "):
            Settings(window=wrong)


def test_ngrams_have_one_to_99_characters() -> None:
    for lengths, expected in {"1-1": (1, 1), "1-99": (1, 99), "10-11": (10, 11), "3-3": (3, 3)}.items():
        assert Settings(subwords=lengths).ngram_lengths == expected
    for wrong in "0-3", "3-0", "4-3", "1-100", "3", "-3", "3-", "3-6-9", "３-6", "a-b", " 3-6", "3-6\n", "":
        with pytest.raises(w2v.SettingsError, match=r"^subwords "):
            Settings(subwords=wrong)
    with pytest.raises(w2v.SettingsError) as caught:
        Settings(subwords="3-" + 100 * "6")
    assert len(str(caught.value)) < 150


def test_vectors_of_one_value_are_not_combined() -> None:
    assert (Settings(vector_size=1).word_vectors, Settings(vector_size=2).word_vectors) == ("input", "combined")
    for kind in ("combined", "concatenated"):
        assert Settings(vector_size=2, vectors=kind).word_vectors == kind
        with pytest.raises(w2v.SettingsError, match=f"^vectors {kind}: .*vector_size 1 leaves only the signs of rows"):
            Settings(vector_size=1, vectors=kind)
    assert Settings(vector_size=1, vectors="input").word_vectors == "input"


def test_a_learning_rate_of_zero_is_refused() -> None:
    with pytest.raises(w2v.SettingsError, match="alpha 0"):
        Settings(alpha=0)
    assert Settings(min_alpha=0).end_alpha == 0


@given(st.floats(1e-6, 1000), st.floats(0, 1000))
def test_the_learning_rate_must_not_rise(alpha: float, min_alpha: float) -> None:
    if min_alpha > alpha:
        with pytest.raises(w2v.SettingsError, match=r"min_alpha .* above alpha"):
            Settings(alpha=alpha, min_alpha=min_alpha)
    else:
        settings = Settings(alpha=alpha, min_alpha=min_alpha)
        assert (settings.start_alpha, settings.end_alpha) == (alpha, min_alpha)


def test_the_default_learning_rate_depends_on_the_model_and_the_loss() -> None:
    for loss, rates in {"ns": (0.05, 0.075), "hs": (0.025, 0.05)}.items():
        for model, rate in zip(("skipgram", "cbow"), rates, strict=True):
            settings = Settings(model=model, loss=loss)
            assert settings.start_alpha == rate
            assert settings.end_alpha == pytest.approx(rate / 10_000)
            assert Settings(model=model, loss=loss, alpha=0.5).start_alpha == 0.5


def test_the_corrected_gradient_doubles_the_default_learning_rate() -> None:
    assert Settings(model="cbow", cbow_gradient="corrected").start_alpha == 0.15


def test_a_setting_that_contradicts_the_loss_is_refused() -> None:
    with pytest.raises(w2v.SettingsError, match=r"objective module:Name replaces loss ns: give only one of them"):
        Settings(loss="ns", objective="module:Name")
    for options, what in (
        ({"loss": "dsoftmax"}, "loss dsoftmax"),
        ({"loss": "ns", "kernel": "numba"}, "kernel numba"),
        ({"loss": "sampled", "adaptive_samples": True}, "adaptive_samples"),
    ):
        with pytest.raises(w2v.SettingsError, match=f"^deterministic: with {what} it needs workers 1$"):
            w2v.Settings(deterministic=True, **options)
        w2v.Settings(deterministic=True, workers=1, **options)
    with pytest.raises(w2v.SettingsError, match=r"kernel cython: loss mos needs kernel numba"):
        Settings(loss="mos", kernel="cython")
    assert Settings(loss="mos").kernel == "numba"
    assert Settings().kernel == "cython"


def test_only_settings_that_have_an_effect_are_in_effect() -> None:
    assert {"negative", "ns_exponent", "cbow_gradient", "shrink_windows"} <= Settings().in_effect().keys()
    assert "shrink_windows" not in Settings(window="all").in_effect()
    assert not {"tree", "classes", "mixtures", "per_pair", "objective", "buckets"} & Settings().in_effect().keys()
    assert "tree" in Settings(loss="hs", model="cbow").in_effect()
    assert not {"negative", "per_pair"} & Settings(loss="hs", model="cbow").in_effect().keys()
    assert "buckets" in Settings(subwords="3-6").in_effect()
    assert "negative" not in Settings(objective="module:Name").in_effect()


@pytest.mark.parametrize("loss", LOSSES)
def test_a_loss_has_only_its_own_options(loss: str) -> None:
    settings = Settings(loss=loss)
    others = LOSS_OPTIONS - options_of(LOSSES[loss].options_class).keys()
    assert settings.as_dict().keys() == {*options_of(Settings)} - others


def test_options_are_given_and_read_by_name() -> None:
    settings = Settings(negative=10)
    assert (settings.negative, settings.ns_exponent) == (10, 0.5)
    assert settings != Settings()
    with pytest.raises(TypeError, match="negatives"):
        Settings(negatives=10)


def test_replace_keeps_the_options_that_the_new_loss_has() -> None:
    settings = replace(Settings(negative=10), ns_exponent=0.75)
    assert settings == Settings(negative=10, ns_exponent=0.75)
    assert replace(settings, loss="nce") == Settings(loss="nce", negative=10, ns_exponent=0.75)
    assert replace(settings, loss="sampled", adaptive_samples=True).negative == 10
    assert replace(settings, loss="hs", tree="balanced") == Settings(loss="hs", tree="balanced")
    assert replace(replace(settings, loss="hs"), loss="ns").negative == 5


def test_options_of_other_losses_are_checked_and_left_out() -> None:
    assert Settings(loss="ns", tree="balanced", mixtures=9, blocks="not of this loss") == Settings()
    with pytest.raises(w2v.SettingsError, match=r"^mixtures 0: it must be a whole number, from 1 to 1,024$"):
        Settings(loss="ns", mixtures=0)


def test_options_that_contradict_each_other_are_refused_for_their_loss_only() -> None:
    for loss, options in ("hs", {"tree": "clustered"}), ("sampled", {"negative": 2, "adaptive_samples": True}):
        with pytest.raises(w2v.SettingsError, match=r"tree_vectors|adaptive_samples"):
            Settings(loss=loss, **options)
        Settings(loss="softmax", **options)


def test_a_users_loss_has_the_options_of_all_losses() -> None:
    settings = Settings(objective="module:Name", negative=7, tree="balanced")
    assert (settings.negative, settings.tree, settings.mixtures) == (7, "balanced", 4)


def test_settings_are_copied_and_pickled() -> None:
    settings = Settings(loss="sampled", negative=7)
    assert pickle.loads(pickle.dumps(settings)) == copy.deepcopy(settings) == copy.copy(settings) == settings
    assert hash(copy.copy(settings)) == hash(settings)


def test_the_signature_shows_every_option() -> None:
    shown = inspect.signature(Settings).parameters
    assert list(shown) == list(options_of(Settings))
    assert {"alpha", "negative", "tree", "classes", "blocks", "mixtures", "large_softmax"} <= shown.keys()
    assert (shown["negative"].default, shown["negative"].annotation) == (5, "int")


def test_as_dict_has_the_values_that_training_uses() -> None:
    values = Settings(epochs=2).as_dict()
    assert list(values) == [name for name in options_of(Settings) if name in values]
    assert values["epochs"] == 2
    assert values["workers"] == processors() >= 1
    assert values["alpha"] == Settings().start_alpha
    assert Settings(**values).as_dict() == values


def test_settings_are_immutable() -> None:
    with pytest.raises(AttributeError):
        Settings().epochs = 3
