"""Every option of a command: its default, its limits, and the argument of the work that it changes."""

import inspect
import json
import pkgutil
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path
from typing import Any, NamedTuple

import click
import numpy as np
import pytest

import w2v
from tests.helpers import command_of, run
from w2v._cli import main as cli
from w2v._cli.commands.evaluation import NOT_COMPARED
from w2v._cli.options import CLASSIFIER_SETTINGS
from w2v._graph.walks import WalkOptions
from w2v._losses.registry import Settings
from w2v._options import options_of
from w2v._settings import PRESETS
from w2v._text.idstore import ReadingOptions
from w2v._text.labels import LabelOptions
from w2v._text.phrases import PhraseOptions
from w2v._training.compare_losses import WORD_LOSSES
from w2v._training.config import LABEL_SETTINGS, RunConfig

Arguments = dict[str, Any]

READING_DEFAULTS: Arguments = {field.name: field.default for field in fields(ReadingOptions)}
WALK_DEFAULTS: Arguments = {field.name: field.default for field in fields(WalkOptions)}
TRAINING_DEFAULTS: Arguments = READING_DEFAULTS | {
    **Settings().as_dict(computed=False), "views": "auto", "phrases": False, "source": None, "vocab": "old",
    "freeze": None, "vocabulary": None, "checkpoint": None, "checkpoint_every": "10m", "ignore_memory": False,
    "replace_checkpoints": False,
}  # fmt: skip

CLASSIFIER_DEFAULTS: Arguments = (
    {name: value for name, value in TRAINING_DEFAULTS.items() if name not in options_of(Settings)}
    | Settings(**LABEL_SETTINGS).as_dict(computed=False)
    | {field.name: field.default for field in fields(LabelOptions)}
)
del CLASSIFIER_DEFAULTS["views"]  # open_training has another default
NOISE = {"negative", "ns_exponent", "adaptive_samples", "classes", "large_softmax"}  # of other losses than ova

# Options, and the arguments that each of them changes. Options before | are needed for the effect.
Changes = dict[str, Arguments]


def own(options: str) -> Changes:
    """Return options with a value, separated by semicolons. Each of them changes the argument of its own name."""
    found: Changes = {}
    for option in options.split("; "):
        name, value = option.split()
        is_number = value.replace(".", "", 1).isdigit()
        found[option] = {name.strip("-").replace("-", "_"): json.loads(value) if is_number else value}
    return found


HEADER: Changes = {"--header": {"header": True}, "--no-header": {"header": False}}
READING: Changes = {
    "--lower": {"lower": True},
    "--keep-case": {"lower": False},
    **own(
        "--tokenize words; --digits zero; --normalize nfc; --column none; --cache folder; --encoding cp949; "
        "--errors replace; --max-types 7"
    ),
    "--strip-markup": {"strip_markup": True},
    "--keep-markup": {"strip_markup": False},
    "--item i --session s": {"item": "i", "session": "s"},
    "--item i --session s --order t": {"item": "i", "session": "s", "order": "t"},
    **HEADER,
}
SESSIONS: Changes = {
    f"--item i --session s | {option}": changes for option, changes in own("--also-context c; --weight w").items()
}
GRAPH: Changes = {
    "--weighted": {"weighted": True},
    "--unweighted": {"weighted": False},
    "--directed": {"directed": True},
    "--undirected": {"directed": False},
    **own("--delimiter tab; --edges 2,1; --graph-format edges"),
    "--format adjlist": {"graph_format": "adjlist"},
    "--bipartite": {"bipartite": True},
    "--unipartite": {"bipartite": False},
}
WALKS: Changes = {
    **own("--walk-length 7; --num-walks 7; -p 0.5; --p 0.5; -q 0.5; --q 0.5"),
    "--walks 7": {"num_walks": 7},
}
SETTINGS: Changes = {
    **own(
        "--model skipgram; --vector-size 7; --window 3; --window 3,2; --window all; --min-count 2; "
        "--max-vocab 7; --vectors input; --subwords 2-4; --sample 0.25; --sample-formula paper; "
        "--cbow-gradient corrected; --epochs 7; --alpha 0.25; --min-alpha 0.0625; --stop-early 7; --seed 7; "
        "--workers 7; --storage bf16; --kernel numba; --loss nce; --negative 7; --ns-exponent 0.25"
    ),
    "--size 7": {"vector_size": 7},
    "--subwords 3-6 | --buckets 7": {"buckets": 7},
    "--fixed-windows": {"shrink_windows": False},
    "--shrink-windows": {"shrink_windows": True},
    "--model skipgram | --per-pair": {"per_pair": True},
    "--model skipgram | --shared": {"per_pair": False},
    "--iter 7": {"epochs": 7},
    "--threads 7": {"workers": 7},
    "--deterministic": {"deterministic": True},
    "--free": {"deterministic": False},
    "--loss hs | --tree balanced": {"tree": "balanced"},
    "--loss hs --tree clustered --tree-vectors a | --tree-vectors b": {"tree_vectors": "b"},
    "--loss sampled | --adaptive-samples": {"adaptive_samples": True},
    "--loss sampled | --fixed-samples": {"adaptive_samples": False},
    "--loss class | --classes 7": {"classes": 7},
    "--loss softmax | --large-softmax": {"large_softmax": True},
    "--loss softmax | --no-large-softmax": {"large_softmax": False},
    "--loss ova | --smoothing 0.25": {"smoothing": 0.25},
    "--loss dsoftmax | --blocks 60,40": {"blocks": "60,40"},
    "--loss mos | --mixtures 7": {"mixtures": 7},
    "--loss mos | --sampled-mixtures": {"sampled_mixtures": True},
    "--loss mos | --full-mixtures": {"sampled_mixtures": False},
}


