"""The model of what a sketch costs: its limits are known without a run. The page of results."""

import json
from itertools import combinations

import pytest
from benchmark_scripts import fetch

COSTS = {"read": 1e-9, "encode": 1e-8, "count": 2e-9, "dense": 2e-9, "noise": 1e-5, "merge": 1e-7}


model = fetch("scale_model")


def test_a_run_takes_its_work_shared_by_the_cores():
    costs = model.Costs.of({**COSTS, "fixed": 0.0})
    row = model.PAIRS.reading(costs) + model.PAIRS.summing(costs)
    noise = model.PAIRS.coordinates * 1e-5
    for cores, workers in ((1, 1), (1, 4), (2, 2), (4, 4)):
        found = model.simulate(20_000_000, model.PAIRS, costs, cores, workers) - noise / cores
        assert found == pytest.approx(20_000_000 * row / cores, rel=0.03)


def test_a_run_is_never_quicker_than_its_reader():
    costs = model.Costs.of({**COSTS, "read": 1e-7, "fixed": 0.0})
    reading = 10_000_000 * model.PAIRS.reading(costs)
    found = model.simulate(10_000_000, model.PAIRS, costs, 64, 64)
    assert reading < found < 1.1 * reading


def test_a_small_run_costs_what_is_fixed():
    costs = model.Costs.of({**COSTS, "fixed": 1.5})
    assert model.simulate(0, model.PAIRS, costs, 2, 2) == pytest.approx(1.5 + 0.367 / 2, abs=0.01)
    assert model.simulate(1, model.PAIRS, costs, 2, 2) == pytest.approx(1.5 + 0.367 / 2, abs=0.01)


def test_more_machines_are_quicker_and_more_tasks_cost_merging():
    costs = model.Costs.of({**COSTS, "fixed": 0.0})
    few = model.Cluster(machines=10, cores=16, disk=5e8, network=1e9, task=0.2)
    many = model.Cluster(machines=100, cores=16, disk=5e8, network=1e9, task=0.2)
    slow, quick = (model.cluster(1e12, 13, 16_000, model.PAIRS, costs, on) for on in (few, many))
    assert slow.total > 5 * quick.total
    more = model.cluster(1e12, 13, 160_000, model.PAIRS, costs, many)
    assert more.merge > quick.merge


def test_the_page_is_written_whatever_was_measured_so_far(tmp_path, monkeypatch):
    page = fetch("results_scale")
    saved = json.loads(page.RESULTS.read_text())
    told = {"kills": 20, "resumed": 13, "releases": 3, "entries": 3}  # of an older version
    monkeypatch.setattr(page, "PAGE", tmp_path / "page.md")
    monkeypatch.setattr(page, "MODEL", tmp_path / "model.md")
    monkeypatch.setattr(page, "RESULTS", tmp_path / "scale.json")
    page.render()  # nothing was
    for some in [*combinations(saved, 2), saved.keys()]:
        kept = {name: saved[name] for name in some}
        for drill in ({}, {"drill": told}):
            page.RESULTS.write_text(json.dumps(kept | drill))
            page.render()
            assert page.PAGE.read_text().startswith("# Scale")
