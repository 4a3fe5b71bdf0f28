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
const UFAKZEKA: &str = r"[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";
const EXAONE_MOE: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?(?:\p{L}\p{M}*(?: \p{L}\p{M}*)*)+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]?|\s*[\r\n]|\s+(?!\S)|\s+";
const MINICPM5: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}+| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";
const KIMI_K2: &str = r"[\p{Han}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";
const DEEPSEEK3_CJK: &str = "[一-龥\u{3040}-ゟ゠-ヿ]+";
const DEEPSEEK3: &str = r##"[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"##;
const SPARK: &str = r##"[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+|[\r\n]|\s+(?!\S)|\s+"##;
const DEEPSEEK_LETTERS: &str = r"\s?[A-Za-zµÀ-ÖØ-öø-ƺƼ-ƿǄ-ʓʕ-ʯͰ-ͳͶͷͻ-ͽͿΆΈ-ΊΌΎ-ΡΣ-ϵϷ-ҁҊ-ԯԱ-ՖႠ-ჅᎠ-Ᏽᏸ-ᏽᲐ-ᲺᲽ-Ჿᴀ-ᴫᵫ-ᵷᵹ-ᶚḀ-ἕἘ-Ἕἠ-ὅὈ-Ὅὐ-ὗὙὛὝὟ-ώᾀ-ᾴᾶ-ᾼιῂ-ῄῆ-ῌῐ-ΐῖ-Ίῠ-Ῥῲ-ῴῶ-ῼℂℇℊ-ℓℕℙ-ℝℤΩℨK-ℭℯ-ℴℹℼ-ℿⅅ-ⅉⅎↃↄⰀ-ⱻⱾ-ⳤⳫ-ⳮⳲⳳꙀ-ꙭꚀ-ꚛꜢ-ꝯꝱ-ꞇꞋ-ꞎꭰ-ꮿﬀ-ﬆﬓ-ﬗＡ-Ｚａ-ｚ𐐀-𐑏𐒰-𐓓𐓘-𐓻𐲀-𐲲𐳀-𐳲𑢠-𑣟𞤀-𞥃]+";
const DEEPSEEK_MARKS: &str = r"\s?[!-/:-~！-／：-～‘-‟　-。]+";
const DEEPSEEK_CJK: &str = "[一-龥ࠀ-一가-\u{d7ff}]+";
const YOUTU_CJK: &str = r"[가-힣ㄱ-ㆎ]+|[！…“”‘’—：；，、-〿︰-﹏]+|[ㄅ-ㄯ]+|[一-龥぀-ゟ゠-ヿ]+";
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
