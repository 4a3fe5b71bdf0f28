#!/usr/bin/env python3
"""Write the tiny GGUF models of tests/data/models: random weights, converted by llama.cpp's own converter.

usage: make_gguf_models.py LLAMA_CPP [OUT]   LLAMA_CPP: a source tree with convert_hf_to_gguf.py

Each OUT/gguf_NAME (tests/data/models by default) gets model.gguf (F16, a made-up vocabulary) and golden.safetensors as
transformers computes it in f32. Needs torch and transformers beside what the converter itself imports."""

import json
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
LAYERS4 = {"num_hidden_layers": 4, "sliding_window": 8}
WINDOWS = {"layer_types": ["sliding_attention"] * 3 + ["full_attention"]}
SHARING = ["sliding_attention", "sliding_attention", "full_attention", "sliding_attention", "full_attention"]
EXPERTS = {"num_experts": 6, "num_experts_per_tok": 2, "moe_intermediate_size": 8}
LATENT = {"head_dim": None, "num_key_value_heads": 4, "kv_lora_rank": 8, "qk_rope_head_dim": 4, "qk_nope_head_dim": 8,
          "v_head_dim": 6, "n_routed_experts": 6, "num_experts_per_tok": 2, "n_shared_experts": 1,
          "moe_intermediate_size": 8, "first_k_dense_replace": 1}
GEMMA4 = {"global_head_dim": 16, "num_global_key_value_heads": 1, "attention_k_eq_v": True,
          "hidden_size_per_layer_input": 0}
YARN = {
    "rope_type": "yarn",
    "rope_theta": 100.0,
    "factor": 4.0,
    "original_max_position_embeddings": 8,
    "beta_fast": 0.25,
    "beta_slow": 0.05,
}
# By fixture: the model type and its fields; None leaves out one of SHAPE. What a GGUF file says in its own way is in them:
# reordered q and k with their biases, frequencies and factors as tensors, layers without rope, YaRN keys, queries scaled
# by position, heads wider than hidden_size / num_heads, norms stored with their offset, fused and stacked tensors.
MODELS = {
    "llama": ("llama", {
        "attention_bias": True,
        "rope_parameters": {
            "rope_type": "llama3",
            "rope_theta": 500000.0,
            "factor": 8.0,
            "low_freq_factor": 1.0,
            "high_freq_factor": 4.0,
            "original_max_position_embeddings": 32,
        },
    }),
    "qwen3": ("qwen3", {"tie_word_embeddings": True}),
    "smollm3": ("smollm3", {"num_hidden_layers": 4}),
    "ministral3": ("ministral3", {
        "rope_parameters": {**YARN, "mscale": 1.0, "mscale_all_dim": 0.5, "llama_4_scaling_beta": 0.3},
    }),
    "gemma2": ("gemma2", {"sliding_window": 8, "query_pre_attn_scalar": 8, "tie_word_embeddings": True}),
    "gemma3": ("gemma3_text", {
        "num_hidden_layers": 6, "sliding_window": 8, "query_pre_attn_scalar": 8, "tie_word_embeddings": True,
        "layer_types": ["sliding_attention"] * 5 + ["full_attention"],
    }),
    "phi2": ("phi", {
        "head_dim": None, "num_key_value_heads": 4, "intermediate_size": 64, "partial_rotary_factor": 0.5,
        "hidden_act": "gelu_new",
    }),
    "phi3": ("phi3", {
        "head_dim": None, "sliding_window": None, "original_max_position_embeddings": 16,
        "rope_parameters": {
            "rope_type": "longrope",
            "rope_theta": 10000.0,
            "original_max_position_embeddings": 16,
            "short_factor": [1.0, 1.2],
            "long_factor": [1.5, 3.0],
        },
    }),
    "falcon": ("falcon", {
        "head_dim": None, "num_kv_heads": 2, "new_decoder_architecture": True, "bias": False, "alibi": False,
        "tie_word_embeddings": True,
    }),
    "stablelm": ("stablelm", {"head_dim": None, "partial_rotary_factor": 0.5, "use_qkv_bias": True}),
    "olmo": ("olmo", {"head_dim": None, "clip_qkv": 1.5}),
    "olmo2": ("olmo2", {"head_dim": None}),
    "nemotron": ("nemotron", {"head_dim": None, "partial_rotary_factor": 0.5, "hidden_act": "relu2"}),
    "granite": ("granite", {
        "head_dim": None, "embedding_multiplier": 12.0, "attention_multiplier": 0.3, "residual_multiplier": 0.22,
        "logits_scaling": 8.0,
    }),
    "cohere": ("cohere", {"head_dim": None, "logit_scale": 0.25, "tie_word_embeddings": True}),
    "cohere2": ("cohere2", {**LAYERS4, **WINDOWS, "head_dim": None, "logit_scale": 0.25, "tie_word_embeddings": True}),
    "glm4": ("glm4", {"partial_rotary_factor": 0.5, "attention_bias": True}),
    "exaone4": ("exaone4", {**LAYERS4, **WINDOWS, "sliding_window_pattern": 4}),
    "hunyuan_dense": ("hunyuan_v1_dense", {}),
    "gpt2": ("gpt2", {"tie_word_embeddings": True, "n_inner": None}),
    "gpt_neox": ("gpt_neox", {"head_dim": None, "rope_parameters": {"rope_type": "default", "rope_theta": 10000.0,
                                                                    "partial_rotary_factor": 0.5}}),
    "mixtral": ("mixtral", {"num_local_experts": 4, "num_experts_per_tok": 2, "sliding_window": None}),
    "qwen2_moe": ("qwen2_moe", {**EXPERTS, "shared_expert_intermediate_size": 12}),
    "qwen3_moe": ("qwen3_moe", {**EXPERTS, "norm_topk_prob": True}),
    "olmoe": ("olmoe", {"head_dim": None, "num_experts": 6, "num_experts_per_tok": 2, "intermediate_size": 8}),
    "gpt_oss": ("gpt_oss", {
        "num_local_experts": 4, "num_experts_per_tok": 2, "sliding_window": 8,
        "rope_parameters": {**YARN, "truncate": False},
    }),
    "deepseek_v2": ("deepseek_v2", {**LATENT, "topk_method": "greedy", "n_group": 1, "topk_group": 1}),
    "deepseek_v3": ("deepseek_v3", {**LATENT, "q_lora_rank": 12, "n_group": 3, "topk_group": 2,
                                    "routed_scaling_factor": 2.5, "norm_topk_prob": True}),
    "gemma4": ("gemma4_text", {**LAYERS4, **WINDOWS, **GEMMA4, "final_logit_softcapping": 5.0}),
    "gemma4_edge": ("gemma4_text", {
        **GEMMA4, "num_hidden_layers": 5, "sliding_window": 8, "attention_k_eq_v": False,
        "layer_types": SHARING, "num_kv_shared_layers": 2, "use_double_wide_mlp": True,
        "hidden_size_per_layer_input": 8, "vocab_size_per_layer_input": VOCAB,
    }),
    "gemma4_moe": ("gemma4_text", {
        **LAYERS4, **WINDOWS, **GEMMA4, "enable_moe_block": True, "num_experts": 6, "top_k_experts": 2,
        "moe_intermediate_size": 8,
    }),
    "gemma3n": ("gemma3n_text", {
        "num_hidden_layers": 5, "sliding_window": 8, "layer_types": SHARING, "num_kv_shared_layers": 2,
        "hidden_size_per_layer_input": 8, "vocab_size_per_layer_input": VOCAB, "altup_num_inputs": 4,
        "laurel_rank": 64, "activation_sparsity_pattern": [0.8, 0.6, 0.0, 0.0, 0.0], "tie_word_embeddings": True,
    }),
    "qwen2": ("qwen2", {"head_dim": None, "use_sliding_window": False}),
    "olmo3": ("olmo3", {**LAYERS4, **WINDOWS, "head_dim": None}),
}
# What the converter reads and transformers leaves out of the config that it writes.
CONVERTER_ONLY = {
    "cohere2": {"rotary_pct": 1.0},
    "gpt2": {"n_ctx": 64},
    "gpt_neox": {"rotary_pct": 0.5},
    "deepseek_v3": {"scoring_func": "sigmoid"},
}


