//! Tokenizers from a vocabulary as GGUF stores it.

use std::cmp::Ordering;

use ahash::AHashMap;
use tokenizers::models::bpe::BPE;
use tokenizers::models::unigram::Unigram;
use tokenizers::models::wordlevel::WordLevel;
use tokenizers::models::wordpiece::WordPiece;
use tokenizers::normalizers::replace::ReplacePattern;
use tokenizers::normalizers::{BertNormalizer, Precompiled, Prepend, Replace, NFC};
use tokenizers::pre_tokenizers::bert::BertPreTokenizer;
use tokenizers::{
    AddedToken, AddedVocabulary, ModelWrapper, NormalizerWrapper, PreTokenizerWrapper, Result,
    Tokenizer,
};

use crate::pieces::{byte_of, ByteLetters, Pieces};
use crate::pre_tokenizers::{pre_kind, Letters};
use crate::tokenizer::{Engine, TextTokenizer, Vocabulary};
use crate::trie::Trie;

/// ggml's token types.
const UNKNOWN: i32 = 2;
const CONTROL: i32 = 3;
const USER_DEFINED: i32 = 4;
const BYTE: i32 = 6;

const SPACE: &str = "\u{2581}";

/// The fields of TextRsVocab as slices.
pub struct Vocab<'a> {
    pub model: &'a str,
    pub pre: &'a str,
    pub tokens: Vec<&'a str>,
    pub scores: Option<&'a [f32]>,
    pub types: Option<&'a [i32]>,
    pub merges: Vec<&'a str>,
    pub charsmap: &'a [u8],
    pub unknown_id: Option<usize>,
    pub add_space_prefix: bool,
    pub remove_extra_whitespaces: bool,
    pub lowercase: bool,
    pub strip_accents: bool,
    pub special_rstrip: bool,
    pub mask_lstrip: Option<usize>,
}

impl Vocab<'_> {
    fn kind(&self, id: usize) -> i32 {
        self.types.map_or(1, |types| types[id])
    }

    fn is_special(&self, id: usize) -> bool {
        matches!(self.kind(id), UNKNOWN | CONTROL)
    }

    fn score(&self, id: usize) -> f32 {
        self.scores.map_or(0.0, |scores| scores[id])
    }

    /// The tokens that text can become, the first of equal texts winning.
    fn plain_vocabulary(&self, text_of: impl Fn(usize) -> String) -> Vocabulary {
        let mut vocabulary = Vocabulary::with_capacity(self.tokens.len());
        for id in (0..self.tokens.len()).filter(|&id| !self.is_special(id)) {
            let text = text_of(id);
            if !text.is_empty() {
                vocabulary.entry(text).or_insert(id as u32);
            }
        }
        vocabulary
    }

    fn text(&self, id: usize) -> String {
        self.tokens[id].to_string()
    }

    /// Special and user-defined tokens, which are cut out of the text first.
    fn added(&self) -> Result<AddedVocabulary> {
        let mut ids = Vocabulary::new();
        let mut tokens = Vec::new();
        for (id, text) in self.tokens.iter().enumerate() {
            let special = self.is_special(id);
            if text.is_empty() || !(special || self.kind(id) == USER_DEFINED) {
                continue;
            }
            if ids.contains_key(*text) {
                continue;
            }
            ids.insert(text.to_string(), id as u32);
            let keeps_space = matches!(*text, "<unk>" | "<s>" | "<|endoftext|>");
            tokens.push(
                AddedToken::from(*text, special)
                    .normalized(false)
                    .lstrip(self.mask_lstrip == Some(id))
                    .rstrip(self.special_rstrip && !keeps_space),
            );
        }
        let names = WordLevel::builder().vocab(ids).build()?;
        let mut added = AddedVocabulary::new();
        let none: Option<&NormalizerWrapper> = None;
        added.add_tokens(tokens, &names, none)?;
        Ok(added)
    }

    fn pieces(&self, bytes_of: impl Fn(usize) -> Vec<u8>) -> Pieces {
        let mut pieces = Pieces::default();
        for (id, text) in self.tokens.iter().enumerate() {
            let special = self.is_special(id);
            if special || self.kind(id) == USER_DEFINED {
                pieces.push(text, text.as_bytes(), special);
            } else {
                pieces.push(text, &bytes_of(id), false);
            }
        }
        pieces
    }

    /// Bytes of a token whose letters are text with U+2581 for a space.
    fn text_bytes(&self, id: usize) -> Vec<u8> {
        match byte_of(self.tokens[id]) {
            Some(byte) if self.kind(id) == BYTE => vec![byte],
            _ => self.tokens[id].replace(SPACE, " ").into_bytes(),
        }
    }
}

fn assemble(
    vocab: &Vocab,
    model: impl Into<ModelWrapper>,
    normalizer: Option<NormalizerWrapper>,
    pre_tokenizer: Option<PreTokenizerWrapper>,
    pieces: Pieces,
) -> Result<TextTokenizer> {
    let mut tokenizer = Tokenizer::new(model);
    tokenizer.with_normalizer(normalizer)?;
    tokenizer.with_pre_tokenizer(pre_tokenizer);
    let engine = Engine::Pipeline(Box::new(tokenizer));
    Ok(TextTokenizer::new(engine, vocab.added()?, pieces))
}

