"""llama.cpp's shared libraries through ctypes: tokens, logits, greedy continuations and speeds to compare with.

The libraries come ready built inside the npm packages @node-llama-cpp/linux-x64 (folder bins/linux-x64) and
@node-llama-cpp/linux-x64-vulkan."""

import array
import ctypes
import os
import pathlib

I32P = ctypes.POINTER(ctypes.c_int32)
CPU_DEVICE = 0  # of enum ggml_backend_dev_type


class Params(ctypes.Structure):
    """A parameter struct passed by value: opaque, at least as large as any real one (the x86-64 ABI copies it)."""

    _fields_ = [("bytes", ctypes.c_uint8 * 512)]


class Batch(ctypes.Structure):
    _fields_ = [
        ("n_tokens", ctypes.c_int32),
        ("token", I32P),
        ("embd", ctypes.c_void_p),
        ("pos", I32P),
        ("n_seq_id", I32P),
        ("seq_id", ctypes.POINTER(I32P)),
        ("logits", ctypes.POINTER(ctypes.c_int8)),
    ]


LOG = ctypes.CFUNCTYPE(None, ctypes.c_int, ctypes.c_char_p, ctypes.c_void_p)


class Library:
    """The functions of one folder of libraries. One per process."""

    def __init__(self, folder):
        folder = pathlib.Path(folder).resolve()
        ctypes.CDLL(str(self._one(folder, "libggml-base*.so*")), mode=ctypes.RTLD_GLOBAL)
        self.ggml = ctypes.CDLL(str(self._one(folder, "libggml.*so*")), mode=ctypes.RTLD_GLOBAL)
        self.llama = ctypes.CDLL(str(self._one(folder, "libllama.*so*")))
        self._quiet = LOG(lambda level, text, data: None)
        self.llama.llama_log_set(self._quiet, None)
        self.ggml.ggml_backend_load_all_from_path(str(folder).encode())
        self.llama.llama_backend_init()
        self._declare()

    def devices(self):
        """What it computes on: its GPUs, or the processor where it has none."""
        pointer = ctypes.c_void_p
        for name, result, arguments in [
            ("ggml_backend_dev_count", ctypes.c_size_t, []),
            ("ggml_backend_dev_get", pointer, [ctypes.c_size_t]),
            ("ggml_backend_dev_type", ctypes.c_int, [pointer]),
            ("ggml_backend_dev_description", ctypes.c_char_p, [pointer]),
        ]:
            function = getattr(self.ggml, name)
            function.restype, function.argtypes = result, arguments
        found = {False: [], True: []}
        for i in range(self.ggml.ggml_backend_dev_count()):
            device = self.ggml.ggml_backend_dev_get(i)
            gpu = self.ggml.ggml_backend_dev_type(device) != CPU_DEVICE
            found[gpu].append(self.ggml.ggml_backend_dev_description(device).decode())
        return found[True] or found[False]

    @staticmethod
    def _one(folder, pattern):
        found = sorted(folder.glob(pattern))
        if not found:
            raise SystemExit(f"{folder}: no {pattern}")
        return found[0]

    def _declare(self):
        pointer, i32, flag = ctypes.c_void_p, ctypes.c_int32, ctypes.c_bool
        for name, result, arguments in [
            ("llama_model_default_params", Params, []),
            ("llama_context_default_params", Params, []),
            ("llama_model_load_from_file", pointer, [ctypes.c_char_p, Params]),
            ("llama_init_from_model", pointer, [pointer, Params]),
            ("llama_free", None, [pointer]),
            ("llama_set_n_threads", None, [pointer, i32, i32]),
            ("llama_decode", i32, [pointer, Batch]),
            ("llama_synchronize", None, [pointer]),
            ("llama_get_memory", pointer, [pointer]),
            ("llama_memory_clear", None, [pointer, flag]),
            ("llama_get_logits_ith", ctypes.POINTER(ctypes.c_float), [pointer, i32]),
            ("llama_model_get_vocab", pointer, [pointer]),
            ("llama_vocab_n_tokens", i32, [pointer]),
            ("llama_tokenize", i32, [pointer, ctypes.c_char_p, i32, I32P, i32, flag, flag]),
        ]:
            function = getattr(self.llama, name)
            function.restype, function.argtypes = result, arguments


