"""A configuration of torchtitan that saves and loads with the engine:

    torchrun --nproc-per-node 8 -m torchtitan.train --module torchtitan_config --config llama3_8b
"""
from torchtitan.models.llama3 import config_registry

import reprise.titan


def llama3_8b():
    config = config_registry.llama3_8b()
    config.checkpoint = reprise.titan.Manager.Config(
        enable=True,
        interval=500,
        keep_latest_k=3,
        async_mode="async",
    )
    return config