fn sequence(parts: Vec<NormalizerWrapper>) -> NormalizerWrapper {
    tokenizers::normalizers::Sequence::new(parts).into()
}

pub fn build(vocab: &Vocab) -> Result<TextTokenizer> {
    match vocab.model {
        "gpt2" => byte_pairs(vocab, vocab.pre),
        "gemma4" => byte_pairs(vocab, "gemma4"),
        "llama" => scored_pairs(vocab),
        "bert" => word_pieces(vocab),
        "t5" => unigram(vocab),
        "rwkv" => longest_match(vocab),
        other => Err(format!("the tokenizer model '{other}' is not supported").into()),
    }
}

fn byte_pairs(vocab: &Vocab, pre: &str) -> Result<TextTokenizer> {
    let name = if pre.is_empty() { "default" } else { pre };
    let kind =
        pre_kind(name).ok_or_else(|| format!("the pre-tokenizer '{name}' is not supported"))?;
    let mut merges = Vec::with_capacity(vocab.merges.len());
    for (i, merge) in vocab.merges.iter().enumerate() {
        let first = merge.chars().next().map_or(0, char::len_utf8);
        let space = merge[first..]
            .find(' ')
            .ok_or_else(|| format!("merge {i} '{merge}' is not a pair"))?;
        let (left, right) = merge.split_at(first + space);
        merges.push((left.to_string(), right[1..].to_string()));
    }
    let text = kind.letters == Letters::Text;
    let vocabulary = vocab.plain_vocabulary(|id| vocab.text(id));
    check_merges(&merges, &vocabulary)?;
    let model = BPE::builder()
        .vocab_and_merges(vocabulary, merges)
        .ignore_merges(kind.ignore_merges)
        .byte_fallback(text)
        .build()?;
    let letters = ByteLetters::new();
    let pieces = vocab.pieces(|id| {
        if text {
            vocab.text_bytes(id)
        } else {
            let token = vocab.tokens[id];
            letters
                .decode(token)
                .unwrap_or_else(|| token.as_bytes().to_vec())
        }
    });
    let normalizer = if text {
        Some(Replace::new(" ", SPACE)?.into())
    } else {
        kind.nfc.then(|| NFC.into())
    };
    assemble(vocab, model, normalizer, Some(kind.build()?), pieces)
}

/// Both sides of a merge and their union must be tokens.
fn check_merges(merges: &[(String, String)], vocabulary: &Vocabulary) -> Result<()> {
    let mut union = String::new();
    for (i, (left, right)) in merges.iter().enumerate() {
        union.clear();
        union.push_str(left);
        union.push_str(right);
        for part in [left, right, &union] {
            if !vocabulary.contains_key(part) {
                return Err(format!("merge {i} '{left} {right}': no token '{part}'").into());
            }
        }
    }
    Ok(())
}

/// SentencePiece's BPE merges the neighbours whose union has the highest score: the same as a
/// list of all pairs that make a token, in the order of the tokens' scores.
fn scored_pairs(vocab: &Vocab) -> Result<TextTokenizer> {
    if vocab.scores.is_none() {
        return Err("the tokenizer model 'llama' needs tokenizer.ggml.scores".into());
    }
    let vocabulary = vocab.plain_vocabulary(|id| vocab.text(id));
    let mut pairs: Vec<(u32, usize)> = Vec::new();
    for (id, token) in vocab.tokens.iter().enumerate() {
        let mergeable = !vocab.is_special(id) && vocab.kind(id) != BYTE;
        if !mergeable || vocabulary.get(*token) != Some(&(id as u32)) {
            continue;
        }
        for (at, _) in token.char_indices().skip(1) {
            if vocabulary.contains_key(&token[..at]) && vocabulary.contains_key(&token[at..]) {
                pairs.push((id as u32, at));
            }
        }
    }
    pairs.sort_by(|a, b| {
        let (x, y) = (vocab.score(a.0 as usize), vocab.score(b.0 as usize));
        y.partial_cmp(&x).unwrap_or(Ordering::Equal)
    });
    let merges = pairs
        .iter()
        .map(|&(id, at)| {
            let (left, right) = vocab.tokens[id as usize].split_at(at);
            (left.to_string(), right.to_string())
        })
        .collect();
    let unknown = vocab.unknown_id.map(|id| vocab.text(id));
    let mut names = vocabulary;
    if let (Some(text), Some(id)) = (&unknown, vocab.unknown_id) {
        names.entry(text.clone()).or_insert(id as u32);
    }
    let mut model = BPE::builder()
        .vocab_and_merges(names, merges)
        .byte_fallback(true)
        .fuse_unk(true);
    if let Some(text) = unknown {
        model = model.unk_token(text);
    }
    let mut pieces = vocab.pieces(|id| vocab.text_bytes(id));
    pieces.strips_first_space = vocab.add_space_prefix;
    let mut normalizers = Vec::new();
    if vocab.add_space_prefix {
        normalizers.push(Prepend::new(SPACE.to_string()).into());
    }
    normalizers.push(Replace::new(" ", SPACE)?.into());
    let normalizer = Some(sequence(normalizers));
    assemble(vocab, model.build()?, normalizer, None, pieces)
}

