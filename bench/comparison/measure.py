"""Measures rows, all engines in turn, round after round."""

import dataclasses
import time

from .engines import Failure


@dataclasses.dataclass
class Outcome:
    """What one engine did in one row."""

    command: str
    values: list = dataclasses.field(default_factory=list)
    error: str = ""
    device: str = ""


class Measurer:
    """Rows whose tests share a model and a process are measured together, when the first of them is asked for."""

    def __init__(self, rows, engines, rounds, make_model, budget=None, note=print):
        """make_model(shape, type): a path, raises ValueError or OSError. budget: seconds from now, None: no end.
        note: takes lines on the progress."""
        self.engines, self.rounds, self.make_model, self.note = engines, rounds, make_model, note
        self.begin, self.budget = time.monotonic(), budget
        self.groups, self.done = {}, {}
        for row in rows:
            tests = self.groups.setdefault(self.key(row), [])
            if row.test not in tests:
                tests.append(row.test)

    @staticmethod
    def key(row):
        return row.shape, row.type, row.test.process()

    def outcomes(self, row):
        """{engine's name: Outcome}, or None where no time was left."""
        key = self.key(row)
        if key not in self.done and not self.time_is_up():
            self.done[key] = self.measure(row.shape, row.type, self.groups[key])
        return self.done.get(key, {}).get(row.test)

    def time_is_up(self):
        return self.budget is not None and time.monotonic() - self.begin > self.budget

    def tell(self, what):
        self.note(f"[{time.monotonic() - self.begin:5.0f} s] {what}")

    def measure(self, shape, storage, tests):
        name = f"{shape} {storage}"
        try:
            model = self.make_model(shape, storage)
        except (ValueError, OSError) as error:
            self.tell(f"{name}: {error}")
            return {test: {e.name: Outcome("", error=str(error)) for e in self.engines} for test in tests}
        found = {test: {e.name: Outcome(e.shell(model, tests)) for e in self.engines} for test in tests}
        if tests[0].kind == "load":
            self.round(f"{name}, to fill caches", model, found, keep=False)
        for number in range(self.rounds):
            if number > 0 and self.time_is_up():
                break
            self.round(f"{name}, {number + 1} of {self.rounds}", model, found, keep=True)
        return found

    def round(self, name, model, found, keep):
        """One process of each engine that has not failed before."""
        tests = list(found)
        for engine in self.engines:
            outcomes = {test: found[test][engine.name] for test in tests}
            if any(outcome.error for outcome in outcomes.values()):
                continue
            try:
                values, device = engine.run(model, tests)
                if missing := [str(test) for test in tests if not values.get(test)]:
                    raise Failure(f"no values of {', '.join(missing)}")
            except Failure as error:
                self.tell(f"{name}: {engine.name}: error: {error}")
                for outcome in outcomes.values():
                    outcome.error = str(error)
                continue
            self.tell(f"{name}: {engine.name}: " +
                      "; ".join(f"{test} {' '.join(f'{v:.4g}' for v in values[test])}" for test in tests))
            for test, outcome in outcomes.items() if keep else ():
                outcome.values += values[test]
                outcome.device = device
