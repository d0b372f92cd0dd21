"""Checkpoints of several modules: Reprise reports their modules, grids and metadata, and what is missing."""
import json

import make_mcore_fixtures as fixtures
import make_mimo_fixtures as mimo
import reads
from content import Different

PARTS = ["param_groups", "grad_scaler", "param_state_sharding_type"]
INNER = f"iter_{fixtures.ITERATION:07d}"


def told(reprise, directory):
    """Returns the modules that `inspect` reports, by name, and whether each module has an optimizer of its own."""
    said = json.loads(reprise.must("inspect", "--json", directory))
    return {m["name"]: m for m in said.get("modules", [])}, said.get("own_optimizers")


def must_be(what, said, wanted):
    if said != wanted:
        raise Different(f"{what}: inspect says {said}, it is {wanted}")


def modules_agree(modules, form, said):
    """Compares what `inspect` reports about the job's checkpoint with the job itself."""
    must_be("modules", sorted(said), sorted(m.name for m in modules))
    for module in modules:
        one = said[module.name]
        chain = 2 if module.experts else 1
        must_be(f"keys of {module.name}", one["keys"], "bare" if form == "bare" else "prefixed")
        must_be(f"random states of {module.name}", one["rng_grid"], {"pp": module.pp, "tp": module.tp})
        must_be(f"chain of {module.name}", one["chain_length"], chain)
        must_be(f"suffixes of {module.name}", [o["suffix"] for o in one["optimizers"]], ["", ".1"][:chain])
        for optimizer in one["optimizers"]:
            groups = module.tp * module.pp if form == "buckets" else 0
            must_be(f"data-parallel groups of {module.name}", len(optimizer["dp_groups"]), groups)
            must_be(f"objects of {module.name}", optimizer["metadata"], PARTS[2:] if groups else PARTS)
            must_be(f"sharding type of {module.name}", optimizer["sharding_type"], "dp_reshardable" if groups else "fully_reshardable")
            for group in optimizer["dp_groups"]:
                must_be(f"group of {module.name}", (group["buckets"], group["metadata"]), (True, PARTS[:2]))


def modules_are_told(form):
    """Megatron saves; all content is compared as in reads.py, and `inspect` must report the modules before and after a reshard."""
    function, modules = mimo.JOBS[form]

    def check(reprise, folder):
        compared, words = reads.read_and_round(function, mimo.ranks_of(modules), INNER)(reprise, folder)
        before, own = told(reprise, folder / "saved")
        modules_agree(modules, form, before)
        must_be("after reshard", told(reprise, folder / "by_rows"), (before, own))
        must_be("optimizers", own, True)
        return compared, ", ".join([words, *(f"{n} {m['tensors']}" for n, m in before.items())])
    return check


def taken_out(state, module, chain, part):
    """Removes one entry of a module's optimizer from a state to save, if this rank has the entry."""
    optimizer = state["optimizer"][module]
    optimizer.get(chain, optimizer).pop(part, None)


# For each job: module, place in the chain and entry that the save omits, then the keys that verify must name.
LOST = {
    "prefixed": [("images", 0, "_mimo_param_groups", "mimo.images.optimizer.mimo.images.param_groups"),
                 ("language", 1, "_mimo_param_groups.1", "mimo.language.optimizer.mimo.language.1.param_groups"),
                 ("language", 0, "_mimo_param_state_sharding_type", "mimo.language.optimizer.mimo.language.param_state_sharding_type")],
    "bare": [("language", 0, "_mimo_param_groups", "optimizer.mimo.language.param_groups"),
             ("images", 0, "_mimo_grad_scaler", "optimizer.mimo.images.grad_scaler")],
    "buckets": [("language", 1, "optimizer", "mimo.language.chained_1.optimizer.distributed.dp_group_idx_0.optimizer",
                 "mimo.language.chained_1.optimizer.distributed.dp_group_idx_1.optimizer"),
                ("audio", 0, "_mimo_param_state_sharding_type", "mimo.audio.optimizer.mimo.audio.param_state_sharding_type")],
}


def what_is_missing_is_told(form):
    """Megatron saves the same job with some entries missing. verify must name the entries and their module."""
    function, modules = mimo.JOBS[form]

    def forgetful(path, rank):
        return function(path, rank, lambda state: [taken_out(state, *lost[:3]) for lost in LOST[form]])

    def check(reprise, folder):
        reads.save(forgetful, mimo.ranks_of(modules), folder)
        status, out, _ = reprise.call("verify", "--json", folder / "saved")
        errors = {f["key"]: f["message"] for f in json.loads(out)["checkpoints"][0]["findings"] if f["severity"] == "error"}
        wanted = {key: f"module {module}" for module, _, _, *keys in LOST[form] for key in keys}
        if status != 1 or errors.keys() != wanted.keys() or any(wanted[k] not in errors[k] for k in wanted):
            raise Different(f"exit {status}, {errors}")
        return len(errors), f"{len(errors)} lost parts named"
    return check


