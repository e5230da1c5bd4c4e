"""Whatever the schema and the release, every synthetic row is one that the schema admits.

Schemas, cells and releases are random. "Admits" is the curator's own opinion: the encoder reads the
synthetic table back, clips nothing, refuses nothing, and finds every row in the cell it was drawn
for.
"""

import datetime as dt
import warnings

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

import aquatint as aq
from aquatint.analyst.learn.columns import preparation
from aquatint.analyst.synthesize.decode import decode
from aquatint.analyst.synthesize.fit import Effort
from aquatint.analyst.synthesize.mixture import fit_mixture
from aquatint.columns import RANGED, is_printable
from aquatint.curator.encode import Encoder, Notes
from aquatint.curator.read import read
from aquatint.curator.spending import PrivacyWarning
from aquatint.features import Count, by_label, fourier, hermite, marginals, onehot, pairs, scale
from aquatint.schema import Schema

TINY = Effort(components=5, steps=4, fits=1)
slow_to_draw = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]


# --- random schemas -----------------------------------------------------------------------------

word = st.text(st.characters(codec="utf-8"), max_size=5).filter(
    lambda t: is_printable(t) and t == t.strip()
)

pytestmark = pytest.mark.usefixtures("one_thread")
missing = st.booleans()


@st.composite
def categories(draw):
    values = st.integers(-(2**31), 2**31) if draw(st.booleans()) else word
    return draw(st.lists(values, min_size=1, max_size=5, unique=True))


@st.composite
def listed(draw):
    kind = draw(st.sampled_from(["categorical", "ordered", "text"]))
    found = {"kind": kind, "categories": draw(categories()), "missing": draw(missing)}
    return found | ({"other": draw(st.booleans())} if kind == "categorical" else {})


@st.composite
def whole_bins(draw, low, high):
    """Bins of a range of whole numbers, as a count or as edges that leave no bin empty."""
    steps = high - low + 1
    if draw(st.booleans()):
        return draw(st.integers(1, min(steps, 9)))
    inner = st.integers(low + 1, high - 1) if high - low > 1 else st.nothing()
    cuts = draw(st.lists(inner, max_size=4, unique=True)) if high - low > 1 else []
    shift = draw(st.sampled_from([0, 0.5]))  # between whole numbers an edge is as good
    return [float(low), *sorted(float(c) - shift for c in cuts), float(high)]


@st.composite
def integer(draw):
    low = draw(st.integers(-1000, 1000) | st.integers(-(2**40), 2**40))
    high = low + draw(st.integers(1, 12) | st.integers(1, 10**6))
    bins = draw(whole_bins(low, high))
    return {"kind": "integer", "bounds": [low, high], "bins": bins, "missing": draw(missing)}


@st.composite
def date(draw):
    low = draw(st.dates(dt.date(1, 1, 2), dt.date(9000, 1, 1)))
    high = low + dt.timedelta(days=draw(st.integers(1, 12) | st.integers(1, 100_000)))
    first = (low - dt.date(1970, 1, 1)).days
    bins = draw(whole_bins(first, first + (high - low).days))
    bounds = [low.isoformat(), high.isoformat()]
    return {"kind": "date", "bounds": bounds, "bins": bins, "missing": draw(missing)}


@st.composite
def real_bins(draw, low, high):
    if draw(st.booleans()):
        return draw(st.integers(1, 9))
    shares = draw(st.lists(st.floats(0.001, 0.999), max_size=4))
    cuts = {low + (high - low) * share for share in shares}
    return sorted({low, high, *cuts})


@st.composite
def numeric(draw):
    low = draw(st.floats(-1e6, 1e6))
    high = low + draw(st.floats(0.01, 1e7))
    assume(low < high)
    bins = draw(real_bins(low, high))
    return {"kind": "numeric", "bounds": [low, high], "bins": bins, "missing": draw(missing)}


@st.composite
def moment(draw):
    zone = draw(st.sampled_from([None, dt.UTC, dt.timezone(dt.timedelta(hours=5, minutes=30))]))
    moments = st.datetimes(dt.datetime(1700, 1, 1), dt.datetime(2200, 1, 1))
    low = draw(moments).replace(tzinfo=zone)
    length = st.integers(10**11, 10**15)  # a day or more: microseconds are no matter
    high = low + dt.timedelta(microseconds=draw(length))
    bounds = [low.isoformat(), high.isoformat()]
    bins = draw(st.integers(1, 9))
    return {"kind": "datetime", "bounds": bounds, "bins": bins, "missing": draw(missing)}


