"""The whole bench in one call: what it holds, prints and draws, and that it is not private."""

import json
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg

from aquatint import drawing
from aquatint.errors import DataError
from aquatint.evaluate import Evaluation, evaluate, evaluation_text, plots, report
from aquatint.evaluate.errors import EvaluationError
from aquatint.evaluate.second_opinion import second_opinion
from aquatint.evaluate.tables import Grid, encode
from aquatint.extras import MissingExtraError
from aquatint.schema import Schema

SCHEMA = Schema.from_dict(
    {
        "name": "clinic",
        "label": "ill",
        "privacy": {"protects": "all rows of one person", "person": "id"},
        "columns": {
            "age": {"kind": "integer", "bounds": [0, 99]},
            "dose": {"kind": "numeric", "bounds": [0, 1], "missing": True},
            "seen": {"kind": "date", "bounds": ["2020-01-01", "2020-12-31"]},
            "price $ of $": {"kind": "categorical", "categories": ["$x^$", "a_b", "c"]},
            "ill": {"kind": "boolean"},
        },
    }
)


def people(count, seed, shift=0):
    rng = np.random.default_rng(seed)
    age = (rng.integers(0, 100, count) + shift).clip(0, 99)
    frame = pd.DataFrame({"age": age, "dose": rng.random(count).round(4)})
    frame.loc[rng.random(count) < 0.1, "dose"] = np.nan
    frame["seen"] = pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 366, count), "D")
    frame["price $ of $"] = rng.choice(["$x^$", "a_b", "c"], count)
    frame["ill"] = rng.random(count) < 1 / (1 + np.exp(5 - age / 12))
    return frame


REAL, TEST, SYNTHETIC = people(400, 0), people(300, 1), people(350, 2, shift=10)


@pytest.fixture(scope="module")
def full():
    return evaluate(
        REAL,
        TEST,
        SYNTHETIC,
        SCHEMA,
        classifiers="quick",
        baseline=True,
        as_published=True,
        undersampling=0.5,
        progress=False,
    )


@pytest.fixture(scope="module")
def bare():
    return evaluate(REAL, None, SYNTHETIC, SCHEMA, progress=False)


def said_by(evaluation, capsys):
    capsys.readouterr()
    evaluation_text(evaluation)
    return capsys.readouterr().out


# --- what it holds --------------------------------------------------------------------------------


def test_plain_data_survives_json_and_says_that_it_is_not_private(full):
    data = full.to_dict()
    assert json.loads(json.dumps(data, allow_nan=False)) == data
    assert data["private"] is False
    assert data["note"].startswith("NOT PRIVATE")
    assert data["rows"] == {"real": 400, "test": 300, "synthetic": 350}
    assert set(data["closeness"]["columns"]) == set(SCHEMA.columns)
    assert data["closeness"]["columns"]["ill"]["wasserstein"] is None
    assert len(data["closeness"]["worst_pairs"]) == 10
    assert set(data["utility"]["classifiers"]) == {
        "logistic",
        "random_forest",
        "hist_gradient_boosting",
    }
    assert set(data["as_published"]["alpha_way"]) == {"2", "3", "4"}
    assert data["utility"]["as_published"]["mean"].keys() == {"roc", "prc"}


def test_published_scores_learn_from_thinned_rows_and_right_ones_do_not(full, monkeypatch):
    trained, true = [], report.predictions

    def watched(rows, *given, **named):
        trained.append(np.bincount(rows.codes["ill"], minlength=2)[:2])
        return true(rows, *given, **named)

    monkeypatch.setattr(report, "predictions", watched)
    given = {"classifiers": ["logistic"], "as_published": True, "progress": False}
    evaluate(REAL, TEST, SYNTHETIC, SCHEMA, undersampling=0.5, **given)
    whole, thinned = trained
    common = int(REAL["ill"].mean() > 0.5)  # of the real rows
    assert thinned[common] == whole[common] // 2
    assert thinned[1 - common] == whole[1 - common]
    plain = evaluate(REAL, TEST, SYNTHETIC, SCHEMA, **given)
    assert len(trained) == 3  # nothing is thinned: the same classifiers serve both
    assert plain.utility.scores[0].metrics == full.utility.scores[0].metrics


