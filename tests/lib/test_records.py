"""The record of a real GPU that travels with the library."""

import itertools
import json

import pytest

from unrolled import records

RECORD = {
    "command": "python benchmarks/gpu.py",
    "date": "2026-11-21T18:00:00+00:00",
    "commit": "0" * 40,
    "machine": {"gpu": "NVIDIA H200", "driver": "580.159"},
    "versions": {"cupy": "14.2.0"},
    "rows": [{"name": "mnist step, batch 8", "ours_s": 0.0004}],
}


@pytest.fixture
def record(tmp_path, monkeypatch):
    file = tmp_path / "gpu.json"
    file.write_text(json.dumps(RECORD), encoding="utf-8")
    monkeypatch.setattr(records, "FOLDER", tmp_path)
    records.gpu.cache_clear()
    yield records.gpu()
    records.gpu.cache_clear()


def test_rows_and_figures_by_their_names(record):
    name = "mnist step, batch 8"
    assert record.row(name)["ours_s"] == 0.0004
    assert record.figure(name, "ours_s", 1e3) == pytest.approx(0.4)
    with pytest.raises(KeyError, match=r"no row 'mnist step'; it has 'mnist step, batch 8'"):
        record.row("mnist step")
    with pytest.raises(KeyError, match=r"has no 'host_us'; it has 'name', 'ours_s'"):
        record.figure(name, "host_us")
    assert str(record) == (
        "Measured on NVIDIA H200, driver 580.159, cupy 14.2.0, on 2026-11-21 by `python benchmarks/gpu.py`."
    )


def test_smaller_numbers_are_recorded():
    assert records.gpu_precision().figure("matmul float16 8192", "ratio") > 10
    record = records.precision()
    front = [row for row in record.rows.values() if row["section"] == "networks"]
    assert all({"name", "accuracy", "bytes", "seconds"} <= set(row) for row in front)
    for name, most in (("int8", 0.5), ("90 % pruned, one more epoch", 1), ("trained in float16, mean of 3 seeds", 0.2)):
        assert abs(record.figure(name, "points")) <= most


@pytest.mark.parametrize("read", [records.gpu, records.precision, records.convolutions, records.compiled])
def test_where_figures_come_from_fits_the_lines_of_an_output(read):
    assert max(map(len, str(read()).splitlines())) <= records.LINE


def test_the_record_of_convolutions_has_all_crossovers_and_auto_on_a_gpu_never_chose_what_was_slower():
    everything = records.convolutions().rows.values()
    places = [(row["kernel"], row["size"]) for row in everything if row["section"] == "crossovers"]
    assert sorted(places) == sorted(itertools.product(*map(set, zip(*places, strict=True))))
    rows = [row for row in everything if row.get("method") == "fft"]
    chosen, missed = ([row["faster"] for row in rows if row["auto"] == auto] for auto in ("fft", "gemm"))
    assert len(chosen) > 10
    assert min(chosen) > 1
    assert max(missed) < 1.5


def test_compiled_steps_are_recorded_beside_python_and_others():
    sides = {"ours_s", "eager_s", "peer_s", "torch_graph_s", "torch_compiled_s"}
    steps = [records.compiled().row(f"compiled step, batch {size}") for size in (8, 128, 1024)]
    assert all(sides <= row.keys() and row["ratio"] <= row["at_most"] for row in steps)
    gains = [row["eager_s"] / row["ours_s"] for row in steps]
    assert gains == sorted(gains, reverse=True)
    assert gains[-1] > 1
    ratios = {name: row["ratio"] for name, row in records.compiled().rows.items() if "peer_s" in row}
    assert max(ratios, key=ratios.get) == "compiled step, source B", "lesson 13 says that the lead is smallest there"
    epoch = records.compiled().row("compiled epoch, batch 8")
    assert epoch["ours_s"] < epoch["eager_s"]
    assert epoch["accuracy"] >= epoch["at_least"]