def make_model(model_type, fields, generator):
    from transformers import AutoConfig, AutoModelForCausalLM

    shape = {key: value for key, value in {**SHAPE, **fields}.items() if value is not None}
    config = AutoConfig.for_model(model_type, **shape)
    model = AutoModelForCausalLM.from_config(config, attn_implementation="eager").float().eval()
    with torch.no_grad():
        scalars = [(name, buffer) for name, buffer in model.named_buffers() if name.endswith("layer_scalar")]
        for name, parameter in [*model.named_parameters(), *scalars]:
            noise = torch.randn(parameter.shape, generator=generator)
            if parameter.ndim == 1:
                parameter.add_(0.1 * noise)
            else:
                table = any(part in name for part in ("embed", "wte", "wpe"))
                parameter.copy_(noise * (0.5 if table else 1.4 / math.sqrt(parameter.shape[1])))
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


def convert(folder, out, more):
    import gguf
    from conversion import ModelBase, ModelType, get_model_architecture, get_model_class

    hparams = ModelBase.load_hparams(folder, False) | more
    # Gemma's counts the tokens of this file.
    vocabulary = {"model": {"vocab": {f"t{i}": i for i in range(VOCAB)}}, "added_tokens": []}
    (folder / "tokenizer.json").write_text(json.dumps(vocabulary))
    kind = get_model_class(get_model_architecture(hparams, ModelType.TEXT), mmproj=False)
    kind.set_vocab = set_vocab
    with torch.inference_mode():
        converter = kind(folder, gguf.LlamaFileType.MOSTLY_F16, out, model_name="tiny",
                         hparams=hparams)
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
    for seed, (name, (model_type, fields)) in enumerate(MODELS.items()):
        generator = torch.Generator().manual_seed(seed + 1)
        model = make_model(model_type, fields, generator)
        out = root / f"gguf_{name}"
        out.mkdir(parents=True, exist_ok=True)
        save_file(golden(model, generator), out / "golden.safetensors")
        with tempfile.TemporaryDirectory() as folder:
            model.save_pretrained(folder)
            convert(pathlib.Path(folder), out / "model.gguf", CONVERTER_ONLY.get(name, {}))


if __name__ == "__main__":
    main()