def test_an_evaluation_cannot_be_changed(full):
    with pytest.raises(AttributeError):
        full.seed = 3
    assert isinstance(full, Evaluation)


def test_a_planted_shift_is_found_where_it_is(full):
    tv = {name: value["tv"] for name, value in full.to_dict()["closeness"]["columns"].items()}
    assert max(tv, key=tv.get) == "age"
    assert full.closeness.fidelity.wasserstein["age"] == pytest.approx(0.1, abs=0.04)
    assert full.held_out.fidelity.wasserstein["age"] < 0.05
    assert full.closeness.mmd.mmd > full.held_out.mmd.mmd


def test_the_real_rows_are_a_baseline_for_models(full):
    assert full.baseline.positive == full.utility.positive == "true"
    again = evaluate(REAL, TEST, REAL, SCHEMA, classifiers="logistic", progress=False)
    assert full.baseline.scores[0].metrics == again.utility.scores[0].metrics
    assert full.baseline.scores[0].metrics != full.utility.scores[0].metrics


def test_results_are_the_same_again_and_follow_the_seed(full):
    again = evaluate(
        REAL, TEST, SYNTHETIC, SCHEMA, classifiers="quick", progress=False, seed=full.seed
    ).to_dict()
    assert again["closeness"] == full.to_dict()["closeness"]
    assert again["utility"]["classifiers"] == full.to_dict()["utility"]["classifiers"]
    other = evaluate(
        REAL, TEST, SYNTHETIC, SCHEMA, classifiers="random_forest", progress=False, seed=5
    ).to_dict()
    assert other["closeness"]["mmd"] != again["closeness"]["mmd"]
    forest = again["utility"]["classifiers"]["random_forest"]
    assert other["utility"]["classifiers"]["random_forest"] != forest


def test_files_give_what_frames_give(tmp_path, bare):
    REAL.to_csv(tmp_path / "real.csv", index=False)
    SYNTHETIC.to_parquet(tmp_path / "synthetic.parquet")
    found = evaluate(
        tmp_path / "real.csv",
        None,
        str(tmp_path / "synthetic.parquet"),
        SCHEMA,
        progress=False,
    )
    assert found.to_dict() == bare.to_dict()


def test_without_test_rows_there_are_no_classifiers_and_no_need_for_them(monkeypatch, bare):
    monkeypatch.setitem(sys.modules, "sklearn", None)
    again = evaluate(REAL, None, SYNTHETIC, SCHEMA, progress=False)
    assert again.to_dict() == bare.to_dict()
    assert bare.to_dict()["utility"] is bare.to_dict()["baseline"] is None


def test_without_a_label_there_are_no_classifiers_either():
    schema = SCHEMA.model_copy(update={"label": None})
    found = evaluate(REAL, TEST, SYNTHETIC, schema, baseline=True, progress=False)
    assert found.utility is None
    assert found.baseline is None
    assert found.held_out is not None


def test_what_cannot_be_done_is_refused_before_anything_is_read():
    with pytest.raises(EvaluationError, match="needs test rows"):
        evaluate("nowhere.csv", None, "nowhere.csv", SCHEMA, target="ill")
    with pytest.raises(EvaluationError, match="no classifier is named 'svm'"):
        evaluate("nowhere.csv", "nowhere.csv", "nowhere.csv", SCHEMA, classifiers="svm")


def test_real_rows_that_do_not_fit_are_named():
    with pytest.raises(DataError, match="the test table's column 'age' has missing values"):
        evaluate(REAL, TEST.assign(age=np.nan), SYNTHETIC, SCHEMA, progress=False)


def test_an_error_says_which_table_it_is_about():
    with pytest.raises(DataError, match="the synthetic table: column 'age' holds fractions"):
        evaluate(REAL, None, SYNTHETIC.assign(age=0.5), SCHEMA, progress=False)
    with pytest.raises(DataError, match=r"the synthetic table: the data has no column 'ill'"):
        evaluate(REAL, None, SYNTHETIC.drop(columns="ill"), SCHEMA, progress=False)


