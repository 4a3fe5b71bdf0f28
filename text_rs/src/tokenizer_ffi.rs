//! The C interface of the tokenizers; contracts are in include/text_rs.h.

use std::borrow::Cow;
use std::ffi::{c_char, CString};

use crate::guard::{give, guarded, slice, take};
use crate::pre_tokenizers::pre_kind;
use crate::tokenizer::TextTokenizer;
use crate::vocab::{build, Vocab};

#[repr(C)]
#[derive(Clone, Copy)]
pub struct TextRsBytes {
    pub data: *const c_char,
    pub size: usize,
}

impl TextRsBytes {
    /// # Safety
    /// The bytes outlive the use of the slice.
    pub unsafe fn bytes<'a>(self) -> &'a [u8] {
        unsafe { slice(self.data.cast(), self.size) }
    }

    unsafe fn text<'a>(self, what: &str) -> Result<&'a str, String> {
        std::str::from_utf8(unsafe { self.bytes() }).map_err(|_| format!("{what} is not UTF-8"))
    }

    fn of(bytes: &[u8]) -> Self {
        Self {
            data: bytes.as_ptr().cast(),
            size: bytes.len(),
        }
    }
}

#[repr(C)]
pub struct TextRsVocab {
    model: TextRsBytes,
    pre: TextRsBytes,
    tokens: *const TextRsBytes,
    scores: *const f32,
    types: *const i32,
    token_count: usize,
    merges: *const TextRsBytes,
    merge_count: usize,
    charsmap: TextRsBytes,
    unknown_id: i32,
    add_space_prefix: bool,
    remove_extra_whitespaces: bool,
    lowercase: bool,
    strip_accents: bool,
    special_rstrip: bool,
    mask_lstrip: i32,
}

#[repr(C)]
pub struct TextRsPreKind {
    known: bool,
    add_bos: bool,
}

#[no_mangle]
pub unsafe extern "C" fn text_rs_free_message(message: *mut c_char) {
    if !message.is_null() {
        drop(unsafe { CString::from_raw(message) });
    }
}

#[no_mangle]
pub unsafe extern "C" fn text_rs_tokenizer_from_json(
    json: *const c_char,
    size: usize,
    out: *mut *mut TextTokenizer,
) -> *mut c_char {
    guarded(|| {
        let json = unsafe { slice(json.cast::<u8>(), size) };
        let tokenizer = TextTokenizer::from_json(json).map_err(|error| error.to_string())?;
        unsafe { *out = Box::into_raw(Box::new(tokenizer)) };
        Ok(())
    })
}

unsafe fn read_vocab(vocab: &TextRsVocab) -> Result<Vocab<'_>, String> {
    let texts = |data, size, what: &str| -> Result<Vec<&str>, String> {
        unsafe { slice(data, size) }
            .iter()
            .enumerate()
            .map(|(i, text): (usize, &TextRsBytes)| unsafe { text.text(&format!("{what} {i}")) })
            .collect()
    };
    let count = vocab.token_count;
    let id = |id: i32| usize::try_from(id).ok().filter(|&id| id < count);
    unsafe {
        Ok(Vocab {
            model: vocab.model.text("tokenizer.ggml.model")?,
            pre: vocab.pre.text("tokenizer.ggml.pre")?,
            tokens: texts(vocab.tokens, count, "token")?,
            scores: (!vocab.scores.is_null()).then(|| slice(vocab.scores, count)),
            types: (!vocab.types.is_null()).then(|| slice(vocab.types, count)),
            merges: texts(vocab.merges, vocab.merge_count, "merge")?,
            charsmap: vocab.charsmap.bytes(),
            unknown_id: id(vocab.unknown_id),
            add_space_prefix: vocab.add_space_prefix,
            remove_extra_whitespaces: vocab.remove_extra_whitespaces,
            lowercase: vocab.lowercase,
            strip_accents: vocab.strip_accents,
            special_rstrip: vocab.special_rstrip,
            mask_lstrip: id(vocab.mask_lstrip),
        })
    }
}