boolean = st.fixed_dictionaries({"kind": st.just("boolean"), "missing": missing})
column = st.one_of(listed(), integer(), date(), numeric(), moment(), boolean)


@st.composite
def schemas(draw, most=6):
    columns = draw(st.lists(column, min_size=1, max_size=most))
    protects = draw(st.sampled_from(["add or remove one row", "replace one row"]))
    return Schema.from_dict(
        {
            "name": "any",
            "privacy": {"protects": protects},
            "columns": {f"c{i}": spec for i, spec in enumerate(columns)},
        }
    )


# --- cells to values and back -------------------------------------------------------------------


def read_back(schema, table):
    """Give the cells of a table and what had to be changed, by the curator's encoder."""
    notes, names = Notes(), list(schema.columns)
    encoder = Encoder(schema, frozenset(names), frozenset())
    found = [encoder(batch, notes) for batch in read(table, schema, names).open()]
    none = np.zeros(0, dtype=np.int32)
    codes = {n: np.concatenate([none, *(rows.codes[n].numpy() for rows in found)]) for n in names}
    return codes, notes


@settings(max_examples=300, deadline=None, suppress_health_check=slow_to_draw)
@given(schema=schemas(), seed=st.integers(0, 2**32), sloped=st.booleans())
def test_a_decoded_table_encodes_to_the_same_cells(schema, seed, sloped):
    rng = np.random.default_rng(seed)
    codes = {n: rng.integers(0, cells, 40) for n, cells in schema.cells().items()}
    heights = {n: rng.random(schema.columns[n].cells) ** 3 for n in codes} if sloped else None
    table = decode(schema, codes, rng, heights=heights)
    again, notes = read_back(schema, table)
    assert not notes.clipped
    for name, code in codes.items():
        assert again[name].tolist() == code.tolist(), (name, table[name])


@settings(max_examples=100, deadline=None, suppress_health_check=slow_to_draw)
@given(schema=schemas(), seed=st.integers(0, 2**32))
def test_a_decoded_table_can_be_prepared_for_an_estimator(schema, seed):
    """Every number is finite, and every category is in exactly one cell of its column."""
    rng = np.random.default_rng(seed)
    codes = {n: rng.integers(0, cells, 40) for n, cells in schema.cells().items()}
    table = decode(schema, codes, rng)
    prepared = preparation(schema, list(codes)).fit(table)
    assert np.isfinite(prepared.transform(table)).all()
    listed = [n for n, c in schema.columns.items() if not isinstance(c, RANGED)]
    if listed:
        cells = prepared[1].named_transformers_["categories"]
        one_hot = cells.transform(prepared[0].transform(table)[listed])
        start = 0
        for name in listed:
            part = one_hot[:, start : start + schema.columns[name].cells]
            assert part.argmax(axis=1).tolist() == codes[name].tolist()
            assert (part.sum(axis=1) == 1).all()
            start += part.shape[1]


# --- releases to rows and back ------------------------------------------------------------------


def raw_column(spec, count, rng):
    """Values that the schema admits; a third of them missing where that is allowed."""
    if isinstance(spec, RANGED):
        low, high = spec.limits
        number = low + (high - low) * rng.random(count) ** 2
        if spec.kind == "numeric":
            values = pa.array(number)
        elif spec.kind == "integer":
            values = pa.array(np.floor(number).astype(np.int64))
        elif spec.kind == "date":
            values = pa.array(np.floor(number).astype(np.int32), pa.int32()).cast(pa.date32())
        else:
            values = pa.array(np.floor(number * 1e6).astype(np.int64)).cast(pa.timestamp("us"))
    elif spec.kind == "boolean":
        values = pa.array(rng.random(count) < 0.3)
    else:
        place = rng.integers(0, len(spec.categories), count)
        values = pa.array([spec.categories[p] for p in place])
    if not spec.missing:
        return values
    holes = pa.array(rng.random(count) < 1 / 3)
    return pa.compute.if_else(holes, pa.scalar(None, values.type), values)