def test_one_column_is_enough():
    schema = SCHEMA.model_copy(update={"columns": {"age": SCHEMA.columns["age"]}, "label": None})
    found = evaluate(REAL, None, SYNTHETIC, schema, as_published=True, progress=False)
    assert found.to_dict()["closeness"]["tv2"] is None
    assert found.to_dict()["as_published"] == {"alpha_way": {}, "undersampling": 1.0}


# --- what it prints -------------------------------------------------------------------------------


def test_the_text_says_that_it_is_not_private_and_fits_on_a_screen(full, capsys):
    said = said_by(full, capsys)
    lines = said.splitlines()
    assert "NOT PRIVATE" in lines[1]
    assert len(lines) <= 30
    assert max(map(len, lines)) <= 160
    assert "predicting ill = true" in said
    assert "ROC*" in said
    assert "as published: hard labels, and 50.0% of the commonest class" in said
    assert "SDMetrics" not in said
    assert f"{full.closeness.fidelity.means['tv1']:.4f}" in said


def test_the_second_opinion_is_printed_and_kept(full, capsys):
    found = replace(full, second_opinion={"score": 0.5, "column_shapes": 0.25})
    assert "SDMetrics, 1 is best: score 0.5000, column shapes 0.2500" in said_by(found, capsys)
    assert found.to_dict()["second_opinion"] == {"score": 0.5, "column_shapes": 0.25}


def test_the_text_leaves_out_what_was_not_asked_for(bare, capsys):
    said = said_by(bare, capsys)
    assert "NOT PRIVATE" in said
    for absent in ("predicting", "ROC", "as published", "SDMetrics", "real test rows"):
        assert absent not in said


def test_several_classes_print_f1(capsys):
    found = evaluate(
        REAL, TEST, SYNTHETIC, SCHEMA, target="price $ of $", classifiers="lda", progress=False
    )
    said = said_by(found, capsys)
    assert "F1 weighted" in said
    assert found.utility.positive is None
    assert "predicting price $ of $ in real test rows" in said


def test_markup_in_names_is_printed_as_it_is(capsys, bare):
    schema = bare.grid.schema.model_copy(update={"name": "[red]clinic[/red]"})
    odd = replace(bare, grid=Grid(schema))
    assert "[red]clinic[/red]" in said_by(odd, capsys)


def test_a_fit_that_did_not_converge_is_told(full, capsys):
    first, *rest = full.utility.scores
    told = replace(first, note="did not converge")
    utility = replace(full.utility, scores=(told, *rest))
    assert "did not converge" in said_by(replace(full, utility=utility), capsys)


# --- what it draws --------------------------------------------------------------------------------


@pytest.mark.parametrize(("suffix", "start"), [(".png", b"\x89PNG"), (".svg", b"<?xml")])
def test_figures_are_written_and_not_empty(full, tmp_path, suffix, start):
    paths = plots.draw(full, tmp_path, suffix=suffix)
    assert [p.name for p in paths] == [f"{n}{suffix}" for n in ("marginals", "pairs", "roc")]
    for path in paths:
        content = path.read_bytes()
        assert content.startswith(start)
        assert len(content) > 10_000


def test_figures_without_classifiers_or_pairs_are_left_out(bare, tmp_path):
    assert [p.stem for p in plots.draw(bare, tmp_path)] == ["marginals", "pairs"]
    with pytest.raises(EvaluationError, match="ROC curves need"):
        plots.roc_curves(bare)


def test_equal_figures_give_equal_files(bare, tmp_path):
    for name in ("one.svg", "two.svg"):
        drawing.save(plots.pairs(bare), tmp_path / name)
    assert (tmp_path / "one.svg").read_bytes() == (tmp_path / "two.svg").read_bytes()