# The settings of SETTINGS that a classifier has, with their effects in addition.
CLASSIFIER: Changes = {
    option: changes | ({"classifier": "embedded"} if "size" in option else {})
    for option, changes in SETTINGS.items()
    if next(iter(changes)) in CLASSIFIER_SETTINGS
    and "--loss" not in option
    and next(iter(changes)) not in NOISE
    and not {"bf16", "ova", "--min-alpha"} & {*option.split()}
} | {
    **own(
        "--label-prefix =; --labels topic; --word-ngrams 3; --pooling mean; --classifier embedded; "
        "--min-count-label 3; --smoothing 0.25"
    ),
    "--balanced": {"balanced": True},
    "--as-counted": {"balanced": False},
    "--several": {"several": True},
    "--as-found": {"several": False},
    "--calibrated": {"calibrated": True},
    "--as-trained": {"calibrated": False},
    "--alpha 0.25 | --min-alpha 0.0625": {"min_alpha": 0.0625},
    "--loss ns | --storage bf16": {"storage": "bf16"},
    "--loss softmax | --large-softmax": {"large_softmax": True},
    "--loss softmax | --no-large-softmax": {"large_softmax": False},
    "--loss ns | --negative 7": {"negative": 7},
    "--loss ns | --ns-exponent 0.25": {"ns_exponent": 0.25},
    "--loss sampled | --adaptive-samples": {"adaptive_samples": True},
    "--loss sampled | --fixed-samples": {"adaptive_samples": False},
    "--loss class | --classes 7": {"classes": 7},
}


class Call(NamedTuple):
    """A call of a function by a command.

    Attributes:
        command: The command.
        function: The function.
        needed: The arguments that the command needs.
        defaults: Arguments of the function, as the help of the command describes them.
        changes: Options of the command, and the arguments of the function that they change.
    """

    command: str
    function: str
    needed: str
    defaults: Arguments
    changes: Changes