/// GGUF marks the start of a word with U+2581, where BERT marks the rest of it with "##".
fn word_pieces(vocab: &Vocab) -> Result<TextTokenizer> {
    let as_bert = |id: usize| {
        let token = vocab.tokens[id];
        match token.strip_prefix(SPACE) {
            Some(word) => word.to_string(),
            None => format!("##{token}"),
        }
    };
    let unknown_id = vocab
        .unknown_id
        .ok_or("the tokenizer model 'bert' needs tokenizer.ggml.unknown_token_id")?;
    let unknown = vocab.text(unknown_id);
    let mut vocabulary = vocab.plain_vocabulary(as_bert);
    vocabulary.insert(unknown.clone(), unknown_id as u32);
    let model = WordPiece::builder()
        .vocab(vocabulary)
        .unk_token(unknown)
        .build()?;
    let normalizer = BertNormalizer::new(true, true, Some(vocab.strip_accents), vocab.lowercase);
    let mut pieces = vocab.pieces(|id| vocab.text_bytes(id));
    pieces.strips_first_space = true;
    assemble(
        vocab,
        model,
        Some(normalizer.into()),
        Some(BertPreTokenizer.into()),
        pieces,
    )
}

fn unigram(vocab: &Vocab) -> Result<TextTokenizer> {
    if vocab.scores.is_none() {
        return Err("the tokenizer model 't5' needs tokenizer.ggml.scores".into());
    }
    let mut seen = AHashMap::new();
    let mut bytes = 0;
    let entries: Vec<(String, f64)> = (0..vocab.tokens.len())
        .map(|id| {
            let text = vocab.tokens[id];
            let repeated = seen.insert(text, id).is_some();
            bytes += usize::from(vocab.kind(id) == BYTE && byte_of(text).is_some());
            // Normalised text has no plain space, so these entries never match.
            if vocab.is_special(id) || repeated || text.is_empty() {
                (format!(" {id}"), f64::from(vocab.score(id)))
            } else if vocab.kind(id) == USER_DEFINED {
                (text.to_string(), 0.0)
            } else {
                (text.to_string(), f64::from(vocab.score(id)))
            }
        })
        .collect();
    let model = Unigram::from(entries, vocab.unknown_id, bytes == 256)?;
    let mut normalizers: Vec<NormalizerWrapper> = Vec::new();
    if !vocab.charsmap.is_empty() {
        let rules = Precompiled::from(vocab.charsmap)
            .map_err(|error| format!("tokenizer.ggml.precompiled_charsmap: {error}"))?;
        normalizers.push(rules.into());
    }
    if vocab.remove_extra_whitespaces {
        // Spaces only: other white space has become a space or counts as a character.
        for (pattern, with) in [(r"\A +| +\z", ""), (" {2,}", " ")] {
            let pattern = ReplacePattern::Regex(pattern.to_string());
            normalizers.push(Replace::new(pattern, with)?.into());
        }
    }
    if vocab.add_space_prefix {
        normalizers.push(Prepend::new(SPACE.to_string()).into());
    }
    normalizers.push(Replace::new(" ", SPACE)?.into());
    let mut pieces = vocab.pieces(|id| vocab.text_bytes(id));
    pieces.strips_first_space = vocab.add_space_prefix;
    assemble(vocab, model, Some(sequence(normalizers)), None, pieces)
}

fn longest_match(vocab: &Vocab) -> Result<TextTokenizer> {
    let bytes: Vec<Vec<u8>> = vocab.tokens.iter().map(|text| unescape(text)).collect();
    let mut trie = Trie::new(vocab.unknown_id.map(|id| id as i32));
    for id in (0..bytes.len()).filter(|&id| !vocab.is_special(id)) {
        trie.insert(&bytes[id], id as i32);
    }
    let pieces = vocab.pieces(|id| bytes[id].clone());
    Ok(TextTokenizer::new(
        Engine::Trie(trie),
        vocab.added()?,
        pieces,
    ))
}

/// RWKV's tokens are written with \t, \n, \r, \xHH and a backslash before anything else.
fn unescape(text: &str) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('\\') {
        bytes.extend_from_slice(&rest.as_bytes()[..at]);
        rest = &rest[at + 1..];
        let hex = rest.get(1..3).filter(|_| rest.starts_with('x'));
        if let Some(byte) = hex.and_then(|hex| u8::from_str_radix(hex, 16).ok()) {
            bytes.push(byte);
            rest = &rest[3..];
        } else if let Some(c) = rest.chars().next() {
            let plain = match c {
                't' => '\t',
                'n' => '\n',
                'r' => '\r',
                other => other,
            };
            bytes.extend_from_slice(plain.encode_utf8(&mut [0; 4]).as_bytes());
            rest = &rest[c.len_utf8()..];
        }
    }
    bytes.extend_from_slice(rest.as_bytes());
    bytes
}
