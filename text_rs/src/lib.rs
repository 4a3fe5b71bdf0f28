//! Tokenizers and chat templates behind the C interface of include/text_rs.h.

mod guard;
mod pieces;
mod pre_tokenizers;
mod python;
mod template;
mod template_ffi;
mod tokenizer;
mod tokenizer_ffi;
mod trie;
mod vocab;