class Model:
    def __init__(self, library, path):
        self.library, self.lib = library, library.llama  # the library owns the log callback
        self.handle = self.lib.llama_model_load_from_file(str(path).encode(), self.lib.llama_model_default_params())
        if not self.handle:
            raise SystemExit(f"llama.cpp cannot load {path}")
        self.vocab = self.lib.llama_model_get_vocab(self.handle)
        self.vocab_size = self.lib.llama_vocab_n_tokens(self.vocab)

    def tokenize(self, text, add_special, parse_special=True):
        raw = text.encode()
        ids = (ctypes.c_int32 * (len(raw) + 16))()
        count = self.lib.llama_tokenize(self.vocab, raw, len(raw), ids, len(ids), add_special, parse_special)
        return list(ids[:count])

    def session(self, context, kv_f32=False, **options):
        """A session with the options of its constructor."""
        return Session(self, context, kv_f32, **options)


# 32-bit words of llama_context_params (llama.h of libllama 0.4.0) and their default values.
FLASH_ATTENTION, TYPE_K, TYPE_V = 13, 26, 27
AUTO, F16 = 0xFFFFFFFF, 1


class Session:
    """Sequences with their cache."""

    BATCH = 512  # tokens computed together

    def __init__(self, model, context, kv_f32=False, sequences=1, largest=BATCH, threads=0):
        """context: positions of each sequence; largest: tokens of a batch; threads 0: all processors.

        kv_f32: keys and values stay f32, instead of f16 that flash attention also sums in f16."""
        self.model, self.lib, self.position = model, model.lib, 0
        params = self.lib.llama_context_default_params()
        words = ctypes.cast(ctypes.byref(params), ctypes.POINTER(ctypes.c_uint32))
        words[0], words[1], words[2], words[3] = context * sequences, largest, self.BATCH, sequences
        if kv_f32:
            if (words[FLASH_ATTENTION], words[TYPE_K], words[TYPE_V]) != (AUTO, F16, F16):
                raise SystemExit("llama_context_params of this libllama has another layout")
            words[FLASH_ATTENTION], words[TYPE_K], words[TYPE_V] = 0, 0, 0  # off, F32, F32
        self.handle = self.lib.llama_init_from_model(model.handle, params)
        if not self.handle:
            raise SystemExit("llama.cpp cannot make a context")
        threads = threads or len(os.sched_getaffinity(0))
        self.lib.llama_set_n_threads(self.handle, threads, threads)

    def close(self):
        self.lib.llama_free(self.handle)

    def clear(self):
        """Forgets all tokens."""
        self.lib.llama_memory_clear(self.lib.llama_get_memory(self.handle), True)

    def synchronize(self):
        """Waits for what was decoded."""
        self.lib.llama_synchronize(self.handle)

    @staticmethod
    def batch(entries):
        """A batch to decode; an entry is (token, position, sequence, whether its logits are wanted)."""
        count = len(entries)
        tokens, positions, sequences, wanted = zip(*entries)
        ids = (ctypes.c_int32 * count)(*sequences)
        places = (I32P * count)(*(ctypes.pointer(ctypes.c_int32.from_buffer(ids, 4 * i)) for i in range(count)))
        return Batch(count, (ctypes.c_int32 * count)(*tokens), None, (ctypes.c_int32 * count)(*positions),
                     (ctypes.c_int32 * count)(*[1] * count), places, (ctypes.c_int8 * count)(*wanted))

    def decode(self, batch):
        if self.lib.llama_decode(self.handle, batch):
            raise SystemExit("llama_decode failed")

    def feed(self, tokens):
        """Runs the tokens in sequence 0 and returns their logits, an array('f') each."""
        rows = []
        for begin in range(0, len(tokens), self.BATCH):
            piece = tokens[begin : begin + self.BATCH]
            self.decode(self.batch([(token, self.position + i, 0, True) for i, token in enumerate(piece)]))
            for i in range(len(piece)):
                pointer = self.lib.llama_get_logits_ith(self.handle, i)
                row = array.array("f")
                row.frombytes(ctypes.string_at(pointer, 4 * self.model.vocab_size))
                rows.append(row)
            self.position += len(piece)
        return rows

    def greedy(self, prompt, count):
        """`count` greedy tokens after the prompt, and the logits that chose them."""
        row = self.feed(prompt)[-1]
        tokens, rows = [], []
        for _ in range(count):
            token = max(range(len(row)), key=row.__getitem__)
            tokens.append(token)
            rows.append(row)
            row = self.feed([token])[0]
        return tokens, rows
