"""Let Spark load folders that w2v writes, and let w2v load folders that Spark writes.

    python tests/compat/spark.py

Installs Java, on Debian and Ubuntu as root, if it is missing. Prints one line if it cannot. Exits with 1 if a vector or
a nearest word differs.
"""

from __future__ import annotations

import importlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import w2v
from w2v._formats import spark as spark_folders
from w2v.data import make

SENTENCES = [line.split() for line in make.corpus(20_000, seed=1)]
QUERIES = ["the", "capital", "was"]


def session() -> Any:
    """Return a Spark session in this process's own Java, which writes models in part files of 64 kB."""
    builder = importlib.import_module("pyspark.sql").SparkSession.builder
    options = {
        "spark.ui.enabled": "false",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.sql.shuffle.partitions": "1",
        "spark.kryoserializer.buffer.max": "64k",
        "spark.log.level": "ERROR",
        "spark.ui.showConsoleProgress": "false",
    }
    for name, value in options.items():
        builder = builder.config(name, value)
    return builder.master("local[1]").getOrCreate()


def vectors_of(model: Any) -> dict[str, Any]:
    """Return the vector of each word of a Spark model."""
    return {row["word"]: row["vector"].toArray() for row in model.getVectors().collect()}


def compare(ours: w2v.KeyedVectors, model: Any) -> Iterator[tuple[str, bool]]:
    """Yield the name and the outcome of each check of a model that w2v and Spark have loaded."""
    theirs = vectors_of(model)
    yield "words", theirs.keys() == {*ours.index_to_key}
    yield "vectors", all(np.array_equal(np.float32(theirs[word]), ours[word]) for word in ours)
    for word in QUERIES:
        found = [(row["word"], row["similarity"]) for row in model.findSynonyms(word, 5).collect()]
        expected = ours.most_similar(word, topn=5)
        yield f"words nearest to {word}", [each for each, _ in found] == [each for each, _ in expected]
        yield f"cosines of {word}", np.allclose([c for _, c in found], [c for _, c in expected], atol=1e-5)


def checks(folder: Path) -> Iterator[tuple[str, bool]]:
    """Yield the name and the outcome of each check."""
    spark = session()
    feature = importlib.import_module("pyspark.ml.feature")
    texts = spark.createDataFrame([(sentence,) for sentence in SENTENCES], ["text"])

    trained = w2v.train(SENTENCES, vector_size=30, epochs=1, views="words").wv
    spark_folders.PART_BYTES = 64 << 10
    trained.save(folder / "ours.spark")
    yield "w2v writes several part files", len(list((folder / "ours.spark" / "data").glob("part-*"))) > 1
    model = feature.Word2VecModel.load(str(folder / "ours.spark"))
    yield "vector size", model.getVectorSize() == 30
    for name, passed in compare(trained, model):
        yield f"written by w2v: {name}", passed
    encoded = model.setInputCol("text").setOutputCol("vector").transform(texts).first()["vector"].toArray()
    known = [word for word in SENTENCES[0] if word in trained]
    # Spark divides by the number of all words, known or not.
    yield "vector of a sentence", np.allclose(encoded, trained[known].sum(axis=0) / len(SENTENCES[0]), atol=1e-5)
    model.write().save(str(folder / "again"))
    yield "Spark writes several part files", len(list((folder / "again" / "data").glob("part-*"))) > 1
    for name, passed in compare(w2v.load(folder / "again"), model):
        yield f"written by Spark: {name}", passed

    estimator = feature.Word2Vec(vectorSize=20, minCount=5, seed=1, inputCol="text", outputCol="vector")
    pipeline = importlib.import_module("pyspark.ml").Pipeline(stages=[estimator]).fit(texts)
    pipeline.write().save(str(folder / "pipeline"))
    try:
        w2v.load(folder / "pipeline")
    except w2v.W2VError as error:
        stage = Path(str(error).rpartition(" ")[2])
        yield "a pipeline is refused", "not a Word2VecModel: give the folder of its stage" in str(error)
        for name, passed in compare(w2v.load(stage), pipeline.stages[0]):
            yield f"trained by Spark: {name}", passed
    older = importlib.import_module("pyspark.mllib.feature").Word2Vec().setVectorSize(20).setMinCount(5).setSeed(1)
    older = older.fit(texts.rdd.map(lambda row: row["text"]))
    older.call("save", spark.sparkContext._jsc.sc(), str(folder / "older"))
    ours = w2v.load(folder / "older")
    java = older.getVectors()
    yield "trained by mllib: vectors", all(np.array_equal(np.float32([*java[word]]), ours[word]) for word in ours)
    spark.stop()


def install_java() -> bool:
    """Install Debian's Java if there is none. Return whether Java starts."""
    if find_java() is None and shutil.which("apt-get") and os.geteuid() == 0:
        os.environ["DEBIAN_FRONTEND"] = "noninteractive"
        run_silently(["apt-get", "update"])
        run_silently(["apt-get", "install", "--yes", "--no-install-recommends", "default-jre-headless"])
    java = find_java()
    return java is not None and run_silently([java, "-version"])


def find_java() -> str | None:
    home = os.environ.get("JAVA_HOME")
    return shutil.which("java", path=f"{home}/bin" if home else None)


def run_silently(command: list[str]) -> bool:
    """Run a command without output, and return whether it succeeds."""
    return subprocess.run(command, capture_output=True).returncode == 0


def main() -> int:
    if not install_java():
        print("Spark: skipped, because Java is missing; on Debian and Ubuntu: apt install default-jre-headless")
        return 0
    done = subprocess.run([sys.executable, __file__, "--checks"], capture_output=True, text=True)  # Java writes a lot
    print(done.stdout if done.stdout else f"Spark: {done.stderr.strip().splitlines()[-1]}\n", end="")
    return done.returncode


def run_checks() -> int:
    """Run the checks and print their outcome."""
    with tempfile.TemporaryDirectory() as folder:
        results = list(checks(Path(folder)))
    failed = [name for name, passed in results if not passed]
    print(f"Spark: {len(results) - len(failed)} of {len(results)} checks pass", *failed, sep="\n  ")
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(run_checks() if sys.argv[1:] == ["--checks"] else main())
