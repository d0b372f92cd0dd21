"""Reprise writes what a simulated job saves. torch and Megatron-Core load it and must read the same as Reprise."""
import importlib.util

import gloo_ranks
import loads
from content import Content, Different, resharded

SHARDINGS = ("fully_reshardable", "dp_reshardable", "fully_sharded_model_space", "fsdp_dtensor")
JOBS = {
    "gpt-tiny": ("{tp: 2, dp: 2}", "{tp: 4}", "{pp: 2, dp: 2}", "{dp: 3}"),
    "moe-tiny": ("{tp: 2, ep: 2, dp: 2}", "{ep: 4, dp: 4}", "{pp: 2, ep: 2, dp: 2}"),
}
SCENARIO = """
proves: What a job saves.
each: {{layout: [{layouts}]}}
job: {{model: {model}, layout: $layout, optimizer: {{kind: adam, sharding: {sharding}}}}}
steps: [{{train: 2}}, save, restart, {{train: 1}}]
expect: {{max_delta: 0, against: uninterrupted}}
"""
# Keys whose shape depends on the layout: flat optimizer buckets, and one random state for each model-parallel rank.
BOUND = ("dp_group_idx", "rng_state", "common_state")


def has_mcore():
    return importlib.util.find_spec("megatron") is not None and importlib.util.find_spec("megatron.core") is not None


def saved_by_job(reprise, folder, model, sharding):
    (folder / "job.yaml").write_text(SCENARIO.format(model=model, sharding=sharding, layouts=", ".join(JOBS[model])))
    reprise.must("run", folder / "job.yaml", "--quiet", "--keep", folder / "kept")
    found = sorted((folder / "kept").glob("*/checkpoints/iter_*"))
    if len(found) != len(JOBS[model]):
        raise Different(f"{len(found)} checkpoints of {len(JOBS[model])} layouts")
    return found


def job_is_read(model, sharding):
    """Saves under each layout give torch the same content. torch and Megatron load it under other shardings, before and after a reshard."""
    def check(reprise, folder):
        contents = [Content(path) for path in saved_by_job(reprise, folder, model, sharding)]
        for content in contents:
            reprise.agrees_with(content)
            content.must_equal(contents[0], str(content.directory.parents[1].name), lambda key: not any(b in key for b in BOUND))
        split = "mlp=1:2" if model == "gpt-tiny" else "experts=1:2"
        resharded(reprise, contents[0].directory, folder / "resharded", "--ranks", 3, "--split", split, "--writers", 2)
        by_reshard = Content(folder / "resharded")
        by_reshard.must_equal(contents[0], "resharded")
        number = SHARDINGS.index(sharding)
        sources = [contents[number % len(contents)], by_reshard]
        if (number + (model == "gpt-tiny")) % 2:  # each loader takes only one of the two sources, to save time
            sources.reverse()
        words = f"{len(contents)} layouts, {contents[0].elements():,} elements each"
        loaded = sum(gloo_ranks.run(4, loads.into_dtensors, sources[:1], (2, 2)))
        words += f"; {loaded:,} into DTensors over 2 x 2"
        if has_mcore():
            by_megatron = sum(gloo_ranks.run(3, loads.into_mcore, sources[1:]))
            words += f", {by_megatron:,} by Megatron on 3 ranks"
            loaded = min(loaded, by_megatron)
        return min(loaded, contents[0].elements()), words
    return check


def cases():
    for model in JOBS:
        for sharding in SHARDINGS:
            yield f"Reprise writes {model} {sharding}", job_is_read(model, sharding)
