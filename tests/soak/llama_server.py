"""A real llama.cpp server: with a tiny model of random weights (word salad, but its own templates, grammars and
limits), or with the weights of a model that speaks.

`python llama_server.py DIRECTORY CONTEXT [WEIGHTS]`, with a Python that has `xllamacpp`, and `gguf` where there are no
weights. Prints its address, and ends with its standard input.
"""

import importlib
import sys
from pathlib import Path
from typing import Any

WIDTH, LAYERS, HEADS, INNER = 64, 2, 4, 128
WORDS = ("the", "of", "and", "a", "to", "in", "is", "it", "that", "answer", "vote", "agent", "because", "right")
CHATML = (
    "{% for message in messages %}{{ '<s>' + message['role'] + '\\n' + (message['content'] or '') + '</s>\\n' }}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<s>assistant\\n' }}{% endif %}"
)
NORMAL, UNKNOWN, CONTROL, BYTE = 1, 2, 3, 6


def write_model(path: Path) -> None:
    gguf: Any = importlib.import_module("gguf")
    numpy: Any = importlib.import_module("numpy")
    tokens = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256)), *(f"▁{word}" for word in WORDS)]
    kinds = [UNKNOWN, CONTROL, CONTROL, *[BYTE] * 256, *[NORMAL] * len(WORDS)]
    writer = gguf.GGUFWriter(str(path), "llama")
    writer.add_context_length(32768)
    writer.add_embedding_length(WIDTH)
    writer.add_block_count(LAYERS)
    writer.add_feed_forward_length(INNER)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_dimension_count(WIDTH // HEADS)
    writer.add_vocab_size(len(tokens))
    writer.add_tokenizer_model("llama")
    writer.add_token_list(tokens)
    writer.add_token_scores([0.0 if kind == NORMAL else -10.0 for kind in kinds])
    writer.add_token_types(kinds)
    writer.add_unk_token_id(0)
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_chat_template(CHATML)
    draw = numpy.random.default_rng(1)

    def add(name: str, *shape: int) -> None:
        weights = numpy.ones(shape) if len(shape) == 1 else draw.normal(0, 0.4, shape)
        writer.add_tensor(f"{name}.weight", weights.astype(numpy.float32))

    add("token_embd", len(tokens), WIDTH)
    for layer in range(LAYERS):
        for name in ("attn_q", "attn_k", "attn_v", "attn_output"):
            add(f"blk.{layer}.{name}", WIDTH, WIDTH)
        add(f"blk.{layer}.attn_norm", WIDTH)
        add(f"blk.{layer}.ffn_norm", WIDTH)
        add(f"blk.{layer}.ffn_gate", INNER, WIDTH)
        add(f"blk.{layer}.ffn_up", INNER, WIDTH)
        add(f"blk.{layer}.ffn_down", WIDTH, INNER)
    add("output_norm", WIDTH)
    last = draw.normal(0, 0.4, (len(tokens), WIDTH))
    last[2] *= 3  # so that some replies come to an end by themselves
    writer.add_tensor("output.weight", last.astype(numpy.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def main(directory: Path, context: int, weights: Path | None) -> None:
    xllamacpp: Any = importlib.import_module("xllamacpp")
    path = weights or directory / "tiny.gguf"
    if not path.exists():
        write_model(path)
    params = xllamacpp.CommonParams()
    params.model.path = str(path)
    params.hostnames, params.port = ["127.0.0.1"], 0
    params.use_jinja, params.warmup = True, False
    params.n_parallel, params.n_ctx = 1, context
    params.cpuparams.n_threads = 1
    server = xllamacpp.Server(params)
    sys.stdout.write(f"{server.listening_address}\n")
    sys.stdout.flush()
    sys.stdin.read()


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3]) if sys.argv[3:] else None)
