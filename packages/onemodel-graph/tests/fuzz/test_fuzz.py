"""A few hundred of the inputs that ``nox -s fuzz-graph`` runs by the hundred thousand."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import fuzz


def test_changed_models_run_or_are_refused():
    models = fuzz.corpus(every=20)
    found = list(fuzz.outcomes(models, 0, 400, 20.0, 4096))
    bad = {seed: how for seed, how in found if how not in ("ran", "loaded", "refused")}
    assert not bad
    assert len(found) == 400
    counts = [how for _, how in found]
    assert counts.count("ran") > 20 and counts.count("refused") > 100


def test_what_goes_wrong_in_a_worker_is_reported(tmp_path, monkeypatch):
    """The harness itself: an exception of another kind, a crash and a hang are told apart."""
    worker = tmp_path / "worker.py"
    worker.write_text(
        "import os, signal, sys, time\n"
        "for line in sys.stdin:\n"
        "    for seed in range(*map(int, line.split())):\n"
        "        print('at', seed, flush=True)\n"
        "        if seed == 1: os.abort()\n"
        "        if seed == 2: time.sleep(60)\n"
        "        if seed == 4: signal.setitimer(signal.ITIMER_PROF, 0.2)\n"
        "        while seed == 4: pass\n"
        "        print('done', seed, 'escaped KeyError' if seed == 3 else 'ran', flush=True)\n"
    )
    monkeypatch.setattr(fuzz, "HERE", tmp_path)
    found = dict(fuzz.outcomes([b""], 0, 6, 0.5, 4096))
    assert found[0] == found[5] == "ran"
    assert found[1].startswith("crashed") and found[2].startswith("hung")
    assert found[4].startswith("hung")
    assert found[3] == "escaped KeyError"