def test_files_that_cannot_be_written_are_refused_in_a_sentence(bare, tmp_path):
    with pytest.raises(DataError, match=r"ends in \.png or \.svg"):
        drawing.save(plots.pairs(bare), tmp_path / "pairs.gif")
    with pytest.raises(DataError, match="cannot write"):
        drawing.save(plots.pairs(bare), tmp_path / "nowhere" / "pairs.png")


def boxes(figure):
    """Where the words of a figure are, once it is laid out."""
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    renderer = canvas.get_renderer()
    texts = [t for axes in figure.axes if axes.get_visible() for t in words(axes)]
    texts += [t for t in (figure._suptitle, *figure.legends) if t is not None]
    return [t.get_window_extent(renderer) for t in texts]


def words(axes):
    found = [axes._left_title, axes.xaxis.label, axes.yaxis.label, *axes.texts]
    for axis in (axes.xaxis, axes.yaxis):
        low, high = sorted(axis.get_view_interval())
        found += [t.label1 for t in axis.get_major_ticks() if low <= t.get_loc() <= high]
    return [t for t in found if t.get_visible() and t.get_text()]


def wide_evaluation(bare, columns):
    """An evaluation with many columns of long names, without the work."""
    names = [f"a rather long name of column {i}" for i in range(columns)]
    whole = dict.fromkeys(names, SCHEMA.columns["age"])
    grid = Grid(SCHEMA.model_copy(update={"columns": whole, "label": None}))
    one = {(n,): i / 100 for i, n in enumerate(names)}
    two = {(a, b): 0.1 for i, a in enumerate(names) for b in names[:i]}
    fidelity = replace(bare.closeness.fidelity, one=one, two=two)
    shares = dict.fromkeys(names, bare.shares["age"])
    return replace(
        bare, grid=grid, shares=shares, closeness=replace(bare.closeness, fidelity=fidelity)
    )


@pytest.mark.parametrize(
    "kind", ["marginals", "pairs", "roc_curves", "many", "many pairs", "spikes"]
)
def test_no_word_of_a_figure_is_cut_off_or_runs_into_another(full, bare, spiked, kind):
    if kind == "spikes":
        figure = plots.marginals(spiked)
    elif kind.startswith("many"):
        shown = wide_evaluation(bare, 45)
        figure = plots.marginals(shown) if kind == "many" else plots.pairs(shown)
    else:
        figure = getattr(plots, kind)(full)
    found = boxes(figure)
    assert len(found) >= 10
    frame = figure.bbox
    for box in found:
        assert box.x0 >= -1, kind
        assert box.y0 >= -1
        assert box.x1 <= frame.x1 + 1
        assert box.y1 <= frame.y1 + 1
    if "pairs" in kind:  # slanted labels have boxes that overlap though the words do not
        return
    for i, a in enumerate(found):
        for b in found[:i]:
            across = min(a.x1, b.x1) - max(a.x0, b.x0)
            along = min(a.y1, b.y1) - max(a.y0, b.y0)
            assert across < 1 or along < 1, (kind, a, b)


@pytest.fixture(scope="module")
def spiked():
    """Columns that pile up on points, which have bins of (almost) no width."""
    columns = {
        "amount": {"kind": "numeric", "bounds": [0, 1000], "bins": [0, 1e-4, 100, 500, 1000]},
        "fee": {"kind": "numeric", "bounds": [0, 9], "bins": [0, 3, 3.000001, 5, 5.000001, 9]},
        "age": {"kind": "integer", "bounds": [0, 99], "bins": [0, 1, 2, 3, 5, 9, 30, 99]},
        "seen": {
            "kind": "date",
            "bounds": ["2020-01-01", "2020-12-31"],
            "bins": [18262, 18263, 18270, 18300, 18400, 18500, 18627],
        },
    }
    privacy = {"protects": "add or remove one row"}
    schema = Schema.from_dict({"name": "spikes", "privacy": privacy, "columns": columns})
    rng = np.random.default_rng(0)
    count = 400
    frame = pd.DataFrame(
        {
            "amount": np.where(rng.random(count) < 0.6, 0, rng.uniform(1, 1000, count)),
            "fee": rng.choice([1, 3, 5], count),
            "age": rng.integers(0, 100, count),
            "seen": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 366, count), "D"),
        }
    )
    return evaluate(frame, None, frame, schema, progress=False)


