// C interface of text_rs, the Rust library with the tokenizers and the chat templates.
//
// Errors: a function that can fail returns NULL on success, else a message in UTF-8 that the caller
// frees with text_rs_free_message; out parameters are then untouched. Panics become such messages.
// Handles are immutable after creation and may be used from several threads at once.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct TextRsTokenizer TextRsTokenizer;
typedef struct TextRsTemplate TextRsTemplate;

// Borrowed bytes, not zero-terminated; valid as long as their owner says.
typedef struct TextRsBytes {
  const char* data;
  size_t size;
} TextRsBytes;

// A vocabulary as GGUF stores it. Everything is borrowed for the call only.
typedef struct TextRsVocab {
  TextRsBytes model;          // tokenizer.ggml.model
  TextRsBytes pre;            // tokenizer.ggml.pre
  const TextRsBytes* tokens;  // token_count texts
  const float* scores;        // token_count values, or NULL
  const int32_t* types;       // token_count values of ggml's token types, or NULL
  size_t token_count;
  const TextRsBytes* merges;  // "left right"
  size_t merge_count;
  TextRsBytes charsmap;   // normalisation rules of the model kind t5, may be empty
  int32_t unknown_id;     // -1: none
  bool add_space_prefix;  // model kinds llama and t5
  bool remove_extra_whitespaces;
  bool lowercase;  // model kind bert
  bool strip_accents;
  bool special_rstrip;  // control tokens swallow the white space after them
  int32_t mask_lstrip;  // the token that swallows the white space before it; -1: none
} TextRsVocab;

// What a tokenizer.ggml.pre kind implies beside its splitting rule.
typedef struct TextRsPreKind {
  bool known;
  bool add_bos;
} TextRsPreKind;

void text_rs_free_message(char* message);

char* text_rs_tokenizer_from_json(const char* json, size_t size, TextRsTokenizer** out);
char* text_rs_tokenizer_from_vocab(const TextRsVocab* vocab, TextRsTokenizer** out);
void text_rs_tokenizer_free(TextRsTokenizer* tokenizer);
TextRsPreKind text_rs_pre_kind(TextRsBytes pre);

// Token ids of `text` without BOS and EOS. Special tokens are read as such only with parse_special.
// `*ids` is freed with text_rs_free_ids. Bytes that are not UTF-8 are read as U+FFFD.
char* text_rs_encode(const TextRsTokenizer* tokenizer, const char* text, size_t size,
                     bool parse_special, int32_t** ids, size_t* count);
void text_rs_free_ids(int32_t* ids, size_t count);

// The ids that the post-processor of a tokenizer.json puts before and after a text.
char* text_rs_affixes(const TextRsTokenizer* tokenizer, int32_t** prefix, size_t* prefix_count,
                      int32_t** suffix, size_t* suffix_count);

// Highest id + 1.
size_t text_rs_vocab_size(const TextRsTokenizer* tokenizer);
// The bytes that a token stands for, owned by the tokenizer; empty for an id without a token.
TextRsBytes text_rs_token_bytes(const TextRsTokenizer* tokenizer, int32_t id);
bool text_rs_token_is_special(const TextRsTokenizer* tokenizer, int32_t id);
// -1 when there is no such token.
int32_t text_rs_token_id(const TextRsTokenizer* tokenizer, TextRsBytes text);
// Whether decoding a whole text drops one space from its start.
bool text_rs_strips_first_space(const TextRsTokenizer* tokenizer);

char* text_rs_template_new(TextRsBytes source, TextRsTemplate** out);
void text_rs_template_free(TextRsTemplate* chat_template);
// Renders with the variables of a JSON object. `now` is the time in seconds since 1970 that
// strftime_now shows (local time), a negative one means the present. `*text` is freed with
// text_rs_free_text.
char* text_rs_template_render(const TextRsTemplate* chat_template, TextRsBytes variables,
                              int64_t now, char** text, size_t* size);
void text_rs_free_text(char* text, size_t size);

#ifdef __cplusplus
}
#endif