def what_rank_0_left_is_told(reprise, folder):
    """Earlier releases put each module's metadata into the common state, which keeps only rank 0's. verify must report what is lost."""
    def as_it_was(path, rank):
        state = mimo.state_of(mimo.BARE, rank, mimo.by_parameter, False, "{}.rng_state")
        for optimizer in state["optimizer"].values():
            for name in [n for n in optimizer if n.startswith("_mimo_")]:
                value = optimizer.pop(name).data
                place = optimizer["optimizer"] if name == "_mimo_param_groups" else optimizer
                place[name.removeprefix("_mimo_")] = value
        fixtures.save(state, path, mimo.strategy(), {})
    reads.save(as_it_was, mimo.ranks_of(mimo.BARE), folder)
    status, out, _ = reprise.call("verify", "--json", folder / "saved")
    errors = [f["message"] for f in json.loads(out)["checkpoints"][0]["findings"] if f["severity"] == "error"]
    if status != 1 or len(errors) != 3 or not all("module language" in e and "has that of images" in e for e in errors):
        raise Different(f"exit {status}, {errors}")
    return len(errors), "three parts of language"


def model_of_megatron(path, rank):
    """Saves megatron-core's own MimoModel over tp 2 with one optimizer for the whole model, as that release does."""
    from megatron.core import parallel_state
    from megatron.core.models.gpt import GPTModel
    from megatron.core.models.gpt.gpt_layer_specs import get_gpt_layer_local_spec
    from megatron.core.models.mimo import MimoModel, MimoModelConfig, VisionModalitySubmodules
    from megatron.core.transformer.spec_utils import ModuleSpec
    from megatron.core.transformer.transformer_config import TransformerConfig
    parallel_state.initialize_model_parallel(tensor_model_parallel_size=2)
    config = TransformerConfig(num_layers=2, hidden_size=8, ffn_hidden_size=12, num_attention_heads=2, add_bias_linear=False,
                               use_cpu_initialization=True, tensor_model_parallel_size=2)
    language = ModuleSpec(module=GPTModel, params={
        "config": config, "transformer_layer_spec": get_gpt_layer_local_spec(), "vocab_size": 18, "max_sequence_length": 8,
        "position_embedding_type": "rope"})
    import torch
    from megatron.core.transformer.module import MegatronModule

    class Encoder(MegatronModule):  # later releases take a plain torch module for one of tp 1

        def __init__(self):
            super().__init__(config)
            self.tp_group = parallel_state.get_tensor_model_parallel_group()
            self.weight, self.bias = torch.nn.Parameter(torch.empty(8, 6)), torch.nn.Parameter(torch.empty(8))

    images = ModuleSpec(module=VisionModalitySubmodules, submodules={"encoders": {"clip": ModuleSpec(module=Encoder)}})
    model = MimoModel(MimoModelConfig(language_model_spec=language, modality_submodules_spec={"images": images}, special_token_ids={"images": 17}))
    model_state = model.sharded_state_dict()
    state = {"args": fixtures.arguments({"tp": 2, "pp": 1}), "checkpoint_version": 3.0, "iteration": fixtures.ITERATION, "model": model_state}
    state |= {"optimizer": fixtures.adam_state(model, model_state), "rng_state": fixtures.rng_state(rank)}
    fixtures.apply_factories(state)
    fixtures.fill(state)
    return fixtures.save(state, path, mimo.strategy(), {})


def megatrons_model_is_told(reprise, folder):
    """`inspect` must report the modules by MimoModel's names, and must not report missing parts of optimizers that they do not have."""
    compared, words = reads.read_and_round(model_of_megatron, 2, INNER)(reprise, folder)
    said, own = told(reprise, folder / "saved")
    must_be("modules", sorted(said), ["images", "language"])
    must_be("optimizers", own, False)
    weights = [t["key"] for t in reprise.inspect(folder / "saved")["tensors"]]
    must_be("tensors", sum(m["tensors"] for m in said.values()), len(weights))
    return compared, words


def cases():
    for form in mimo.JOBS:
        yield f"Megatron writes modules {form}", modules_are_told(form)
        yield f"Megatron writes modules {form}, forgetfully", what_is_missing_is_told(form)
    yield "Megatron writes modules bare, metadata left to rank 0", what_rank_0_left_is_told
    yield "Megatron writes its MimoModel", megatrons_model_is_told
