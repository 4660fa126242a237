"""Commands that visualise a model: `plot` and `explore`."""

from __future__ import annotations

import webbrowser
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import click

from w2v._cli import options, outputs
from w2v._cli.console import ProgressPrinter, say
from w2v._cli.options import FILE, refuse_together
from w2v._cli.printing import Result, print_result
from w2v._errors import SettingsError, pluralise
from w2v._explore import content
from w2v._explore import page as pages
from w2v._explore.content import examples
from w2v._explore.explorer import Explorer
from w2v._plotting.projection import Projection
from w2v._plotting.words import CLUSTERS, PAIRS, SKIPPED, WORDS, Groups
from w2v._progress import Report
from w2v._system.files import Errors
from w2v._training.classifier import Classifier
from w2v._training.labelled import score_file
from w2v._vectors.align import check_slices
from w2v._vectors.approximate import RECALL_TOPN, ApproximateIndex
from w2v._vectors.keyed import KeyedVectors, load

PAGE_SUFFIXES = (".html", ".htm")
PROJECTION = options.choice_option(
    "--method",
    choices=Projection,
    default="pca",
    help="How to project vectors to the plane: principal components (pca), t-SNE (needs openTSNE) or UMAP (needs "
    "umap-learn).",
)


@click.command(cls=options.ResultCommand)
@options.MODEL
@click.argument("words", nargs=-1)
@options.file_option("-o", "--output", required=True, help="File to write: .png, .svg or .pdf.")
@options.file_option(
    "--words", "words_file", metavar="FILE", help='Draw the words in this file. A line ": name" begins a group.'
)
@options.number_option(
    "--topn",
    help=f"Draw the N most frequent words, or the first N pairs of --analogies.  [default: {WORDS}, or {PAIRS} pairs]",
)
@options.number_option(
    "--skip", help=f"Skip the N most frequent words.  [default: {SKIPPED}, or fewer if less than --topn would remain]"
)
@PROJECTION
@options.choice_option(
    "--groups",
    choices=Groups,
    help="Colour words by the groups of the --words file (sections), by k-means clusters, or by frequency.  "
    "[default: sections if the file has any and --clusters is not given, otherwise clusters]",
)
@options.number_option("--clusters", common=False, help=f"Number of clusters.  [default: {CLUSTERS}]")
@options.number_option("--seed", common=False, default=1, help="Seed of t-SNE, UMAP and k-means.")
@click.option(
    "--analogies",
    is_flag=False,
    flag_value="",
    metavar="[SECTION]",
    help="Draw the pairs in a section of analogy questions as arrows. Without SECTION, it is the first one.",
)
@options.rare_option("--questions", type=FILE, help="Use these questions for --analogies instead of the bundled ones.")
@click.option(
    "--slices",
    is_flag=True,
    help="Draw the path of --word through several models, all named in place of WORDS, among its nearest words.",
)
@click.option("--word", "slice_words", multiple=True, help="The word for --slices.")
@options.LABELLED
@options.COLUMN_OF_TEXTS
@options.ENCODING
@options.ERRORS
@options.WRITING
def plot(
    model: Path,
    errors: Errors,
    words: tuple[str, ...],
    output: Path,
    words_file: Path | None,
    topn: int | None,
    analogies: str | None,
    questions: Path | None,
    slices: bool,
    slice_words: tuple[str, ...],
    labelled: Path | None,
    force: bool,
    progress: Report,
    **drawing: Any,
) -> Result:
    """Draw a map of WORDS, or of the most frequent words.

    Words near each other on the map occur in similar contexts. A plane shows this only roughly; t-SNE and UMAP preserve
    neighbours best. Frequent words have larger points. Labels that do not fit are left out. The same seed gives the
    same file.

    With --labelled, MODEL is a classifier, and the picture is its confusion matrix.

    \b
    w2v plot model.bin -o map.png
    w2v plot model.bin king queen man woman -o few.svg
    w2v plot model.bin --words groups.txt --method tsne -o groups.pdf
    w2v plot model.bin --analogies country-capital -o capitals.svg
    w2v plot classifier.safetensors --labelled test.txt -o confusion.png
    w2v plot --slices 1990s.bin 2000s.bin 2010s.bin --word mouse -o mouse.svg
    """
    of_texts = {name: drawing.pop(name) for name in ("labels", "column", "header", "encoding")}
    if labelled:
        maps = ("words", "words_file", "topn", "skip", "method", "groups", "clusters", "seed", "analogies", "questions")
        refuse_together("--labelled", (*maps, "slices", "slice_words"))
        outputs.check(output, force, [labelled], models=[model])
        outputs.check_picture_format(output)
        from w2v._plotting.confusion import confusion_matrix

        texts = options.corpus_of([str(labelled)], of_texts["header"])
        reading = options.reading_arguments(of_texts | {"errors": errors})
        scores = score_file(Classifier.load(model), texts, labels=of_texts["labels"], **reading, progress=progress)
        picture = confusion_matrix(scores, model.name)
        outputs.save([(output, outputs.saver(picture))], force)
        return {"output": str(output), "texts": scores.texts, "labels": picture.labels}
    options.refuse_without("--labelled", of_texts)
    if slices:
        refuse_together("--slices", ("words_file", "topn", "skip", "groups", "clusters", "analogies", "questions"))
        if len(slice_words) != 1:
            given = f"given {len(slice_words)} times: give it once" if slice_words else "missing"
            raise click.UsageError(f"--slices needs one --word, which is {given}")
    elif slice_words:
        raise click.UsageError("--word has no effect without --slices")
    elif words:
        refuse_together("WORDS", ("words_file", "topn", "skip"))
    if words_file:
        refuse_together("--words", ("topn", "skip"))
    if analogies is not None:
        refuse_together("--analogies", ("words", "words_file", "skip", "method", "groups", "clusters", "seed"))
    elif questions:
        raise click.UsageError("--questions has no effect without --analogies")
    if drawing["groups"] in ("sections", "frequency"):
        refuse_together(f"--groups {drawing['groups']}", ("clusters",))
    files = [model, *(map(Path, words) if slices else ())]
    outputs.check(output, force, filter(None, (words_file, questions)), models=files)
    outputs.check_picture_format(output)
    from w2v._plotting.arrows import analogy_map, word_path
    from w2v._plotting.word_map import METHOD_NAMES, read_sections, word_map

    chosen = read_sections(words_file) if words_file else {"": list(words)} if words else None
    names = names_of(files, [file.stem for file in files])
    models = {name: load(file, errors=errors, progress=progress) for name, file in zip(names, files, strict=True)}
    vectors = models[names[0]]
    if slices:
        picture = word_path(models, slice_words[0], method=drawing["method"], seed=drawing["seed"], progress=progress)
    elif analogies is not None:
        picture = analogy_map(vectors, analogies or None, questions, topn=PAIRS if topn is None else topn)
    else:
        words_to_draw = dict.fromkeys(word for part in (chosen or {}).values() for word in part)
        unknown = [word for word in words_to_draw if not vectors.is_known(word)]
        if words_file and chosen and unknown:
            say(f"{words_file}: {pluralise(len(unknown), 'word')} not in the vocabulary: {', '.join(unknown[:5])}")
            chosen = {name: [word for word in part if vectors.is_known(word)] for name, part in chosen.items()}
        title = f"{model.name}, {METHOD_NAMES[drawing['method']]}"
        picture = word_map(
            vectors, chosen, topn=WORDS if topn is None else topn, **drawing, title=title, progress=progress
        )
    outputs.save([(output, outputs.saver(picture))], force)
    return {"output": str(output), "words": picture.words, "labels": picture.labels}


