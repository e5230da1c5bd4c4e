"""Aquatint: etch once, print for ever. Differentially private release of data.

The names below are the whole public interface; each is imported when it is first used, so that
``import aquatint`` is quick.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from aquatint import curator as curator
    from aquatint import features as features
    from aquatint import networks as networks
    from aquatint.accounting import Budget as Budget
    from aquatint.analyst.compare.front import compare as compare
    from aquatint.analyst.compare.front import compare_all as compare_all
    from aquatint.analyst.images.centring import centred_view as centred_view
    from aquatint.analyst.learn.estimators import AquatintClassifier as AquatintClassifier
    from aquatint.analyst.learn.estimators import AquatintRegressor as AquatintRegressor
    from aquatint.analyst.learn.files import load_learned as load_learned
    from aquatint.analyst.learn.files import save_learned as save_learned
    from aquatint.analyst.learn.front import learn as learn
    from aquatint.analyst.query.answers import Answer as Answer
    from aquatint.analyst.query.front import Query as Query
    from aquatint.analyst.query.front import query as query
    from aquatint.analyst.synthesize.front import load_model as load_model
    from aquatint.analyst.synthesize.front import sample as sample
    from aquatint.analyst.synthesize.front import synthesize as synthesize
    from aquatint.compare_recipes import me_test as me_test
    from aquatint.compare_recipes import mixed_fourier as mixed_fourier
    from aquatint.compare_recipes import scf_test as scf_test
    from aquatint.comparison import CompareError as CompareError
    from aquatint.comparison import Comparison as Comparison
    from aquatint.comparison import Difference as Difference
    from aquatint.curator.compare.front import compare_private as compare_private
    from aquatint.curator.ledger import Ledger as Ledger
    from aquatint.curator.sketch import sketch as sketch
    from aquatint.errors import AquatintError as AquatintError
    from aquatint.image_recipes import dp_mepf as dp_mepf
    from aquatint.image_recipes import pixel_gaussian as pixel_gaussian
    from aquatint.m2m_recipes import m2m as m2m
    from aquatint.m2m_recipes import m2m_hist as m2m_hist
    from aquatint.m2m_recipes import m2m_race as m2m_race
    from aquatint.m2m_recipes import m2m_rff as m2m_rff
    from aquatint.planning import Plan as Plan
    from aquatint.planning import PlannedBlock as PlannedBlock
    from aquatint.previewing import preview as preview
    from aquatint.recipes import dp_hp as dp_hp
    from aquatint.recipes import dp_merf as dp_merf
    from aquatint.release import Release as Release
    from aquatint.release import load as load
    from aquatint.release.networks import attach as attach
    from aquatint.reporting.front import report as report
    from aquatint.schema import Schema as Schema
    from aquatint.table_plan import plan as plan

_HOME = {
    "Answer": "analyst.query.answers",
    "AquatintClassifier": "analyst.learn.estimators",
    "AquatintError": "errors",
    "AquatintRegressor": "analyst.learn.estimators",
    "Budget": "accounting",
    "CompareError": "comparison",
    "Comparison": "comparison",
    "Difference": "comparison",
    "Ledger": "curator.ledger",
    "Plan": "planning",
    "PlannedBlock": "planning",
    "Query": "analyst.query.front",
    "Release": "release",
    "Schema": "schema",
    "attach": "release.networks",
    "centred_view": "analyst.images.centring",
    "compare": "analyst.compare.front",
    "compare_all": "analyst.compare.front",
    "compare_private": "curator.compare.front",
    "dp_hp": "recipes",
    "dp_mepf": "image_recipes",
    "dp_merf": "recipes",
    "learn": "analyst.learn.front",
    "load": "release",
    "load_learned": "analyst.learn.files",
    "load_model": "analyst.synthesize.front",
    "m2m": "m2m_recipes",
    "m2m_hist": "m2m_recipes",
    "m2m_race": "m2m_recipes",
    "m2m_rff": "m2m_recipes",
    "me_test": "compare_recipes",
    "mixed_fourier": "compare_recipes",
    "pixel_gaussian": "image_recipes",
    "plan": "table_plan",
    "preview": "previewing",
    "query": "analyst.query.front",
    "report": "reporting.front",
    "sample": "analyst.synthesize.front",
    "save_learned": "analyst.learn.files",
    "scf_test": "compare_recipes",
    "sketch": "curator.sketch",
    "synthesize": "analyst.synthesize.front",
}
_PACKAGES = ("curator", "features", "networks")
__all__ = [*sorted(_HOME), *_PACKAGES]  # noqa: PLE0604  # a list of names, built once


def __getattr__(name: str) -> Any:
    if name in _PACKAGES:
        return import_module(f"aquatint.{name}")
    if name in _HOME:
        return getattr(import_module(f"aquatint.{_HOME[name]}"), name)
    msg = f"module 'aquatint' has no attribute {name!r}"
    raise AttributeError(msg)


def __dir__() -> list[str]:
    return __all__