CALLS = [
    Call(
        "train",
        "cli.commands.training:open_training",
        "text -o new.bin",
        TRAINING_DEFAULTS | {"-o": "new.bin"},
        SETTINGS
        | READING
        | SESSIONS
        | {
            "--sg": {"model": "skipgram"},
            "--config sg.toml | --cbow": {"model": "cbow"},
            "--hs": {"loss": "hs", "tree": "huffman", "tree_vectors": None},
            "--loss sampled": {"loss": "sampled", "adaptive_samples": False},
            "--loss class": {"loss": "class", "classes": None},
            "--loss softmax": {"loss": "softmax", "large_softmax": False},
            "--loss dsoftmax": {"loss": "dsoftmax", "kernel": "numba", "blocks": None, "large_softmax": False},
            "--loss charcnn": {"loss": "charcnn", "kernel": "numba"},
            "--loss mos": {
                "loss": "mos",
                "kernel": "numba",
                "mixtures": 4,
                "sampled_mixtures": False,
                "large_softmax": False,
            },
            "--graph": PRESETS["graph"] | WALK_DEFAULTS,
            **{f"--graph | {option}": changes for option, changes in (GRAPH | WALKS).items()},
            "--preset items": PRESETS["items"],
            "--preset graph": PRESETS["graph"],
            "--preset graph | --epochs 7": {"epochs": 7},
            "--preset graph | --cbow": {"model": "cbow"},
            "--config graph.toml | --preset items": {"vector_size": 100, "min_count": 5}
            | PRESETS["items"]
            | {"epochs": 7},
            **own("--views words+subwords; --phrases list; --checkpoint states"),
            "--save-vocab words": {"--save-vocab": "words"},
            "--documents dm": {"documents": "dm", "min_count": 2, "epochs": 20, "window": 5, "alpha": 0.1},
            "--plot run.svg": {"--plot": "run.svg"},
            "--read-vocab counts": {"vocabulary": "Vocabulary"},
            "--continue old.safetensors": {
                "source": "Model",
                "vector_size": 3,
                "epochs": 1,
                "sample": 0,
                "alpha": 0.01,
            },
            "--continue old.safetensors | --vocab union": {"vocab": "union"},
            "--init old.bin": {"source": "KeyedVectors", "vector_size": 3},
            "--init old.bin | --freeze": {"freeze": "inputs", "vectors": "input"},
            "--init old.bin | --freeze=inputs": {"freeze": "inputs", "vectors": "input"},
            "--init old.safetensors | --freeze outputs": {
                "source": "Model",
                "freeze": "outputs",
                "vectors": "input",
                "epochs": 1,
                "sample": 0,
            },
            "--phrases": {"phrases": True},
            "--checkpoint states | --checkpoint-every 3s": {"checkpoint_every": "3s"},
            "--ignore-memory": {"ignore_memory": True},
            "--force": {"replace_checkpoints": True},
        },
    ),
    Call(
        "classify",
        "cli.commands.training:open_training",
        "labelled -o new.safetensors",
        CLASSIFIER_DEFAULTS | {"-o": "new.safetensors"},
        CLASSIFIER
        | {option: changes for option, changes in READING.items() if "--item" not in option}
        | {
            "--loss sampled | --adaptive-samples": {"adaptive_samples": True},
            "--init old.bin": {"source": "KeyedVectors", "vector_size": 3, "classifier": "embedded"},
            "--init old.bin | --freeze": {"freeze": "inputs", "classifier": "embedded"},
            "--checkpoint states": {"checkpoint": "states"},
            "--checkpoint states | --checkpoint-every 3s": {"checkpoint_every": "3s"},
            "--ignore-memory": {"ignore_memory": True},
            "--force": {"replace_checkpoints": True},
        },
    ),
    Call(
        "tune",
        "training.search:tune",
        "text -o new.bin",
        {"time": "10m", "questions": [], "pairs": [], "max_size": None, "phrases": False, "ignore_memory": False},
        SETTINGS
        | READING
        | {
            **own("--views words+subwords; --time 3s; --max-size 7; --phrases list"),
            "--output other.bin": {"state": "other.tune.json"},
            "--questions a --questions b": {"questions": ["a", "b"]},
            "--pairs a --pairs b": {"pairs": ["a", "b"]},
            "--phrases": {"phrases": True},
            "--ignore-memory": {"ignore_memory": True},
        },
    ),
    Call(
        "slices",
        "training.slices:slices",
        "text list -o new",
        {"resume": False, "checkpoint": None, "checkpoint_every": "10m", "force": False, "tag_words": None},
        SETTINGS
        | READING
        | {
            **own(
                "--views words+subwords; --phrases list; --checkpoint states; --checkpoint-every 3s; --tag-words list"
            ),
            "--sg": {"model": "skipgram"},
            "--cbow": {"model": "cbow"},
            "--hs": {"loss": "hs"},
            "--resume": {"resume": True},
            "--ignore-memory": {"ignore_memory": True},
        },
    ),
    Call(
        "vocab",
        "cli.commands.preparation:read_corpus",
        "text -o new",
        READING_DEFAULTS,
        READING | {"--workers 7": {"workers": 7}, "--threads 7": {"workers": 7}},
    ),
    Call(
        "vocab",
        "cli.commands.preparation:Vocabulary.from_store",
        "text -o new",
        {"min_count": 5, "max_vocab": None},
        own("--min-count 2; --max-vocab 7"),
    ),
    Call(
        "phrases", "cli.commands.preparation:read_corpus", "text -o new", READING_DEFAULTS, READING | own("--workers 7")
    ),
    Call(
        "phrases",
        "text.phrases:Phrases.find",
        "text -o new",
        {
            "scoring": "default",
            "threshold": 10,
            "min_count": 5,
            "passes": 1,
            "delimiter": "_",
            "max_pairs": 50_000_000,
            "connectors": [],
        },
        {
            "--scoring npmi": {"scoring": "npmi", "threshold": 0.5},
            "--scoring word2phrase": {"scoring": "word2phrase", "threshold": 100},
            **own("--threshold 0.25; --min-count 2; --passes 3; --delimiter -; --max-pairs 7; --workers 7"),
            "--connectors list": {"connectors": ["b"]},
            "--threads 7": {"workers": 7},
        },
    ),
    Call(
        "phrases", "text.phrases:Phrases.load", "text -o new --read-phrases a", {}, {"--read-phrases b": {"path": "b"}}
    ),
    Call(
        "walks",
        "cli.commands.preparation:read_graph",
        "edges -o new",
        WALK_DEFAULTS,
        GRAPH | WALKS | {"--workers 7": {"workers": 7}, "--threads 7": {"workers": 7}},
    ),
    Call(
        "walks",
        "graph.walks:walk_blocks",
        "edges -o new",
        WALK_DEFAULTS | {"seed": 1},
        WALKS | own("--seed 7; --workers 7"),
    ),
    Call(
        "tree",
        "cli.commands.preparation:read_corpus",
        "text",
        READING_DEFAULTS,
        READING | {"--workers 7": {"workers": 7}, "--threads 7": {"workers": 7}},
    ),
    Call(
        "tree",
        "cli.commands.preparation:Vocabulary.from_store",
        "counts --text",
        {"min_count": 5, "max_vocab": None},
        own("--min-count 2; --max-vocab 7"),
    ),
    Call(
        "tree",
        "cli.commands.preparation:Vocabulary.load",
        "text --vocabulary",
        {"min_count": 5, "max_vocab": None},
        own("--min-count 2; --max-vocab 7"),
    ),
    Call(
        "tree",
        "cli.commands.preparation:code_lengths",
        "counts",
        {"tree": "huffman", "tree_vectors": None, "words": []},
        {
            "--tree balanced": {"tree": "balanced"},
            "--tree clustered --tree-vectors a | --tree-vectors b": {"tree_vectors": "b"},
            "--word a --word b": {"words": ["a", "b"]},
        },
    ),
    Call(
        "query",
        "vectors.query:Query.answer",
        "old.bin a",
        {"topn": 10, "restrict_vocab": None},
        own("--topn 7; --restrict-vocab 7"),
    ),
    Call("query", "cli.commands.vectors:queries.parse", "old.bin a", {"method": "add"}, own("--method mul")),
    Call(
        "query",
        "cli.commands.vectors:print_neighbours",
        "old.bin a",
        {"vectors": {}},
        {"--vector": {"vectors": {"a": [1.0, 0.0, 0.0]}}},
    ),
    Call(
        "analogy",
        "cli.commands.vectors:analogies",
        "old.bin",
        {"questions": None, "restrict_vocab": 30_000, "method": "add"},
        {"a": {"questions": "a"}, **own("--restrict-vocab 7; --method mul")},
    ),
    Call("similarity", "cli.commands.vectors:word_pairs", "old.bin", {"pairs": None}, {"a": {"pairs": "a"}}),
    Call(
        "similarity",
        "cli.commands.vectors:print_word_pairs",
        "old.bin",
        {"verbose": False},
        {"--verbose": {"verbose": True}},
    ),
    Call(
        "encode",
        "vectors.encode:Encoder.__init__",
        "old.safetensors text -o new.npy",
        {"weights": "sif", "errors": "strict"},
        own("--weights idf; --errors ignore"),
    ),
    Call(
        "encode",
        "vectors.encode:Encoder.blocks",
        "old.safetensors text -o new.npy",
        {"column": None, "encoding": "utf-8"},
        own("--column none; --encoding cp949"),
    ),
    Call(
        "recommend",
        "vectors.recommend:Recommender.__init__",
        "old.bin text",
        {"topn": 10, "last": 10, "errors": "strict"},
        own("--topn 7; --last 7; --errors ignore"),
    ),
    Call(
        "recommend",
        "vectors.recommend:Recommender.blocks",
        "old.bin text",
        {"column": None, "encoding": "utf-8", "long_table": None},
        {
            **own("--column none; --encoding cp949"),
            "--item i --session s": {"long_table": ["i", "s", None, None, None]},
            "--item i --session s --order t": {"long_table": ["i", "s", "t", None, None]},
        },
    ),
    *(
        Call(command, "cli.options:corpus_of", inputs, {"header": None}, HEADER)
        for command, inputs in {
            "encode": "old.safetensors text -o new.npy",
            "recommend": "old.bin text",
            "predict": "classifier.safetensors text",
        }.items()
    ),
    Call("info", "cli.commands.vectors:facts.model", "old.bin", {"path": "old.bin"}, {}),
    Call(
        "convert",
        "training.model:Model.with_vectors",
        "old.safetensors new.txt --vectors combined",
        {},
        {"--vectors input": {"kind": "input"}},
    ),
    Call("convert", "cli.commands.vectors:read", "old.bin new.txt", {"encoding": "utf-8"}, own("--encoding cp1251")),
    Call(
        "convert",
        "vectors.reduce:reduce_file",
        "old.bin new.safetensors",
        {"max_vocab": None, "words": None, "dims": None, "storage": None},
        own("--max-vocab 7; --words list; --dims 2; --storage int8"),
    ),
    Call(
        "combine",
        "cli.commands.vectors:combine_models",
        "old.bin old.bin -o new.bin",
        {"words": "intersection", "weights": None},
        {"--words union": {"words": "union"}, "--weights 1,0.5": {"weights": [1, 0.5]}},
    ),
    Call(
        "align",
        "cli.commands.change:align_models",
        "old.bin old.bin -o new",
        {"to": "first", "anchors": None, "dictionary": None, "centre": True, "restrict_vocab": 50_000, "seed": 1},
        {
            **own("--to previous; --seed 7"),
            "--words list": {"anchors": ["b"]},
            "--dictionary pairs | --restrict-vocab 7": {"restrict_vocab": 7},
            "--centre | --no-centre": {"centre": False},
        },
    ),
    Call(
        "change",
        "cli.commands.change:changes.change",
        "old.bin old.bin",
        {"words": None, "measure": "cosine", "min_count": None, "restrict_vocab": 20_000, "topn": 20},
        {
            "--word a --word b": {"words": ["a", "b"]},
            **own("--measure neighbourhood; --min-count 7; --restrict-vocab 7; --topn 7"),
        },
    ),
    Call(
        "compare-periods",
        "cli.commands.change:periods.compare_periods",
        "text text",
        {"words": None, "exclude": None, "min_count": 50, "min_documents": 5, "restrict_vocab": 20_000, "topn": 20}
        | {"seed": 1, "model": None},
        {
            "--word a --word b": {"words": ["a", "b"]},
            "--exclude list": {"exclude": ["b"]},
            **own("--min-count 7; --min-documents 7; --restrict-vocab 7; --topn 7; --seed 7"),
            **{option: changes for option, changes in READING.items() if "--item" not in option},
        },
    ),
    Call(
        "compare-losses",
        "cli.commands.evaluation:train_and_compare",
        "text",
        {"losses": WORD_LOSSES, "questions": None},
        {
            re.sub(r"--loss \S+( \| )?", "", option): changes
            for option, changes in (SETTINGS | READING).items()
            if not changes.keys() & NOT_COMPARED
        }
        | {"--losses hs,mos": {"losses": "hs,mos"}, "--questions a": {"questions": "a"}},
    ),
    Call(
        "evaluate",
        "cli.commands.evaluation:evaluate_models",
        "old.bin",
        {"questions": [], "pairs": [], "test": [], "held_out": None}
        | {"restrict_vocab": 30_000, "method": "add", "seed": 1},
        {
            "--questions a --questions b": {"questions": ["a", "b"]},
            "--pairs a --pairs b": {"pairs": ["a", "b"]},
            "--test a --test b": {"test": ["a", "b"]},
            **own("--held-out text; --restrict-vocab 7; --method mul; --seed 7"),
            **{f"--held-out text | {option}": changes for option, changes in READING.items()},
        },
    ),
    Call(
        "evaluate",
        "cli.commands.evaluation:score_file",
        "classifier.safetensors --labelled labelled",
        {"k": 1, "threshold": None, "labels": None},
        own("--labels topic; -k 2; --threshold 0.25; --column none; --encoding cp949; --errors ignore"),
    ),
    Call(
        "predict",
        "training.classifier:Classifier.read_predictions",
        "classifier.safetensors text",
        {"column": None, "encoding": "utf-8", "errors": "strict"},
        own("--column none; --encoding cp949; --errors ignore"),
    ),
    Call(
        "predict",
        "training.classifier:Classifier.limits",
        "classifier.safetensors text",
        {"k": 1, "threshold": None},
        own("-k 2; --threshold 0.25"),
    ),
    Call(
        "quantize",
        "cli.commands.labels:quantize_classifier",
        "classifier.safetensors -o new.ftz",
        {"cutoff": None, "size": None, "dsub": 2, "norm": False, "output_layer": False},
        {
            **own("--cutoff 7; --size 2M; --dsub 4; --epochs 7; --alpha 0.25"),
            "--norm": {"norm": True},
            "--output-layer": {"output_layer": True},
            "--iter 7": {"epochs": 7},
            "--retrain labelled --labels topic --column none --encoding cp949 --errors ignore": {
                "labels": "topic",
                "column": "none",
                "encoding": "cp949",
                "errors": "ignore",
            },
        },
    ),
    Call(
        "compare",
        "cli.commands.evaluation:compare_models",
        "old.bin old.bin",
        {"restrict_vocab": 10_000},
        own("--restrict-vocab 7"),
    ),
    Call("perplexity", "cli.commands.evaluation:measure_perplexity", "old.safetensors text", {}, READING),
    Call(
        "perplexity",
        "cli.commands.evaluation:_load_view",
        "old.safetensors text",
        {"view": None},
        own("--view subwords"),
    ),
    Call(
        "rank",
        "cli.commands.evaluation:effective_rank",
        "old.safetensors",
        {"contexts": None, "targets": None},
        own("--contexts 7; --targets 7"),
    ),
    Call("rank", "cli.commands.evaluation:_load_view", "old.safetensors", {"view": None}, own("--view subwords")),
    Call(
        "plot",
        "plotting.word_map:word_map",
        "old.bin -o new.svg",
        {
            "words": None,
            "topn": 200,
            "skip": None,
            "method": "pca",
            "groups": None,
            "clusters": None,
            "seed": 1,
            "title": "old.bin, two principal components",
        },
        {
            "a b": {"words": {"": ["a", "b"]}},
            "--words list": {"words": {"": ["b"]}},
            **own("--topn 7; --skip 7; --groups frequency; --clusters 7; --seed 7"),
            "--method tsne": {"method": "tsne", "title": "old.bin, t-SNE"},
        },
    ),
    Call(
        "plot",
        "plotting.arrows:analogy_map",
        "old.bin -o new.svg --analogies",
        {"section": None, "questions": None, "topn": 20},
        {"--analogies family": {"section": "family"}, "--questions a": {"questions": "a"}, "--topn 7": {"topn": 7}},
    ),
    Call(
        "explore",
        "explore.page:explore_page",
        "old.bin -o new.html",
        {"restrict_vocab": 10_000, "method": "pca", "slices": False},
        own("--restrict-vocab 7; --method tsne"),
    ),
    Call(
        "explore",
        "explore.content:word_maps",
        "old.bin",
        {"restrict_vocab": 10_000, "method": "pca", "slices": False},
        own("--restrict-vocab 7; --method tsne"),
    ),
    Call(
        "explore", "explore.server:Server", "old.bin", {"host": "127.0.0.1", "port": 0}, own("--host 0.0.0.0; --port 7")
    ),
    Call(
        "explore",
        "cli.commands.pictures:_serve",
        "old.bin",
        {"approximate": False},
        {"--approximate": {"approximate": True}},
    ),
    # Every command with --errors reads its vectors with this option, unless it is tested above.
    *(
        Call(command, f"cli.commands.{module}:{load}", needed, {"errors": "strict"}, own("--errors ignore"))
        for command, module, load, needed in (
            ("query", "vectors", "load", "old.bin a"),
            ("analogy", "vectors", "load", "old.bin"),
            ("similarity", "vectors", "load", "old.bin"),
            ("similarity", "vectors", "load", "old.bin a b"),
            ("encode", "vectors", "load", "old.bin text -o new.npy"),
            ("recommend", "vectors", "load", "old.bin text"),
            ("info", "vectors", "load", "old.bin"),
            ("convert", "vectors", "read", "old.bin new.txt"),
            ("combine", "vectors", "load", "old.bin old.bin -o new.bin"),
            ("align", "change", "load", "old.bin old.bin -o new"),
            ("evaluate", "evaluation", "load", "old.bin"),
            ("compare", "evaluation", "load", "old.bin old.bin"),
            ("change", "change", "load", "old.bin old.bin"),
            ("plot", "pictures", "load", "old.bin -o new.svg"),
            ("explore", "pictures", "load", "old.bin -o new.html"),
        )
    ),
]
# Options that other tests cover: of all commands in test_main.py and test_outputs.py, then of single commands.
TESTED_ELSEWHERE = {
    *("--help", "--output", "--force", "--quiet", "--json", "--objective"),
    *("train --config", "train --save-config"),  # test_config.py
    *("train --tags", "train --save-documents", "query --documents"),  # tests/training/test_documents.py
    "train --negatives-from",  # tests/training/test_pairs.py
    *("train --pairs", "train --contexts"),  # tests/training/test_pairs.py
    *("train --resume", "tune --resume", "train --verbose", "train --dry-run"),
    *(
        "classify --resume",
        "classify --continue",
        "classify --test",
        "classify --held-out",
        "classify --verbose",
        "classify --size",
        "predict --explain",
        *("quantize --labelled", "quantize --header", "quantize --no-header"),  # tests/training/test_quantize.py
    ),
    *(f"tune --{name}" for name in ("classify", "metric", "held-out", "folds", "labels", "label-prefix", "balanced")),
    *(f"tune --{name}" for name in ("as-counted", "several", "as-found", "word-ngrams", "pooling", "classifier")),
    *(f"tune --{name}" for name in ("calibrated", "as-trained", "min-count-label")),
    *(
        f"plot --{name}" for name in ("labelled", "labels", "column", "header", "no-header", "encoding")
    ),  # test_labels.py
    *(f"evaluate --{name}" for name in ("labelled", "sessions", "trained-on", "topn", "last")),  # test_next_items.py
    *("evaluate --edges", "evaluate --bipartite", "evaluate --unipartite"),  # test_link_prediction.py
    *("walks --hold-out", "walks --share"),
    *("phrases --save-phrases", "tree --vocabulary", "tree --text"),  # test_main.py
    "align --dictionary",  # tests/vectors/test_align.py
    *("plot --slices", "plot --word"),  # tests/plotting/test_arrows.py
    "explore --slices",  # tests/explore/test_page.py
    "compare-periods --model",  # tests/training/test_compare_periods.py
    *("convert --check", "explore --open"),
    "recommend --approximate",  # tests/vectors/test_recommend.py
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the inputs of all commands."""
    path = tmp_path_factory.mktemp("inputs")
    texts = ["a b", "b c"] * 20
    w2v.train_classifier(texts, ["x", "y"] * 20, workers=1).save(path / "classifier.safetensors")
    w2v.KeyedVectors(["a", "b", "c"], np.eye(3)).save(path / "old.bin")
    for name in "ab":
        (path / name).write_bytes((path / "old.bin").read_bytes())
    w2v.train([["a", "b", "c"]] * 40, vector_size=3, epochs=1, sample=0, workers=1).save(path / "old.safetensors")
    for name, text in {
        "text": "a b c\n" * 40,
        "labelled": "__label__x a b\n__label__y b c\n" * 20,
        "counts": "a 30\nb 20\nc 10\n",
        "list": "b\n",
        "edges": "a b\nb c\n",
        "pairs": "a b\n",
        "sg.toml": 'model = "skipgram"',
        "graph.toml": 'preset = "graph"\nepochs = 7',
    }.items():
        (path / name).write_text(text)
    return path


@contextmanager
def record_call(function: str) -> Iterator[Arguments]:
    """Yield a dict that gets the arguments of a call, by parameter. The call itself raises an error.

    Fields of options and arguments of `**` count as arguments. Of the source and the vocabulary of a run, the type is
    recorded; other objects are left out.
    """
    found: Arguments = {}
    original = pkgutil.resolve_name(f"w2v._{function}")
    owner, _, attribute = f"w2v._{function}".replace(":", ".").rpartition(".")

    def record(*args: Any, **kwargs: Any) -> None:
        signature = inspect.signature(original)
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()
        for key, value in sorted(bound.arguments.items(), key=lambda item: isinstance(item[1], RunConfig)):
            is_options = signature.parameters[key].kind is inspect.Parameter.VAR_KEYWORD
            for name, each in value.items() if is_options else [(key, value)]:
                found.update(plain_values(name, each))
        raise w2v.W2VError("called")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pkgutil.resolve_name(owner), attribute, record)
        yield found


def call(function: str, *command: str) -> Arguments:
    """Run a command until it calls a function, and return the arguments of the call; see `record_call`."""
    with record_call(function) as found:
        assert run(*command, code=1).stderr == "w2v: called\n"
    return found


def plain_values(name: str, value: Any) -> Arguments:
    if isinstance(value, Settings):
        return value.as_dict(computed=False)
    if name in ("source", "vocabulary"):
        return {name: value and type(value).__name__}
    if name == "notes":
        return {option: Path(path).name for option, path in value.get("outputs", {}).items()}
    if isinstance(value, RunConfig | ReadingOptions | PhraseOptions | WalkOptions | LabelOptions):
        parts = [plain_values(field.name, getattr(value, field.name)) for field in fields(value) if field.compare]
        return {key: each for part in parts for key, each in part.items()}
    if isinstance(value, tuple | list | frozenset):
        value = [str(each) if isinstance(each, Path) else each for each in value]
    elif isinstance(value, Path):
        value = str(value)
    return {name: value} if is_plain(value) else {}


def is_plain(value: Any) -> bool:
    if isinstance(value, dict | list):
        return all(map(is_plain, value.values() if isinstance(value, dict) else value))
    return isinstance(value, str | int | float | None)


@pytest.mark.parametrize("case", CALLS, ids=lambda case: f"{case.command} {case.function}")
def test_each_option_changes_only_its_own_argument(case: Call, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    before: dict[str, Arguments] = {}
    for option, changes in {"": case.defaults, **case.changes}.items():
        others, _, given = option.rpartition("|")
        command = [case.command, *case.needed.split(), *others.split()]
        if others not in before:
            before[others] = call(case.function, *command)
        found = call(case.function, *command, *given.split())
        assert found | changes == found, option
        changed = {name for name, value in found.items() if name not in before[others] or before[others][name] != value}
        assert changed <= changes.keys(), option


def call_train(**arguments: Any) -> Arguments:
    """Call w2v.train, and return the arguments of its run."""
    with record_call("training.train:open_training") as found, pytest.raises(w2v.W2VError, match=r"^called$"):
        w2v.train("text", **arguments)
    return found


def test_arguments_of_train_have_the_defaults_and_effects_of_the_options(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    defaults = call_train()
    assert defaults == defaults | TRAINING_DEFAULTS
    for option, changes in (SETTINGS | READING).items():
        if "|" not in option:
            found = call_train(**changes)
            assert found == found | defaults | changes, option
            if option in SETTINGS:
                assert call_train(settings=Settings(**changes)) == found, option


# Functions with other defaults than their commands.
OTHER_DEFAULTS = {
    "cli.commands.preparation:Vocabulary.load": {"min_count": 1},  # all words of a vocabulary file
    "vectors.encode:Encoder.blocks": {"column": "none"},
    "training.classifier:Classifier.read_predictions": {"column": "none"},
    "plotting.word_map:word_map": {"title": ""},
}


def test_functions_have_the_defaults_of_the_commands() -> None:
    found: dict[tuple[str, str], Any] = {}
    expected: dict[tuple[str, str], Any] = {}
    for case in CALLS:
        defaults = case.defaults | OTHER_DEFAULTS.get(case.function, {})
        for name, parameter in inspect.signature(pkgutil.resolve_name(f"w2v._{case.function}")).parameters.items():
            if name in defaults and parameter.default is not parameter.empty:
                default = parameter.default
                found[case.function, name] = list(default) if isinstance(default, tuple) else default
                expected[case.function, name] = defaults[name]
    assert found == expected != {}


@pytest.mark.parametrize("command", cli.COMMANDS)
def test_all_options_are_tested(command: str) -> None:
    tested = {word for case in CALLS if case.command == command for option in case.changes for word in option.split()}
    tested |= {option.removeprefix(f"{command} ") for option in TESTED_ELSEWHERE}
    for parameter in command_of(click.Context(cli.main), command).params:
        if isinstance(parameter, click.Option):
            assert {name for name in (*parameter.opts, *parameter.secondary_opts) if name != "-o"} <= tested


@pytest.mark.parametrize(
    "command",
    [
        "train text -o new.bin",
        "tune text -o new.bin",
        "perplexity old.safetensors text",
        "rank old.safetensors",
        "convert old.safetensors new.txt",
    ],
)
def test_objective_option_imports_the_loss(command: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    error = run(*command.split(), "--objective", "no_such_module:Name", code=2).stderr
    assert "objective no_such_module:Name: ModuleNotFoundError" in error


@pytest.mark.parametrize("command", sorted(cli.COMMANDS.keys() - {"perplexity"}))  # its defaults depend on the model
def test_help_shows_the_defaults(command: str) -> None:
    context = click.Context(cli.main)
    shown: dict[str, str] = {}
    parameters: dict[str, click.Option] = {}
    for parameter in command_of(context, command).params:
        if isinstance(parameter, click.Option) and (record := parameter.get_help_record(context)):
            found = re.search(r"\[default: ([^];]*)", record[1])
            names = [*parameter.opts, *parameter.secondary_opts]
            parameters |= dict.fromkeys(names, parameter)
            shown |= dict.fromkeys(names, found[1] if found else "")
    expected: dict[str, str] = {}
    for case in CALLS:
        for option, changes in case.changes.items():
            name, changed = option.rpartition("|")[2].split()[0], next(iter(changes))
            if case.command != command or len(changes) > 1 or name not in shown or changed not in case.defaults:
                continue
            default, parameter = case.defaults[changed], parameters[name]
            if parameter.is_flag and parameter.secondary_opts and default is not None:
                expected[name] = (parameter.opts if default else parameter.secondary_opts)[0].strip("-")
            elif not parameter.is_flag and name not in expected and default not in (None, False, []):
                expected[name] = str(default)
    assert {name: shown[name] for name, default in expected.items() if not shown[name].startswith(default)} == {}


@pytest.mark.parametrize(
    ("foreign", "spelling"),
    [
        ("-train text", "the names of the files only"),
        ("-output new.bin", "-o"),
        ("-binary 1", "-o NAME.bin or -o NAME.txt"),
        ("-t 0.25", "--sample"),
        ("-window 7", "--window"),
        ("-min-count 7", "--min-count"),
        ("-minCount 7", "--min-count"),
        ("-size 7", "--vector-size"),
        ("-dim 7", "--vector-size"),
        ("--dim 7", "--vector-size"),
        ("-epoch 7", "--epochs"),
        ("--thread 7", "--workers"),
        ("--thread=7", "--workers"),
        ("-size=7", "--vector-size"),
        ("--lr 7", "--alpha"),
        ("-minn 2", "--subwords 3-6, for -minn and -maxn"),
        ("-cbow 0", "--model cbow or --model skipgram"),
        ("-hs 1", "--loss hs or --loss ns"),
        ("-size", "--vector-size"),
    ],
)
def test_options_of_other_programs_are_translated(foreign: str, spelling: str) -> None:
    option = re.split("[ =]", foreign)[0]
    for command in "train", "tune", "slices":
        error = run(command, "text", *foreign.split(), code=2).stderr
        assert error == f"w2v: {option}: write {spelling}; see w2v {command} --help\n"