def maps_of(schema):
    """Every map with a closed form that the schema has the columns for."""
    cells = schema.cells()
    unordered = ("categorical", "text")
    values = [n for n, c in schema.columns.items() if c.kind not in unordered][:3]
    found = {
        "columns": onehot(cells),
        "scaled": scale(onehot(cells), 0.3),
    }
    if len(cells) > 1:
        found["pairs"] = pairs(cells)
        halves = {n: tuple(int(i >= c / 2) for i in range(c)) for n, c in cells.items() if c > 1}
        found["merged pairs"] = pairs(cells).merge(halves)
    if len(cells) > 2:
        found["triple"] = marginals(cells, [list(cells)[:3]])
    if values:
        found["waves"] = fourier(values, 6)
        found["polynomials"] = hermite(values, 2)
        others = [n for n in cells if n not in values]
        if others:
            found["by class"] = by_label(fourier(values, 4), others[0], cells[others[0]])
            found["product"] = onehot({others[0]: cells[others[0]]}) * hermite(values, 1)
    return found


@st.composite
def releases(draw):
    schema = draw(schemas(most=4))
    found = maps_of(schema)
    names = draw(st.lists(st.sampled_from(sorted(found)), min_size=1, max_size=3, unique=True))
    chosen = {name: found[name] for name in names}
    if not schema.privacy.replaces:
        chosen["count"] = Count()
    blocks = tuple(aq.PlannedBlock(n, m, 1 / len(chosen)) for n, m in chosen.items())
    seed = draw(st.integers(0, 2**20))
    rng = np.random.default_rng(seed)
    count = draw(st.sampled_from([1, 30, 200]))
    table = pa.table({n: raw_column(c, count, rng) for n, c in schema.columns.items()})
    epsilon = draw(st.sampled_from([0.01, 1.0, 100.0]))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyWarning)
        return aq.sketch(
            table,
            schema,
            epsilon=epsilon,
            delta=1e-6,
            plan=aq.Plan(schema, blocks),
            simulate=seed,
            progress=False,
        )


@settings(max_examples=60, deadline=None, suppress_health_check=slow_to_draw)
@given(release=releases(), count=st.sampled_from([0, 1, 37]), seed=st.integers(0, 2**32))
def test_every_synthetic_row_is_valid_under_the_schema(release, count, seed):
    model = fit_mixture(release, effort=TINY, progress=False)
    table = model.sample(count, seed=seed)
    assert list(table.columns) == list(release.schema.columns)
    assert len(table) == count
    codes, notes = read_back(release.schema, table)
    assert not notes.clipped
    for name, spec in release.schema.columns.items():
        assert ((codes[name] >= 0) & (codes[name] < spec.cells)).all()
        if not spec.missing:
            assert not table[name].isna().any()


@settings(max_examples=60, deadline=None, suppress_health_check=slow_to_draw)
@given(release=releases(), seed=st.integers(0, 2**32), data=st.data())
def test_conditional_rows_are_valid_and_satisfy_the_condition(release, seed, data):
    model = fit_mixture(release, effort=TINY, progress=False)
    name = data.draw(st.sampled_from(sorted(release.schema.columns)))
    spec = release.schema.columns[name]
    if isinstance(spec, RANGED):
        low, high = spec.limits
        assume(spec.kind in {"numeric", "integer"})
        ends = sorted(low + (high - low) * data.draw(st.floats(0, 1)) for _ in range(2))
        assume(ends[1] - ends[0] > 1e-3 * (high - low))
        assume(spec.kind == "numeric" or np.floor(ends[1]) >= np.ceil(ends[0]))
        table = model.sample(23, where={name: tuple(ends)}, seed=seed)
        assert not table[name].isna().any()
        assert table[name].between(*ends).all()
    else:
        place = data.draw(st.integers(0, spec.cells - 1))
        wanted = release.schema.cell_names(name)[place]
        assume(model.histogram(name)[place] > 1e-6)
        table = model.sample(23, where={name: [wanted]}, seed=seed)
        assert set(read_back(release.schema, table)[0][name].tolist()) == {place}
    assert not read_back(release.schema, table)[1].clipped
