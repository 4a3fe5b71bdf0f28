//! The bytes that each token stands for.

use ahash::AHashMap;
use serde_json::Value;
use tokenizers::{Result, Tokenizer};

/// Bytes of all tokens in one buffer, and which of them are special.
#[derive(Default)]
pub struct Pieces {
    bytes: Vec<u8>,
    ends: Vec<usize>,
    special: Vec<bool>,
    ids: AHashMap<String, i32>,
    /// Decoding a whole text drops one space from its start.
    pub strips_first_space: bool,
}

impl Pieces {
    /// Appends the token with the next id.
    pub fn push(&mut self, text: &str, bytes: &[u8], special: bool) {
        let id = self.ends.len() as i32;
        self.bytes.extend_from_slice(bytes);
        self.ends.push(self.bytes.len());
        self.special.push(special);
        if !text.is_empty() {
            self.ids.entry(text.to_string()).or_insert(id);
        }
    }

    pub fn len(&self) -> usize {
        self.ends.len()
    }

    pub fn bytes(&self, id: i32) -> &[u8] {
        match usize::try_from(id) {
            Ok(id) if id < self.ends.len() => {
                let start = if id == 0 { 0 } else { self.ends[id - 1] };
                &self.bytes[start..self.ends[id]]
            }
            _ => &[],
        }
    }

    pub fn is_special(&self, id: i32) -> bool {
        usize::try_from(id)
            .ok()
            .and_then(|id| self.special.get(id).copied())
            .unwrap_or(false)
    }

    pub fn id(&self, text: &str) -> Option<i32> {
        self.ids.get(text).copied()
    }
}

/// GPT-2's letter for each byte: printable Latin-1 stands for itself, the rest counts up from 256.
pub struct ByteLetters(AHashMap<char, u8>);

impl ByteLetters {
    pub fn new() -> Self {
        let mut letters = AHashMap::new();
        let mut next = 256;
        for byte in 0..=255u8 {
            let printable = matches!(byte, b'!'..=b'~' | 0xA1..=0xAC | 0xAE..=0xFF);
            let letter = if printable {
                u32::from(byte)
            } else {
                next += 1;
                next - 1
            };
            letters.insert(char::from_u32(letter).unwrap_or('\u{fffd}'), byte);
        }
        Self(letters)
    }

    /// None when a character is no byte letter.
    pub fn decode(&self, text: &str) -> Option<Vec<u8>> {
        text.chars().map(|c| self.0.get(&c).copied()).collect()
    }
}

/// The byte of a token such as `<0x0A>`.
pub fn byte_of(text: &str) -> Option<u8> {
    let digits = text.strip_prefix("<0x")?.strip_suffix('>')?;
    if digits.len() != 2 {
        return None;
    }
    u8::from_str_radix(digits, 16).ok()
}

/// How a tokenizer.json turns tokens back into text, as far as it works token by token.
#[derive(Default)]
struct DecoderRule {
    byte_letters: Option<ByteLetters>,
    byte_tokens: bool,
    replacements: Vec<(String, String)>,
    word_prefix: Option<String>,
    word_suffix: Option<String>,
    strips_first_space: bool,
}

impl DecoderRule {
    fn read(&mut self, decoder: &Value) -> Result<()> {
        let text = |key: &str| decoder[key].as_str().unwrap_or_default().to_string();
        match decoder["type"].as_str().unwrap_or_default() {
            "Sequence" => {
                for part in decoder["decoders"].as_array().unwrap_or(&Vec::new()) {
                    self.read(part)?;
                }
            }
            "ByteLevel" => self.byte_letters = Some(ByteLetters::new()),
            "ByteFallback" => self.byte_tokens = true,
            "Fuse" => {}
            "Replace" => {
                let pattern = decoder["pattern"]["String"]
                    .as_str()
                    .ok_or("a decoder that replaces by regular expression is not supported")?;
                self.replacements
                    .push((pattern.to_string(), text("content")));
            }
            "Strip" => {
                let start = decoder["start"].as_u64().unwrap_or(0);
                let stop = decoder["stop"].as_u64().unwrap_or(0);
                if text("content") != " " || start > 1 || stop > 0 {
                    return Err("a decoder that strips more than one space is not supported".into());
                }
                self.strips_first_space = start == 1;
            }
            "Metaspace" => {
                self.replacements
                    .push((text("replacement"), " ".to_string()));
                self.strips_first_space = decoder["prepend_scheme"].as_str() != Some("never");
            }
            "WordPiece" => {
                self.word_prefix = Some(text("prefix"));
                self.strips_first_space = true;
            }
            "BPEDecoder" => {
                self.word_suffix = Some(text("suffix"));
            }
            other => return Err(format!("the decoder '{other}' is not supported").into()),
        }
        Ok(())
    }

    fn bytes(&self, token: &str) -> Vec<u8> {
        if let Some(letters) = &self.byte_letters {
            return letters
                .decode(token)
                .unwrap_or_else(|| token.as_bytes().to_vec());
        }
        if self.byte_tokens {
            if let Some(byte) = byte_of(token) {
                return vec![byte];
            }
        }
        let mut text = token.to_string();
        for (from, to) in &self.replacements {
            text = text.replace(from.as_str(), to);
        }
        if let Some(prefix) = &self.word_prefix {
            text = match text.strip_prefix(prefix.as_str()) {
                Some(rest) => rest.to_string(),
                None => format!(" {text}"),
            };
        }
        if let Some(suffix) = &self.word_suffix {
            text = text.replace(suffix.as_str(), " ");
        }
        text.into_bytes()
    }
}

/// Reads the decoder of a tokenizer.json and applies it to every token.
pub fn from_tokenizer(tokenizer: &Tokenizer) -> Result<Pieces> {
    let mut rule = DecoderRule::default();
    if let Some(decoder) = tokenizer.get_decoder() {
        rule.read(&serde_json::to_value(decoder)?)?;
    }
    let vocabulary = tokenizer.get_vocab(true);
    let added = tokenizer.get_added_tokens_decoder();
    let count = vocabulary.values().max().map_or(0, |&id| id as usize + 1);
    if count > 1 << 24 {
        return Err(format!("token id {} is out of range", count - 1).into());
    }
    let mut texts: Vec<Option<&str>> = vec![None; count];
    for (text, &id) in &vocabulary {
        texts[id as usize] = Some(text);
    }
    let mut pieces = Pieces {
        strips_first_space: rule.strips_first_space,
        ..Pieces::default()
    };
    for (id, text) in texts.iter().enumerate() {
        let text = text.unwrap_or_default();
        let special = added.get(&(id as u32)).is_some_and(|token| token.special);
        if special {
            pieces.push(text, text.as_bytes(), true);
        } else {
            pieces.push(text, &rule.bytes(text), false);
        }
    }
    Ok(pieces)
}