#[no_mangle]
pub unsafe extern "C" fn text_rs_tokenizer_from_vocab(
    vocab: *const TextRsVocab,
    out: *mut *mut TextTokenizer,
) -> *mut c_char {
    guarded(|| {
        let vocab = unsafe { read_vocab(&*vocab)? };
        let tokenizer = build(&vocab).map_err(|error| error.to_string())?;
        unsafe { *out = Box::into_raw(Box::new(tokenizer)) };
        Ok(())
    })
}

#[no_mangle]
pub unsafe extern "C" fn text_rs_tokenizer_free(tokenizer: *mut TextTokenizer) {
    if !tokenizer.is_null() {
        drop(unsafe { Box::from_raw(tokenizer) });
    }
}

#[no_mangle]
pub unsafe extern "C" fn text_rs_pre_kind(pre: TextRsBytes) -> TextRsPreKind {
    let kind = unsafe { pre.text("") }.ok().and_then(pre_kind);
    TextRsPreKind {
        known: kind.is_some(),
        add_bos: kind.is_some_and(|kind| kind.add_bos),
    }
}

#[no_mangle]
pub unsafe extern "C" fn text_rs_encode(
    tokenizer: *const TextTokenizer,
    text: *const c_char,
    size: usize,
    parse_special: bool,
    ids: *mut *mut i32,
    count: *mut usize,
) -> *mut c_char {
    guarded(|| {
        let text: Cow<str> = String::from_utf8_lossy(unsafe { slice(text.cast::<u8>(), size) });
        let result = unsafe { &*tokenizer }
            .encode(&text, parse_special)
            .map_err(|error| error.to_string())?;
        unsafe { (*ids, *count) = give(result) };
        Ok(())
    })
}

#[no_mangle]
pub unsafe extern "C" fn text_rs_free_ids(ids: *mut i32, count: usize) {
    unsafe { take(ids, count) };
}

#[no_mangle]
pub unsafe extern "C" fn text_rs_affixes(
    tokenizer: *const TextTokenizer,
    prefix: *mut *mut i32,
    prefix_count: *mut usize,
    suffix: *mut *mut i32,
    suffix_count: *mut usize,
) -> *mut c_char {
    guarded(|| {
        let tokenizer = unsafe { &*tokenizer };
        unsafe {
            (*prefix, *prefix_count) = give(tokenizer.prefix().to_vec());
            (*suffix, *suffix_count) = give(tokenizer.suffix().to_vec());
        }
        Ok(())
    })
}

#[no_mangle]
pub unsafe extern "C" fn text_rs_vocab_size(tokenizer: *const TextTokenizer) -> usize {
    unsafe { &*tokenizer }.pieces().len()
}

#[no_mangle]
pub unsafe extern "C" fn text_rs_token_bytes(
    tokenizer: *const TextTokenizer,
    id: i32,
) -> TextRsBytes {
    TextRsBytes::of(unsafe { &*tokenizer }.pieces().bytes(id))
}

#[no_mangle]
pub unsafe extern "C" fn text_rs_token_is_special(
    tokenizer: *const TextTokenizer,
    id: i32,
) -> bool {
    unsafe { &*tokenizer }.pieces().is_special(id)
}

#[no_mangle]
pub unsafe extern "C" fn text_rs_token_id(
    tokenizer: *const TextTokenizer,
    text: TextRsBytes,
) -> i32 {
    let text = unsafe { text.text("") };
    text.ok()
        .and_then(|text| unsafe { &*tokenizer }.pieces().id(text))
        .unwrap_or(-1)
}

#[no_mangle]
pub unsafe extern "C" fn text_rs_strips_first_space(tokenizer: *const TextTokenizer) -> bool {
    unsafe { &*tokenizer }.pieces().strips_first_space
}
