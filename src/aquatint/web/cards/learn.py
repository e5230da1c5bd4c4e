"""Learn: a model trained from the release, its score on rows it has not seen, and its file."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from starlette.responses import Response

from aquatint.analyst.learn.files import save_learned
from aquatint.analyst.learn.front import chosen_columns, learn
from aquatint.analyst.learn.models import MODELS, named_model
from aquatint.analyst.learn.scores import Score, scores
from aquatint.analyst.synthesize.mixture import Mixture
from aquatint.errors import DataError
from aquatint.extras import need
from aquatint.web.cards import equivalents
from aquatint.web.cards.opened import Opened, Shelf
from aquatint.web.jobs import Job
from aquatint.web.pages import Visit

HELD_OUT = 10_000
UNSEEN = 1
"""The seed of the rows that a model is judged on; those it is trained on have seed 0."""
MOST_SECONDS = 60.0


@dataclass(frozen=True)
class Learned:
    """A trained model: its file's content, and how well it did."""

    content: bytes
    scores: list[Score]
    target: str
    model: str


def page(visit: Visit, opened: Opened) -> Response:
    """Show the form."""
    return visit.show("learn.html", **_form(opened), learned=None)


def _form(opened: Opened) -> dict[str, Any]:
    schema = opened.release.schema
    return {"opened": opened, "targets": list(schema.columns), "models": list(MODELS)}


def start(visit: Visit, opened: Opened, shelf: Shelf) -> Response:
    """Begin to train, or look how far it is; what cannot be trained is said at once."""
    job = _job(visit, opened, shelf)
    asked = {"target": visit.form.text("target"), "model": visit.form.text("model")}
    shown: dict[str, Any] = {"job": job, "again": asked, "learned": None}
    if job.ready:
        schema, found = opened.release.schema, job.result
        same = equivalents.learned(opened.path, found.model, schema, found.target)
        shown |= {"learned": found, "same": same, "held_out": HELD_OUT}
    if visit.partial:
        return visit.show("_learned.html", opened=opened, **shown)
    return visit.show("learn.html", **_form(opened), learned=shown)


def _job(visit: Visit, opened: Opened, shelf: Shelf) -> Job[Learned]:
    need("skops.io", extra="learn")
    schema = opened.release.schema
    schema.require_table("learning from a release")
    target, _ = chosen_columns(schema, visit.form.text("target") or None, None)
    model = visit.form.choice("model", MODELS, "logistic")
    named_model(model, schema, target, 0)
    what = f"training a {model} model"
    return shelf.work(
        ("learn", opened.place, model, target), what, lambda: train(opened, model, target)
    )


def train(opened: Opened, model: str, target: str) -> Learned:
    """Train, judge, and write the file."""
    opened.drawing.wait()
    if opened.drawing.problem:
        raise DataError(opened.drawing.problem)
    fitted, schema = opened.drawing.result, opened.release.schema
    prior = fitted if isinstance(fitted, Mixture) else None
    estimator = named_model(model, schema, target, 0)
    trained = learn(opened.release, estimator, target=target, model=prior, progress=False)
    unseen = fitted.sample(HELD_OUT, seed=UNSEEN)
    _, names = chosen_columns(schema, target, None)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.skops"
        save_learned(trained, path)
        content = path.read_bytes()
    return Learned(content, scores(trained, unseen, target, names), target, model)


def download(visit: Visit, opened: Opened, shelf: Shelf) -> Response:
    """Give the model as a file that runs no code when it is opened."""
    job = _job(visit, opened, shelf)
    if not job.wait(MOST_SECONDS):
        msg = "the model is not trained yet: try again in a moment"
        raise DataError(msg)
    name = f"{opened.name}-{job.result.target}.skops"
    return visit.download(job.result.content, name, "application/octet-stream")