def names_of(files: Sequence[Path], short: list[str]) -> list[str]:
    """Return the names to show for files: the short ones if they differ, otherwise the paths.

    Raises:
        SettingsError: A file is named twice.
    """
    names = short if len({*short}) == len(short) else list(map(str, files))
    if repeated := [name for name in names if names.count(name) > 1]:
        raise SettingsError(f"{repeated[0]} is named twice")
    return names


@click.command(cls=options.ShortHelp)
@click.argument("models", metavar="MODEL [MODEL2]", nargs=-1, required=True, type=FILE)
@options.file_option(
    "-o", "--output", help="Write the page to this .html file, which needs neither a server nor a network."
)
@options.number_option(
    "--restrict-vocab",
    default=content.RESTRICT_VOCAB,
    help="Put the N most frequent words in the file, or on the map of a served page.",
)
@PROJECTION
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="Port of the server.  [default: any free port]")
@click.option(
    "--host", default="127.0.0.1", show_default=True, help="Address of the server. 0.0.0.0 lets other machines connect."
)
@click.option(
    "--approximate",
    is_flag=True,
    help="Search with an approximate index and show its recall. This needs usearch, and time to build the index.",
)
@click.option(
    "--slices",
    is_flag=True,
    help="Show several models, such as models of periods, on maps with the same axes. They need one coordinate system, "
    "from w2v align or w2v slices.",
)
@click.option("--open", "open_page", is_flag=True, help="Open the page in the browser.")
@options.ERRORS
@options.WRITING
def explore(
    models: tuple[Path, ...],
    errors: Errors,
    output: Path | None,
    restrict_vocab: int,
    method: Projection,
    port: int,
    host: str,
    approximate: bool,
    slices: bool,
    open_page: bool,
    force: bool,
    quiet: bool,
    as_json: bool,
) -> None:
    """Explore MODEL in the browser: neighbours, analogies, a map.

    w2v serves the page on this machine until Ctrl-C. The page searches all words, and shows two models side by side if
    you name MODEL2, or any number of them with --slices. With -o, w2v instead writes a page to a file that you can keep
    or send. Such a page has only the --restrict-vocab most frequent words.

    \b
    w2v explore model.bin --open
    w2v explore model.bin -o page.html
    w2v explore old.bin new.bin --method umap --port 8000
    w2v explore --slices aligned/1990s.safetensors aligned/2000s.safetensors aligned/2010s.safetensors
    """
    if slices and len(models) < 2:
        raise click.UsageError("--slices needs at least two models")
    if not slices and len(models) > 2:
        raise click.UsageError(f"{len(models)} models: name one or two, or add --slices")
    names = names_of(models, [file.stem if slices else file.name for file in models])

    def load_models(progress: Report) -> dict[str, KeyedVectors]:
        loaded = (load(file, errors=errors, progress=progress) for file in models)
        return dict(zip(names, loaded, strict=True))

    if output:
        refuse_together("--output", ("port", "host", "approximate"))
        outputs.check(output, force, models=models)
        if output.suffix.lower() not in PAGE_SUFFIXES:
            raise SettingsError(f"{output}: unknown extension of a page: use .html")
        with ProgressPrinter(quiet) as progress:
            page = pages.explore_page(load_models(progress), restrict_vocab, method, slices, progress)
        outputs.save([(output, outputs.saver(page))], force)
        print_result({"output": str(output), "bytes": len(page.html.encode())}, as_json, quiet)
        if open_page:
            open_in_browser(output.absolute().as_uri())
        return
    from w2v._explore.server import Server

    with ExitStack() as stack:
        server = stack.enter_context(Server(host, port))
        with ProgressPrinter(quiet) as progress:
            loaded = load_models(progress)
            if slices:
                check_slices(loaded)
            maps = content.word_maps([*loaded.values()], restrict_vocab, method, slices, progress)
            served = [
                _serve(name, vectors, word_map, approximate, progress)
                for (name, vectors), word_map in zip(loaded.items(), maps, strict=True)
            ]
        facts, explorers = zip(*served, strict=True)
        print_result({"url": server.url}, as_json, quiet, lambda result: click.echo(result["url"]))
        if not (as_json or quiet):
            say("the page is served at this address until Ctrl-C")
        if open_page:
            open_in_browser(stack.enter_context(server.redirecting()).as_uri())
        start = examples([*loaded.values()], restrict_vocab)
        server.run(pages.build_html(facts, start, slices, connect="'self'"), explorers)


def _serve(
    name: str, vectors: KeyedVectors, word_map: content.Content, approximate: bool, progress: Report
) -> tuple[dict[str, Any], Explorer]:
    """Return facts about a model for a served page, and the explorer that answers the requests of the page."""
    index, search = None, "exact search in all words"
    if approximate:
        index = ApproximateIndex(vectors.vectors, progress)
        recall = index.recall(vectors.vectors)
        search = f"approximate search in all words, with a recall of {recall:.1%} of the {RECALL_TOPN} nearest words"
    facts = content.model_facts(name, vectors, search)
    return facts, Explorer(vectors, word_map, index)


def open_in_browser(url: str) -> None:
    """Open a page in the browser, or print a message if there is no browser."""
    if not webbrowser.open(url):
        say("no browser was found: open the page yourself")
