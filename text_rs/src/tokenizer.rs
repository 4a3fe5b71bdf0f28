//! A tokenizer with the bytes of every token beside it.

use ahash::AHashMap;
use tokenizers::tokenizer::{
    Encoding, Model, OffsetReferential, OffsetType, PostProcessor, PreTokenizer, Token,
};
use tokenizers::{AddedVocabulary, Result, Tokenizer};

use crate::pieces::{self, Pieces};
use crate::trie::Trie;

/// What turns text between special tokens into ids.
pub enum Engine {
    Pipeline(Box<Tokenizer>),
    /// Longest match over bytes (RWKV's world vocabulary).
    Trie(Trie),
}

pub struct TextTokenizer {
    engine: Engine,
    /// The tokens that are found in the text before anything else.
    added: AddedVocabulary,
    /// The same, special ones being read as plain text.
    added_plain: AddedVocabulary,
    pieces: Pieces,
    /// Ids that a post-processor puts before and after a text.
    prefix: Vec<i32>,
    suffix: Vec<i32>,
}

impl TextTokenizer {
    pub fn new(engine: Engine, added: AddedVocabulary, pieces: Pieces) -> Self {
        let mut added_plain = added.clone();
        added_plain.set_encode_special_tokens(true);
        Self {
            engine,
            added,
            added_plain,
            pieces,
            prefix: Vec::new(),
            suffix: Vec::new(),
        }
    }

    pub fn from_json(json: &[u8]) -> Result<Self> {
        let mut tokenizer = Tokenizer::from_bytes(json)?;
        tokenizer.with_truncation(None)?;
        tokenizer.with_padding(None);
        let pieces = pieces::from_tokenizer(&tokenizer)?;
        let (prefix, suffix) = affixes(&tokenizer)?;
        let added = tokenizer.get_added_vocabulary().clone();
        let mut result = Self::new(Engine::Pipeline(Box::new(tokenizer)), added, pieces);
        result.prefix = prefix;
        result.suffix = suffix;
        Ok(result)
    }

    pub fn encode(&self, text: &str, parse_special: bool) -> Result<Vec<i32>> {
        if text.is_empty() {
            return Ok(Vec::new());
        }
        let added = if parse_special {
            &self.added
        } else {
            &self.added_plain
        };
        let mut ids = Vec::with_capacity(text.len() / 3 + 1);
        match &self.engine {
            Engine::Pipeline(tokenizer) => {
                let mut pieces = added.extract_and_normalize(tokenizer.get_normalizer(), text);
                if let Some(pre_tokenizer) = tokenizer.get_pre_tokenizer() {
                    pre_tokenizer.pre_tokenize(&mut pieces)?;
                }
                let model = tokenizer.get_model();
                pieces.tokenize(|piece| model.tokenize(piece.get()))?;
                for (_, _, tokens) in
                    pieces.get_splits(OffsetReferential::Normalized, OffsetType::None)
                {
                    push_ids(tokens, &mut ids);
                }
            }
            Engine::Trie(trie) => {
                let none: Option<&tokenizers::NormalizerWrapper> = None;
                let pieces = added.extract_and_normalize(none, text);
                for (piece, _, tokens) in
                    pieces.get_splits(OffsetReferential::Normalized, OffsetType::None)
                {
                    if tokens.is_some() {
                        push_ids(tokens, &mut ids);
                    } else {
                        trie.encode(piece.as_bytes(), &mut ids)?;
                    }
                }
            }
        }
        Ok(ids)
    }

    pub fn pieces(&self) -> &Pieces {
        &self.pieces
    }

    pub fn prefix(&self) -> &[i32] {
        &self.prefix
    }

    pub fn suffix(&self) -> &[i32] {
        &self.suffix
    }
}

fn push_ids(tokens: &Option<Vec<Token>>, ids: &mut Vec<i32>) {
    if let Some(tokens) = tokens {
        ids.extend(tokens.iter().map(|token| token.id as i32));
    }
}

/// Runs the post-processor on one marker and reads what it put around it.
fn affixes(tokenizer: &Tokenizer) -> Result<(Vec<i32>, Vec<i32>)> {
    let Some(post_processor) = tokenizer.get_post_processor() else {
        return Ok((Vec::new(), Vec::new()));
    };
    const MARKER: u32 = u32::MAX;
    let marker = Encoding::from_tokens(vec![Token::new(MARKER, String::new(), (0, 0))], 0);
    let encoding = post_processor.process(marker, None, true)?;
    let ids = encoding.get_ids();
    let at = ids
        .iter()
        .position(|&id| id == MARKER)
        .ok_or("the post-processor drops the text")?;
    let as_i32 = |ids: &[u32]| ids.iter().map(|&id| id as i32).collect::<Vec<_>>();
    Ok((as_i32(&ids[..at]), as_i32(&ids[at + 1..])))
}

/// Text to id for the model part; special tokens are kept out of it, so that text never becomes
/// one by merging.
pub type Vocabulary = AHashMap<String, u32>;
