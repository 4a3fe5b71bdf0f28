//! Python's spelling of JSON and of dates, which templates count on.

use std::ffi::CString;
use std::fmt::Write;

use minijinja::value::{Value, ValueKind};
use minijinja::{Error, ErrorKind};

/// The arguments of json.dumps that the tojson filter of transformers takes.
pub struct JsonStyle {
    pub ensure_ascii: bool,
    pub indent: Option<String>,
    pub item_separator: String,
    pub key_separator: String,
    pub sort_keys: bool,
}

impl JsonStyle {
    pub fn write(&self, value: &Value) -> Result<String, Error> {
        let mut out = String::new();
        self.value(value, 0, &mut out)?;
        Ok(out)
    }

    fn line(&self, depth: usize, out: &mut String) {
        if let Some(indent) = &self.indent {
            out.push('\n');
            for _ in 0..depth {
                out.push_str(indent);
            }
        }
    }

    fn value(&self, value: &Value, depth: usize, out: &mut String) -> Result<(), Error> {
        if depth > 200 {
            return Err(Error::new(
                ErrorKind::InvalidOperation,
                "tojson: nested too deeply",
            ));
        }
        match value.kind() {
            ValueKind::None => out.push_str("null"),
            ValueKind::Bool => out.push_str(if value.is_true() { "true" } else { "false" }),
            ValueKind::Number if value.is_integer() => out.push_str(&value.to_string()),
            ValueKind::Number => {
                out.push_str(&float(f64::try_from(value.clone()).unwrap_or(f64::NAN)))
            }
            ValueKind::String => self.string(value.as_str().unwrap_or_default(), out),
            ValueKind::Seq | ValueKind::Iterable => {
                let items: Vec<Value> = value.try_iter()?.collect();
                out.push('[');
                for (i, item) in items.iter().enumerate() {
                    if i > 0 {
                        out.push_str(&self.item_separator);
                    }
                    self.line(depth + 1, out);
                    self.value(item, depth + 1, out)?;
                }
                if !items.is_empty() {
                    self.line(depth, out);
                }
                out.push(']');
            }
            ValueKind::Map => {
                let mut keys: Vec<Value> = value.try_iter()?.collect();
                if self.sort_keys {
                    keys.sort();
                }
                out.push('{');
                for (i, key) in keys.iter().enumerate() {
                    if i > 0 {
                        out.push_str(&self.item_separator);
                    }
                    self.line(depth + 1, out);
                    match key.kind() {
                        ValueKind::String => self.string(key.as_str().unwrap_or_default(), out),
                        _ => {
                            let mut text = String::new();
                            self.value(key, depth + 1, &mut text)?;
                            self.string(&text, out);
                        }
                    }
                    out.push_str(&self.key_separator);
                    self.value(&value.get_item(key)?, depth + 1, out)?;
                }
                if !keys.is_empty() {
                    self.line(depth, out);
                }
                out.push('}');
            }
            kind => {
                let message = format!("tojson: a value of kind {kind} has no JSON form");
                return Err(Error::new(ErrorKind::InvalidOperation, message));
            }
        }
        Ok(())
    }

    fn string(&self, text: &str, out: &mut String) {
        out.push('"');
        for c in text.chars() {
            match c {
                '"' => out.push_str("\\\""),
                '\\' => out.push_str("\\\\"),
                '\n' => out.push_str("\\n"),
                '\r' => out.push_str("\\r"),
                '\t' => out.push_str("\\t"),
                '\u{8}' => out.push_str("\\b"),
                '\u{c}' => out.push_str("\\f"),
                c if c < ' ' || (self.ensure_ascii && c > '~') => {
                    for unit in c.encode_utf16(&mut [0; 2]) {
                        let _ = write!(out, "\\u{unit:04x}");
                    }
                }
                c => out.push(c),
            }
        }
        out.push('"');
    }
}

/// repr() of a Python float: the shortest digits that read back, scientific outside 1e-4 to 1e16.
fn float(value: f64) -> String {
    if value.is_nan() {
        return "NaN".to_string();
    }
    if value.is_infinite() {
        return if value > 0.0 { "Infinity" } else { "-Infinity" }.to_string();
    }
    let scientific = format!("{value:e}");
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if value != 0.0 && !(-4..16).contains(&exponent) {
        let sign = if exponent < 0 { '-' } else { '+' };
        return format!("{digits}e{sign}{:02}", exponent.abs());
    }
    let plain = format!("{value}");
    if plain.contains('.') {
        plain
    } else {
        plain + ".0"
    }
}

/// The local time `now` in seconds since 1970 by a strftime format.
pub fn strftime(format: &str, now: i64) -> Result<String, String> {
    let bad = || format!("strftime_now: bad format '{format}'");
    if format.is_empty() {
        return Ok(String::new());
    }
    // The mark at the end tells an empty result from a short buffer.
    let c_format = CString::new(format!("{format}|")).map_err(|_| bad())?;
    let time: libc::time_t = now;
    let mut buffer = vec![0u8; 64 + 16 * format.len().min(4096)];
    let length = unsafe {
        let mut parts: libc::tm = std::mem::zeroed();
        if libc::localtime_r(&time, &mut parts).is_null() {
            return Err(bad());
        }
        libc::strftime(
            buffer.as_mut_ptr().cast(),
            buffer.len(),
            c_format.as_ptr(),
            &parts,
        )
    };
    if length == 0 {
        return Err(bad());
    }
    buffer.truncate(length - 1);
    String::from_utf8(buffer).map_err(|_| bad())
}
