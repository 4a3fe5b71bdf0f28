//! The splitting rules behind the names in `tokenizer.ggml.pre`.
//!
//! Where the model's own tokenizer.json is known, its rule stands here rather than llama.cpp's
//! paraphrase of it.

use tokenizers::pre_tokenizers::byte_level::ByteLevel;
use tokenizers::pre_tokenizers::digits::Digits;
use tokenizers::pre_tokenizers::punctuation::Punctuation;
use tokenizers::pre_tokenizers::sequence::Sequence;
use tokenizers::pre_tokenizers::split::{Split, SplitPattern};
use tokenizers::{PreTokenizerWrapper, Result, SplitDelimiterBehavior};

/// One step; each works on the pieces that the former left.
enum Step {
    /// Every match is a piece of its own, and so is what lies between.
    Regex(&'static str),
    /// Every digit is a piece.
    EachDigit,
    /// Runs of digits are pieces.
    DigitRuns,
    PunctuationRuns,
    /// GPT-2's rule, after which the text is in byte letters.
    Gpt2,
}

/// How the letters of the vocabulary relate to bytes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Letters {
    /// GPT-2's 256 letters for the 256 bytes.
    Bytes,
    /// Plain text with U+2581 for a space and `<0xXX>` tokens for what is missing.
    Text,
}

pub struct PreKind {
    steps: Vec<Step>,
    pub letters: Letters,
    /// A piece that is a token is taken whole.
    pub ignore_merges: bool,
    pub add_bos: bool,
    /// The model's own tokenizer.json composes characters first.
    pub nfc: bool,
}

const GPT2: &str = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+";
const LLAMA3: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";
const QWEN2: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";
const QWEN35: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";
const GPT4O: &str = r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+";
const TEKKEN: &str = r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+";
const YOUTU: &str = r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+";
const JAIS2: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s{512}(?!\S)|\s{256}(?!\S)|\s{128}(?!\S)|\s{64}(?!\S)|\s{32}(?!\S)|\s{16}(?!\S)|\s{8}(?!\S)|\s{4}(?!\S)|\s{1,2}(?!\S)|\s{1}";
const SEED_CODER: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1}| ?[^\s\p{L}\p{N}\r\n]+|\s*[\r\n]+|\s+(?!\S)|\s+";
const BAILING: &str = r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+";
const UFAKZEKA: &str =
    r"[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";
const EXAONE_MOE: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?(?:\p{L}\p{M}*(?: \p{L}\p{M}*)*)+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]?|\s*[\r\n]|\s+(?!\S)|\s+";
const MINICPM5: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}+| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";
const KIMI_K2: &str = r"[\p{Han}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";
const DEEPSEEK3_CJK: &str = r"[\x{4E00}-\x{9FA5}\x{3040}-\x{309F}\x{30A0}-\x{30FF}]+";
const DEEPSEEK3: &str = r##"[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"##;
const SPARK: &str = r##"[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+|[\r\n]|\s+(?!\S)|\s+"##;
const DEEPSEEK_LETTERS: &str = concat!(
    r"\s?[",
    r"A-Za-z\x{00B5}\x{00C0}-\x{00D6}\x{00D8}-\x{00F6}\x{00F8}-\x{01BA}\x{01BC}-\x{01BF}",
    r"\x{01C4}-\x{0293}\x{0295}-\x{02AF}\x{0370}-\x{0373}\x{0376}\x{0377}\x{037B}-\x{037D}",
    r"\x{037F}\x{0386}\x{0388}-\x{038A}\x{038C}\x{038E}-\x{03A1}\x{03A3}-\x{03F5}",
    r"\x{03F7}-\x{0481}\x{048A}-\x{052F}\x{0531}-\x{0556}\x{10A0}-\x{10C5}",
    r"\x{13A0}-\x{13F5}\x{13F8}-\x{13FD}\x{1C90}-\x{1CBA}\x{1CBD}-\x{1CBF}",
    r"\x{1D00}-\x{1D2B}\x{1D6B}-\x{1D77}\x{1D79}-\x{1D9A}\x{1E00}-\x{1F15}",
    r"\x{1F18}-\x{1F1D}\x{1F20}-\x{1F45}\x{1F48}-\x{1F4D}\x{1F50}-\x{1F57}\x{1F59}\x{1F5B}",
    r"\x{1F5D}\x{1F5F}-\x{1F7D}\x{1F80}-\x{1FB4}\x{1FB6}-\x{1FBC}\x{1FBE}\x{1FC2}-\x{1FC4}",
    r"\x{1FC6}-\x{1FCC}\x{1FD0}-\x{1FD3}\x{1FD6}-\x{1FDB}\x{1FE0}-\x{1FEC}",
    r"\x{1FF2}-\x{1FF4}\x{1FF6}-\x{1FFC}\x{2102}\x{2107}\x{210A}-\x{2113}\x{2115}",
    r"\x{2119}-\x{211D}\x{2124}\x{2126}\x{2128}\x{212A}-\x{212D}\x{212F}-\x{2134}\x{2139}",
    r"\x{213C}-\x{213F}\x{2145}-\x{2149}\x{214E}\x{2183}\x{2184}\x{2C00}-\x{2C7B}",
    r"\x{2C7E}-\x{2CE4}\x{2CEB}-\x{2CEE}\x{2CF2}\x{2CF3}\x{A640}-\x{A66D}\x{A680}-\x{A69B}",
    r"\x{A722}-\x{A76F}\x{A771}-\x{A787}\x{A78B}-\x{A78E}\x{AB70}-\x{ABBF}",
    r"\x{FB00}-\x{FB06}\x{FB13}-\x{FB17}\x{FF21}-\x{FF3A}\x{FF41}-\x{FF5A}",
    r"\x{10400}-\x{1044F}\x{104B0}-\x{104D3}\x{104D8}-\x{104FB}\x{10C80}-\x{10CB2}",
    r"\x{10CC0}-\x{10CF2}\x{118A0}-\x{118DF}\x{1E900}-\x{1E943}",
    r"]+",
);
const DEEPSEEK_MARKS: &str =
    r"\s?[!-/:-~\x{FF01}-\x{FF0F}\x{FF1A}-\x{FF5E}\x{2018}-\x{201F}\x{3000}-\x{3002}]+";
