#!/usr/bin/env python3
"""Write the tiny GGUF models of tests/data/models: random weights, converted by llama.cpp's own converter.

usage: make_gguf_models.py LLAMA_CPP [OUT]   LLAMA_CPP: a source tree with convert_hf_to_gguf.py

Each OUT/gguf_NAME (tests/data/models by default) gets model.gguf (F16, a made-up vocabulary) and golden.safetensors as
transformers computes it in f32. Needs torch and transformers beside what the converter itself imports."""

import math
import pathlib
import sys
import tempfile

import numpy as np
import torch
from safetensors.numpy import save_file

TOKENS, GREEDY, VOCAB = 20, 12, 40
SHAPE = {
    "vocab_size": VOCAB,
    "hidden_size": 16,
    "intermediate_size": 24,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 8,
    "max_position_embeddings": 64,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "pad_token_id": 0,
    "tie_word_embeddings": False,
}
# What a GGUF file says in its own way: reordered q and k with their biases, frequencies as a tensor, layers without rope,
# YaRN keys, queries scaled by position, heads wider than hidden_size / num_heads.
MODELS = {
    "llama": {
        "attention_bias": True,
        "rope_parameters": {
            "rope_type": "llama3",
            "rope_theta": 500000.0,
            "factor": 8.0,
            "low_freq_factor": 1.0,
            "high_freq_factor": 4.0,
            "original_max_position_embeddings": 32,
        },
    },
    "qwen3": {"tie_word_embeddings": True},
    "smollm3": {"num_hidden_layers": 4},
    "ministral3": {
        "rope_parameters": {
            "rope_type": "yarn",
            "rope_theta": 100.0,
            "factor": 4.0,
            "original_max_position_embeddings": 8,
            "beta_fast": 0.25,
            "beta_slow": 0.05,
            "mscale": 1.0,
            "mscale_all_dim": 0.5,
            "llama_4_scaling_beta": 0.3,
        }
    },
}


def make_model(model_type, fields, generator):
    from transformers import AutoConfig, AutoModelForCausalLM

    config = AutoConfig.for_model(model_type, **{**SHAPE, **fields})
    model = AutoModelForCausalLM.from_config(config, attn_implementation="eager").float().eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            noise = torch.randn(parameter.shape, generator=generator)
            if parameter.ndim == 1:
                parameter.add_(0.1 * noise)
            else:
                parameter.copy_(noise * (0.5 if "embed" in name else 1.4 / math.sqrt(parameter.shape[1])))
            parameter.copy_(parameter.half().float())  # F16 then loses nothing
    return model


def golden(model, generator):
    tokens = torch.randint(3, VOCAB, (1, TOKENS), generator=generator)
    with torch.no_grad():
        logits = model(tokens, use_cache=False).logits[0]
        ids = tokens
        for _ in range(GREEDY):
            ids = torch.cat([ids, model(ids, use_cache=False).logits[:, -1].argmax(-1, keepdim=True)], 1)
    return {
        "tokens": tokens[0].numpy().astype(np.int32),
        "logits": logits.numpy().astype(np.float32),
        "greedy": ids[0, TOKENS:].numpy().astype(np.int32),
    }


def set_vocab(self):
    writer = self.gguf_writer
    writer.add_tokenizer_model("llama")
    writer.add_tokenizer_pre("default")
    writer.add_token_list([f"t{i}" for i in range(VOCAB)])
    writer.add_token_scores([-float(i) for i in range(VOCAB)])
    writer.add_token_types([1] * VOCAB)


def convert(folder, out):
    import gguf
    from conversion import ModelBase, ModelType, get_model_architecture, get_model_class

    hparams = ModelBase.load_hparams(folder, False)
    kind = get_model_class(get_model_architecture(hparams, ModelType.TEXT), mmproj=False)
    kind.set_vocab = set_vocab
    with torch.inference_mode():
        converter = kind(folder, gguf.LlamaFileType.MOSTLY_F16, out, model_name="tiny")
        if hasattr(converter, "impl"):
            type(converter.impl).set_vocab = set_vocab
        converter.write()


def main():
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    # Before transformers, which would import an installed gguf: the converter goes with its own.
    sys.path[:0] = [sys.argv[1], f"{sys.argv[1]}/gguf-py"]
    default = pathlib.Path(__file__).parent.parent / "tests/data/models"
    root = pathlib.Path(sys.argv[2]) if len(sys.argv) == 3 else default
    for seed, (model_type, fields) in enumerate(MODELS.items()):
        generator = torch.Generator().manual_seed(seed + 1)
        model = make_model(model_type, fields, generator)
        out = root / f"gguf_{model_type}"
        out.mkdir(parents=True, exist_ok=True)
        save_file(golden(model, generator), out / "golden.safetensors")
        with tempfile.TemporaryDirectory() as folder:
            model.save_pretrained(folder)
            convert(pathlib.Path(folder), out / "model.gguf")


if __name__ == "__main__":
    main()