def test_a_bin_for_a_point_is_drawn_as_high_as_its_share(spiked):
    panels = plots.marginals(spiked).axes
    for axes, name in zip(panels, spiked.shares, strict=False):
        shares = spiked.shares[name][0][:-1]
        heights, places, _ = axes.patches[0].get_data()
        assert heights == pytest.approx(shares), name
        assert places.tolist() == list(range(len(shares) + 1))
        assert axes.get_ylim()[1] <= 1.1
    labels = [[t.get_text() for t in axes.get_xticklabels()] for axes in panels]
    assert labels[0] == ["0", "100", "500", "1k"]
    assert labels[1] == ["0", "3", "5", "9"]
    assert panels[1].get_xticks().tolist() == [0, 1.5, 3.5, 5]
    assert labels[3][0] == "2020-01-01"


def test_bins_of_much_the_same_width_keep_their_places(bare):
    axes = plots.marginals(bare).axes[0]
    heights, places, _ = axes.patches[0].get_data()
    assert (places[0], places[-1]) == (0, 100)
    widths = np.diff(places) / 100
    assert heights * widths * len(heights) == pytest.approx(bare.shares["age"][0][:-1])


def test_many_columns_are_cut_down_to_those_that_differ_most(bare):
    shown = wide_evaluation(bare, 45)
    figure = plots.marginals(shown)
    assert len([axes for axes in figure.axes if axes.get_visible()]) == 24
    assert "24 of 45" in figure._suptitle.get_text()
    matrix = plots.pairs(shown).axes[0].images[0].get_array()
    assert matrix.shape == (40, 40)


# --- extras ---------------------------------------------------------------------------------------


def test_sdmetrics_is_a_second_opinion():
    pytest.importorskip("sdmetrics")
    grid = Grid(SCHEMA)
    real, near, far = (encode(f, grid) for f in (REAL, TEST, people(350, 2, shift=60)))
    best, good, bad = (second_opinion(real, t, grid) for t in (real, near, far))
    assert best.keys() == {"score", "column_shapes", "column_pair_trends"}
    assert best["score"] == pytest.approx(1.0)
    assert best["score"] > good["score"] > bad["score"]


@pytest.mark.parametrize(
    ("module", "extra", "options"),
    [
        ("sdmetrics.reports.single_table", "sdmetrics", {"second_opinion": True}),
        ("sklearn.linear_model", "evaluate", {"classifiers": "logistic"}),
    ],
)
def test_a_missing_package_is_asked_for_by_its_extra(monkeypatch, module, extra, options):
    monkeypatch.setitem(sys.modules, module, None)
    package = module.partition(".")[0]
    said = rf"^{package} is not installed: pip install 'aquatint\[{extra}\]'$"
    with pytest.raises(MissingExtraError, match=said):
        evaluate(REAL, TEST, SYNTHETIC, SCHEMA, progress=False, **options)


def test_a_missing_matplotlib_is_asked_for(monkeypatch, bare):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(MissingExtraError, match="matplotlib is not installed"):
        plots.marginals(bare)


def test_importing_the_bench_loads_no_heavy_package():
    probe = (
        "import sys, aquatint.evaluate\n"
        "heavy = {'torch', 'sklearn', 'xgboost', 'matplotlib', 'sdmetrics', 'pandas'}\n"
        "assert not heavy & set(sys.modules)\n"
        "import aquatint.evaluate.report, aquatint.evaluate.plots, aquatint.evaluate.images\n"
        "assert not (heavy - {'torch', 'pandas'}) & set(sys.modules)\n"
        "assert sorted(dir(aquatint.evaluate)) == ['Evaluation', 'ImageEvaluation', 'evaluate', "
        "'evaluate_images', 'evaluation_text', 'image_evaluation_text']\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", probe], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