const DEEPSEEK_CJK: &str = r"[\x{4E00}-\x{9FA5}\x{0800}-\x{4E00}\x{AC00}-\x{D7FF}]+";
const YOUTU_CJK: &str = r"[\x{AC00}-\x{D7A3}\x{3131}-\x{318E}]+|[\x{FF01}\x{2026}\x{201C}\x{201D}\x{2018}\x{2019}\x{2014}\x{FF1A}\x{FF1B}\x{FF0C}\x{3001}-\x{303F}\x{FE30}-\x{FE4F}]+|[\x{3105}-\x{312F}]+|[\x{4E00}-\x{9FA5}\x{3040}-\x{309F}\x{30A0}-\x{30FF}]+";
const BLOOM: &str = r" ?[^(\s|[.,!?…。，、।۔،])]+";
const THREE_DIGITS: &str = r"\p{N}{1,3}";

/// The kind of that name; None when it is unknown.
pub fn pre_kind(name: &str) -> Option<PreKind> {
    use Step::*;
    let steps = match name {
        "llama3" | "llama-v3" | "llama-bpe" | "falcon3" | "falcon-h1" | "pixtral" | "midm-2.0"
        | "lfm2" | "jina-v5-nano" | "dbrx" | "smaug-bpe" | "chatglm-bpe" | "glm4" | "glm5" => {
            vec![Regex(LLAMA3)]
        }
        "jais-2" => vec![Regex(JAIS2)],
        "deepseek-llm" => vec![
            Regex(r"[\r\n]"),
            Regex(DEEPSEEK_LETTERS),
            Regex(DEEPSEEK_MARKS),
            Regex(r"\s+$"),
            Regex(DEEPSEEK_CJK),
            Regex(r"\p{N}+"),
        ],
        "deepseek-coder" => vec![
            Regex(r"[\r\n]"),
            Regex(r"\s?\p{L}+"),
            Regex(r"\s?\p{P}+"),
            Regex(DEEPSEEK_CJK),
            EachDigit,
        ],
        "deepseek-v3" | "hunyuan-dense" | "joyai-llm" | "hy_v4" => {
            vec![Regex(THREE_DIGITS), Regex(DEEPSEEK3_CJK), Regex(DEEPSEEK3)]
        }
        "spark2_5" => vec![
            Regex(THREE_DIGITS),
            Regex(DEEPSEEK3_CJK),
            Regex(SPARK),
            Regex(r"\p{N}"),
        ],
        "youtu" => vec![Regex(YOUTU_CJK), Regex(YOUTU)],
        "falcon" => vec![PunctuationRuns, Gpt2, DigitRuns, Regex("[0-9][0-9][0-9]")],
        "default" => vec![
            Regex(r"[\p{P}\$\+<=>\^~\|]+"),
            Regex(GPT2),
            Regex(r"\p{N}+"),
            Regex("[0-9][0-9][0-9]"),
        ],
        "starcoder" | "refact" | "command-r" | "smollm" | "codeshell" | "exaone" | "minerva-7b"
        | "mellum2" => vec![EachDigit, Gpt2],
        "gpt-2" | "phi-2" | "jina-es" | "jina-de" | "gigachat" | "jina-v2-es" | "jina-v2-de"
        | "a.x-4.0" | "mellum" | "modern-bert" | "jina-v1-en" | "jina-v2-code" | "roberta-bpe"
        | "mpt" | "olmo" | "jais" | "trillion" | "granite-docling" | "exaone4" => vec![Gpt2],
        "qwen2" | "deepseek-r1-qwen" | "kormo" | "f2llmv2" | "stablelm2" | "hunyuan"
        | "solar-open" | "megrez" | "grok-2" => vec![Regex(QWEN2)],
        "qwen35" => vec![Regex(QWEN35)],
        "poro-chat" | "bloom" | "gpt3-finnish" => vec![Regex(BLOOM)],
        "viking" => vec![Regex(BLOOM), EachDigit],
        "tekken" => vec![Regex(TEKKEN)],
        "chameleon" => vec![
            Regex("<sentinel:[0-9]+>"),
            Regex("(IMGIMG)((A|B|C|D|E|F|G|H|I){1,4})Z"),
            Regex(r"([\t\n]|    |  )"),
            EachDigit,
            Regex(r"[\p{P}!-/:-@\[-`{-~]"),
            Gpt2,
        ],
        "gpt-4o" | "llama4" | "kanana2" | "talkie" | "minimax-m2" | "granite-embed-multi-97m" => {
            vec![Regex(GPT4O)]
        }
        "tiny_aya" | "cohere2moe" => {
            vec![Regex(r"\d{1,3}(?=(?:\d{3})*\b)"), Regex(GPT4O)]
        }
        "kimi-k2" => vec![Regex(KIMI_K2)],
        "superbpe" => vec![Regex(r"\p{N}+"), Regex(r"(?=(\d{3})+(?!\d))")],
        "bailingmoe" | "bailingmoe2" | "llada-moe" => vec![Regex(BAILING)],
        "seed-coder" => vec![Regex(SEED_CODER)],
        "ufakzeka" => vec![Regex(UFAKZEKA)],
        "laguna" => vec![Regex(r"[^\n]+|[\n]+"), Regex(QWEN2)],
        "exaone-moe" => vec![Regex(EXAONE_MOE)],
        "minicpm5" => vec![Regex(THREE_DIGITS), Regex(MINICPM5)],
        "gemma4" | "granite-embed-multi-311m" | "sarvam-moe" => vec![Regex(r"[^\n]+|[\n]+")],
        _ => return None,
    };
    let letters = match name {
        "gemma4" | "granite-embed-multi-311m" | "sarvam-moe" => Letters::Text,
        _ => Letters::Bytes,
    };
    let llama3 = matches!(
        name,
        "llama3"
            | "llama-v3"
            | "llama-bpe"
            | "falcon3"
            | "falcon-h1"
            | "pixtral"
            | "midm-2.0"
            | "lfm2"
            | "jina-v5-nano"
    );
    Some(PreKind {
        steps,
        letters,
        nfc: matches!(name, "qwen2" | "mpt"),
        ignore_merges: llama3
            || matches!(
                name,
                "minicpm5" | "youtu" | "glm4" | "glm5" | "tekken" | "granite-embed-multi-97m"
            ),
        add_bos: llama3
            || matches!(
                name,
                "tekken" | "chameleon" | "gemma4" | "granite-embed-multi-311m"
            ),
    })
}

impl PreKind {
    pub fn build(&self) -> Result<PreTokenizerWrapper> {
        let mut parts: Vec<PreTokenizerWrapper> = Vec::new();
        let mut in_bytes = false;
        for step in &self.steps {
            parts.push(match step {
                Step::Regex(pattern) => Split::new(
                    SplitPattern::Regex((*pattern).to_string()),
                    SplitDelimiterBehavior::Isolated,
                    false,
                )?
                .into(),
                Step::EachDigit => Digits::new(true).into(),
                Step::DigitRuns => Digits::new(false).into(),
                Step::PunctuationRuns => {
                    Punctuation::new(SplitDelimiterBehavior::Contiguous).into()
                }
                Step::Gpt2 => {
                    in_bytes = true;
                    ByteLevel::new(false, true, true).into()
                }
            });
        }
        if self.letters == Letters::Bytes && !in_bytes {
            parts.push(ByteLevel::new(false, true, false).into());
        }
        Ok(Sequence::new(parts).into())
    }
}
