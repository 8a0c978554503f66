"""Threshold accepting, written from docs/your_own_search.md alone."""

import dataclasses

import jaxopt_search as js


@js.pytree
@dataclasses.dataclass(frozen=True)
class AtMostWorseBy(js.acceptance.Acceptance):
    schedule: js.schedules.Schedule

    def control(self, step):
        return js.schedules.temperature(self.schedule, step)

    def passes(self, trial):
        return trial.delta.astype("float32") <= trial.control
